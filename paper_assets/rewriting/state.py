"""How a rewrite stands, as faces show it (SPEC B5)."""

from dataclasses import dataclass
from typing import Literal, cast

from paper_assets.rewriting.policy import Done, Outcome, Step, Wait, Write, attempts_allowed, next_step
from paper_assets.settings import Rewriting
from paper_assets.stores.rewrites import RewriteItem

Status = Literal["PASS", "FAIL", "WAIT_CONFIRM"]

_WARNING = "quality warning: no attempt was good enough, this is the best of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerState:
    """One attempt and what it means: PASS, this text is kept; FAIL, it is not (or only with a quality warning)."""

    attempt: int
    max_retries: int  # attempts allowed as things stand
    current_score: int
    current_text: str
    feedback: str
    status: Status
    decision_required: bool


def step_of(item: RewriteItem, *, numbers: Rewriting) -> Step:
    """What is to be done with an item; a finished one stays finished, whatever the thresholds have become."""
    if item.outcome is not None:
        return Done(attempt=item.kept, outcome=cast(Outcome, item.outcome))
    return next_step([attempt.score for attempt in item.attempts], item.decisions, numbers=numbers)


def state_of(item: RewriteItem, *, numbers: Rewriting, attempt: int | None = None) -> OptimizerState | None:
    """How `attempt` stands (None: the one that is kept, else the last one); None before the first attempt."""
    if not item.attempts:
        return None
    step = step_of(item, numbers=numbers)
    kept = step.attempt if isinstance(step, Done) else None
    shown = item.attempts[(attempt or kept or len(item.attempts)) - 1]
    waits = isinstance(step, Wait) and step.attempt == shown.attempt
    feedback = shown.critique
    status: Status = "WAIT_CONFIRM" if waits else "FAIL"
    if isinstance(step, Done) and kept == shown.attempt:
        if step.outcome == "best_with_warning":
            feedback = f"{_WARNING}. {feedback}"
        else:
            status = "PASS"
    scores = [each.score for each in item.attempts]
    return OptimizerState(
        attempt=shown.attempt,
        max_retries=max(attempts_allowed(scores, item.decisions, numbers=numbers), shown.attempt),
        current_score=shown.score,
        current_text=shown.text,
        feedback=feedback,
        status=status,
        decision_required=waits,
    )


def standing(item: RewriteItem, *, numbers: Rewriting) -> str:
    """Where an item stands, in a few words for tables: waiting, unfinished, or its outcome."""
    step = step_of(item, numbers=numbers)
    if isinstance(step, Wait):
        return "waiting for a decision"
    if isinstance(step, Write):
        return "unfinished"
    return step.outcome.replace("_", " ")
