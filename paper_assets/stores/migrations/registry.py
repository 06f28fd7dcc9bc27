"""The migrations of the warehouse, in the order in which they run: each leads from one schema version to the next.

A new warehouse runs all of them; an older one runs those it lacks when it is next opened, after a copy was put aside
(upgrade.py). A migration that has been released never changes again.

To add one:
1. Before anything else, run `python -m tests.stores.invented_warehouse`: it stores a warehouse of the present version
   in tests/stores/warehouses/, which every later version must read.
2. Write `NNNN_what_it_does.sql` here, or a small function below where SQL alone cannot say it, and add a line to
   MIGRATIONS. It runs in a transaction of its own: no `begin`, `commit`, `checkpoint` or `attach`.
3. Give the new tables and columns rows in tests/stores/invented_warehouse.py.

What DuckDB 2.0 does to a table with rows, in one transaction (all tried; adding, dropping, renaming and rebuilding also
with the process killed before the checkpoint):
- `add column c type`, also with `default …` or `not null default …`, whatever keys, indexes or views the table has; the
  column comes last. Not with `check`, and not `not null` without a default.
- `drop column` (its `check` goes along) and `alter column … type`: not on or, to drop, before a column with a primary
  key, `unique` or an index; no new type for a column with a `check`.
- `rename column`, `set not null`, `drop default`: not while the table has an index. `add primary key` yes,
  `drop constraint` no.
- Everything else: create the new table, `insert into new by name select … from old`, drop the old one, rename the new
  one. Views find it by its name.
`previous_rankings` has the columns of `rankings`: a column added to one is added to the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: to version `number`, by `apply`, which runs inside a transaction."""

    number: int
    name: str
    apply: Callable[[DuckDBPyConnection], None]


def _run_file(file: str, connection: DuckDBPyConnection) -> None:
    connection.execute(Path(__file__).with_name(file).read_text(encoding="utf-8"))


def _run_files(files: tuple[str, ...], connection: DuckDBPyConnection) -> None:
    for file in files:
        _run_file(file, connection)


def _tables_that_drafts_lacked(connection: DuckDBPyConnection) -> None:
    """Warehouses called version 1 before it was finished lack some tables, or have other columns in those of rewrites.

    No program ever wrote rows to the latter; should there be any, they stay, under another name.
    """
    for table, column, rename in (
        ("rewrite_items", "prompt", "alter table rewrite_items rename to draft_rewrite_items"),
        ("rewrite_attempts", "keywords", "alter table rewrite_attempts rename to draft_rewrite_attempts"),
        ("rewrite_decisions", "place", "alter table rewrite_decisions rename to draft_rewrite_decisions"),
    ):
        columns = connection.execute(
            "select column_name from information_schema.columns where table_name = ?", [table]
        ).fetchall()
        if columns and (column,) not in columns:
            connection.execute(rename)
    _run_file("0001_first_schema.sql", connection)  # it creates what is not there


MIGRATIONS = (
    Migration(1, "first schema", partial(_run_file, "0001_first_schema.sql")),
    Migration(2, "tables that drafts lacked", _tables_that_drafts_lacked),
    Migration(3, "versions of ranked papers", partial(_run_file, "0003_versions_of_ranked_papers.sql")),
    Migration(4, "the line", partial(_run_file, "0004_the_line.sql")),
    Migration(
        5,
        "learning, day listings, gate of rewrites",
        partial(_run_files, ("0005_learning.sql", "0005_day_listings.sql", "0005_gate_of_rewrites.sql")),
    ),
    Migration(
        6,
        "harvests, digest deliveries, other sources",
        partial(_run_files, ("0006_harvests.sql", "0006_digest_deliveries.sql", "0006_other_sources.sql")),
    ),
)
