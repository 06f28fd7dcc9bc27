"""A day of papers replaced by what a source now lists for it: what it lacks goes, if it may."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from io import BytesIO

from duckdb import DuckDBPyConnection

from paper_assets.paper import Paper
from paper_assets.paper_id import ARXIV
from paper_assets.stores.paper_merging import merge_rows
from paper_assets.stores.paper_rows import write_rows
from paper_assets.stores.warehouse import Warehouse, value_of


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
