"""Records of papers, in a stream of any length, merged into the table of papers.

Which of two records of one paper stays: the higher version; at the same version what the API said over what a
file says; otherwise the later word. Within one stream the order of the lines does not matter.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import IO, Literal

import numpy as np
from duckdb import DuckDBPyConnection

from paper_assets.paper import Paper
from paper_assets.stores.paper_rows import chosen_rows, judged_rows, write_rows
from paper_assets.stores.scratch import scratch_file
from paper_assets.stores.warehouse import Warehouse, value_of

Origin = Literal["arxiv", "file"]  # from any source's own list of a day, from a file

# Bytes DuckDB may use for a merge; without a limit it takes most of the machine's. The index of ids has to fit:
# 2.7 million short rows fail under 192 MB and pass under 256 MB, 200,000 whole papers pass under 128 MB.
_MEMORY, _MEMORY_PER_ROW = 192_000_000, 100


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
