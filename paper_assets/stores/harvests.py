"""Store pages of a harvest and what sources listed for each day, and find the days that lack papers.

Harvests: the papers of a page and the position at which the harvest resumes are written in one transaction (Z4).

Listings: which days sources listed, which answers were rejected, and which days are incomplete (A6). A day is replaced
by fewer papers only if the source proves that they were removed: an answer that would remove more than one paper in
twenty is rejected until the same answer arrives again at least an hour later, or an operator confirms it. Papers in a
rejected answer are stored; papers missing from it are kept. Days that lack papers are grouped into spans, each with the
command that fetches them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from hashlib import sha256
from io import BytesIO
from typing import Any, Literal

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.announcements import AskedDay, closing, deferred
from paper_assets.errors import StoreBusy
from paper_assets.paper import Paper, paper_schema, papers_from_table
from paper_assets.stores.paper_merging import (
    DayChange,
    MergeReport,
    Removal,
    content_hash,
    merge_rows,
    replace_day,
    write_rows,
)
from paper_assets.stores.warehouse import Warehouse, read_time, records_of, stored_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Represent the position of a harvest: finished sets, current window (last_day None: until now), next page."""

    sets_done: int
    first_day: date
    last_day: date | None
    next_page: str | None = None
    pages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPage:
    """Report what storing a page changed; `left_out` papers are of days before the harvest and not stored."""

    merged: MergeReport
    left_out: int
    withdrawn: int


def place_of(warehouse: Warehouse, harvest: str) -> Place | None:
    """Return the position at which an unfinished harvest resumes; None if there is none."""
    with warehouse.reading() as connection:
        return _place(connection, harvest)


def keep_page(
    warehouse: Warehouse,
    harvest: str,
    papers: Sequence[Paper],
    *,
    removed: Sequence[str] = (),
    not_before: date,
    before: Place | None,
    after: Place | None,
) -> KeptPage:
    """Store a page's papers and move the harvest from `before` to `after` (None: finished), all or nothing.

    A paper of a day before `not_before` only updates a stored one: its day would be incomplete. Papers that the source
    removed (`removed`) are kept and marked as withdrawn (S6). Raises StoreBusy if another process has advanced the
    harvest.
    """
    with warehouse.writing(own_settings=True) as connection:
        if _place(connection, harvest) != before:
            raise StoreBusy(
                "another process is running the same harvest; wait until it has ended, or end it and try again"
            )
        old = [paper.paper_id for paper in papers if paper.day is None or paper.day < not_before]
        unknown = set(old) - _stored(connection, old)
        stream = BytesIO()
        write_rows((paper for paper in papers if paper.paper_id not in unknown), stream)
        merged = merge_rows(connection, stream, origin="file")
        withdrawn = _withdraw(connection, removed)
        _move(connection, harvest, after)
    return KeptPage(merged=merged, left_out=len(unknown), withdrawn=withdrawn)


def _place(connection: DuckDBPyConnection, harvest: str) -> Place | None:
    query = "select sets_done, first_day, last_day, next_page, pages from harvests where harvest = $harvest"
    rows = records_of(connection, query, {"harvest": harvest})
    return Place(**rows[0]) if rows else None


def _move(connection: DuckDBPyConnection, harvest: str, after: Place | None) -> None:
    if after is None:
        connection.execute("delete from harvests where harvest = ?", [harvest])
        return
    connection.execute(
        "insert or replace into harvests values (?, ?, ?, ?, ?, ?)",
        [harvest, after.sets_done, after.first_day, after.last_day, after.next_page, after.pages],
    )


def _stored(connection: DuckDBPyConnection, ids: Sequence[str]) -> set[str]:
    connection.register("requested", pa.table({"paper_id": pa.array(ids, pa.string())}))
    rows = connection.execute("select paper_id from papers join requested using (paper_id)").fetchall()
    return {paper_id for (paper_id,) in rows}


def _withdraw(connection: DuckDBPyConnection, ids: Sequence[str]) -> int:
    found = connection.sql(
        """
        select * exclude (day, text_hash, content_hash, origin)
        from papers
        where paper_id in (select unnest($ids::varchar[])) and not withdrawn
        order by paper_id
        """,
        params={"ids": list(ids)},
    ).to_arrow_table()
    papers = papers_from_table(found.cast(paper_schema()))
    for paper in papers:
        connection.execute(
            "update papers set withdrawn = true, content_hash = ? where paper_id = ?",
            [content_hash(replace(paper, withdrawn=True)), paper.paper_id],
        )
    return len(papers)


_LET_ONE_GO = 20  # stored papers per paper that may be removed by a single answer; smaller days lose none
_SAME_FAULT = timedelta(hours=1)  # an index under repair repeats its answer for minutes, and a run is retried after two
_LONGEST_REASON = 500  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Describe a rejected answer: stored papers of the day from this source, papers in the answer, and since when."""

    stored: int
    answered: int
    since: datetime

    def __str__(self) -> str:
        again = self.since + _SAME_FAULT
        return (
            f"the answer has {self.answered} papers where {self.stored} are stored, which are kept; the same "
            f"answer from {again:%Y-%m-%d %H:%M} UTC on is accepted"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptListing:
    """Report what storing an answer changed, and the doubt if missing papers were kept."""

    change: DayChange
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTrouble:
    """Describe a problem with a day of a source. `failed` days may hold papers of an earlier answer."""

    source: str
    day: date
    kind: Literal["missing", "failed", "doubted", "empty"]
    reason: str


def keep_listing(
    warehouse: Warehouse,
    day: date,
    papers: Sequence[Paper],
    *,
    source: str,
    now: datetime,
    believe: bool = False,
    categories: Sequence[str] = (),
) -> KeptListing:
    """Replace the day by a source's answer, unless the answer has doubtfully few papers.

    `now`: aware UTC time of the answer. `believe`: accept the answer whatever it lacks. `categories`: those that were
    asked for. Raises StoreError.
    """
    doubts: list[Doubt] = []
    answer = sha256(",".join(sorted(paper.paper_id for paper in papers)).encode()).hexdigest()[:32]

    def may_remove(connection: DuckDBPyConnection, removal: Removal) -> bool:
        """Decide whether the missing papers are removed, and record a doubt if not."""
        lost = removal.removed > removal.stored // _LET_ONE_GO
        since = min(_first_seen(connection, source, day, answer) or now, now)  # the clock may have been set back
        doubt = None
        if lost and not believe and now - since < _SAME_FAULT:
            doubt = Doubt(stored=removal.stored, answered=len(papers), since=since)
            doubts.append(doubt)
        _note(connection, source, day, papers=len(papers), doubt=doubt, answer=answer)
        if doubt is None:
            newest = max((paper.published for paper in papers if paper.published), default=None)
            _note_answer(connection, source, day, now=now, newest=newest, categories=categories)
        return doubt is None

    change = replace_day(warehouse, day, papers, source=source, may_remove=may_remove)
    return KeptListing(change=change, doubt=doubts[0] if doubts else None)


def follow_days(warehouse: Warehouse, days: Iterable[date], *, source: str) -> None:
    """Record that these days are followed, before they are fetched: a run that is killed leaves them missing."""
    followed = sorted(set(days))
    with warehouse.reading() as connection:
        known = {row[0] for row in _rows(connection, source)}
    new = [day for day in followed if day not in known]
    if new:
        warehouse.run(
            "insert or ignore into day_listings (source, day) select $source, unnest($days)",
            {"source": source, "days": new},
        )


def note_failure(warehouse: Warehouse, days: Sequence[date], reason: str, *, source: str) -> None:
    """Record why a source gave no answer for the days; their stored papers are kept."""
    about = {"source": source, "days": list(days), "reason": reason[:_LONGEST_REASON]}
    warehouse.run(
        """
        insert into day_listings (source, day, failure) select $source, unnest($days), $reason
        on conflict do update set failure = excluded.failure
        """,
        about,
    )


def day_troubles(warehouse: Warehouse, *, sources: Sequence[str]) -> list[DayTrouble]:
    """Return the incomplete days of these sources, ascending, between the first and the last one fetched.

    missing: never answered, and no file supplied papers either. failed: the last attempt failed. doubted: an answer
    with far fewer papers was rejected. empty: a weekday without papers after all of them were to be announced.
    """
    with warehouse.reading() as connection:
        days = connection.execute("select day, bool_or(origin = 'file') from papers group by day").fetchall()
        listed = {source: {row[0]: row[1:] for row in _rows(connection, source)} for source in sources}
    filled, from_files = {day for day, _ in days}, {day for day, has_file in days if has_file}
    troubles = []
    for source, rows in listed.items():
        for day in _span(rows):
            papers, failure, doubted, doubted_at, asked_at = rows.get(day, (None,) * 5)
            found: tuple[Literal["missing", "failed", "doubted", "empty"], str] | None = None
            if failure is not None:
                found = "failed", failure
            elif doubted_at is not None:
                found = "doubted", f"the last answer had {doubted} papers, far fewer than are stored"
            elif papers is None and day not in from_files:
                found = "missing", "never fetched" if day not in rows else "requested and not answered"
            elif day.weekday() < 5 and day not in filled and not _is_awaited(day, asked_at):
                found = "empty", "no papers; a holiday, or a day lost"
            if found is not None:
                troubles.append(DayTrouble(source=source, day=day, kind=found[0], reason=found[1]))
    return sorted(troubles, key=lambda trouble: (trouble.day, trouble.source))


NOT_FETCHED = "are not fetched yet"  # of the papers of a day, which is not "no new papers"


def was_fetched(warehouse: Warehouse, day: date) -> bool:
    """Return whether a source answered for the day, or papers of it are stored: else an empty list proves nothing."""
    return why_unfetched(warehouse, day) is None


def why_unfetched(warehouse: Warehouse, day: date) -> str | None:
    """Return in words why the papers of a day are unknown: never fetched, or the last attempt failed. None if known."""
    [(known, failure)] = warehouse.once(
        ("why_unfetched", day),
        lambda: warehouse.rows(
            """
            select
                exists (from day_listings where day = $day and papers is not null)
                or exists (from papers where day = $day),
                (select max(failure) from day_listings where day = $day)
            """,
            {"day": day},
        ),
    )
    return None if known else f"could not be fetched ({failure})" if failure else NOT_FETCHED


def _is_awaited(day: date, asked_at: datetime | None) -> bool:
    """Return whether an empty day will be asked again, because its papers are announced after the last answer."""
    return asked_at is not None and (read_time(asked_at) < closing(day) or deferred(day))


def _span(rows: Iterable[date]) -> list[date]:
    days = sorted(rows)
    return [days[0] + timedelta(days=at) for at in range((days[-1] - days[0]).days + 1)] if days else []


def _rows(connection: DuckDBPyConnection, source: str) -> list[tuple[Any, ...]]:
    return connection.execute(
        "select day, papers, failure, doubted_papers, doubted_at, asked_at from day_listings where source = ?",
        [source],
    ).fetchall()


def _first_seen(connection: DuckDBPyConnection, source: str, day: date, answer: str) -> datetime | None:
    """Return when this doubtful answer first arrived; None if the last doubtful one was another, or there was none."""
    rows = connection.execute(
        "select doubted_at from day_listings where source = ? and day = ? and doubted = ?", [source, day, answer]
    ).fetchall()
    return read_time(rows[0][0]) if rows else None


def _note(
    connection: DuckDBPyConnection, source: str, day: date, *, papers: int, doubt: Doubt | None, answer: str
) -> None:
    """Write the row of the day if it changed: an equal answer leaves the file unchanged."""
    values = (
        (papers, None, None, None, None)
        if doubt is None
        else (None, None, answer, doubt.answered, stored_time(doubt.since))
    )
    connection.execute("insert or ignore into day_listings (source, day) values (?, ?)", [source, day])
    connection.execute(
        """
        update day_listings
        set
            papers = coalesce($papers, papers), -- a doubtful answer leaves the last one that was believed
            failure = $failure,
            doubted = $doubted,
            doubted_papers = $doubted_papers,
            doubted_at = $doubted_at
        where
            source = $source
            and day = $day
            and (papers, failure, doubted, doubted_papers, doubted_at)
                is distinct from (coalesce($papers, papers), $failure, $doubted, $doubted_papers, $doubted_at)
        """,
        {
            "source": source,
            "day": day,
            **dict(zip(("papers", "failure", "doubted", "doubted_papers", "doubted_at"), values, strict=True)),
        },
    )


def _note_answer(
    connection: DuckDBPyConnection,
    source: str,
    day: date,
    *,
    now: datetime,
    newest: datetime | None,
    categories: Sequence[str],
) -> None:
    connection.execute(
        "update day_listings set asked_at = ?, newest = ?, categories = ? where source = ? and day = ?",
        [stored_time(now), newest and stored_time(newest), sorted(categories), source, day],
    )


def asked_days(warehouse: Warehouse, *, source: str, categories: Sequence[str], since: date) -> dict[date, AskedDay]:
    """Return the last accepted answer about each day from `since` on, if it covered all these categories."""
    rows = warehouse.rows(
        """
        select day, asked_at, papers, newest
        from day_listings
        where source = $source and day >= $since and asked_at is not null and list_has_all(categories, $categories)
        """,
        {"source": source, "since": since, "categories": list(categories)},
    )
    return {
        day: AskedDay(asked_at=read_time(asked_at), papers=papers, newest=newest and read_time(newest))
        for day, asked_at, papers, newest in rows
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingDays:
    """Consecutive days with the same problem; `command` fetches them again."""

    first: date
    last: date
    days: int
    source: str
    kind: str
    reason: str
    command: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}; {self.command}"


def missing_days(troubles: Sequence[DayTrouble]) -> list[MissingDays]:
    """Group problems (ascending) into spans of days that one command fixes, ascending."""
    spans: list[list[DayTrouble]] = []
    open_spans: dict[str, list[DayTrouble]] = {}
    for trouble in troubles:
        span = open_spans.get(trouble.source)
        if span and _continues(span[-1], trouble):
            span.append(trouble)
        else:
            span = open_spans[trouble.source] = [trouble]
            spans.append(span)
    return [
        MissingDays(
            first=span[0].day,
            last=span[-1].day,
            days=len(span),
            source=span[0].source,
            kind=span[0].kind,
            reason=span[-1].reason,
            command=_command(span),
        )
        for span in spans
    ]


def _continues(before: DayTrouble, trouble: DayTrouble) -> bool:
    """Return whether a day has the same problem as the one before; a weekend may separate two empty days."""
    gap = trouble.day - before.day
    near = gap == timedelta(days=1) or (before.kind == "empty" and before.day.weekday() == 4 and gap.days == 3)
    return near and (before.kind, before.reason) == (trouble.kind, trouble.reason)


def _command(span: Sequence[DayTrouble]) -> str:
    to = f" --to {span[-1].day}" if len(span) > 1 else ""
    accept = " --accept-fewer" if span[0].kind == "doubted" else ""
    return f"`paper-assets fetch --day {span[0].day}{to}{accept}`"
