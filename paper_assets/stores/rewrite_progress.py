"""Record the progress of rewrites: opened, claimed, each attempt, decisions of people, the outcome.

Every step is written as it happens, in one small transaction that applies only if no other process was faster: any
process can continue where another stopped, and of two the first one counts.

A claim says who is writing the next attempt, with a lease, so that two processes never pay for the same attempt (B11).
It expires with its lease, or when its process has ended, if that is known: on the same machine.

Accepted claims are numbers and names that a person accepted for a paper although its original does not contain them
(B2), in the form in which `rewriting/faithfulness.py` compares them (`claim_key`).
"""

import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from uuid import uuid4

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.stores.locks import is_alive
from paper_assets.stores.rewrites import Attempt, NewItem, items_of
from paper_assets.stores.warehouse import Warehouse, read_time, stored_time, value_of


def open_items(warehouse: Warehouse, items: Sequence[NewItem], *, now: datetime) -> None:
    """Begin the items that are not there yet."""
    if items:
        with warehouse.writing() as connection:
            begin(connection, items, now=now)


def replace_set(warehouse: Warehouse, day: date, profile: str, items: Sequence[NewItem], *, now: datetime) -> bool:
    """Say which rewrites the profile's day asks for, best paper first, and begin those that are not there yet.

    False if it was so already.
    """
    key, names = {"day": day, "profile": profile}, [item.item for item in items]
    if items_of(warehouse, day, profile) == names:
        return False
    with warehouse.writing() as connection:
        if items:
            begin(connection, items, now=now)
        connection.execute("delete from rewrite_sets where day = $day and profile = $profile", key)
        connection.execute("insert into rewrite_sets values ($day, $profile, $items)", {**key, "items": names})
    return True


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


def new_holder() -> str:
    """A name for whoever writes now: host, process, and a token that tells writers of one process apart."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


def claim_item(warehouse: Warehouse, item: str, *, holder: str, now: datetime, until: datetime) -> bool:
    """Claim an item for `holder`, or renew its claim; False while somebody else's holds."""
    with warehouse.writing() as connection:
        found = connection.execute("select holder, until from rewrite_claims where item = ?", [item]).fetchone()
        if found and found[0] != holder and found[1] > stored_time(now) and not _is_gone(found[0]):
            return False
        connection.execute(
            "insert or replace into rewrite_claims values ($item, $holder, $until)",
            {"item": item, "holder": holder, "until": stored_time(until)},
        )
    return True


def release_item(warehouse: Warehouse, item: str, *, holder: str) -> None:
    """Give a claim back; somebody else's stays."""
    with warehouse.writing() as connection:
        connection.execute("delete from rewrite_claims where item = ? and holder = ?", [item, holder])


def _is_gone(holder: str) -> bool:
    host, pid, _ = holder.rsplit(":", 2) if holder.count(":") >= 2 else ("", "", "")
    return host == socket.gethostname() and pid.isdigit() and not is_alive(int(pid))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """A decision and its place among all of them; `asked_by` are the days and profiles whose rewrites it touches."""

    place: int
    item: str
    attempt: int
    decision: str
    asked_by: tuple[tuple[date, str], ...]


def keep_decision(
    warehouse: Warehouse, item: str, attempt: int, decision: str, *, now: datetime, written: int | None = None
) -> bool:
    """Keep a person's word on an attempt of an unfinished item; False if it was decided on, or another was written.

    `written`: the attempts that there were when it was said; None: it is about the last one.
    """
    with warehouse.writing() as connection:
        if not is_last(connection, item, written or attempt):
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


def decisions_after(warehouse: Warehouse, place: int) -> list[StoredDecision]:
    """The decisions behind `place`, in the order in which they were made."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            with asked as (select day, profile, unnest(items) as item from rewrite_sets)
            select place, item, attempt, decision, list((day, profile) order by day, profile) filter (day is not null)
            from rewrite_decisions
            left join asked using (item)
            where place > ?
            group by all
            order by place
            """,
            [place],
        ).fetchall()
    return [
        StoredDecision(place=at, item=item, attempt=attempt, decision=word, asked_by=tuple(asked_by or ()))
        for at, item, attempt, word, asked_by in rows
    ]


def decided_items(warehouse: Warehouse, *, since: datetime) -> list[str]:
    """Items without outcome on which somebody has decided at `since` or later, whoever asks for them, if anybody does;
    the oldest decision first.
    """
    with warehouse.reading() as connection:
        rows = connection.execute(
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
        ).fetchall()
    return [item for (item,) in rows]


def last_decision(warehouse: Warehouse, items: Iterable[str]) -> datetime | None:
    """When a person last decided on any of these items; None if nobody ever did."""
    with warehouse.reading() as connection:
        found: datetime | None = value_of(
            connection,
            "select max(decided_at) from rewrite_decisions where item in (select unnest($items))",
            {"items": list(items)},
        )
    return found and read_time(found)


def asked_by(warehouse: Warehouse, items: Iterable[str]) -> dict[tuple[date, str], list[str]]:
    """Which days and profiles ask for any of these items, and for which of them."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            with asked as (select day, profile, unnest(items) as item from rewrite_sets)
            select day, profile, list(item order by item)
            from asked
            where item in (select unnest($items))
            group by day, profile
            order by day, profile
            """,
            {"items": list(items)},
        ).fetchall()
    return {(day, profile): found for day, profile, found in rows}


def accept_claims(warehouse: Warehouse, paper_id: str, claims: Iterable[str], *, now: datetime) -> None:
    """Remember claims for every rewrite of the paper, those written and those to come."""
    rows = [(paper_id, claim, stored_time(now)) for claim in sorted(set(claims))]
    if rows:
        with warehouse.writing() as connection:
            connection.executemany("insert into accepted_claims values (?, ?, ?) on conflict do nothing", rows)
