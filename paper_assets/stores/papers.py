"""The table of papers: one row per arXiv id, its newest known version. Written by the day or from a stream.

Which of two records of one paper stays: the higher version; at the same version what the API said over what a
file says; otherwise the later word. Within one stream the order of the lines does not matter.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from io import BytesIO
from typing import IO, Literal

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.paper import Paper, paper_schema, papers_from_table
from paper_assets.paper_id import ARXIV, unversioned
from paper_assets.stores.paper_rows import chosen_rows, judged_rows, write_rows
from paper_assets.stores.scratch import scratch_file
from paper_assets.stores.warehouse import Warehouse, value_of

Origin = Literal["arxiv", "file"]  # from any source's own list of a day, from a file

# Bytes DuckDB may use for a merge; without a limit it takes most of the machine's. The index of ids has to fit:
# 2.7 million short rows fail under 192 MB and pass under 256 MB, 200,000 whole papers pass under 128 MB.
_MEMORY, _MEMORY_PER_ROW = 192_000_000, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DayChange:
    """What writing a day did; `unchanged` counts records that were already known, or known in a newer version.

    `other_days` counts the papers that were added or updated under days of their own.
    """

    added: int
    updated: int
    removed: int
    unchanged: int
    other_days: Mapping[date, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What an answer would remove: so many of the papers that the source has listed for the day, or in it."""

    stored: int
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReport:
    """What an import did. read = repeated + added + updated + unchanged; `days` counts changed papers by their day."""

    read: int
    repeated: int
    added: int
    updated: int
    unchanged: int
    undated: int  # papers read whose date is unknown: kept, but in no partition
    days: dict[date, int]


def replace_day(
    warehouse: Warehouse,
    day: date,
    papers: Iterable[Paper],
    *,
    source: str = ARXIV,
    may_remove: Callable[[DuckDBPyConnection, Removal], bool] = lambda connection, removal: True,
) -> DayChange:
    """Make what a source lists for `day` its papers of it: papers of the day that it gave before and lacks now go.

    `source` is that of its ids (`PaperId.source`). Rows that came from files or other sources stay. Every paper is kept
    under its own day, also where the source lists it for another one: then its own day's list may lack it. `may_remove`
    has the last word, inside the transaction.
    """
    stream = BytesIO()
    write_rows(papers, stream)
    about = {"day": day, "prefix": "" if source == ARXIV else source}
    with warehouse.writing() as connection:
        report = merge_rows(connection, stream, origin="arxiv")
        _remember_lists(connection, about)
        connection.execute(
            """
            create temp table missing as
            select paper_id
            from papers
            where
                day = $day
                and origin = 'arxiv'
                and regexp_extract(paper_id, '^([A-Za-z][A-Za-z0-9_-]*):', 1) = $prefix
                and paper_id not in (select paper_id from verdicts)
                and paper_id not in (select paper_id from listed_elsewhere)
            """,
            about,
        )
        missing = value_of(connection, "select count(*) from missing")
        # A paper of another day that this list held until now: without it that day's next answer would let it go.
        connection.execute(
            """
            create temp table unlisted as
            select paper_id
            from listed_elsewhere
            where
                listed_on = $day
                and regexp_extract(paper_id, '^([A-Za-z][A-Za-z0-9_-]*):', 1) = $prefix
                and paper_id not in (select paper_id from verdicts)
            """,
            about,
        )
        unlisted = value_of(connection, "select count(*) from unlisted")
        stored = missing + unlisted + value_of(connection, "select count(*) from verdicts where verdict != 'added'")
        removed = 0
        if may_remove(connection, Removal(stored=stored, removed=missing + unlisted)):
            connection.execute("delete from listed_elsewhere where paper_id in (select paper_id from unlisted)")
            if missing:
                removed = value_of(connection, "delete from papers where paper_id in (select paper_id from missing)")
    return DayChange(
        added=report.added,
        updated=report.updated,
        unchanged=report.unchanged,
        removed=removed,
        other_days={other: count for other, count in report.days.items() if other != day},
    )


def merge_papers(
    warehouse: Warehouse, papers: Iterable[Paper], *, progress: Callable[[int], None] | None = None
) -> MergeReport:
    """Add a stream of papers of any length in one transaction; memory stays flat.

    The stream is copied beside the warehouse first: the warehouse is not held while it is read, and nothing of
    it remains if it raises or the process is killed. `progress` gets the number of papers read so far.
    """
    with warehouse.reading():
        pass  # find out before an hour of reading that the warehouse cannot be used
    with scratch_file(warehouse.path.parent) as stream:
        write_rows(papers, stream, progress=progress)
        with warehouse.writing() as connection:
            return merge_rows(connection, stream, origin="file")


def papers_between(
    warehouse: Warehouse, first: date | None, last: date | None, *, categories: Sequence[str] | None = None
) -> pa.Table:
    """Papers of the days first..last (None: open; both None: undated ones too), ordered by id, `paper_schema()`.

    With `categories`, those that carry any of them.
    """
    with warehouse.reading() as connection:
        found = connection.sql(
            """
            select * exclude (day, text_hash, content_hash, origin)
            from papers
            where ($first::date is null or day >= $first)
                and ($last::date is null or day <= $last)
                and ($categories::varchar[] is null or list_has_any(categories, $categories))
            order by paper_id
            """,
            params={"first": first, "last": last, "categories": None if categories is None else list(categories)},
        )
        return found.to_arrow_table().cast(paper_schema())


def columns_between(
    warehouse: Warehouse, first: date, last: date, columns: Sequence[str], *, categories: Sequence[str] | None = None
) -> pa.Table:
    """Only these columns of the papers of the days first..last, of those that carry any of the categories."""
    with warehouse.reading() as connection:
        found = connection.sql(
            """
            from papers
            where day between $first and $last
                and ($categories::varchar[] is null or list_has_any(categories, $categories))
            order by paper_id
            """,
            params={"first": first, "last": last, "categories": None if categories is None else list(categories)},
        )
        return found.select(*columns).to_arrow_table()


def papers_by_id(warehouse: Warehouse, ids: Sequence[str]) -> pa.Table:
    """The papers with these ids in the order of `ids`; unknown ones are left out. Columns of `paper_schema()`."""
    wanted = pa.table({"paper_id": pa.array(ids, pa.string()), "position": np.arange(len(ids))})
    with warehouse.reading() as connection:
        connection.register("wanted", wanted)
        found = connection.sql(
            """
            select papers.* exclude (day, text_hash, content_hash, origin)
            from papers
            join wanted using (paper_id)
            order by position
            """
        )
        return found.to_arrow_table().cast(paper_schema())


def submission_days(warehouse: Warehouse, ids: Sequence[str]) -> dict[str, date]:
    """The day of first submission of those of the papers that are stored and dated."""
    wanted = pa.table({"paper_id": pa.array(ids, pa.string())})
    with warehouse.reading() as connection:
        connection.register("wanted", wanted)
        rows = connection.execute(
            "select paper_id, day from papers join wanted using (paper_id) where day is not null"
        ).fetchall()
    return dict(rows)


def find_paper(warehouse: Warehouse, paper_id: str) -> Paper | None:
    """The paper with this id, given with or without version."""
    found = papers_from_table(papers_by_id(warehouse, [unversioned(paper_id)]))
    return found[0] if found else None


def paper_titled(warehouse: Warehouse, title: str) -> Paper | None:
    """The paper whose title has the same letters and digits, whatever lies between them; the newest of several."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            r"""
            select paper_id
            from papers
            where regexp_replace(lower(title), '[^\p{L}\p{N}]', '', 'g')
                = regexp_replace(lower($title), '[^\p{L}\p{N}]', '', 'g')
            order by published desc nulls last, paper_id
            limit 1
            """,
            {"title": title},
        ).fetchall()
    return find_paper(warehouse, rows[0][0]) if rows else None


def papers_with_words(warehouse: Warehouse, words: Sequence[str], *, most: int) -> list[tuple[str, str]]:
    """(id, title) of the newest papers whose title holds every one of the words, in any case and without accents."""
    with warehouse.reading() as connection:
        rows: list[tuple[str, str]] = connection.execute(
            """
            select paper_id, title
            from papers
            where len(list_filter($words, lambda word: not contains(lower(strip_accents(title)), word))) = 0
            order by published desc nulls last, paper_id
            limit $most
            """,
            {"words": [word.lower() for word in words], "most": most},
        ).fetchall()
    return rows


def paper_counts(warehouse: Warehouse) -> dict[date, int]:
    """Number of papers of every day that has any, in ascending order."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select day, count(*) from papers where day is not null group by day order by day"
        ).fetchall()
    return dict(rows)


def latest_day(warehouse: Warehouse, *, until: date | None = None) -> date | None:
    """The newest day that has papers, not after `until`."""
    with warehouse.reading() as connection:
        newest: date | None = value_of(
            connection, "select max(day) from papers where $until::date is null or day <= $until", {"until": until}
        )
    return newest


def day_fingerprints(warehouse: Warehouse, first: date | None, last: date | None) -> dict[date, str]:
    """A hash of the content of every day with papers; equal papers give equal hashes, however they came in."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select day, sha256(string_agg(content_hash, ',' order by content_hash))[:32]
            from papers
            where day is not null and ($first::date is null or day >= $first) and ($last::date is null or day <= $last)
            group by day
            order by day
            """,
            {"first": first, "last": last},
        ).fetchall()
    return dict(rows)


def _remember_lists(connection: DuckDBPyConnection, about: Mapping[str, object]) -> None:
    """Keep which papers the source lists for a day that is not their own; their own day decides of the others."""
    connection.execute(
        """
        delete from listed_elsewhere
        where paper_id in (select paper_id from verdicts join papers using (paper_id) where papers.day = $day)
        """,
        {"day": about["day"]},
    )
    connection.execute(
        """
        insert or replace into listed_elsewhere
        select paper_id, $day
        from verdicts
        join papers using (paper_id)
        left join listed_elsewhere using (paper_id)
        where papers.day is distinct from $day and listed_on is distinct from $day
        """,
        {"day": about["day"]},
    )


def merge_rows(connection: DuckDBPyConnection, stream: IO[bytes], *, origin: Origin) -> MergeReport:
    """Judge the incoming rows by their narrow columns, then write only the chosen ones. Leaves `verdicts`."""
    connection.register("incoming", judged_rows(stream))
    connection.execute("create temp table seen as select * from incoming")
    read = value_of(connection, "select count(*) from seen")
    rows = read + value_of(connection, "select count(*) from papers")
    connection.execute(f"set memory_limit = '{_MEMORY + _MEMORY_PER_ROW * rows} B'")
    connection.execute(
        """
        create temp table verdicts as
        with newest as (
            from seen
            qualify row_number() over (partition by paper_id order by version desc, content_hash desc, position) = 1
        )
        select
            newest.position,
            newest.paper_id,
            newest.day,
            papers.day as day_before,
            case
                when papers.paper_id is null then 'added'
                when newest.version < papers.version then 'unchanged'
                when newest.content_hash = papers.content_hash then 'unchanged'
                when newest.version = papers.version and papers.origin = 'arxiv' and $origin = 'file' then 'unchanged'
                else 'updated'
            end as verdict
        from newest
        left join papers using (paper_id)
        """,
        {"origin": origin},
    )
    undated = value_of(connection, "select count(*) from verdicts where day is null")
    counts = dict(connection.execute("select verdict, count(*) from verdicts group by verdict").fetchall())
    days = connection.execute(
        """
        select day, count(distinct paper_id)
        from (
            select day, paper_id from verdicts where verdict != 'unchanged'
            union all
            select day_before, paper_id from verdicts where verdict = 'updated'
        )
        where day is not null
        group by day
        order by day
        """
    ).fetchall()
    positions = connection.execute("select position from verdicts where verdict != 'unchanged'").fetchnumpy()
    chosen = np.zeros(read, dtype=bool)
    chosen[positions["position"]] = True
    if chosen.any():
        connection.execute(
            "delete from papers where paper_id in (select paper_id from verdicts where verdict = 'updated')"
        )
        connection.register("chosen", chosen_rows(stream, chosen))
        connection.execute(
            "insert into papers by name select * exclude (position), $origin as origin from chosen", {"origin": origin}
        )
    if origin == "arxiv":
        connection.execute(
            "update papers set origin = 'arxiv' where origin = 'file' and paper_id in (select paper_id from verdicts)"
        )
    return MergeReport(
        read=read,
        repeated=read - sum(counts.values()),
        added=counts.get("added", 0),
        updated=counts.get("updated", 0),
        unchanged=counts.get("unchanged", 0),
        undated=undated,
        days=dict(days),
    )
