"""When to write again, when to ask a person, when to stop (SPEC B4): one pure function of the attempts so far.

A `retry` is worth an attempt like any other, and counts among the five (or the three more). Only where it is said of
the last attempt that is allowed, and would otherwise come to nothing, it buys one more. So nothing is written more
than 5 + 3 times without a person asking for it each time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from paper_assets.settings import Rewriting

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
    """A person must say what becomes of this attempt."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Nothing is left to do; `attempt` is the one that is kept, None where it was cancelled."""

    attempt: int | None
    outcome: Outcome


Step = Write | Wait | Done


def next_step(
    scores: Sequence[int], decisions: Mapping[int, str], *, cancelled: bool = False, numbers: Rewriting
) -> Step:
    """What follows from the scores of attempts 1, 2, … and the decisions by attempt.

    The first attempt that passes or was accepted is kept; only the last one can wait; otherwise the best is kept, of
    equals the latest, with a warning where it is under `numbers.enough`.
    """
    if cancelled:
        return Done(attempt=None, outcome="cancelled")
    for attempt, score in enumerate(scores, start=1):
        if score >= numbers.passes:
            return Done(attempt=attempt, outcome="passed")
        if decisions.get(attempt) == "accept":
            return Done(attempt=attempt, outcome="accepted")
    written = len(scores)
    if written and scores[-1] >= numbers.asks and written not in decisions:
        return Wait(attempt=written)
    if written < attempts_allowed(scores, decisions, numbers=numbers):
        return Write(attempt=written + 1)
    best = max(range(1, written + 1), key=lambda attempt: (scores[attempt - 1], attempt))
    enough = scores[best - 1] >= numbers.enough
    return Done(attempt=best, outcome="best" if enough else "best_with_warning")


def attempts_allowed(scores: Sequence[int], decisions: Mapping[int, str], *, numbers: Rewriting) -> int:
    """How many attempts there may be as things stand."""
    allowed = numbers.attempts
    if len(scores) >= allowed and max(scores[:allowed]) < numbers.enough:
        allowed += numbers.more_attempts
    while decisions.get(allowed) == "retry":
        allowed += 1
    return allowed
