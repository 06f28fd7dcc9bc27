"""Rewrites as they come about: items, their attempts, and which day and profile asks for what.

Everything is written as it happens, each in one small transaction that holds only if nobody was faster: any process
can go on where another has stopped, and of two the first one counts. People's decisions, which come in the same way,
stand in rewrite_decisions.py; what follows from all this is `rewriting/policy.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import NotComputed
from paper_assets.stores.warehouse import Warehouse, value_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One rewrite and its critique; score 0 to 100. Tokens are those of the actor and the critic together.

    `stopped`: why the gate holds it back, claims apart; `readability`: its LIX; `critic`: the model that judged, None
    where nobody knows any more.
    """

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
    stopped: tuple[str, ...] = ()
    subscores: tuple[int, ...] = ()
    readability: float | None = None
    critic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """A paper to be rewritten for a level. `item` is a hash of all that makes it another task; `language` ISO 639-1."""

    item: str
    paper_id: str
    version: int
    title: str
    category: str | None
    target_level: str
    original_text: str
    prompt: str
    language: str = "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteItem(NewItem):
    """An item with all that has happened to it. `outcome` is None until it is finished, then `kept` is the attempt.

    `accepted`: numbers and names that a person has accepted for the paper, as `stores/accepted_claims.py` keeps them.
    """

    opened_at: datetime
    outcome: str | None
    kept: int | None
    note: str | None
    attempts: tuple[Attempt, ...]
    decisions: Mapping[int, str]
    decided_at: datetime | None = None  # the last decision
    accepted: frozenset[str] = frozenset()

    @property
    def kept_attempt(self) -> Attempt | None:
        """The rewrite itself, once there is one."""
        return self.attempts[self.kept - 1] if self.kept else None

    @property
    def moved_at(self) -> datetime:
        """When it was opened, last written or last decided on, whichever came last."""
        written = [attempt.made_at for attempt in self.attempts[-1:]]
        return max([self.opened_at, *written, *([self.decided_at] if self.decided_at else [])])


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


def papers_asked_for(warehouse: Warehouse, profiles: Iterable[str]) -> set[tuple[str, str]]:
    """Paper and level of every rewrite that one of these profiles asked for."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select distinct paper_id, target_level
            from rewrite_items
            where item in (
                select unnest(items) from rewrite_sets where profile in (select unnest($profiles::varchar[]))
            )
            """,
            {"profiles": sorted(profiles)},
        ).fetchall()
    return {(paper_id, level) for paper_id, level in rows}


def rewrite_items(warehouse: Warehouse, items: Iterable[str]) -> list[RewriteItem]:
    """These items in this order; unknown ones are left out."""
    with warehouse.reading() as connection:
        return _items(connection, items)


def rewrite_item(warehouse: Warehouse, item: str, *, profile: str | None = None) -> RewriteItem:
    """One item, where a profile is given one that it asked for. Raises NotComputed."""
    found = rewrite_items(warehouse, [item])
    if found and profile is not None and item not in {each.item for each in rewrites_of(warehouse, profile=profile)}:
        found = []
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


def items_for(warehouse: Warehouse, paper_id: str, target_level: str) -> list[RewriteItem]:
    """Every rewrite of a paper for a level, of any version, text and prompt; the one opened last first."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select item from rewrite_items where paper_id = ? and target_level = ? order by opened_at desc, item",
            [paper_id, target_level],
        ).fetchall()
        return _items(connection, [item for (item,) in rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Finished rewrites of one kind: how many, and the means of the kept score and of the attempts it took."""

    rewrites: int
    score: float
    attempts: float


def attempts_by_examples(warehouse: Warehouse) -> dict[bool, Outcomes]:
    """Finished rewrites whose attempts were shown examples (True), and those whose were not; as it came about."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            with finished as (
                select
                    item,
                    max(len(examples)) > 0 as shown,
                    max(score) filter (attempt = kept) as score,
                    count(*) as attempts
                from rewrite_items
                join rewrite_attempts using (item)
                where kept is not null
                group by item
            )
            select shown, count(*), avg(score), avg(attempts)
            from finished
            group by shown
            """
        ).fetchall()
    return {shown: Outcomes(rewrites=count, score=score, attempts=attempts) for shown, count, score, attempts in rows}


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


def _open(connection: DuckDBPyConnection, items: Sequence[NewItem], *, now: datetime) -> None:
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


def _items(connection: DuckDBPyConnection, wanted: Iterable[str]) -> list[RewriteItem]:
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
    accepted: dict[str, set[str]] = {}
    for row in _rows(
        connection,
        """
        select distinct paper_id, claim
        from accepted_claims
        semi join (from rewrite_items where item in (select unnest($items))) using (paper_id)
        """,
        order,
    ):
        accepted.setdefault(row["paper_id"], set()).add(row["claim"])
    found = {
        row["item"]: RewriteItem(
            **row,
            attempts=tuple(attempts.get(row["item"], ())),
            decisions=decisions.get(row["item"], {}),
            decided_at=decided_at.get(row["item"]),
            accepted=frozenset(accepted.get(row["paper_id"], ())),
        )
        for row in rows
    }
    return [found[item] for item in order if item in found]


def _rows(connection: DuckDBPyConnection, query: str, items: list[str]) -> list[dict[str, Any]]:
    """Rows as the dataclasses take them: lists as tuples, times aware."""
    rows: list[dict[str, Any]] = (
        connection.sql(query, params={"items": items}).to_arrow_table().to_pylist() if items else []
    )
    return [{name: _read(value) for name, value in row.items()} for row in rows]


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def stored_time(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)
