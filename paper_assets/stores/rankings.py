"""Store candidates and rankings: one set per day and profile, replaced as a whole.

Candidates are every paper of the window, kept or removed, with the reason. `inputs` is the caller's fingerprint of
everything a set was computed from: with equal inputs there is nothing to compute. A removed profile keeps its rows.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paper_assets.errors import NotComputed, NothingEarlier
from paper_assets.stores.warehouse import Key, Warehouse, value_of
from paper_assets.weights import DIMENSIONS

# First and last day by profile. One query answers for all: a thousand queries take four seconds.
Spans = Mapping[str, tuple[date, date]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRanking:
    """A profile's ranking of a day: a header (JSON values) and all scored papers by rank (`ranking_schema()`)."""

    day: date
    profile: str
    inputs: str
    header: dict[str, Any]
    rows: pa.Table

    @property
    def listed(self) -> list[dict[str, Any]]:
        """Return the rows of the list, by rank."""
        return self.rows.filter(self.rows.column("shown")).to_pylist()

    @property
    def more_likely(self) -> list[dict[str, Any]]:
        """Return the rows of the likely papers that follow the list, by rank (G17)."""
        return self.rows.slice(len(self.listed), self.header.get("more_likely") or 0).to_pylist()

    @property
    def by_people(self) -> list[dict[str, Any]]:
        """Return the rows of other papers that are by people whom the reader follows, or perhaps, by rank (G19).

        A paper that an earlier list has considered is not among them, because it was shown so on that day.
        """
        import pyarrow.compute as pc

        tags = self.rows.column("tags").combine_chunks()
        of_people = pc.is_in(pc.list_flatten(tags), value_set=pa.array(["PREFERRED_AUTHOR", "PERHAPS_AUTHOR"]))
        found = self.rows.take(pc.unique(pc.list_parent_indices(tags).filter(of_people))).to_pylist()
        beside = len(self.listed) + (self.header.get("more_likely") or 0)
        return [row for row in found if row["rank"] > beside and not is_hidden(row)]

    def following(self, most: int) -> list[dict[str, Any]]:
        """Return the rows after the likely papers, by rank, among the first `most`; none that is shown elsewhere."""
        beside = len(self.listed) + (self.header.get("more_likely") or 0)
        elsewhere = {row["paper_id"] for row in self.by_people}
        rows = self.rows.slice(beside, most).to_pylist()
        return [row for row in rows if row["paper_id"] not in elsewhere and not is_hidden(row)]

    @property
    def places(self) -> dict[str, int]:
        """Return the ranks of the papers in the list and beside it by id."""
        return {row["paper_id"]: row["rank"] for row in (*self.listed, *self.more_likely, *self.by_people)}


def is_hidden(row: Mapping[str, Any]) -> bool:
    """Return whether a paper is not shown beside a list: an earlier list had it, it is avoided, or a copy is shown."""
    return any(tag.startswith(("CONSIDERED_BEFORE", "AVOIDED_TOPIC", "COPY_OF")) for tag in row["tags"])


@cache
def ranking_schema() -> pa.Schema:
    """Return the columns of a ranking: every scored paper from best to last, `shown` if it is in the top K.

    `nearest`: the best matching interest, or else liked paper; null where the interest mode has none. `meaning`,
    `words`, `library`, `interest_probability` are the parts of relevance, null where the mode has no such part: cosine
    and share of words of that interest, the probability by the liked papers and by that interest alone. `version`: of
    the paper, as it was judged (G16).
    `learned`: by how much the reader's ratings changed relevance (L4), null where they were not used, with the words
    and the rated papers responsible.
    """
    return pa.schema(
        [
            ("rank", pa.int32()),
            ("shown", pa.bool_()),
            ("paper_id", pa.string()),
            ("final", pa.float64()),
            *((dimension, pa.float64()) for dimension in DIMENSIONS),
            ("bonus", pa.float64()),
            ("soft_penalty", pa.float64()),
            ("diversity_penalty", pa.float64()),
            ("penalty_keywords", pa.list_(pa.string())),
            ("evaluation_method", pa.string()),
            ("tags", pa.list_(pa.string())),
            ("nearest", pa.string()),
            ("version", pa.int32()),
            ("meaning", pa.float64()),
            ("words", pa.float64()),
            ("library", pa.float64()),
            ("interest_probability", pa.float64()),
            ("learned", pa.float64()),
            ("learned_words", pa.list_(pa.string())),
            ("learned_near", pa.list_(pa.string())),
        ]
    )


def replace_ranking(
    warehouse: Warehouse, day: date, profile: str, rows: pa.Table, header: Mapping[str, Any], *, inputs: str
) -> StoredRanking:
    """Store `rows` (columns of `ranking_schema()`) and the header (JSON values) as the day's ranking of the profile.

    An existing ranking with other inputs becomes the previous one.
    """
    incoming = rows.select(ranking_schema().names).cast(ranking_schema())
    text = json.dumps(header, sort_keys=True, allow_nan=False)
    key = {"day": day, "profile": profile}
    with warehouse.writing() as connection:
        before = value_of(connection, "select inputs from ranking_sets where day = $day and profile = $profile", key)
        for table in ("rankings", "ranking_sets"):
            if before not in (None, inputs):
                connection.execute(f"delete from previous_{table} where day = $day and profile = $profile", key)  # noqa: S608
                connection.execute(
                    f"""
                    insert into previous_{table} by name
                    from {table}
                    where day = $day and profile = $profile
                    """,
                    key,
                )
            connection.execute(f"delete from {table} where day = $day and profile = $profile", key)  # noqa: S608
        connection.execute(
            "insert into ranking_sets values ($day, $profile, $inputs, $header)",
            {**key, "inputs": inputs, "header": text},
        )
        connection.register("incoming", incoming)
        connection.execute("insert into rankings by name select $day as day, $profile as profile, * from incoming", key)
    return StoredRanking(day=day, profile=profile, inputs=inputs, header=_read_header(text), rows=incoming)


def note_output(warehouse: Warehouse, day: date, profile: str, path: Path) -> None:
    """Record the path of the ranking's JSON file. Raises NotComputed."""
    with warehouse.writing() as connection:
        header = value_of(connection, "select header from ranking_sets where day = ? and profile = ?", [day, profile])
        if header is None:
            raise _not_computed(day, profile)
        connection.execute(
            "update ranking_sets set header = ? where day = ? and profile = ?",
            [json.dumps({**json.loads(header), "output_path": str(path)}, sort_keys=True), day, profile],
        )


def ranking(warehouse: Warehouse, day: date, profile: str) -> StoredRanking:
    """Return the stored ranking of the day and profile. Raises NotComputed."""
    if (stored := _read_ranking(warehouse, day, profile)) is None:
        raise _not_computed(day, profile)
    return stored


def previous_ranking(warehouse: Warehouse, day: date, profile: str) -> StoredRanking:
    """Return the ranking that the current one of the day replaced. Raises NothingEarlier if it is the first."""
    if (stored := _read_ranking(warehouse, day, profile, prefix="previous_")) is None:
        raise NothingEarlier(
            f"the ranking of profile {profile!r} on {day} is the first of that day; nothing to compare"
        )
    return stored


def _read_ranking(warehouse: Warehouse, day: date, profile: str, *, prefix: str = "") -> StoredRanking | None:
    return warehouse.once_each(f"{prefix}ranking", (profile, day), partial(_rankings, prefix=prefix))


def _rankings(warehouse: Warehouse, keys: Sequence[Key], *, prefix: str) -> dict[Key, StoredRanking]:
    sets = warehouse.rows(
        f"select profile, day, inputs, header from {prefix}ranking_sets {_ASKED}",  # noqa: S608
        _asked(keys),
    )
    rows = _rows_of(warehouse, f"{prefix}rankings", keys, order="rank", schema=ranking_schema()) if sets else {}
    return {
        (profile, day): StoredRanking(
            day=day, profile=profile, inputs=inputs, header=_read_header(header), rows=rows[profile, day]
        )
        for profile, day, inputs, header in sets
    }


_ASKED = """
    join (
        select
            unnest($profiles::varchar[]) as profile,
            unnest($days::date[]) as day,
            unnest(range(len($days))) as number
    ) using (profile, day)
    where day between list_min($days::date[]) and list_max($days::date[])
"""


def _asked(keys: Sequence[Key]) -> dict[str, object]:
    return {"profiles": [profile for profile, _ in keys], "days": [day for _, day in keys]}


def _rows_of(
    warehouse: Warehouse, table: str, keys: Sequence[Key], *, order: str, schema: pa.Schema
) -> dict[Key, pa.Table]:
    """Return the rows of a table for each profile's day."""
    found = warehouse.table(f"select * from {table} {_ASKED} order by number, {order}", _asked(keys))  # noqa: S608
    ends = np.searchsorted(found["number"].to_numpy(), np.arange(len(keys) + 1))
    rows = found.select(schema.names).cast(schema)
    return {key: rows.slice(start, end - start) for key, start, end in zip(keys, ends, ends[1:], strict=False)}


def ranking_header(warehouse: Warehouse, day: date, profile: str) -> Mapping[str, Any]:
    """Return the header of the stored ranking without its rows. Raises NotComputed."""
    header = warehouse.value("select header from ranking_sets where day = ? and profile = ?", [day, profile])
    if header is None:
        raise _not_computed(day, profile)
    return _read_header(header)


def _not_computed(day: date, profile: str) -> NotComputed:
    return NotComputed(f"no ranking for profile {profile!r} on {day}")


def output_paths(warehouse: Warehouse, spans: Spans) -> dict[str, dict[date, str | None]]:
    """Return the paths of the JSON files of rankings (None: not written yet), by profile and day."""
    return _of_spans(
        warehouse,
        spans,
        """
        select profile, day, header ->> '$.output_path'
        from ranking_sets
        join requested using (profile)
        where day between first_day and last_day
        """,
    )


def wishes_by_day(warehouse: Warehouse, spans: Spans) -> dict[str, dict[date, tuple[str | None, str | None]]]:
    """Return fingerprints of the wishes that rankings were made for and of their candidates, by profile and day."""
    return _of_spans(
        warehouse,
        spans,
        """
        select profile, day, (header ->> '$.wishes', candidate_sets.inputs)
        from ranking_sets
        join requested using (profile)
        left join candidate_sets using (profile, day)
        where day between first_day and last_day
        """,
    )


def _of_spans(warehouse: Warehouse, spans: Spans, query: str, params: object = None) -> dict[str, dict[date, Any]]:
    """Return the value that a query selects for each profile and day; `requested` has the spans."""
    firsts, lasts = zip(*spans.values(), strict=True) if spans else ((), ())
    requested = {
        "profile": pa.array([*spans], pa.string()),
        "first_day": pa.array(firsts, pa.date32()),
        "last_day": pa.array(lasts, pa.date32()),
    }
    by_profile: dict[str, dict[date, Any]] = {profile: {} for profile in spans}
    with warehouse.reading() as connection:
        connection.register("requested", pa.table(requested))
        for profile, day, value in connection.execute(query, params).fetchall():
            by_profile[profile][day] = value
    return by_profile


def all_output_paths(warehouse: Warehouse) -> dict[tuple[str, date], str | None]:
    """Return the `output_paths` of every profile that has a ranking, by profile and day."""
    rows = warehouse.rows("select profile, day, header ->> '$.output_path' from ranking_sets order by profile, day")
    return {(profile, day): path for profile, day, path in rows}


def ranking_inputs(warehouse: Warehouse, day: date, profile: str) -> str | None:
    """Return the fingerprint of the inputs of the stored ranking; None if there is none."""
    return warehouse.value("select inputs from ranking_sets where day = ? and profile = ?", [day, profile])


def ranking_days(warehouse: Warehouse, profile: str) -> list[date]:
    """Return the days for which the profile has a ranking, ascending."""
    return list(warehouse.once_each("ranking_days", profile, _ranking_days) or ())


def _ranking_days(warehouse: Warehouse, profiles: Sequence[str]) -> dict[str, list[date]]:
    query = "select profile, list(day order by day) from ranking_sets where list_contains($1, profile) group by profile"
    return dict(warehouse.rows(query, [list(profiles)]))


def days_ranked(warehouse: Warehouse, asked: Collection[tuple[str, date]]) -> set[tuple[str, date]]:
    """Return those of the profiles' days that have a ranking."""
    rows = warehouse.rows(
        """
        select profile, day
        from (select unnest($profiles::varchar[]) as profile, unnest($days::date[]) as day)
        semi join ranking_sets using (profile, day)
        """,
        {"profiles": [profile for profile, _ in asked], "days": [day for _, day in asked]},
    )
    return {*rows}


def latest_ranking_day(warehouse: Warehouse, profile: str, *, until: date | None = None) -> date | None:
    """Return the newest day with a ranking of the profile, not after `until`."""
    days = [day for day in ranking_days(warehouse, profile) if until is None or day <= until]
    return days[-1] if days else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfPaper:
    """What became of a paper on one day: removed by a filter for `reason`, or ranked; `shown`: in the list."""

    day: date
    reason: str | None
    rank: int | None
    shown: bool


def times_asked(warehouse: Warehouse, profile: str, *, before: date) -> dict[str, int]:
    """Return in how many lists before a day each paper was one to rate, so that the list improves."""
    rows = warehouse.rows(
        """
        select paper_id, count(*)
        from (
            select unnest(from_json(header -> '$.questions', '["varchar"]')) as paper_id
            from ranking_sets
            where profile = $profile and day < $before::date
        )
        group by paper_id
        """,
        {"profile": profile, "before": before},
    )
    return dict(rows)


def paper_history(warehouse: Warehouse, profile: str, paper_id: str, *, since: date | None = None) -> list[DayOfPaper]:
    """Return every day on which the paper was considered for the profile's list, the newest first.

    `since`: the day of its submission, before which no list considers it, so that earlier rankings are not read.
    """
    rows = warehouse.records(
        """
        select
            coalesce(ranked.day, considered.day) as day,
            case when considered.passed then null else considered.reason end as reason,
            ranked.rank,
            coalesce(ranked.shown, false) as shown
        from (
            select day, passed, reason
            from candidates
            where day >= coalesce($since::date, '-infinity') and profile = $profile and paper_id = $paper_id
        ) as considered
        full join (
            select day, rank, shown
            from rankings
            where day >= coalesce($since::date, '-infinity') and profile = $profile and paper_id = $paper_id
        ) as ranked on ranked.day = considered.day
        order by 1 desc
        """,
        {"profile": profile, "paper_id": paper_id, "since": since},
    )
    return [DayOfPaper(**row) for row in rows]


def _read_header(text: str) -> dict[str, Any]:
    """Parse a stored header. A dimension that was added after it was stored has weight 0."""
    header: dict[str, Any] = json.loads(text)
    if "weights" in header:
        header["weights"] = {**dict.fromkeys(DIMENSIONS, 0.0), **header["weights"]}
    return header


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedOften:
    """Summarize a paper in the rankings of several days: best relevance, best matching interest, shown or not."""

    paper_id: str
    relevance: float
    nearest: str | None
    shown: bool


def ranked_between(warehouse: Warehouse, profile: str, first: date, last: date) -> list[RankedOften]:
    """Return every paper ranked for the profile on the days first..last, by id."""
    rows = warehouse.records(
        """
        select
            paper_id,
            max(semantic_relevance) as relevance,
            arg_max(nearest, semantic_relevance) as nearest,
            bool_or(shown) as shown
        from rankings
        where profile = $profile and day between $first and $last
        group by paper_id
        order by paper_id
        """,
        {"profile": profile, "first": first, "last": last},
    )
    return [RankedOften(**row) for row in rows]


def stored_inputs(warehouse: Warehouse, spans: Spans) -> dict[str, dict[date, tuple[str, str | None]]]:
    """Return the fingerprints of candidates and ranking (None: no ranking) by profile and day."""
    return _of_spans(
        warehouse,
        spans,
        """
        select profile, day, (candidate_sets.inputs, ranking_sets.inputs)
        from candidate_sets
        join requested using (profile)
        left join ranking_sets using (day, profile)
        where day between first_day and last_day
        order by profile, day
        """,
    )


def shown_by_day(warehouse: Warehouse, spans: Spans) -> dict[str, dict[date, frozenset[str]]]:
    """Return the papers in the top K, by profile and day, for the days that have a ranking."""
    found = _of_spans(
        warehouse,
        spans,
        """
        select profile, day, list(paper_id)
        from rankings
        join requested using (profile)
        where shown and day between first_day and last_day
            and day between list_min($firsts::date[]) and list_max($lasts::date[])
        group by profile, day
        """,
        {"firsts": [first for first, _ in spans.values()], "lasts": [last for _, last in spans.values()]},
    )
    return {profile: {day: frozenset(ids) for day, ids in of_days.items()} for profile, of_days in found.items()}


@cache
def candidate_schema() -> pa.Schema:
    """Return the columns of candidates: every paper of the window, passed or removed with its reason."""
    return pa.schema(
        [
            ("paper_id", pa.string()),
            ("title", pa.string()),
            ("passed", pa.bool_()),
            ("reason", pa.string()),
            ("phase", pa.int32()),
        ]
    )


def replace_candidates(warehouse: Warehouse, day: date, profile: str, rows: pa.Table, *, inputs: str) -> None:
    """Store `rows` (columns of `candidate_schema()`) as the candidates of the day and profile."""
    incoming = rows.select(candidate_schema().names).cast(candidate_schema())
    key = {"day": day, "profile": profile}
    with warehouse.writing() as connection:
        connection.execute("delete from candidates where day = $day and profile = $profile", key)
        connection.execute("delete from candidate_sets where day = $day and profile = $profile", key)
        connection.execute("insert into candidate_sets values ($day, $profile, $inputs)", {**key, "inputs": inputs})
        connection.register("incoming", incoming)
        connection.execute(
            "insert into candidates by name select $day as day, $profile as profile, * from incoming", key
        )


def candidates(warehouse: Warehouse, day: date, profile: str) -> pa.Table:
    """Return the candidates of the day and profile, ordered by paper id. Raises NotComputed."""
    found = warehouse.once_each("candidates", (profile, day), _candidates)
    if found is None:
        raise NotComputed(f"no candidates for profile {profile!r} on {day}; run the day first")
    return found


def _candidates(warehouse: Warehouse, keys: Sequence[Key]) -> dict[Key, pa.Table]:
    stored = _candidates_inputs(warehouse, keys)
    rows = _rows_of(warehouse, "candidates", keys, order="paper_id", schema=candidate_schema()) if stored else {}
    return {key: rows[key] for key in stored}


def passed_ids(warehouse: Warehouse, day: date, profile: str) -> frozenset[str]:
    """Return the ids of the papers that passed the filters for the day's list; empty without one."""
    query = "select paper_id from candidates where day = ? and profile = ? and passed"
    return frozenset(warehouse.column(query, [day, profile]))


def new_in_window(warehouse: Warehouse, day: date, profile: str) -> int:
    """Return how many papers of the day's window the profile's list before it did not have in its window."""
    before = warehouse.value("select max(day) from candidate_sets where profile = ? and day < ?", [profile, day])
    # The day of the earlier list is a parameter: as a subquery it would have all days read.
    return warehouse.value(
        """
        select count(*)
        from (select paper_id from candidates where day = $day and profile = $profile)
        anti join (select paper_id from candidates where day = $before and profile = $profile) using (paper_id)
        """,
        {"day": day, "profile": profile, "before": before},
    )


def candidates_inputs(warehouse: Warehouse, day: date, profile: str) -> str | None:
    """Return the fingerprint of the inputs of the stored candidates; None if there are none."""
    return warehouse.once_each("candidates_inputs", (profile, day), _candidates_inputs)


def _candidates_inputs(warehouse: Warehouse, keys: Sequence[Key]) -> dict[Key, str]:
    rows = warehouse.rows(f"select profile, day, inputs from candidate_sets {_ASKED}", _asked(keys))  # noqa: S608
    return {(profile, day): inputs for profile, day, inputs in rows}
