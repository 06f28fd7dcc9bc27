"""Read rewrites: items with their attempts, decisions and outcome, and which rewrites a profile's day requests.

Writing is in rewrite_progress.py; `rewriting/policy.py` decides what follows from the state.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from paper_assets.errors import NotComputed
from paper_assets.stores.warehouse import Warehouse, records_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Represent one rewrite and its critique; score 0 to 100. Tokens are those of actor and critic together.

    `stopped`: why the gate holds it back, claims apart; `readability`: its LIX; `critic`: the model that judged, None
    if code refused the text. `unchecked`: sentences that were not checked against the original, None for all of them;
    `unsupported` and `disputed`: numbers and names that the original lacks, in sentences that it does not support and
    in sentences that it does.
    """

    attempt: int
    text: str
    keywords: tuple[str, ...]
    score: int
    critique: str
    unsupported: tuple[str, ...]
    examples: tuple[str, ...]  # ids of the best practices that were shown
    model: str
    input_tokens: int
    output_tokens: int
    made_at: datetime
    stopped: tuple[str, ...] = ()
    subscores: tuple[int, ...] = ()
    readability: float | None = None
    critic: str | None = None
    unchecked: int | None = None
    disputed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """A paper to be rewritten for a level. `item` hashes everything that defines the task; `language` is ISO 639-1."""

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
    """Represent an item with its whole history. `outcome` is missing until it is finished, then `kept` is the attempt.

    `accepted`: numbers and names that a person has accepted for the paper (`rewrite_progress.accept_claims`).
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
        """Return the final rewrite, once there is one."""
        return self.attempts[self.kept - 1] if self.kept else None

    @property
    def moved_at(self) -> datetime:
        """Return when it was opened, last written or last decided on, whichever is latest."""
        written = [attempt.made_at for attempt in self.attempts[-1:]]
        return max([self.opened_at, *written, *([self.decided_at] if self.decided_at else [])])


def rewrite_items(warehouse: Warehouse, items: Iterable[str]) -> list[RewriteItem]:
    """Return these items in this order; unknown ones are omitted."""
    order = list(items)
    if not order:
        return []
    with warehouse.reading() as connection:
        rows, attempts_made, decided, claims = (
            records_of(connection, query, {"items": order})
            for query in (
                "from rewrite_items where item in (select unnest($items))",
                "from rewrite_attempts where item in (select unnest($items)) order by item, attempt",
                "from rewrite_decisions where item in (select unnest($items))",
                """
                select distinct paper_id, claim
                from accepted_claims
                semi join (from rewrite_items where item in (select unnest($items))) using (paper_id)
                """,
            )
        )
    attempts: dict[str, list[Attempt]] = {}
    for row in attempts_made:
        attempts.setdefault(row.pop("item"), []).append(Attempt(**row))
    decisions: dict[str, dict[int, str]] = {}
    decided_at: dict[str, datetime] = {}
    for row in decided:
        decisions.setdefault(row["item"], {})[row["attempt"]] = row["decision"]
        decided_at[row["item"]] = max(row["decided_at"], decided_at.get(row["item"], row["decided_at"]))
    accepted: dict[str, set[str]] = {}
    for row in claims:
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


def rewrite_item(warehouse: Warehouse, item: str) -> RewriteItem:
    """Return one item. Raises NotComputed."""
    found = rewrite_items(warehouse, [item])
    if not found:
        raise no_such_rewrite(item)
    return found[0]


def no_such_rewrite(item: str) -> NotComputed:
    """Return the error for an unknown item."""
    return NotComputed(f"no rewrite {item!r}; request it with `paper-assets rewrite PAPER_ID --level LEVEL`")


def unfinished_items(warehouse: Warehouse) -> list[RewriteItem]:
    """Return all items without outcome, the oldest first, including those that wait for a person."""
    return _select_items(warehouse, "select item from rewrite_items where outcome is null order by opened_at, item")


def items_for(warehouse: Warehouse, paper_id: str, target_level: str) -> list[RewriteItem]:
    """Return every rewrite of a paper for a level, of any version, text and prompt; the newest first."""
    return _select_items(
        warehouse,
        "select item from rewrite_items where paper_id = ? and target_level = ? order by opened_at desc, item",
        [paper_id, target_level],
    )


def items_with_note(warehouse: Warehouse, note: str) -> list[RewriteItem]:
    """Return finished items whose note begins like this, the oldest first."""
    return _select_items(
        warehouse,
        "select item from rewrite_items where outcome is not null and starts_with(note, ?) order by opened_at, item",
        [note],
    )


def _select_items(
    warehouse: Warehouse, query: str, params: Sequence[str] | Mapping[str, object] = ()
) -> list[RewriteItem]:
    """Return the items that the query selects, in its order."""
    return rewrite_items(warehouse, warehouse.column(query, params))


def items_of(warehouse: Warehouse, keys: Collection[tuple[date, str]]) -> dict[tuple[date, str], list[str]]:
    """Return the rewrites that days of profiles request, by day and profile, for the `keys` that requested any."""
    rows = warehouse.rows(
        """
        with asked as (select unnest($days::date[]) as day, unnest($profiles::varchar[]) as profile)
        select day, profile, items
        from rewrite_sets
        join asked using (day, profile)
        """,
        {"days": [day for day, _ in keys], "profiles": [profile for _, profile in keys]},
    )
    return {(day, profile): items for day, profile, items in rows}


def rewrites_of(warehouse: Warehouse, *, profile: str, day: date | None = None) -> list[RewriteItem]:
    """Return what a profile requested on `day` (None: on any) by rank, newest day first; each once."""
    sets = warehouse.column(
        """
        select items
        from rewrite_sets
        where profile = $profile and ($day::date is null or day = $day)
        order by day desc
        """,
        {"profile": profile, "day": day},
    )
    return rewrite_items(warehouse, dict.fromkeys(item for items in sets for item in items))


def rewrites_by_command(warehouse: Warehouse, *, profile: str | None = None) -> list[RewriteItem]:
    """Return rewrites that no profile requested, such as those of `paper-assets rewrite`; the newest first.

    `profile`: only of papers in a list of this profile. Of each paper, level and language it is the newest one with an
    attempt, and only where no profile requested one.
    """
    return _select_items(
        warehouse,
        """
        with requested as (select distinct unnest(items) as item from rewrite_sets),
        taken as (select paper_id, target_level, language from rewrite_items semi join requested using (item))
        select item
        from rewrite_items
        anti join taken using (paper_id, target_level, language)
        where item in (select item from rewrite_attempts)
            and ($profile is null or paper_id in (select paper_id from rankings where profile = $profile and shown))
        qualify row_number() over (partition by paper_id, target_level, language order by opened_at desc, item) = 1
        order by opened_at desc, item
        """,
        {"profile": profile},
    )


def requested_rewrite(warehouse: Warehouse, item: str, profile: str) -> RewriteItem:
    """Return one item, if the profile requested it. Raises NotComputed."""
    for each in rewrites_of(warehouse, profile=profile):
        if each.item == item:
            return each
    raise no_such_rewrite(item)


def papers_with_requests(warehouse: Warehouse, profiles: Iterable[str]) -> set[tuple[str, str]]:
    """Return paper and level of every rewrite that one of these profiles requested."""
    rows = warehouse.rows(
        """
        select distinct paper_id, target_level
        from rewrite_items
        where item in (
            select unnest(items) from rewrite_sets where profile in (select unnest($profiles::varchar[]))
        )
        """,
        {"profiles": sorted(profiles)},
    )
    return {(paper_id, level) for paper_id, level in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Summarize finished rewrites: their number, and the means of the final score and of the number of attempts."""

    rewrites: int
    score: float
    attempts: float


def attempts_by_examples(warehouse: Warehouse) -> dict[bool, Outcomes]:
    """Summarize finished rewrites whose attempts were shown examples (True), and the others."""
    rows = warehouse.rows(
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
    )
    return {shown: Outcomes(rewrites=count, score=score, attempts=attempts) for shown, count, score, attempts in rows}
