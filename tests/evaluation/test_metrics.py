"""Each metric against the sum written out by hand, a plain twin, or another library."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.metrics import interest_coverage, ndcg, recall

grades = st.lists(st.integers(0, 3), min_size=2, max_size=30).map(lambda values: np.array(values, dtype=float))


def test_ndcg_is_the_sum_that_the_definition_gives() -> None:
    found = 3 / math.log2(2) + 0 + 1 / math.log2(4)
    best = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    assert ndcg(np.array([3.0, 0, 1]), np.array([1.0, 2, 3]), k=3) == pytest.approx(found / best)


@given(grades, st.integers(1, 40))
def test_ndcg_agrees_with_scikit_learn(ranked: np.ndarray, k: int) -> None:
    from sklearn.metrics import ndcg_score  # takes seconds, which every process of tests would pay

    if not ranked.any():
        assert math.isnan(ndcg(ranked, ranked, k=k))
    else:
        descending = np.arange(len(ranked), 0, -1)
        assert ndcg(ranked, ranked, k=k) == pytest.approx(ndcg_score([ranked], [descending], k=k))


@given(grades, st.integers(1, 40))
def test_the_best_order_has_ndcg_one_and_moving_a_better_document_up_never_lowers_it(
    ranked: np.ndarray, k: int
) -> None:
    if not ranked.any():
        return
    steps = [ranked.copy()]
    for _ in ranked:  # one pass of bubble sort at a time, best to the front
        row = steps[-1].copy()
        for place in range(len(row) - 1, 0, -1):
            if row[place] > row[place - 1]:
                row[[place - 1, place]] = row[[place, place - 1]]
        steps.append(row)
    values = [ndcg(row, ranked, k=k) for row in steps]
    assert all(later >= earlier - 1e-12 for earlier, later in pairwise(values))
    assert values[-1] == pytest.approx(1.0)


def test_relevant_documents_that_are_not_in_the_list_still_count_against_it() -> None:
    known = np.array([1.0, 1, 1, 1])
    assert ndcg(np.array([1.0]), known, k=4) < 1.0
    assert recall(np.array([1.0]), known, k=4) == 0.25


def test_recall_counts_relevant_documents_whatever_their_grade_and_is_not_capped_at_k() -> None:
    ranked = np.array([2.0, 0, 1, 1])
    assert recall(ranked, ranked, k=1) == pytest.approx(1 / 3)
    assert recall(ranked, ranked, k=3) == pytest.approx(2 / 3)


def test_a_negative_grade_is_as_good_as_none() -> None:
    assert ndcg(np.array([-1.0, 1]), np.array([-1.0, 1]), k=2) == ndcg(np.array([0.0, 1]), np.array([0.0, 1]), k=2)


def test_coverage_is_the_share_of_answerable_interests_seen() -> None:
    relevant = np.array([[True, False, False], [True, False, False], [False, True, False]])
    answerable = np.array([True, True, False])
    assert interest_coverage(relevant, answerable=answerable, k=2) == 0.5
    assert interest_coverage(relevant, answerable=answerable, k=3) == 1.0


def test_a_query_without_anything_relevant_has_no_figure_rather_than_a_zero() -> None:
    nothing = np.zeros(3)
    assert math.isnan(ndcg(nothing, nothing, k=3))
    assert math.isnan(recall(nothing, nothing, k=3))
    assert math.isnan(interest_coverage(np.zeros((3, 1), bool), answerable=np.array([False]), k=3))
