"""Pages of a harvest: their papers, and in the same transaction the place where the harvest goes on (Z4)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from io import BytesIO

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import StoreBusy
from paper_assets.paper import Paper, paper_schema, papers_from_table
from paper_assets.stores.paper_merging import MergeReport, merge_rows
from paper_assets.stores.paper_rows import content_hash, write_rows
from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How far a harvest is: sets that are done, the window under way (last_day None: until now), its next page."""

    sets_done: int
    first_day: date
    last_day: date | None
    next_page: str | None = None
    pages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPage:
    """What keeping a page did; `left_out` papers are of days before the harvest and not stored."""

    merged: MergeReport
    left_out: int
    withdrawn: int


def place_of(warehouse: Warehouse, harvest: str) -> Place | None:
    """Where an unfinished harvest goes on; None if there is none."""
    with warehouse.reading() as connection:
        return _place(connection, harvest)


def keep_page(
    warehouse: Warehouse,
    harvest: str,
    papers: Sequence[Paper],
    *,
    gone: Sequence[str] = (),
    not_before: date,
    before: Place | None,
    after: Place | None,
) -> KeptPage:
    """Add a page's papers and move the harvest from `before` to `after` (None: it is over), all or nothing.

    A paper of a day before `not_before` only brings what is stored up to date: its day would be a fragment. Papers that
    are `gone` at the source are kept and marked as withdrawn (S6). Raises StoreBusy if another process has moved on.
    """
    with warehouse.writing() as connection:
        if _place(connection, harvest) != before:
            raise StoreBusy("another process is at the same harvest; let it finish, or end it and try again")
        old = [paper.paper_id for paper in papers if paper.day is None or paper.day < not_before]
        unknown = set(old) - _stored(connection, old)
        stream = BytesIO()
        write_rows((paper for paper in papers if paper.paper_id not in unknown), stream)
        merged = merge_rows(connection, stream, origin="file")
        withdrawn = _withdraw(connection, gone)
        _move(connection, harvest, after)
    return KeptPage(merged=merged, left_out=len(unknown), withdrawn=withdrawn)


def _place(connection: DuckDBPyConnection, harvest: str) -> Place | None:
    rows = connection.execute(
        "select sets_done, first_day, last_day, next_page, pages from harvests where harvest = ?", [harvest]
    ).fetchall()
    names = ("sets_done", "first_day", "last_day", "next_page", "pages")
    return Place(**dict(zip(names, rows[0], strict=True))) if rows else None


def _move(connection: DuckDBPyConnection, harvest: str, after: Place | None) -> None:
    if after is None:
        connection.execute("delete from harvests where harvest = ?", [harvest])
        return
    connection.execute(
        "insert or replace into harvests values (?, ?, ?, ?, ?, ?)",
        [harvest, after.sets_done, after.first_day, after.last_day, after.next_page, after.pages],
    )


def _stored(connection: DuckDBPyConnection, ids: Sequence[str]) -> set[str]:
    connection.register("asked", pa.table({"paper_id": pa.array(ids, pa.string())}))
    return {row[0] for row in connection.execute("select paper_id from papers join asked using (paper_id)").fetchall()}


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
