"""The actor–critic loop over stored items: every process reads where things stand, does one step, and stores it (B5).

What is to be done says `policy.py`; nothing of it is kept in memory, so that a process may be killed between any two
steps and several may work on one item. Of two that write the same attempt the first one counts, and the other goes on
from there.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import datetime

from paper_assets.errors import InvalidInput
from paper_assets.rewriting.archiving import archive_kept
from paper_assets.rewriting.best_practices import Archive
from paper_assets.rewriting.policy import DECISIONS, Decision, Done, Step, Wait, Write, next_step
from paper_assets.rewriting.publishing import publish
from paper_assets.rewriting.state import OptimizerState, state_of, step_of
from paper_assets.rewriting.writing import Writer, write_attempt
from paper_assets.settings import Rewriting
from paper_assets.stores.rewrites import (
    Attempt,
    NewItem,
    RewriteItem,
    finish,
    keep_attempt,
    keep_decision,
    reopen,
    rewrite_item,
)
from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Whether a person's word counted, and one line that says what holds now."""

    counted: bool
    note: str


def advance(warehouse: Warehouse, writer: Writer, item: str) -> RewriteItem:
    """Write attempts until the item waits or is done, and close it in that case; the item as it then stands.

    Raises LLMError; what was attempted before is kept, and the next call goes on from there.
    """
    while True:
        now = _look(warehouse, writer, item)
        if not isinstance(step_of(now, numbers=writer.numbers), Write):
            return now
        keep_attempt(warehouse, item, write_attempt(writer, now, now.attempts))  # if not kept, somebody was faster


def rewriting(warehouse: Warehouse, writer: Writer, item: str) -> Generator[OptimizerState, Decision | None, Done]:
    """The same, step by step: `next()` writes the next attempt, `send('accept')` and `send('retry')` decide.

    Yields the state after each attempt; the last one yielded is of the text that is kept (cancelled: of the last).
    While the item waits, `next()` looks whether somebody else has decided. Returns how it ended. Raises LLMError, and
    InvalidInput for a word on an attempt that does not wait; a new generator goes on where this one has ended.
    """
    shown: OptimizerState | None = None
    said: Decision | None = None
    while True:
        if said is not None:
            attempt, now = shown.attempt if shown else 0, writer.clock()
            told = decide(warehouse, item, attempt, said, now=now, numbers=writer.numbers)
            if not told.counted:
                raise InvalidInput(told.note)
        stands = _look(warehouse, writer, item)
        step, written = step_of(stands, numbers=writer.numbers), None
        if isinstance(step, Write):
            keep_attempt(warehouse, item, write_attempt(writer, stands, stands.attempts))
            stands = _look(warehouse, writer, item)
            written = step.attempt if step.attempt <= len(stands.attempts) else None  # cancelled meanwhile
            step = step_of(stands, numbers=writer.numbers)
        state = state_of(stands, numbers=writer.numbers, attempt=written)
        ended = isinstance(step, Done) and (written is None or written == step.attempt)
        if state is not None and not (ended and state == shown):
            shown = state
            said = yield state
        if ended and isinstance(step, Done):
            return step


def decide(
    warehouse: Warehouse, item: str, attempt: int, decision: Decision, *, now: datetime, numbers: Rewriting
) -> Told:
    """Keep a person's word on an attempt that waits for it. The first word counts; a stale one changes nothing.

    Asks no language model: an accepted rewrite is closed at once unless it belongs into the archive, everything else
    is done by whoever advances the item next (A3).
    """
    if decision not in DECISIONS:
        raise InvalidInput(f"decision {decision!r} is unknown; use one of {', '.join(DECISIONS)}")
    stands = rewrite_item(warehouse, item)
    step = step_of(stands, numbers=numbers)
    waits = isinstance(step, Wait) and step.attempt == attempt
    if waits and keep_decision(warehouse, item, attempt, decision, now=now):
        decided = rewrite_item(warehouse, item)
        if decision == "accept" and decided.attempts[attempt - 1].score < numbers.archived:
            _closed(warehouse, decided, numbers=numbers, archive=None)
        return Told(counted=True, note=f"{_named(stands)}: attempt {attempt} is {_past(decision)}")
    return Told(counted=False, note=f"{_refusal(rewrite_item(warehouse, item), attempt, numbers)}")


def cancel(warehouse: Warehouse, item: str) -> Told:
    """Give an item up; a finished one stays as it is."""
    done = finish(warehouse, item, outcome="cancelled", kept=None)
    stands = rewrite_item(warehouse, item)
    return Told(counted=done, note=f"{_named(stands)} {'is' if done else 'was already'} {_past(stands.outcome or '')}")


def take_up_again(warehouse: Warehouse, item: str) -> Told:
    """Take a cancellation back; the item goes on where it was."""
    done = reopen(warehouse, item)
    stands = rewrite_item(warehouse, item)
    return Told(counted=done, note=f"{_named(stands)} {'goes on' if done else 'is not cancelled'}")


def rehearse(writer: Writer, item: NewItem) -> tuple[list[Attempt], Step]:
    """The loop without a store, until it would wait or is done: for comparisons (B7). Raises LLMError."""
    attempts: list[Attempt] = []
    while True:
        step = next_step([attempt.score for attempt in attempts], {}, numbers=writer.numbers)
        if not isinstance(step, Write):
            return attempts, step
        attempts.append(write_attempt(writer, item, attempts))


def _look(warehouse: Warehouse, writer: Writer, item: str) -> RewriteItem:
    """The item as it stands, closed if it is done."""
    return _closed(warehouse, rewrite_item(warehouse, item), numbers=writer.numbers, archive=writer.archive)


def _closed(warehouse: Warehouse, item: RewriteItem, *, numbers: Rewriting, archive: Archive | None) -> RewriteItem:
    """Close an item that is done. Whoever is killed on the way does it again: each part may be done twice."""
    step = step_of(item, numbers=numbers)
    if item.outcome is not None or not isinstance(step, Done) or step.attempt is None:
        return item
    kept = item.attempts[step.attempt - 1]
    note = None
    if archive is not None and kept.score >= numbers.archived:
        note = archive_kept(archive, item, kept)
    publish(warehouse, item, kept)
    if finish(warehouse, item.item, outcome=step.outcome, kept=step.attempt, note=note):
        return replace(item, outcome=step.outcome, kept=step.attempt, note=note)
    return rewrite_item(warehouse, item.item)


def _named(item: RewriteItem) -> str:
    return f"the rewrite of {item.paper_id} for {item.target_level}"


def _past(word: str) -> str:
    return {"accept": "accepted", "retry": "sent back", "best_with_warning": "finished", "best": "finished"}.get(
        word, word
    )


def _refusal(item: RewriteItem, attempt: int, numbers: Rewriting) -> str:
    step = step_of(item, numbers=numbers)
    if attempt in item.decisions:
        why = f"attempt {attempt} was already {_past(item.decisions[attempt])}"
    elif isinstance(step, Wait):
        why = f"attempt {step.attempt} is the one that waits, not {attempt}"
    elif isinstance(step, Done):
        why = f"it is {_past(step.outcome)} and waits for nobody"
    else:
        why = f"attempt {attempt} does not wait for a decision"
    return f"{_named(item)}: {why}; nothing was changed"
