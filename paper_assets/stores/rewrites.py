"""Rewrites as they come about: items, their attempts, people's decisions, and which day and profile asks for what.

Everything is written as it happens, each in one small transaction that holds only if nobody was faster: any process
can go on where another has stopped, and of two the first one counts. What follows from it is `rewriting/policy.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from paper_assets.errors import NotComputed
from paper_assets.stores.warehouse import Warehouse, value_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One rewrite and its critique; score 0 to 100. Tokens are those of the actor and the critic together."""

    attempt: int
    text: str
    keywords: tuple[str, ...]
    score: int
    critique: str
    unsupported: tuple[str, ...]  # numbers and names that the original lacks
    examples: tuple[str, ...]  # ids of the best practices that were shown
    model: str
    input_tokens: int
    output_tokens: int
    made_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """A paper to be rewritten for a level. `item` is a hash of all that makes it another task."""

    item: str
    paper_id: str
    version: int
    title: str
    category: str | None
    target_level: str
    original_text: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteItem(NewItem):
    """An item with all that has happened to it. `outcome` is None until it is finished, then `kept` is the attempt."""

    opened_at: datetime
    outcome: str | None
    kept: int | None
    note: str | None
    attempts: tuple[Attempt, ...]
    decisions: Mapping[int, str]
    decided_at: datetime | None = None  # the last decision

    @property
    def kept_attempt(self) -> Attempt | None:
        """The rewrite itself, once there is one."""
        return self.attempts[self.kept - 1] if self.kept else None

    @property
    def moved_at(self) -> datetime:
        """When it was opened, last written or last decided on, whichever came last."""
        written = [attempt.made_at for attempt in self.attempts[-1:]]
        return max([self.opened_at, *written, *([self.decided_at] if self.decided_at else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """A decision and its place among all of them; `asked_by` are the days and profiles whose rewrites it touches."""

    place: int
    item: str
    attempt: int
    decision: str
    asked_by: tuple[tuple[date, str], ...]


def open_items(warehouse: Warehouse, items: Sequence[NewItem], *, now: datetime) -> None:
    """Begin the items that are not there yet."""
    if items:
        with warehouse.writing() as connection:
            _open(connection, items, now=now)


def replace_set(warehouse: Warehouse, day: date, profile: str, items: Sequence[NewItem], *, now: datetime) -> bool:
    """Say which rewrites the profile's day asks for, best paper first, and begin those that are not there yet.

    False if it was so already.
    """
    key, names = {"day": day, "profile": profile}, [item.item for item in items]
    if items_of(warehouse, day, profile) == names:
        return False
    with warehouse.writing() as connection:
        if items:
            _open(connection, items, now=now)
        connection.execute("delete from rewrite_sets where day = $day and profile = $profile", key)
        connection.execute("insert into rewrite_sets values ($day, $profile, $items)", {**key, "items": names})
    return True


def items_of(warehouse: Warehouse, day: date, profile: str) -> list[str] | None:
    """The rewrites that the profile's day asks for; None if it was never asked."""
    with warehouse.reading() as connection:
        found: list[str] | None = value_of(
            connection, "select items from rewrite_sets where day = ? and profile = ?", [day, profile]
        )
    return found


def rewrites_of(warehouse: Warehouse, *, profile: str, day: date | None = None) -> list[RewriteItem]:
    """What a profile asked for on `day` (None: on any), in the order of the ranking, newest day first; each once."""
    with warehouse.reading() as connection:
        sets = connection.execute(
            """
            select items
            from rewrite_sets
            where profile = $profile and ($day::date is null or day = $day)
            order by day desc
            """,
            {"profile": profile, "day": day},
        ).fetchall()
        return _items(connection, dict.fromkeys(item for (items,) in sets for item in items))


def rewrite_items(warehouse: Warehouse, items: Iterable[str]) -> list[RewriteItem]:
    """These items in this order; unknown ones are left out."""
    with warehouse.reading() as connection:
        return _items(connection, items)


def rewrite_item(warehouse: Warehouse, item: str) -> RewriteItem:
    """One item. Raises NotComputed."""
    found = rewrite_items(warehouse, [item])
    if not found:
        raise NotComputed(f"no rewrite {item!r}; ask for it with `paper-assets rewrite PAPER_ID --level LEVEL`")
    return found[0]


def unfinished_items(warehouse: Warehouse) -> list[RewriteItem]:
    """All items without outcome, the oldest first: those that wait for a person among them."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select item from rewrite_items where outcome is null order by opened_at, item"
        ).fetchall()
        return _items(connection, [item for (item,) in rows])


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
            {"since": _stored(since)},
        ).fetchall()
    return [item for (item,) in rows]


def items_for(warehouse: Warehouse, paper_id: str, target_level: str) -> list[RewriteItem]:
    """Every rewrite of a paper for a level, of any version, text and prompt; the one opened last first."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select item from rewrite_items where paper_id = ? and target_level = ? order by opened_at desc, item",
            [paper_id, target_level],
        ).fetchall()
        return _items(connection, [item for (item,) in rows])


def keep_attempt(warehouse: Warehouse, item: str, attempt: Attempt) -> bool:
    """Keep the next attempt; False if another process has kept it, or finished the item, meanwhile."""
    values = {field.name: getattr(attempt, field.name) for field in fields(Attempt)}
    lists = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
    with warehouse.writing() as connection:
        if not _is_last(connection, item, attempt.attempt - 1):
            return False
        connection.execute(
            """
            insert into rewrite_attempts values (
                $item, $attempt, $text, $keywords, $score, $critique, $unsupported, $examples, $model,
                $input_tokens, $output_tokens, $made_at
            )
            """,
            {"item": item, **values, **lists, "made_at": _stored(attempt.made_at)},
        )
    return True


def keep_decision(warehouse: Warehouse, item: str, attempt: int, decision: str, *, now: datetime) -> bool:
    """Keep a person's word on the last attempt of an unfinished item; False if it is not that, or was decided on."""
    with warehouse.writing() as connection:
        if not _is_last(connection, item, attempt):
            return False
        taken: int = value_of(
            connection,
            """
            insert into rewrite_decisions
            select $item, $attempt, $decision, $now, coalesce(max(place), 0) + 1
            from rewrite_decisions
            on conflict do nothing
            """,
            {"item": item, "attempt": attempt, "decision": decision, "now": _stored(now)},
        )
    return taken == 1


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
    return closed == 1


def items_with_note(warehouse: Warehouse, note: str) -> list[RewriteItem]:
    """Finished items with just this note, the oldest first."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select item from rewrite_items where outcome is not null and note = ? order by opened_at, item", [note]
        ).fetchall()
        return _items(connection, [item for (item,) in rows])


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


def last_decision(warehouse: Warehouse, items: Iterable[str]) -> datetime | None:
    """When a person last decided on any of these items; None if nobody ever did."""
    with warehouse.reading() as connection:
        found: datetime | None = value_of(
            connection,
            "select max(decided_at) from rewrite_decisions where item in (select unnest($items))",
            {"items": list(items)},
        )
    return found and found.replace(tzinfo=UTC)


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


def _open(connection: "DuckDBPyConnection", items: Sequence[NewItem], *, now: datetime) -> None:
    import pyarrow as pa

    names = [field.name for field in fields(NewItem)]
    connection.register("incoming", pa.table({name: [getattr(item, name) for item in items] for name in names}))
    connection.execute(
        """
        insert into rewrite_items by name
        select *, $now::timestamp as opened_at
        from incoming
        on conflict do nothing
        """,
        {"now": _stored(now)},
    )


def _is_last(connection: "DuckDBPyConnection", item: str, attempt: int) -> bool:
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


def _items(connection: "DuckDBPyConnection", wanted: Iterable[str]) -> list[RewriteItem]:
    order = list(wanted)
    rows = _rows(connection, "from rewrite_items where item in (select unnest($items))", order)
    attempts: dict[str, list[Attempt]] = {}
    for row in _rows(
        connection, "from rewrite_attempts where item in (select unnest($items)) order by item, attempt", order
    ):
        attempts.setdefault(row.pop("item"), []).append(Attempt(**row))
    decisions: dict[str, dict[int, str]] = {}
    decided_at: dict[str, datetime] = {}
    for row in _rows(connection, "from rewrite_decisions where item in (select unnest($items))", order):
        decisions.setdefault(row["item"], {})[row["attempt"]] = row["decision"]
        decided_at[row["item"]] = max(row["decided_at"], decided_at.get(row["item"], row["decided_at"]))
    found = {
        row["item"]: RewriteItem(
            **row,
            attempts=tuple(attempts.get(row["item"], ())),
            decisions=decisions.get(row["item"], {}),
            decided_at=decided_at.get(row["item"]),
        )
        for row in rows
    }
    return [found[item] for item in order if item in found]


def _rows(connection: "DuckDBPyConnection", query: str, items: list[str]) -> list[dict[str, Any]]:
    """Rows as the dataclasses take them: lists as tuples, times aware."""
    rows: list[dict[str, Any]] = (
        connection.sql(query, params={"items": items}).to_arrow_table().to_pylist() if items else []
    )
    return [{name: _read(value) for name, value in row.items()} for row in rows]


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _stored(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)
