"""Store candidates and rankings: one set per day and profile, replaced as a whole.

Candidates are every paper of the window, kept or removed, with the reason. `inputs` is the caller's fingerprint of
everything a set was computed from: with equal inputs there is nothing to compute. A removed profile keeps its rows.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import NotComputed, NothingEarlier, PaperNotFound
from paper_assets.paper_id import unversioned
from paper_assets.stores.warehouse import Warehouse, value_of
from paper_assets.weights import DIMENSIONS

# First and last day by profile. One query answers for all: a thousand queries take four seconds.
Spans = Mapping[str, tuple[date, date]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRanking:
    """Represent a profile's ranking of a day: a header (JSON values) and all scored papers by rank
    (`ranking_schema()`).
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperInRanking:
    """Represent one paper in one ranking: its candidate row and, if it passed, its ranking row, as dicts."""

    day: date
    header: dict[str, Any]
    candidate: dict[str, Any] | None
    ranked: dict[str, Any] | None


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
) -> None:
    """Store `rows` (columns of `ranking_schema()`) and the header (JSON values) as the day's ranking of the profile.

    An existing ranking with other inputs becomes the previous one.
    """
    incoming = rows.select(ranking_schema().names).cast(ranking_schema())
    text = json.dumps(header, sort_keys=True, allow_nan=False)
    key = {"day": day, "profile": profile}
    with warehouse.writing() as connection:
        existing = connection.execute(
            "select inputs from ranking_sets where day = $day and profile = $profile", key
        ).fetchall()
        if existing and existing[0][0] != inputs:
            connection.execute("delete from previous_rankings where day = $day and profile = $profile", key)
            connection.execute("delete from previous_ranking_sets where day = $day and profile = $profile", key)
            connection.execute(
                """
                insert into previous_rankings by name
                from rankings
                where day = $day and profile = $profile
                """,
                key,
            )
            connection.execute(
                """
                insert into previous_ranking_sets by name
                from ranking_sets
                where day = $day and profile = $profile
                """,
                key,
            )
        connection.execute("delete from rankings where day = $day and profile = $profile", key)
        connection.execute("delete from ranking_sets where day = $day and profile = $profile", key)
        connection.execute(
            "insert into ranking_sets values ($day, $profile, $inputs, $header)",
            {**key, "inputs": inputs, "header": text},
        )
        connection.register("incoming", incoming)
        connection.execute("insert into rankings by name select $day as day, $profile as profile, * from incoming", key)


def note_output(warehouse: Warehouse, day: date, profile: str, path: Path) -> None:
    """Record the path of the ranking's JSON file. Raises NotComputed."""
    with warehouse.writing() as connection:
        _, header = _inputs_and_header(connection, day, profile)
        connection.execute(
            "update ranking_sets set header = ? where day = ? and profile = ?",
            [json.dumps({**json.loads(header), "output_path": str(path)}, sort_keys=True), day, profile],
        )


def ranking(warehouse: Warehouse, day: date, profile: str) -> StoredRanking:
    """Return the stored ranking of the day and profile. Raises NotComputed."""
    with warehouse.reading() as connection:
        inputs, header = _inputs_and_header(connection, day, profile)
        rows = connection.sql(
            """
            select * exclude (day, profile)
            from rankings
            where day = $day and profile = $profile
            order by rank
            """,
            params={"day": day, "profile": profile},
        ).to_arrow_table()
    return StoredRanking(day=day, profile=profile, inputs=inputs, header=_read_header(header), rows=_read_rows(rows))


def ranking_header(warehouse: Warehouse, day: date, profile: str) -> Mapping[str, Any]:
    """Return the header of the stored ranking without its rows. Raises NotComputed."""
    with warehouse.reading() as connection:
        return _read_header(_inputs_and_header(connection, day, profile)[1])


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


def _of_spans(warehouse: Warehouse, spans: Spans, query: str) -> dict[str, dict[date, Any]]:
    """Return the value that a query of `requested` selects for each profile and day."""
    with warehouse.reading() as connection:
        _register_spans(connection, spans)
        return _by_profile(spans, connection.execute(query).fetchall())


def _register_spans(connection: DuckDBPyConnection, spans: Spans) -> None:
    """Make the spans available to queries as the table `requested` (profile, first_day, last_day)."""
    firsts, lasts = zip(*spans.values(), strict=True) if spans else ((), ())
    requested = {
        "profile": pa.array([*spans], pa.string()),
        "first_day": pa.array(firsts, pa.date32()),
        "last_day": pa.array(lasts, pa.date32()),
    }
    connection.register("requested", pa.table(requested))


def _by_profile(spans: Spans, rows: Sequence[tuple[str, date, Any]]) -> dict[str, dict[date, Any]]:
    by_profile: dict[str, dict[date, Any]] = {profile: {} for profile in spans}
    for profile, day, value in rows:
        by_profile[profile][day] = value
    return by_profile


def all_output_paths(warehouse: Warehouse) -> dict[tuple[str, date], str | None]:
    """Return the `output_paths` of every profile that has a ranking, by profile and day."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select profile, day, header ->> '$.output_path' from ranking_sets order by profile, day"
        ).fetchall()
    return {(profile, day): path for profile, day, path in rows}


def previous_ranking(warehouse: Warehouse, day: date, profile: str) -> StoredRanking:
    """Return the ranking that the current one of the day replaced. Raises NotComputed if it is the first."""
    params = {"day": day, "profile": profile}
    with warehouse.reading() as connection:
        found = connection.execute(
            "select inputs, header from previous_ranking_sets where day = $day and profile = $profile", params
        ).fetchall()
        if not found:
            raise NothingEarlier(
                f"the ranking of profile {profile!r} on {day} is the first of that day; nothing to compare"
            )
        rows = connection.sql(
            """
            select * exclude (day, profile)
            from previous_rankings
            where day = $day and profile = $profile
            order by rank
            """,
            params=params,
        ).to_arrow_table()
    inputs, header = found[0]
    return StoredRanking(day=day, profile=profile, inputs=inputs, header=_read_header(header), rows=_read_rows(rows))


def ranking_inputs(warehouse: Warehouse, day: date, profile: str) -> str | None:
    """Return the fingerprint of the inputs of the stored ranking; None if there is none."""
    with warehouse.reading() as connection:
        inputs: str | None = value_of(
            connection, "select inputs from ranking_sets where day = ? and profile = ?", [day, profile]
        )
    return inputs


def ranking_days(warehouse: Warehouse, profile: str) -> list[date]:
    """Return the days for which the profile has a ranking, ascending."""
    return list(warehouse.once(("ranking_days", profile), lambda: _ranking_days(warehouse, profile)))


def _ranking_days(warehouse: Warehouse, profile: str) -> list[date]:
    with warehouse.reading() as connection:
        rows = connection.execute("select day from ranking_sets where profile = ? order by day", [profile]).fetchall()
    return [day for (day,) in rows]


def days_ranked(warehouse: Warehouse, asked: Collection[tuple[str, date]]) -> set[tuple[str, date]]:
    """Return those of the profiles' days that have a ranking."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select profile, day
            from (select unnest($profiles::varchar[]) as profile, unnest($days::date[]) as day)
            semi join ranking_sets using (profile, day)
            """,
            {"profiles": [profile for profile, _ in asked], "days": [day for _, day in asked]},
        ).fetchall()
    return {*rows}


def latest_ranking_day(warehouse: Warehouse, profile: str, *, until: date | None = None) -> date | None:
    """Return the newest day with a ranking of the profile, not after `until`."""
    days = [day for day in ranking_days(warehouse, profile) if until is None or day <= until]
    return days[-1] if days else None


def shown_ids(warehouse: Warehouse, profile: str, first: date, last: date) -> frozenset[str]:
    """Return the papers in the profile's top K on any of the days first..last, both included."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select distinct paper_id from rankings where profile = ? and shown and day between ? and ?",
            [profile, first, last],
        ).fetchall()
    return frozenset(paper_id for (paper_id,) in rows)


def ranked_paper(warehouse: Warehouse, profile: str, paper_id: str, *, day: date | None = None) -> PaperInRanking:
    """Return a paper's row as candidate and as ranked paper on `day` (None: the latest), for an explanation.

    Raises NotComputed without such a ranking, PaperNotFound if the paper was not in its window.
    """
    with warehouse.reading() as connection:
        if day is None:
            day = value_of(connection, "select max(day) from ranking_sets where profile = ?", [profile])
        if day is None:
            raise NotComputed(f"profile {profile!r} has no ranking yet; run it first")
        _, header = _inputs_and_header(connection, day, profile)
        params = {"day": day, "profile": profile, "paper_id": unversioned(paper_id)}
        candidate = connection.sql(
            """
            select * exclude (day, profile)
            from candidates
            where day = $day and profile = $profile and paper_id = $paper_id
            """,
            params=params,
        ).to_arrow_table()
        ranked = connection.sql(
            """
            select * exclude (day, profile)
            from rankings
            where day = $day and profile = $profile and paper_id = $paper_id
            """,
            params=params,
        ).to_arrow_table()
    if not (candidate.num_rows or ranked.num_rows):
        raise PaperNotFound(f"paper {paper_id} was not among the papers of profile {profile!r} on {day}")
    return PaperInRanking(
        day=day,
        header=_read_header(header),
        candidate=candidate.to_pylist()[0] if candidate.num_rows else None,
        ranked=_read_rows(ranked).to_pylist()[0] if ranked.num_rows else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfPaper:
    """Represent the outcome for a paper on one day: removed by a filter for `reason`, or ranked; `shown`: in the
    list.
    """

    day: date
    reason: str | None
    rank: int | None
    shown: bool


def times_asked(warehouse: Warehouse, profile: str, *, before: date) -> dict[str, int]:
    """Return in how many lists before a day each paper was one to rate, so that the list improves."""
    with warehouse.reading() as connection:
        rows = connection.execute(
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
        ).fetchall()
    return dict(rows)


def paper_history(warehouse: Warehouse, profile: str, paper_id: str, *, since: date | None = None) -> list[DayOfPaper]:
    """Return every day on which the paper was considered for the profile's list, the newest first.

    `since`: the day of its submission, before which no list considers it, so that earlier rankings are not read.
    """
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select
                coalesce(ranked.day, considered.day) as day,
                case when considered.passed then null else considered.reason end,
                ranked.rank,
                coalesce(ranked.shown, false)
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
        ).fetchall()
    names = ("day", "reason", "rank", "shown")
    return [DayOfPaper(**dict(zip(names, row, strict=True))) for row in rows]


def _inputs_and_header(connection: DuckDBPyConnection, day: date, profile: str) -> tuple[str, str]:
    """Return inputs and header (JSON) of the stored ranking. Raises NotComputed."""
    rows: list[tuple[str, str]] = connection.execute(
        "select inputs, header from ranking_sets where day = ? and profile = ?", [day, profile]
    ).fetchall()
    if not rows:
        raise NotComputed(f"no ranking for profile {profile!r} on {day}")
    return rows[0]


def _read_header(text: str) -> dict[str, Any]:
    """Parse a stored header. A dimension that was added after it was stored has weight 0."""
    header: dict[str, Any] = json.loads(text)
    if "weights" in header:
        header["weights"] = {**dict.fromkeys(DIMENSIONS, 0.0), **header["weights"]}
    return header


def _read_rows(rows: pa.Table) -> pa.Table:
    """Return rows with the columns of `ranking_schema()`."""
    return rows.select(ranking_schema().names).cast(ranking_schema())


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedOften:
    """Summarize a paper in the rankings of several days: best relevance, best matching interest, shown or not."""

    paper_id: str
    relevance: float
    nearest: str | None
    shown: bool


def ranked_between(warehouse: Warehouse, profile: str, first: date, last: date) -> list[RankedOften]:
    """Return every paper ranked for the profile on the days first..last, by id."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select paper_id, max(semantic_relevance), arg_max(nearest, semantic_relevance), bool_or(shown)
            from rankings
            where profile = ? and day between ? and ?
            group by paper_id
            order by paper_id
            """,
            [profile, first, last],
        ).fetchall()
    return [
        RankedOften(paper_id=paper_id, relevance=relevance, nearest=nearest, shown=shown)
        for paper_id, relevance, nearest, shown in rows
    ]


def stored_inputs(warehouse: Warehouse, spans: Spans) -> dict[str, dict[date, tuple[str, str | None]]]:
    """Return fingerprints of candidates and ranking (None: no ranking) by profile and day, for the days that have
    any.
    """
    with warehouse.reading() as connection:
        _register_spans(connection, spans)
        rows = connection.execute(
            """
            select profile, day, candidate_sets.inputs, ranking_sets.inputs
            from candidate_sets
            join requested using (profile)
            left join ranking_sets using (day, profile)
            where day between first_day and last_day
            order by profile, day
            """
        ).fetchall()
    return _by_profile(spans, [(profile, day, (candidate, ranked)) for profile, day, candidate, ranked in rows])


def shown_by_day(warehouse: Warehouse, spans: Spans) -> dict[str, dict[date, frozenset[str]]]:
    """Return the papers in the top K, by profile and day, for the days that have a ranking."""
    with warehouse.reading() as connection:
        _register_spans(connection, spans)
        rows = connection.execute(
            """
            select profile, day, list(paper_id)
            from rankings
            join requested using (profile)
            where shown and day between first_day and last_day
                and day between list_min($firsts::date[]) and list_max($lasts::date[])
            group by profile, day
            """,
            {"firsts": [first for first, _ in spans.values()], "lasts": [last for _, last in spans.values()]},
        ).fetchall()
    return _by_profile(spans, [(profile, day, frozenset(ids)) for profile, day, ids in rows])


def listed_by_day(warehouse: Warehouse, profile: str, days: Sequence[date]) -> dict[date, dict[str, str]]:
    """Return the papers in the profile's lists of some days by rank, by day, for those that have a list with papers;
    each with the interest that it is nearest to.
    """
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select day, list((paper_id, coalesce(nearest, '')) order by rank)
            from rankings
            where profile = $profile and shown and list_contains($days::date[], day)
                and day between list_min($days::date[]) and list_max($days::date[])
            group by day
            """,
            {"profile": profile, "days": list(days)},
        ).fetchall()
    return {day: dict(papers) for day, papers in rows}


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
    with warehouse.reading() as connection:
        if _inputs_of_candidates(connection, day, profile) is None:
            raise NotComputed(f"no candidates for profile {profile!r} on {day}; run the day first")
        found = connection.sql(
            """
            select * exclude (day, profile)
            from candidates
            where day = $day and profile = $profile
            order by paper_id
            """,
            params={"day": day, "profile": profile},
        )
        return found.to_arrow_table().cast(candidate_schema())


def passed_ids(warehouse: Warehouse, day: date, profile: str) -> frozenset[str]:
    """Return the ids of the papers that passed the filters for the day's list; empty without one."""
    with warehouse.reading() as connection:
        query = "select paper_id from candidates where day = ? and profile = ? and passed"
        return frozenset(paper_id for (paper_id,) in connection.execute(query, [day, profile]).fetchall())


def new_in_window(warehouse: Warehouse, day: date, profile: str) -> tuple[int, int]:
    """Return how many papers of the day's window the profile's list before it did not have in its window, and how many
    there are in all: what arrived since, whatever day it was submitted.
    """
    with warehouse.reading() as connection:
        before = value_of(
            connection, "select max(day) from candidate_sets where profile = ? and day < ?", [profile, day]
        )
        found = connection.execute(
            # The day of the earlier list is a parameter: as a subquery it would have all days read.
            """
            select count(*) filter (earlier.paper_id is null), count(*)
            from (select paper_id from candidates where day = $day and profile = $profile) as own
            left join (select paper_id from candidates where day = $before and profile = $profile) as earlier
                using (paper_id)
            """,
            {"day": day, "profile": profile, "before": before},
        ).fetchall()
    new, total = found[0]
    return int(new), int(total)


def candidates_inputs(warehouse: Warehouse, day: date, profile: str) -> str | None:
    """Return the fingerprint of the inputs of the stored candidates; None if there are none."""
    with warehouse.reading() as connection:
        return _inputs_of_candidates(connection, day, profile)


def _inputs_of_candidates(connection: DuckDBPyConnection, day: date, profile: str) -> str | None:
    inputs: str | None = value_of(
        connection, "select inputs from candidate_sets where day = ? and profile = ?", [day, profile]
    )
    return inputs
