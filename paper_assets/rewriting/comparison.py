"""Compare rewriting the same papers with and without examples (B7). Nothing is stored.

Both variants are warmed up before anything is measured, so that neither pays for imports, connections or loading a
model. Differences are paired by paper and reported with an interval, because two means of a few papers say little.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from statistics import fmean, stdev

from paper_assets.errors import LLMError
from paper_assets.progress import Progress, ignore_progress
from paper_assets.rewriting.loop import rehearse
from paper_assets.rewriting.writing import Writer, write_attempt
from paper_assets.stores.rewrites import Attempt, NewItem

_Rewritten = tuple[int, list[Attempt], float]  # score, attempts, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRewrite:
    """Means and sums over the papers. `score` is that of the attempt that was kept or would wait for a person."""

    papers: int
    score: float
    attempts: float
    examples: int  # shown, over all attempts
    input_tokens: int
    output_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean over the papers of "with examples" minus "without", and its 95 % interval (nan for a single paper)."""

    of: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Results with and without examples over the papers that were rewritten both ways; None if there were none.

    `differences` are paired; `failed`: the paper at which the comparison stopped early, and why.
    """

    with_examples: ComparedRewrite | None = None
    without_examples: ComparedRewrite | None = None
    differences: tuple[Difference, ...] = ()
    failed: str | None


def compare(
    items: Sequence[NewItem],
    *,
    with_examples: Writer,
    without_examples: Writer,
    stopwatch: Callable[[], float],
    progress: Progress = ignore_progress,
) -> Comparison:
    """Rewrite each item both ways after a warm-up, alternating which goes first; neither writer may answer from a
    cache.

    Stops at the first paper for which the language model fails and reports what was finished until then.
    """
    rewritten: dict[bool, list[_Rewritten]] = {True: [], False: []}
    done, failed = 0, None
    try:
        for writer in (with_examples, without_examples):
            write_attempt(writer, items[0], [])
    except LLMError as fault:
        return Comparison(failed=f"the warm-up: {fault}")
    for place, item in enumerate(items):
        try:
            for shows in (True, False) if place % 2 == 0 else (False, True):
                began = stopwatch()
                attempts, step = rehearse(with_examples if shows else without_examples, item)
                kept = attempts[(step.attempt or len(attempts)) - 1]
                rewritten[shows].append((kept.score, attempts, stopwatch() - began))
        except LLMError as fault:
            failed = f"paper {item.paper_id}: {fault}"
            break
        done = place + 1
        progress(done, len(items))
    if not done:
        return Comparison(failed=failed)
    return Comparison(
        with_examples=_outcome(rewritten[True][:done]),
        without_examples=_outcome(rewritten[False][:done]),
        differences=_differences(rewritten[True][:done], rewritten[False][:done]),
        failed=failed,
    )


def _differences(first: Sequence[_Rewritten], second: Sequence[_Rewritten]) -> tuple[Difference, ...]:
    measured: dict[str, Callable[[_Rewritten], float]] = {
        "score": lambda each: each[0],
        "attempts": lambda each: len(each[1]),
        "tokens": lambda each: sum(attempt.input_tokens + attempt.output_tokens for attempt in each[1]),
        "seconds": lambda each: each[2],
    }
    return tuple(
        Difference(of=of, **_interval([value(one) - value(other) for one, other in zip(first, second, strict=True)]))
        for of, value in measured.items()
    )


def _interval(differences: Sequence[float]) -> dict[str, float]:
    """Return Student's interval of the mean of paired differences."""
    mean = fmean(differences)
    if len(differences) < 2:
        return {"mean": mean, "low": nan, "high": nan}
    from scipy.stats import t  # seconds

    reach = float(t.ppf(0.975, len(differences) - 1)) * stdev(differences) / len(differences) ** 0.5
    return {"mean": mean, "low": mean - reach, "high": mean + reach}


def _outcome(rewrites: Sequence[_Rewritten]) -> ComparedRewrite:
    attempts = [attempt for _, each, _ in rewrites for attempt in each]
    return ComparedRewrite(
        papers=len(rewrites),
        score=fmean(score for score, _, _ in rewrites),
        attempts=len(attempts) / len(rewrites),
        examples=sum(len(attempt.examples) for attempt in attempts),
        input_tokens=sum(attempt.input_tokens for attempt in attempts),
        output_tokens=sum(attempt.output_tokens for attempt in attempts),
        seconds=sum(seconds for _, _, seconds in rewrites),
    )
