"""How a rewrite stands, as the interfaces show it (SPEC B5)."""

from dataclasses import dataclass
from typing import Literal, cast

from paper_assets.rewriting.gate import held_back, stopped_attempts
from paper_assets.rewriting.policy import Done, Outcome, Step, Wait, Write, attempts_allowed, next_step
from paper_assets.settings import RewritingConfig
from paper_assets.stores.rewrites import RewriteItem

Status = Literal["PASS", "FAIL", "WAIT_CONFIRM"]

_HELD = "held back by the gate"
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


def step_of(item: RewriteItem, *, config: RewritingConfig) -> Step:
    """What is to be done with an item; a finished one stays finished, whatever the thresholds have become."""
    if item.outcome is not None:
        return Done(attempt=item.kept, outcome=cast(Outcome, item.outcome))
    scores = [attempt.score for attempt in item.attempts]
    return next_step(scores, item.decisions, stopped=stopped_attempts(item), config=config)


def state_of(item: RewriteItem, *, config: RewritingConfig, attempt: int | None = None) -> OptimizerState | None:
    """How `attempt` stands (None: the one that is kept, else the last one); None before the first attempt."""
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


def standing(item: RewriteItem, *, config: RewritingConfig) -> str:
    """Where an item stands, in a few words for tables: waiting, unfinished, or its outcome."""
    step = step_of(item, config=config)
    if isinstance(step, Wait):
        return "waiting for a decision"
    if isinstance(step, Write):
        return "unfinished"
    return step.outcome.replace("_", " ")
