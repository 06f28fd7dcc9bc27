"""Run the actor–critic loop over stored items: read the state, do one step, store it (B5).

`policy.py` decides each step. Nothing is kept in memory, so a process may be killed between any two steps and several
may work on one item. A process claims an item before it writes an attempt, so that no attempt is paid for twice; others
wait meanwhile or take another item first.
"""

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, cast

from paper_assets.errors import InvalidInput, StoreError
from paper_assets.rewriting.best_practices import Archive, archive_kept
from paper_assets.rewriting.gate import (
    claim_key,
    held_back,
    hold_reasons,
    is_stuck,
    open_questions,
    stopped_attempts,
    unsettled,
)
from paper_assets.rewriting.policy import (
    DECISIONS,
    Decision,
    Done,
    NextStep,
    Outcome,
    Wait,
    Write,
    attempts_allowed,
    next_step,
)
from paper_assets.rewriting.writing import Writer, write_attempt
from paper_assets.settings import RewritingConfig
from paper_assets.sources.table import page_of
from paper_assets.stores.documents import Document, replace_documents
from paper_assets.stores.papers import find_paper
from paper_assets.stores.rewrite_progress import (
    accept_claims,
    claim_item,
    finish,
    keep_attempt,
    keep_decision,
    release_item,
    reopen,
)
from paper_assets.stores.rewrites import Attempt, NewItem, RewriteItem, items_for, rewrite_item
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.languages import language_of

Status = Literal["PASS", "FAIL", "WAIT_CONFIRM"]

_HELD = "held back by the gate"
_WARNING = "quality warning: no attempt was good enough, this is the best of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerState:
    """One attempt and what it means: PASS, this text is kept; FAIL, it is not (or only with a quality warning)."""

    attempt: int
    max_retries: int  # attempts allowed now
    current_score: int
    current_text: str
    feedback: str
    status: Status
    decision_required: bool


def step_of(item: RewriteItem, *, config: RewritingConfig) -> NextStep:
    """Return the next step of an item; a finished item stays finished, whatever the thresholds are now."""
    if item.outcome is not None:
        return Done(attempt=item.kept, outcome=cast(Outcome, item.outcome))
    scores = [attempt.score for attempt in item.attempts]
    stuck = is_stuck(item.attempts, item.accepted, passes=config.passes)
    return next_step(scores, item.decisions, stopped=stopped_attempts(item), stuck=stuck, config=config)


def state_of(item: RewriteItem, *, config: RewritingConfig, attempt: int | None = None) -> OptimizerState | None:
    """Return the state of `attempt` (None: the kept one, else the last one); None before the first attempt."""
    if not item.attempts:
        return None
    step = step_of(item, config=config)
    kept = step.attempt if isinstance(step, Done) else None
    shown = item.attempts[(attempt or kept or len(item.attempts)) - 1]
    waits = isinstance(step, Wait) and step.attempt == shown.attempt
    held = held_back(item, shown)
    feedback = f"{_HELD}: {'; '.join(held)}. {shown.critique}" if held else shown.critique
    status: Status = "WAIT_CONFIRM" if waits else "FAIL"
    if isinstance(step, Done) and kept == shown.attempt:
        if step.outcome == "best_with_warning":
            feedback = f"{_WARNING}. {feedback}"
        else:
            status = "PASS"
    scores = [each.score for each in item.attempts]
    return OptimizerState(
        attempt=shown.attempt,
        max_retries=max(
            attempts_allowed(scores, item.decisions, stopped=stopped_attempts(item), config=config), shown.attempt
        ),
        current_score=shown.score,
        current_text=shown.text,
        feedback=feedback,
        status=status,
        decision_required=waits,
    )


def status_in_words(item: RewriteItem, *, config: RewritingConfig) -> str:
    """Return the state of an item in a few words for tables: waiting, unfinished, or its outcome."""
    step = step_of(item, config=config)
    if isinstance(step, Wait):
        return "waiting for a decision"
    if isinstance(step, Write):
        return "unfinished"
    return step.outcome.replace("_", " ")


def publish(warehouse: Warehouse, item: RewriteItem, kept: Attempt) -> bool:
    """Make the kept rewrite the document of its paper and level; False if it is, or the paper is newer or gone."""
    paper = find_paper(warehouse, item.paper_id)
    if paper is None or paper.version > item.version:
        return False
    category, spoken = paper.primary_category, language_of(item.original_text) or "en"
    # In the original's language there is one document for each paper and level; another language adds one.
    name = item.target_level if item.language == spoken else f"{item.target_level}:{item.language}"
    document = Document(
        doc_id=f"{item.paper_id}:{name}",
        text=kept.text,
        paper_id=item.paper_id,
        title=item.title,
        date_int=int(f"{paper.day:%Y%m%d}") if paper.day else None,
        primary_category=category,
        categories=paper.categories,
        topic_id=category.partition(".")[0] if category else None,
        data_type="rewrite",
        access_level="public",
        language=item.language,
        version=item.version,
        url=page_of(item.paper_id),
    )
    origin = f"{item.paper_id} for {name}"
    return replace_documents(warehouse, "rewrite", origin=origin, documents=[document])


_PAUSE = 0.3  # seconds between checks for another process's attempt


class Claimed(Exception):
    """Another process is writing this item's next attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Whether a person's decision counted, and one line about the present state."""

    counted: bool
    note: str


def stored_task(warehouse: Warehouse, task: NewItem) -> NewItem:
    """Return the task of the stored rewrite of the same text, level and language; without one, the task itself.

    A new version of the program changes prompts and with them the identity of every task. A rewrite that was paid for
    or cancelled before stays the one of its paper: finished ones first, then the newest.
    """
    same = [
        each
        for each in items_for(warehouse, task.paper_id, task.target_level)
        if (each.version, each.original_text, each.language) == (task.version, task.original_text, task.language)
    ]
    if not same or any(each.item == task.item for each in same):
        return task
    chosen = next((each for each in same if each.kept), same[0])
    return replace(task, item=chosen.item, prompt=chosen.prompt)


def advance(warehouse: Warehouse, writer: Writer, item: str, *, patient: bool = True) -> RewriteItem:
    """Write attempts until the item waits or is done, close it if it is done, and return it.

    If another process is writing the next attempt, waits for it, or raises Claimed if not `patient`. Raises LLMError;
    earlier attempts are kept, and the next call continues from there.
    """
    while True:
        now = _current_item(warehouse, writer, item)
        if not isinstance(step_of(now, config=writer.config), Write):
            return now
        _write(warehouse, writer, item, patient=patient)


def rewriting(warehouse: Warehouse, writer: Writer, item: str) -> Generator[OptimizerState, Decision | None, Done]:
    """Run the loop step by step: `next()` writes the next attempt, `send('accept')` and `send('retry')` decide.

    Yields the state after each attempt; the last one is of the kept text (if cancelled, of the last attempt). While the
    item waits, `next()` checks whether another process has stored a decision. Returns the outcome. Raises LLMError, and
    InvalidInput for a decision on an attempt that is not waiting; a new generator continues where this one stopped.
    """
    shown: OptimizerState | None = None
    decision: Decision | None = None
    while True:
        if decision is not None:
            attempt, now = shown.attempt if shown else 0, writer.clock()
            response = decide(warehouse, item, attempt, decision, now=now, config=writer.config)
            if not response.counted:
                raise InvalidInput(response.note)
        current = _current_item(warehouse, writer, item)
        step, written = step_of(current, config=writer.config), None
        if isinstance(step, Write):
            _write(warehouse, writer, item)
            current = _current_item(warehouse, writer, item)
            written = step.attempt if step.attempt <= len(current.attempts) else None  # cancelled meanwhile
            step = step_of(current, config=writer.config)
        state = state_of(current, config=writer.config, attempt=written)
        ended = isinstance(step, Done) and (written is None or written == step.attempt)
        if state is not None and not (ended and state == shown):
            shown = state
            decision = yield state
        if ended and isinstance(step, Done):
            return step


def decide(
    warehouse: Warehouse, item: str, attempt: int, decision: Decision, *, now: datetime, config: RewritingConfig
) -> Response:
    """Store a person's decision on a waiting attempt, or accept a kept one that was not checked throughout.

    The first decision counts; a stale one changes nothing.

    Calls no language model: an accepted rewrite is closed at once unless it belongs in the archive; the process that
    advances the item next does the rest (A3).
    """
    if decision not in DECISIONS:
        raise InvalidInput(f"decision {decision!r} is unknown; use one of {', '.join(DECISIONS)}")
    current = rewrite_item(warehouse, item)
    step = step_of(current, config=config)
    waits = isinstance(step, Wait) and step.attempt == attempt
    confirms = decision == "accept" and attempt == current.kept and unsettled(current, current.attempts[attempt - 1])
    written = None if confirms else len(current.attempts)
    if (waits or confirms) and keep_decision(warehouse, item, attempt, decision, now=now, written=written):
        decided = rewrite_item(warehouse, item)
        if decision == "accept":
            accepted = decided.attempts[attempt - 1]
            claims = (*accepted.unsupported, *open_questions(decided, accepted))
            accept_claims(warehouse, decided.paper_id, map(claim_key, claims), now=now)
        if waits and decision == "accept" and decided.attempts[attempt - 1].score < config.archived:
            _closed(warehouse, decided, config=config, archive=None)
        return Response(counted=True, note=f"{_named(current)}: attempt {attempt} is {_past(decision)}")
    return Response(counted=False, note=f"{_refusal(rewrite_item(warehouse, item), attempt, config)}")


def release(warehouse: Warehouse, item: str, claim: str, *, now: datetime) -> Response:
    """Accept a number or name in every rewrite of the item's paper; attempts held back only for it continue."""
    current = rewrite_item(warehouse, item)
    if not is_doubted(current, claim):
        return Response(counted=False, note=f"{_named(current)}: {claim!r} is not in doubt; nothing was changed")
    accept_claims(warehouse, current.paper_id, [claim_key(claim)], now=now)
    return Response(counted=True, note=f"{claim!r} is accepted in every rewrite of {current.paper_id}")


def is_doubted(item: RewriteItem, claim: str) -> bool:
    """Return whether a number or name stops an attempt of the item, or is an open question about it."""
    return any(
        claim_key(claim) == claim_key(each)
        for attempt in item.attempts
        for each in (*attempt.unsupported, *open_questions(item, attempt))
    )


def cancel(warehouse: Warehouse, item: str) -> Response:
    """Cancel an item; a finished one stays as it is."""
    done = finish(warehouse, item, outcome="cancelled", kept=None)
    current = rewrite_item(warehouse, item)
    return Response(
        counted=done, note=f"{_named(current)} {'is' if done else 'was already'} {_past(current.outcome or '')}"
    )


def undo_cancellation(warehouse: Warehouse, item: str) -> Response:
    """Undo a cancellation; the item continues where it was."""
    done = reopen(warehouse, item)
    current = rewrite_item(warehouse, item)
    return Response(counted=done, note=f"{_named(current)} {'continues' if done else 'is not cancelled'}")


def rehearse(writer: Writer, item: NewItem) -> tuple[list[Attempt], NextStep]:
    """Run the loop without a store until it would wait or is done, for comparisons (B7). Raises LLMError."""
    attempts: list[Attempt] = []
    while True:
        stopped = [attempt.attempt for attempt in attempts if attempt.stopped or attempt.unsupported]
        scores = [attempt.score for attempt in attempts]
        stuck = is_stuck(attempts, passes=writer.config.passes)
        step = next_step(scores, {}, stopped=stopped, stuck=stuck, config=writer.config)
        if not isinstance(step, Write):
            return attempts, step
        held = hold_reasons(attempts[-1]) if attempts else ()
        attempts.append(write_attempt(writer, item, attempts, held=held))


def _write(warehouse: Warehouse, writer: Writer, item: str, *, patient: bool = True) -> None:
    """Write and store the next attempt, or wait for the process that is writing it."""
    before = len(rewrite_item(warehouse, item).attempts)
    while not claim_item(
        warehouse, item, holder=writer.holder, now=writer.clock(), until=writer.clock() + writer.lease
    ):
        if not patient:
            raise Claimed
        writer.sleep(_PAUSE)
        if len(rewrite_item(warehouse, item).attempts) > before:
            return
    try:
        current = rewrite_item(warehouse, item)  # read again after the claim
        if isinstance(step_of(current, config=writer.config), Write):
            held = held_back(current, current.attempts[-1]) if current.attempts else ()
            keep_attempt(warehouse, item, write_attempt(writer, current, current.attempts, held=held))
    finally:
        with suppress(StoreError):  # its lease ends automatically
            release_item(warehouse, item, holder=writer.holder)


def _current_item(warehouse: Warehouse, writer: Writer, item: str) -> RewriteItem:
    """Return the stored item, closed if it is done."""
    return _closed(warehouse, rewrite_item(warehouse, item), config=writer.config, archive=writer.archive)


def _closed(
    warehouse: Warehouse, item: RewriteItem, *, config: RewritingConfig, archive: Archive | None
) -> RewriteItem:
    """Close an item that is done. An interrupted call is repeated in full: every part may be done twice."""
    step = step_of(item, config=config)
    if item.outcome is not None or not isinstance(step, Done) or step.attempt is None:
        return item
    kept = item.attempts[step.attempt - 1]
    note = None
    if archive is not None and kept.score >= config.archived:
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


def _refusal(item: RewriteItem, attempt: int, config: RewritingConfig) -> str:
    step = step_of(item, config=config)
    if attempt in item.decisions:
        why = f"attempt {attempt} was already {_past(item.decisions[attempt])}"
    elif isinstance(step, Wait):
        why = f"attempt {step.attempt} is the one that waits, not {attempt}"
    elif isinstance(step, Done):
        why = f"it is {_past(step.outcome)} and does not wait for a decision"
    else:
        why = f"attempt {attempt} does not wait for a decision"
    return f"{_named(item)}: {why}; nothing was changed"


def decide_unattended(warehouse: Warehouse, item: str, *, now: datetime, config: RewritingConfig) -> None:
    """Decide on the waiting attempt, if there is one: retry while more are allowed, else accept (SPEC V3, Auto)."""
    current = rewrite_item(warehouse, item)
    step = step_of(current, config=config)
    if isinstance(step, Wait):
        scores = [attempt.score for attempt in current.attempts]
        left = (
            attempts_allowed(scores, current.decisions, stopped=stopped_attempts(current), config=config) - step.attempt
        )
        decide(warehouse, item, step.attempt, "retry" if left > 0 else "accept", now=now, config=config)


def run_to_end(warehouse: Warehouse, writer: Writer, item: str) -> RewriteItem:
    """Write and decide until the item is done; return it.

    A decision that is stored meanwhile by a person counts. Raises LLMError; the next call continues.
    """
    while True:
        current = advance(warehouse, writer, item)
        if not isinstance(step_of(current, config=writer.config), Wait):
            return current
        decide_unattended(warehouse, item, now=writer.clock(), config=writer.config)
