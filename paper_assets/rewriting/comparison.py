"""The same papers rewritten with and without examples (B7). Nothing of it is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from paper_assets.errors import LLMError
from paper_assets.rewriting.loop import rehearse
from paper_assets.rewriting.writing import Writer
from paper_assets.stores.rewrites import Attempt, NewItem

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Means and sums over the papers. `score` is that of the attempt that was kept or would wait for a person."""

    papers: int
    score: float
    attempts: float
    examples: int  # shown, over all attempts
    input_tokens: int
    output_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """With and without examples, over the papers that were rewritten both ways: None if there is none of them.

    `failed`: the paper at which the comparison ended early, and why.
    """

    with_examples: Outcome | None
    without_examples: Outcome | None
    failed: str | None


def compare(
    items: Sequence[NewItem],
    *,
    with_examples: Writer,
    without_examples: Writer,
    stopwatch: Callable[[], float],
    progress: Progress = lambda done, total: None,
) -> Compared:
    """Rewrite each item both ways, each way first by turns; neither writer may answer from a cache.

    Ends at the first paper for which the language model fails; what was paid for until then is told.
    """
    found: dict[bool, list[tuple[int, list[Attempt], float]]] = {True: [], False: []}
    done, failed = 0, None
    for place, item in enumerate(items):
        try:
            for shows in (True, False) if place % 2 == 0 else (False, True):
                began = stopwatch()
                attempts, step = rehearse(with_examples if shows else without_examples, item)
                kept = attempts[(step.attempt or len(attempts)) - 1]
                found[shows].append((kept.score, attempts, stopwatch() - began))
        except LLMError as fault:
            failed = f"paper {item.paper_id}: {fault}"
            break
        done = place + 1
        progress(done, len(items))
    if not done:
        return Compared(with_examples=None, without_examples=None, failed=failed)
    return Compared(
        with_examples=_outcome(found[True][:done]), without_examples=_outcome(found[False][:done]), failed=failed
    )


def _outcome(rewrites: Sequence[tuple[int, list[Attempt], float]]) -> Outcome:
    attempts = [attempt for _, each, _ in rewrites for attempt in each]
    return Outcome(
        papers=len(rewrites),
        score=fmean(score for score, _, _ in rewrites),
        attempts=len(attempts) / len(rewrites),
        examples=sum(len(attempt.examples) for attempt in attempts),
        input_tokens=sum(attempt.input_tokens for attempt in attempts),
        output_tokens=sum(attempt.output_tokens for attempt in attempts),
        seconds=sum(seconds for _, _, seconds in rewrites),
    )
