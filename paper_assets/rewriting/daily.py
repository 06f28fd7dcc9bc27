"""One profile's day of rewrites, from the stores and back: which are asked for, and what a run brought about."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from hashlib import sha256

from paper_assets.errors import LLMBudgetReached, LLMConfigError, LLMError, LLMUnreachable
from paper_assets.paper import papers_from_table
from paper_assets.profile import Profile
from paper_assets.rewriting.loop import advance
from paper_assets.rewriting.policy import Wait, Write
from paper_assets.rewriting.state import step_of
from paper_assets.rewriting.writing import Writer, new_item
from paper_assets.settings import Rewriting
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import ranking
from paper_assets.stores.rewrites import NewItem, RewriteItem, decided_items, items_of, replace_set, rewrite_items
from paper_assets.stores.warehouse import Warehouse

CODE_VERSION = "1"

GIVEN_UP_AFTER = timedelta(days=14)  # an item with which nothing could be done for so long is left alone

_MOST_FAILURES = 2  # questions without any answer, one after the other, after which the server is let be


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """What a run could not do: items left unfinished for want of a language model, and why."""

    unfinished: tuple[str, ...]
    reason: str | None

    @property
    def warning(self) -> str | None:
        if not self.unfinished:
            return None
        wait = "1 rewrite waits" if len(self.unfinished) == 1 else f"{len(self.unfinished)} rewrites wait"
        return f"{wait} for the language model: {self.reason}"


def ask_for_rewrites(warehouse: Warehouse, profile: Profile, day: date, *, now: datetime) -> list[str]:
    """Open the items that the profile's day asks for; all of them, best paper first. Raises NotComputed."""
    items = wanted_items(warehouse, profile, day)
    replace_set(warehouse, day, profile.name, items, now=now)
    return [item.item for item in items]


def wanted_items(warehouse: Warehouse, profile: Profile, day: date) -> list[NewItem]:
    """One item for each of the day's best papers and each level the profile asks for, which may be none.

    Raises NotComputed without a ranking of the day.
    """
    wanted = profile.content.rewriting
    if not (wanted.target_levels and wanted.papers):
        return []
    best = ranking(warehouse, day, profile.name).rows.slice(0, wanted.papers).column("paper_id").to_pylist()
    papers = papers_from_table(papers_by_id(warehouse, best))
    levels = dict.fromkeys(wanted.target_levels)
    return [new_item(paper, level) for paper in papers if paper.abstract.strip() for level in levels]


def decided_lately(warehouse: Warehouse, *, now: datetime) -> list[str]:
    """Unfinished items that somebody has decided on, and which every run takes along: a decision counts also where
    no profile's day asks for the rewrite, or no longer.
    """
    return decided_items(warehouse, since=now - GIVEN_UP_AFTER)


def anything_to_do(warehouse: Warehouse, profile: Profile, day: date, *, now: datetime, numbers: Rewriting) -> bool:
    """Whether a run would find something to ask for, to write or to close. Raises NotComputed."""
    wanted = [item.item for item in wanted_items(warehouse, profile, day)]
    if wanted != (items_of(warehouse, day, profile.name) or []):
        return True
    stored = rewrite_items(warehouse, dict.fromkeys([*wanted, *decided_lately(warehouse, now=now)]))
    return any(item.outcome is None and not isinstance(step_of(item, numbers=numbers), Wait) for item in stored)


def advance_all(
    warehouse: Warehouse, writer: Writer, items: Iterable[str], *, log: Callable[[str], None] = lambda line: None
) -> Advanced:
    """Advance each item until it is done or waits for a person; never fails for the language model's sake.

    Without one, items are still closed that need no more writing. A server that cannot be reached is let be after
    two items; one that refuses an item is asked for the others.
    """
    left: list[str] = []
    failures, reason, given_up = 0, None, writer.model is None
    for stands in rewrite_items(warehouse, dict.fromkeys(items)):
        item = stands.item
        if given_up and reason and isinstance(step_of(stands, numbers=writer.numbers), Write):
            left.append(item)
            continue
        try:
            before, stands = len(stands.attempts), advance(warehouse, writer, item)
            if len(stands.attempts) > before:
                failures = 0
            log(f"{stands.paper_id} for {stands.target_level}: {len(stands.attempts)} attempts, {stands.outcome}")
        except LLMError as error:
            left.append(item)
            failures, reason = failures + isinstance(error, LLMUnreachable), str(error)
            given_up |= isinstance(error, LLMConfigError | LLMBudgetReached) or failures == _MOST_FAILURES
            log(f"{stands.paper_id} for {stands.target_level}: {error}")
    return Advanced(unfinished=tuple(left), reason=reason)


def version_of(items: Sequence[RewriteItem]) -> str:
    """Data version: changes with any attempt, decision or outcome, and with nothing else."""
    parts = [
        (item.item, [attempt.text for attempt in item.attempts], sorted(item.decisions.items()), item.outcome)
        for item in items
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()[:32]


def waiting_too_long(items: Iterable[RewriteItem], *, as_of: datetime, numbers: Rewriting) -> list[RewriteItem]:
    """Items that have waited for a person for `numbers.waiting_days` or more."""
    since = as_of - timedelta(days=numbers.waiting_days)
    return [item for item in items if isinstance(step_of(item, numbers=numbers), Wait) and item.moved_at <= since]
