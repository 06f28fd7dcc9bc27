"""People's decisions on rewrites that waited for one: kept once, read in their order, and whom they concern."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

from paper_assets.stores.rewrite_progress import is_last
from paper_assets.stores.times import read_time, stored_time
from paper_assets.stores.warehouse import Warehouse, value_of


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
