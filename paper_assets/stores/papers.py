"""The table of papers: one row per arXiv id, its newest known version. Written by the day or from a stream.

Which of two records of one paper stays: the higher version; at the same version what the API said over what a
file says; otherwise the later word. Within one stream the order of the lines does not matter.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from io import BytesIO
from typing import IO, TYPE_CHECKING, Literal

import numpy as np

from paper_assets.paper import Paper, paper_schema, papers_from_table, unversioned
from paper_assets.stores.paper_rows import chosen_rows, judged_rows, write_rows
from paper_assets.stores.warehouse import Warehouse, scratch_file, value_of

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

Origin = Literal["arxiv", "file"]

# Bytes DuckDB may use for a merge; without a limit it takes most of the machine's. The index of ids has to fit:
# 2.7 million short rows fail under 192 MB and pass under 256 MB, 200,000 whole papers pass under 128 MB.
_MEMORY, _MEMORY_PER_ROW = 192_000_000, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DayChange:
    """What writing a day did; `unchanged` counts records that were already known, or known in a newer version."""

    added: int
    updated: int
    removed: int
    unchanged: int


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


def replace_day(warehouse: Warehouse, day: date, papers: Iterable[Paper]) -> DayChange:
    """Make what the API said the papers of `day`: its earlier rows of the day that are missing now are removed.

    Rows that came from files stay. Every paper is kept under its own day, also if that is another one.
    """
    stream = BytesIO()
    write_rows(papers, stream)
    with warehouse.writing() as connection:
        report = _merge(connection, stream, origin="arxiv")
        removed = value_of(
            connection,
            """
            delete from papers
            where day = $day and origin = 'arxiv' and paper_id not in (select paper_id from verdicts)
            """,
            {"day": day},
        )
    return DayChange(added=report.added, updated=report.updated, unchanged=report.unchanged, removed=removed)


def merge_papers(
    warehouse: Warehouse, papers: Iterable[Paper], *, progress: Callable[[int], None] | None = None
) -> MergeReport:
    """Add a stream of papers of any length in one transaction; memory stays flat.

    The stream is copied beside the warehouse first: the warehouse is not held while it is read, and nothing of
    it remains if it raises or the process is killed. `progress` is told the number of papers read so far.
    """
    with warehouse.reading():
        pass  # find out before an hour of reading that the warehouse cannot be used
    with scratch_file(warehouse.path.parent) as stream:
        write_rows(papers, stream, progress=progress)
        with warehouse.writing() as connection:
            return _merge(connection, stream, origin="file")


def papers_between(
    warehouse: Warehouse, first: date | None, last: date | None, *, categories: Sequence[str] | None = None
) -> "pa.Table":
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


def papers_by_id(warehouse: Warehouse, ids: Sequence[str]) -> "pa.Table":
    """The papers with these ids in the order of `ids`; unknown ones are left out. Columns of `paper_schema()`."""
    import pyarrow as pa

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


def _merge(connection: "DuckDBPyConnection", stream: IO[bytes], *, origin: Origin) -> MergeReport:
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
