"""Test that intervals and comparisons are as wide as the number of queries requires, and are reproducible."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.metrics import (
    Evaluation,
    EvaluationConfig,
    bootstrap_mean,
    compare,
    means,
    randomisation_p_value,
)
from paper_assets.errors import InvalidInput

JUDGING = EvaluationConfig(resamples=2_000)
shares = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(np.array)


def outcome(values: list[float], *, metric: str = "ndcg@10") -> Evaluation:
    ids = tuple(f"q{number}" for number in range(len(values)))
    return Evaluation(metrics=(metric,), query_ids=ids, values=np.array(values)[:, None])


@given(shares)
def test_the_interval_holds_the_mean_and_stays_within_the_values(values: np.ndarray) -> None:
    mean, low, high = bootstrap_mean(values, seed=1, resamples=500, confidence=0.95)
    assert values.min() - 1e-9 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= values.max() + 1e-9


def test_the_same_seed_gives_the_same_interval_and_another_seed_nearly_so() -> None:
    values = np.random.default_rng(5).random(50)
    first, again, other = (bootstrap_mean(values, seed=seed, resamples=4_000, confidence=0.95) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first == pytest.approx(other, abs=0.01)


def test_the_interval_of_many_values_is_that_of_the_normal_law() -> None:
    values = np.random.default_rng(5).normal(0.5, 0.2, size=1_000)
    mean, low, high = bootstrap_mean(values, seed=1, resamples=10_000, confidence=0.95)
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert (low, high) == pytest.approx((mean - 1.96 * error, mean + 1.96 * error), abs=0.002)


@given(st.lists(st.sampled_from([-0.5, -0.1, 0.0, 0.1, 0.2, 0.7]), min_size=1, max_size=8).map(np.array))
def test_the_p_value_is_that_of_all_sign_patterns(differences: np.ndarray) -> None:
    observed = abs(differences.sum()) - 1e-12
    signs = np.array(list(product([-1, 1], repeat=len(differences))))
    exact = (np.abs(signs @ differences) >= observed).mean()
    assert randomisation_p_value(differences, seed=3, resamples=20_000) == pytest.approx(exact, abs=0.02)


def test_a_setting_compared_with_itself_differs_in_nothing() -> None:
    values = outcome([0.1, 0.9, 0.4])
    (same,) = compare(values, values, judging=JUDGING)
    assert (same.difference, same.low, same.high, same.p_value, same.equal) == (0.0, 0.0, 0.0, 1.0, 3)


def test_a_setting_that_is_better_on_every_query_is_found_to_be_better() -> None:
    low, high = [0.1 * n for n in range(9)], [0.1 * n + 0.05 for n in range(9)]
    (better,) = compare(outcome(low), outcome(high), judging=JUDGING)
    assert better.difference == pytest.approx(0.05)
    assert better.low > 0
    assert better.p_value < 0.02
    assert (better.better, better.worse, better.equal) == (9, 0, 0)
    (worse,) = compare(outcome(high), outcome(low), judging=JUDGING)
    assert worse.difference == pytest.approx(-0.05)
    assert worse.worse == 9


def test_queries_to_which_a_metric_does_not_apply_are_left_out() -> None:
    (mean,) = means(outcome([0.2, math.nan, 0.4]), judging=JUDGING)
    assert mean.mean == pytest.approx(0.3)
    assert mean.queries == 2
    (nothing,) = means(outcome([math.nan]), judging=JUDGING)
    assert math.isnan(nothing.mean) and nothing.queries == 0
    (pair,) = compare(outcome([0.2, math.nan]), outcome([0.4, math.nan]), judging=JUDGING)
    assert pair.difference == pytest.approx(0.2)


def test_outcomes_of_different_queries_cannot_be_compared() -> None:
    with pytest.raises(InvalidInput, match="same labelled set"):
        compare(outcome([0.1]), outcome([0.1, 0.2]), judging=JUDGING)
    with pytest.raises(InvalidInput, match="same metrics"):
        compare(outcome([0.1]), outcome([0.1], metric="recall@20"), judging=JUDGING)
