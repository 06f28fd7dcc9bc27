import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paper_assets.errors import InvalidInput
from paper_assets.profile import Profile, profile_content
from paper_assets.ranking.gatekeeper import ranking_options
from paper_assets.ranking.scoring import best_first, final_scores, mode_bonus, soft_penalty, weights_for
from paper_assets.settings import ScoringConfig, load_settings
from paper_assets.weights import DIMENSIONS, Weights

SCORING = ScoringConfig()
ONE_EACH = np.eye(len(DIMENSIONS))
OWN = ("must_keywords", "author_trust", "institution_trust", "recency", "practicality")


def by_name(**weights: float) -> tuple[float, ...]:
    return tuple(weights.get(name, 0.0) for name in DIMENSIONS)


def test_without_a_profile_recency_and_practicality_share_the_whole_weight() -> None:
    weights = weights_for("general", SCORING, profile_free=True)
    assert weights == pytest.approx(by_name(recency=0.2 / 0.35, practicality=0.15 / 0.35))


def test_weights_that_leave_nothing_without_a_profile_are_halved() -> None:
    scoring = ScoringConfig(weights={"general": by_name(semantic_relevance=1.0)})
    assert weights_for("general", scoring, profile_free=True) == by_name(recency=0.5, practicality=0.5)


def own_weights(first: float) -> dict[str, float]:
    return {"semantic_relevance": first, **dict.fromkeys(OWN, (1 - first) / 5)}


def test_weights_of_the_run_come_before_the_profiles_before_the_environments_before_the_default() -> None:
    def leading(*, run: bool, profile: bool, environment: bool) -> float:
        content: dict[str, Any] = {"interests": {"primary": ["graphs"]}}
        if profile:
            content["ranking"] = {"weights": own_weights(0.5)}
        given = {"weights": own_weights(0.75)} if run else {}
        options = ranking_options(Profile(name="lab", content=profile_content(content, source="lab")), given)
        environ = {"PAPER_ASSETS_WEIGHTS": json.dumps({"general": own_weights(0.25)})} if environment else {}
        scoring = load_settings(environ, Path("/nowhere")).scoring
        return weights_for(options.purpose, scoring, chosen=options.weights)[0]

    assert leading(run=True, profile=True, environment=True) == 0.75
    assert leading(run=True, profile=False, environment=False) == 0.75
    assert leading(run=False, profile=True, environment=True) == 0.5
    assert leading(run=False, profile=False, environment=True) == 0.25
    assert leading(run=False, profile=False, environment=False) == 0.3


def test_invalid_weights_of_a_run_are_refused_with_the_key() -> None:
    for weights, message in (
        ({**own_weights(0.5), "recency": 0.9}, "weights: .*must sum to 1"),
        ({**own_weights(0.5), "novelty": 0.0}, "weights.novelty: unknown option; expected one of semantic_relevance"),
    ):
        with pytest.raises(InvalidInput, match=message):
            ranking_options(None, {"weights": weights})


def test_chosen_weights_are_shared_out_too_without_a_profile() -> None:
    chosen = Weights(**own_weights(0.5))
    halves = by_name(recency=0.5, practicality=0.5)
    assert weights_for("general", SCORING, chosen=chosen, profile_free=True) == halves


def test_the_mode_rewards_its_own_dimension() -> None:
    assert mode_bonus(ONE_EACH, "novelty", SCORING).tolist() == [*by_name(recency=0.1)]
    assert mode_bonus(ONE_EACH, "practicality", SCORING).tolist() == [*by_name(practicality=0.1)]
    assert mode_bonus(ONE_EACH, "balanced", SCORING).tolist() == [0.0] * len(DIMENSIONS)
    assert mode_bonus(ONE_EACH, "diversity", SCORING).tolist() == [0.0] * len(DIMENSIONS)


def test_each_soft_keyword_takes_something_down_to_the_floor() -> None:
    found = np.array([[False] * 4, [True, False, False, False], [True, True, False, False], [True] * 4])
    assert soft_penalty(found, SCORING).tolist() == [0.0, -0.15, -0.3, -0.3]
    assert str(soft_penalty(found, SCORING)[0]) == "0.0"


def test_the_final_score_stays_between_its_bounds() -> None:
    worst_and_best = np.array([[0.0] * len(DIMENSIONS), [1.0] * len(DIMENSIONS)])
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
