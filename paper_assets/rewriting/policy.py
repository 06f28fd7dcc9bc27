"""Decide when to write again, when to wait for a person and when to stop (SPEC B4): a pure function of the attempts.

A `retry` uses one of the five (or three more) attempts. Only a `retry` of the last allowed attempt adds one, because it
would otherwise have no effect. So more than 5 + 3 attempts are written only if a person requests each of them.

An attempt that the gate holds back neither passes nor waits at first: another attempt usually fixes it. Only a person
can accept it: if no other attempt is good enough in the end, the best of those held back waits for a decision. One that
would pass otherwise waits at once if another attempt would not help (`gate.is_stuck`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from paper_assets.settings import RewritingConfig

Level = Literal["public", "student", "expert"]
LEVELS: tuple[Level, ...] = get_args(Level)
Decision = Literal["accept", "retry"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
Outcome = Literal["passed", "accepted", "best", "best_with_warning", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Write this attempt next."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Wait for a person's decision on this attempt."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Nothing is left to do; `attempt` is the kept one, None if the item was cancelled."""

    attempt: int | None
    outcome: Outcome


NextStep = Write | Wait | Done


def next_step(
    scores: Sequence[int],
    decisions: Mapping[int, str],
    *,
    stopped: Collection[int] = (),
    stuck: bool = False,
    config: RewritingConfig,
) -> NextStep:
    """Return the next step from the scores of attempts 1, 2, …, the decisions by attempt, and the attempts the gate
    holds back. `stuck`: the last one is held back for something that another attempt would not change.

    The first attempt that passes or was accepted is kept. A close one waits while it is the last. In the end the best
    is kept (the latest of equals), with a warning if it is under `config.enough`.
    """
    for attempt in range(1, len(scores) + 1):
        if decisions.get(attempt) == "accept":
            return Done(attempt=attempt, outcome="accepted")
    for attempt, score in enumerate(scores, start=1):
        if score >= config.passes and attempt not in stopped:
            return Done(attempt=attempt, outcome="passed")
    written = len(scores)
    if written and scores[-1] >= config.asks and written not in decisions and written not in stopped:
        return Wait(attempt=written)
    if stuck and written not in decisions:
        free = _best(scores, (attempt for attempt in range(1, written) if attempt not in stopped))
        good = free and scores[free - 1] >= config.enough
        return Done(attempt=free, outcome="best") if good else Wait(attempt=written)
    if written < attempts_allowed(scores, decisions, stopped=stopped, config=config):
        return Write(attempt=written + 1)
    free = _best(scores, (attempt for attempt in range(1, written + 1) if attempt not in stopped))
    if free and scores[free - 1] >= config.enough:
        return Done(attempt=free, outcome="best")
    held = _best(scores, (attempt for attempt in stopped if attempt <= written and attempt not in decisions))
    if held and (not free or scores[held - 1] >= config.enough):
        return Wait(attempt=held)
    return Done(attempt=free, outcome="best_with_warning") if free else Write(attempt=written + 1)


def attempts_allowed(
    scores: Sequence[int], decisions: Mapping[int, str], *, stopped: Collection[int] = (), config: RewritingConfig
) -> int:
    """Return the number of attempts allowed now."""
    allowed = config.attempts
    if len(scores) >= allowed and max(scores[:allowed]) < config.enough:
        allowed += config.more_attempts
    sent_back = sum(
        decisions.get(attempt) == "retry" for attempt in stopped
    )  # attempts that waited after the last one was written
    while True:
        if decisions.get(allowed) == "retry" and allowed not in stopped:
            allowed += 1
        elif sent_back:
            allowed, sent_back = allowed + 1, sent_back - 1
        else:
            return allowed


def _best(scores: Sequence[int], among: Iterable[int]) -> int | None:
    return max(among, key=lambda attempt: (scores[attempt - 1], attempt), default=None)
