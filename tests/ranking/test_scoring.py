import numpy as np
import pyarrow as pa
import pytest

from paper_assets.ranking.scoring import best_first, final_scores, mode_bonus, soft_penalty, weights_for
from paper_assets.settings import Scoring

SCORING = Scoring()
ONE_EACH = np.eye(6)


def test_without_a_profile_recency_and_practicality_share_the_whole_weight() -> None:
    weights = weights_for("general", SCORING, profile_free=True)
    assert weights == pytest.approx((0, 0, 0, 0, 0.2 / 0.35, 0.15 / 0.35))


def test_weights_that_leave_nothing_without_a_profile_are_halved() -> None:
    scoring = Scoring(weights={"general": (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)})
    assert weights_for("general", scoring, profile_free=True) == (0.0, 0.0, 0.0, 0.0, 0.5, 0.5)


def test_the_mode_rewards_its_own_dimension() -> None:
    assert mode_bonus(ONE_EACH, "novelty", SCORING).tolist() == [0, 0, 0, 0, 0.1, 0]
    assert mode_bonus(ONE_EACH, "practicality", SCORING).tolist() == [0, 0, 0, 0, 0, 0.1]
    assert mode_bonus(ONE_EACH, "balanced", SCORING).tolist() == [0.0] * 6
    assert mode_bonus(ONE_EACH, "diversity", SCORING).tolist() == [0.0] * 6


def test_each_soft_keyword_takes_something_down_to_the_floor() -> None:
    found = np.array([[False] * 4, [True, False, False, False], [True, True, False, False], [True] * 4])
    assert soft_penalty(found, SCORING).tolist() == [0.0, -0.15, -0.3, -0.3]
    assert str(soft_penalty(found, SCORING)[0]) == "0.0"


def test_the_final_score_stays_between_its_bounds() -> None:
    worst_and_best = np.array([[0.0] * 6, [1.0] * 6])
    scores = final_scores(
        worst_and_best,
        SCORING.weights["general"],
        bonus=np.array([0.0, 3.0]),
        penalty=np.array([-3.0, 0.0]),
        diversity_penalty=np.zeros(2),
        scoring=SCORING,
    )
    assert scores.tolist() == [-0.5, 1.5]


def test_ties_break_by_newer_day_then_by_id_and_an_unknown_day_is_last() -> None:
    final = np.array([0.5, 0.5, 0.5, 0.5, 0.9])
    days = np.array([10.0, 11.0, np.nan, 11.0, 1.0])
    order = best_first(final, days, pa.chunked_array([["e", "d", "a", "c", "b"]]))
    assert order.tolist() == [4, 3, 1, 0, 2]
