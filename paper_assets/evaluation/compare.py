"""What the figures of a labelled set can bear: an interval for a mean, and whether two settings really differ."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from paper_assets.errors import InvalidInput
from paper_assets.evaluation.judge import Evaluation
from paper_assets.evaluation.metrics import Floats
from paper_assets.settings import EvaluationConfig

_AT_ONCE = 1_000  # resamples drawn together: 8 MB at a thousand queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A metric over all queries to which it applies, with its interval; all nan if there are none."""

    metric: str
    mean: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Second minus first, query by query. `p_value`: how often chance alone would give so large a difference."""

    metric: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float
    better: int  # queries on which the second is better
    worse: int
    equal: int


def means(outcome: Evaluation, *, judging: EvaluationConfig) -> list[Mean]:
    """Each metric's mean with its bootstrap interval."""
    summary = []
    for metric in outcome.metrics:
        values = _applicable(outcome.of(metric))
        mean, low, high = bootstrap_mean(
            values, seed=judging.seed, resamples=judging.resamples, confidence=judging.confidence
        )
        summary.append(Mean(metric=metric, mean=mean, low=low, high=high, queries=len(values)))
    return summary


def compare(first: Evaluation, second: Evaluation, *, judging: EvaluationConfig) -> list[Comparison]:
    """Two rankers on the same queries, paired. Raises InvalidInput if the queries or metrics are not the same."""
    if first.metrics != second.metrics or first.query_ids != second.query_ids:
        raise InvalidInput("only outcomes of the same labelled set and the same metrics can be compared")
    comparisons = []
    for metric in first.metrics:
        before, after = first.of(metric), second.of(metric)
        both = ~(np.isnan(before) | np.isnan(after))
        before, after = before[both], after[both]
        differences = after - before
        mean, low, high = bootstrap_mean(
            differences, seed=judging.seed, resamples=judging.resamples, confidence=judging.confidence
        )
        unlike = ~np.isclose(differences, 0.0, atol=1e-12)
        comparisons.append(
            Comparison(
                metric=metric,
                first=_mean(before),
                second=_mean(after),
                difference=mean,
                low=low,
                high=high,
                p_value=randomisation_p_value(differences, seed=judging.seed, resamples=judging.resamples),
                better=int((unlike & (differences > 0)).sum()),
                worse=int((unlike & (differences < 0)).sum()),
                equal=int((~unlike).sum()),
            )
        )
    return comparisons


def bootstrap_mean(values: Floats, *, seed: int, resamples: int, confidence: float) -> tuple[float, float, float]:
    """Mean of values (n,) and the ends of its percentile bootstrap interval (Efron & Tibshirani, 1993, ch. 13)."""
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    drawn = [
        values[rng.integers(0, len(values), size=(count, len(values)))].mean(axis=1) for count in _batches(resamples)
    ]
    low, high = np.quantile(np.concatenate(drawn), [(1 - confidence) / 2, (1 + confidence) / 2])
    return _mean(values), float(low), float(high)


def randomisation_p_value(differences: Floats, *, seed: int, resamples: int) -> float:
    """Two-sided paired randomisation test of differences (n,): signs are flipped at random.

    The test that Smucker, Allan & Carterette (CIKM 2007) recommend for retrieval. Counts the observed signs as one
    of the draws, so the value is never 0.
    """
    if not len(differences):
        return float("nan")
    rng = np.random.default_rng(seed)
    observed = abs(differences.sum()) - 1e-12  # sums of the same numbers in another order differ in the last bits
    reached = sum(
        int((np.abs((rng.integers(0, 2, size=(count, len(differences))) * 2 - 1) @ differences) >= observed).sum())
        for count in _batches(resamples)
    )
    return (reached + 1) / (resamples + 1)


def _batches(resamples: int) -> Iterator[int]:
    for start in range(0, resamples, _AT_ONCE):
        yield min(_AT_ONCE, resamples - start)


def _applicable(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
