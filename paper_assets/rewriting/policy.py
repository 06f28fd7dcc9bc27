"""When to write again, when to ask a person, when to stop (SPEC B4): one pure function of the attempts so far.

A `retry` is worth an attempt like any other, and counts among the five (or the three more). Only where it is said of
the last attempt that is allowed, and would otherwise come to nothing, it buys one more. So nothing is written more
than 5 + 3 times without a person asking for it each time.

What the gate holds back neither passes nor waits at once: another attempt usually mends it. It is taken only by a
person: where nothing else is good enough in the end, the best of what is held back waits for one.
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
    """A person must say what becomes of this attempt."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Nothing is left to do; `attempt` is the one that is kept, None where it was cancelled."""

    attempt: int | None
    outcome: Outcome


Step = Write | Wait | Done


def next_step(
    scores: Sequence[int],
    decisions: Mapping[int, str],
    *,
    stopped: Collection[int] = (),
    cancelled: bool = False,
    config: RewritingConfig,
) -> Step:
    """What follows from the scores of attempts 1, 2, …, the decisions by attempt, and those that the gate holds back.

    The first attempt that passes or was accepted is kept. A close one waits while it is the last; in the end the best
    is kept, of equals the latest, with a warning where it is under `config.enough`.
    """
    if cancelled:
        return Done(attempt=None, outcome="cancelled")
    for attempt in range(1, len(scores) + 1):
        if decisions.get(attempt) == "accept":
            return Done(attempt=attempt, outcome="accepted")
    for attempt, score in enumerate(scores, start=1):
        if score >= config.passes and attempt not in stopped:
            return Done(attempt=attempt, outcome="passed")
    written = len(scores)
    if written and scores[-1] >= config.asks and written not in decisions and written not in stopped:
        return Wait(attempt=written)
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
    """How many attempts there may be as things stand."""
    allowed = config.attempts
    if len(scores) >= allowed and max(scores[:allowed]) < config.enough:
        allowed += config.more_attempts
    sent_back = sum(decisions.get(attempt) == "retry" for attempt in stopped)  # they waited when all were written
    while True:
        if decisions.get(allowed) == "retry" and allowed not in stopped:
            allowed += 1
        elif sent_back:
            allowed, sent_back = allowed + 1, sent_back - 1
        else:
            return allowed


def _best(scores: Sequence[int], among: Iterable[int]) -> int | None:
    return max(among, key=lambda attempt: (scores[attempt - 1], attempt), default=None)
