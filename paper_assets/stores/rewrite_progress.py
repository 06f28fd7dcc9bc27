"""Record the progress of rewrites: opened, claimed, each attempt, decisions of people, the outcome.

Every step is written as it happens, in one small transaction that applies only if no other process was faster: any
process can continue where another stopped, and of two the first one counts.

A claim says who is writing the next attempt, with a lease, so that two processes never pay for the same attempt (B11).
It expires with its lease, or when its process has ended, if that is known: on the same machine.

Accepted claims are numbers and names that a person accepted for a paper although its original does not contain them
(B2), in the form in which `rewriting/gate.py` compares them (`claim_key`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import date, datetime
from uuid import uuid4

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.processes import is_gone, parse_process, this_process
from paper_assets.stores.rewrites import Attempt, NewItem, items_of
from paper_assets.stores.warehouse import Warehouse, read_time, stored_time, value_of


def open_items(warehouse: Warehouse, items: Sequence[NewItem], *, now: datetime) -> None:
    """Open the items that do not exist yet."""
    if items:
        with warehouse.writing() as connection:
            begin(connection, items, now=now)


def replace_set(warehouse: Warehouse, day: date, profile: str, items: Sequence[NewItem], *, now: datetime) -> bool:
    """Store which rewrites the profile's day requests, best paper first, and open those that do not exist yet.

    Returns False if nothing changed.
    """
    key, names = {"day": day, "profile": profile}, [item.item for item in items]
    if items_of(warehouse, [(day, profile)]).get((day, profile)) == names:
        return False
    with warehouse.writing() as connection:
        if items:
            begin(connection, items, now=now)
        connection.execute("delete from rewrite_sets where day = $day and profile = $profile", key)
        connection.execute("insert into rewrite_sets values ($day, $profile, $items)", {**key, "items": names})
    return True


def keep_attempt(warehouse: Warehouse, item: str, attempt: Attempt) -> bool:
    """Store the next attempt; False if another process has stored it, or finished the item, in the meantime."""
    values = {field.name: getattr(attempt, field.name) for field in fields(Attempt)}
    lists = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
    with warehouse.writing() as connection:
        if not is_last(connection, item, attempt.attempt - 1):
            return False
        connection.execute(
            """
            insert into rewrite_attempts values (
                $item, $attempt, $text, $keywords, $score, $critique, $unsupported, $examples, $model,
                $input_tokens, $output_tokens, $made_at, $stopped, $subscores, $readability, $critic,
                $unchecked, $disputed
            )
            """,
            {"item": item, **values, **lists, "made_at": stored_time(attempt.made_at)},
        )
        _unclaim(connection, item)
    return True


def finish(warehouse: Warehouse, item: str, *, outcome: str, kept: int | None, note: str | None = None) -> bool:
    """Close an item permanently; False if it was closed already."""
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
    """Replace the note of a finished item, unless it has changed in the meantime."""
    warehouse.run("update rewrite_items set note = ? where item = ? and note = ?", [after, item, before])


def reopen(warehouse: Warehouse, item: str) -> bool:
    """Undo a cancellation; False if the item is not cancelled."""
    opened: int = warehouse.run(
        "update rewrite_items set outcome = null, note = null where item = $item and outcome = 'cancelled'",
        {"item": item},
    )
    return opened == 1


def begin(connection: DuckDBPyConnection, items: Sequence[NewItem], *, now: datetime) -> None:
    """Open the items inside a transaction (see `open_items`)."""
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
    """Check whether the item is open, has `attempt` attempts, and none was accepted."""
    return value_of(
        connection,
        """
        select
            (select count(*) from rewrite_items where item = $item and outcome is null) = 1
            and (select count(*) from rewrite_attempts where item = $item) = $attempt
            and (select count(*) from rewrite_decisions where item = $item and decision = 'accept') = 0
        """,
        {"item": item, "attempt": attempt},
    )


def _unclaim(connection: DuckDBPyConnection, item: str) -> None:
    """Release the claim in the same transaction as the write, so that no kill leaves the claim behind."""
    connection.execute("delete from rewrite_claims where item = ?", [item])


def new_holder() -> str:
    """Return a name for the current writer: a token that distinguishes writers of one process, and the process."""
    return f"{uuid4().hex[:8]} {this_process()}"


def claim_item(warehouse: Warehouse, item: str, *, holder: str, now: datetime, until: datetime) -> bool:
    """Claim an item for `holder`, or renew its claim; False while another holder's claim is valid."""
    with warehouse.writing() as connection:
        found = connection.execute("select holder, until from rewrite_claims where item = ?", [item]).fetchone()
        if found and found[0] != holder and found[1] > stored_time(now) and not _holder_has_ended(found[0]):
            return False
        connection.execute(
            "insert or replace into rewrite_claims values ($item, $holder, $until)",
            {"item": item, "holder": holder, "until": stored_time(until)},
        )
    return True


def release_item(warehouse: Warehouse, item: str, *, holder: str) -> None:
    """Release the holder's claim; another holder's claim is kept."""
    warehouse.run("delete from rewrite_claims where item = ? and holder = ?", [item, holder])


def claimed_items(warehouse: Warehouse, *, now: datetime) -> set[str]:
    """Return the items whose next attempt a process is writing now."""
    rows = warehouse.rows("select item, holder from rewrite_claims where until > $now", {"now": stored_time(now)})
    return {item for item, holder in rows if not _holder_has_ended(holder)}


def _holder_has_ended(holder: str) -> bool:
    process = parse_process(holder.partition(" ")[2])
    return process is not None and is_gone(process)


def keep_decision(
    warehouse: Warehouse, item: str, attempt: int, decision: str, *, now: datetime, written: int | None = None
) -> bool:
    """Store a person's decision on an attempt; False if it was decided already or rewritten.

    `written`: the number of attempts of the unfinished item when the decision was made; None: the item is finished.
    """
    with warehouse.writing() as connection:
        if written is not None and not is_last(connection, item, written):
            return False
        taken: int = value_of(
            connection,
            """
            insert into rewrite_decisions
            select $item, $attempt, $decision, $now, coalesce(max(place), 0) + 1
            from rewrite_decisions
            on conflict do nothing
            """,
            {"item": item, "attempt": attempt, "decision": decision, "now": stored_time(now)},
        )
    return taken == 1


def decided_items(warehouse: Warehouse, *, since: datetime) -> list[str]:
    """Return unfinished items with a decision at `since` or later, the oldest decision first."""
    return warehouse.column(
        """
        select item
        from rewrite_items
        join rewrite_decisions using (item)
        where outcome is null
        group by item
        having max(decided_at) >= $since::timestamp
        order by max(place)
        """,
        {"since": stored_time(since)},
    )


def last_decision(warehouse: Warehouse, items: Iterable[str]) -> datetime | None:
    """Return when a person last decided on any of these items; None without decisions."""
    found: datetime | None = warehouse.value(
        "select max(decided_at) from rewrite_decisions where item in (select unnest($items))",
        {"items": list(items)},
    )
    return found and read_time(found)


def asked_by(warehouse: Warehouse, items: Iterable[str]) -> dict[tuple[date, str], list[str]]:
    """Return which days and profiles request any of these items, and which of them."""
    rows = warehouse.rows(
        """
        with requested as (select day, profile, unnest(items) as item from rewrite_sets)
        select day, profile, list(item order by item)
        from requested
        where item in (select unnest($items))
        group by day, profile
        order by day, profile
        """,
        {"items": list(items)},
    )
    return {(day, profile): found for day, profile, found in rows}


def accept_claims(warehouse: Warehouse, paper_id: str, claims: Iterable[str], *, now: datetime) -> None:
    """Accept claims for every rewrite of the paper, existing and future."""
    rows = [(paper_id, claim, stored_time(now)) for claim in sorted(set(claims))]
    if rows:
        with warehouse.writing() as connection:
            connection.executemany("insert into accepted_claims values (?, ?, ?) on conflict do nothing", rows)
