"""Rewrites written down as they come about: opened, each attempt, the outcome.

Everything is written as it happens, each in one small transaction that holds only if nobody was faster: any process
can go on where another has stopped, and of two the first one counts.
"""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.stores.rewrites import Attempt, NewItem
from paper_assets.stores.times import stored_time
from paper_assets.stores.warehouse import Warehouse, value_of


def open_items(warehouse: Warehouse, items: Sequence[NewItem], *, now: datetime) -> None:
    """Begin the items that are not there yet."""
    if items:
        with warehouse.writing() as connection:
            begin(connection, items, now=now)


def keep_attempt(warehouse: Warehouse, item: str, attempt: Attempt) -> bool:
    """Keep the next attempt; False if another process has kept it, or finished the item, meanwhile."""
    values = {field.name: getattr(attempt, field.name) for field in fields(Attempt)}
    lists = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
    with warehouse.writing() as connection:
        if not is_last(connection, item, attempt.attempt - 1):
            return False
        connection.execute(
            """
            insert into rewrite_attempts values (
                $item, $attempt, $text, $keywords, $score, $critique, $unsupported, $examples, $model,
                $input_tokens, $output_tokens, $made_at, $stopped, $subscores, $readability, $critic
            )
            """,
            {"item": item, **values, **lists, "made_at": stored_time(attempt.made_at)},
        )
        _unclaim(connection, item)
    return True


def finish(warehouse: Warehouse, item: str, *, outcome: str, kept: int | None, note: str | None = None) -> bool:
    """Close an item for good; False if it was closed already."""
    with warehouse.writing() as connection:
        closed: int = value_of(
            connection,
            """
            update rewrite_items
            set outcome = $outcome, kept = $kept, note = $note
            where item = $item and outcome is null
            """,
            {"item": item, "outcome": outcome, "kept": kept, "note": note},
        )
        _unclaim(connection, item)
    return closed == 1


def change_note(warehouse: Warehouse, item: str, *, before: str, after: str) -> None:
    """Replace the note of a finished item, unless somebody has done so meanwhile."""
    with warehouse.writing() as connection:
        connection.execute("update rewrite_items set note = ? where item = ? and note = ?", [after, item, before])


def reopen(warehouse: Warehouse, item: str) -> bool:
    """Take a cancellation back; False if the item is not cancelled."""
    with warehouse.writing() as connection:
        opened: int = value_of(
            connection,
            "update rewrite_items set outcome = null, note = null where item = $item and outcome = 'cancelled'",
            {"item": item},
        )
    return opened == 1


def begin(connection: DuckDBPyConnection, items: Sequence[NewItem], *, now: datetime) -> None:
    """`open_items` inside a transaction."""
    names = [field.name for field in fields(NewItem)]
    connection.register("incoming", pa.table({name: [getattr(item, name) for item in items] for name in names}))
    connection.execute(
        """
        insert into rewrite_items by name
        select *, $now::timestamp as opened_at
        from incoming
        on conflict do nothing
        """,
        {"now": stored_time(now)},
    )


def is_last(connection: DuckDBPyConnection, item: str, attempt: int) -> bool:
    """Whether the item is open, has `attempt` attempts, and nobody accepted one."""
    holds: bool = value_of(
        connection,
        """
        select
            (select count(*) from rewrite_items where item = $item and outcome is null) = 1
            and (select count(*) from rewrite_attempts where item = $item) = $attempt
            and (select count(*) from rewrite_decisions where item = $item and decision = 'accept') = 0
        """,
        {"item": item, "attempt": attempt},
    )
    return holds


def _unclaim(connection: DuckDBPyConnection, item: str) -> None:
    """What was being written stands: in one transaction with it, so that no kill leaves the claim behind."""
    connection.execute("delete from rewrite_claims where item = ?", [item])
