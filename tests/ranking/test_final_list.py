"""The list as a reader gets it: the threshold, the match, lanes, the pick, quiet days."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paper_assets.profile import RankingOptions
from paper_assets.ranking.final_list import (
    FinalList,
    PreferredProbability,
    Scored,
    StoredScores,
    ThresholdRule,
    arrange,
    asked_first,
    final_list,
    match_of,
)
from paper_assets.ranking.traits import standard_taxonomy
from paper_assets.settings import ScoringConfig
from paper_assets.weights import DIMENSIONS

SCORING = ScoringConfig()
WEIGHTS = SCORING.weights["general"]


def scored(
    relevance: Sequence[float],
    *,
    code: Sequence[int] = (),
    author: Sequence[int] = (),
    by_interest: Sequence[Sequence[float]] | None = None,
    threshold: float | None = 0.4,
    texts: Sequence[str] | None = None,
    vectors: np.ndarray | None = None,
) -> Scored:
    """Papers `0`, `1` ... of one day that differ only in what is given; `code` and `author`: numbers of papers."""
    count = len(relevance)
    column = {name: np.zeros(count) for name in DIMENSIONS}
    column["semantic_relevance"], column["recency"] = np.array(relevance, dtype=float), np.ones(count)
    column["author_trust"][list(author)] = 1.0
    column["practicality"][list(code)] = 0.5
    return Scored(
        paper_ids=pa.chunked_array([[f"{number:02d}" for number in range(count)]]),
        texts=pa.chunked_array([list(texts or ["a text"] * count)]),
        days=np.zeros(count),
        dimensions=np.column_stack([*column.values()]),
        weights=WEIGHTS,
        bonus=np.zeros(count),
        penalty=np.zeros(count),
        by_interest=np.zeros((count, 0))
        if by_interest is None
        else np.array(by_interest, dtype=float).reshape(count, -1),
        vectors=vectors,
        threshold=threshold,
        preference_weight=4.0,
    )


def listed(papers: Scored, **options: Any) -> FinalList:
    wanted = RankingOptions.model_validate({"top_k": 3, **options})
    return final_list(papers, options=wanted, scoring=SCORING, taxonomy=standard_taxonomy())


def test_code_and_a_followed_author_never_lift_a_paper_over_the_threshold() -> None:
    found = listed(scored([0.41, 0.39, 0.42], code=[1], author=[1]), ranking_mode="novelty")
    assert found.final[1] > max(found.final[0], found.final[2])
    assert found.order.tolist() == [2, 0, 1]
    assert found.shown == 2


def test_code_and_an_author_move_a_paper_a_little() -> None:
    papers = scored([0.62, 0.68, 0.75, 0.40], code=[0, 3], author=[3])
    assert listed(papers).order.tolist() == [2, 0, 1, 3]


def test_code_moves_a_paper_further_if_it_counts_more() -> None:
    papers = scored([0.60, 0.68, 0.66, 0.65], code=[0])
    assert listed(papers).order.tolist() == [1, 0, 2, 3]
    assert listed(replace(papers, preference_weight=SCORING.preference_weight)).order[0] == 0


def test_papers_below_the_threshold_are_ordered_by_the_same_rule_after_all_others() -> None:
    assert listed(scored([0.1, 0.3, 0.2, 0.9], code=[0], author=[0])).order.tolist() == [3, 1, 0, 2]


def test_a_quiet_day_shows_what_is_worth_it_and_a_day_without_anything_shows_nothing() -> None:
    assert listed(scored([0.5, 0.1, 0.6])).shown == 2
    assert listed(scored([0.1, 0.39, 0.2])).shown == 0
    assert listed(scored([])).shown == 0
    assert listed(scored([0.1, 0.39, 0.2]), top_k=1, include_contrastive=True).shown == 0


def test_without_a_line_the_score_alone_decides_and_every_place_is_filled() -> None:
    found = listed(scored([0.1, 0.39, 0.2, 0.0], code=[0], author=[0], threshold=None))
    assert (found.order.tolist(), found.shown) == ([0, 1, 2, 3], 3)


@pytest.mark.parametrize(("threshold", "shown"), [(0.0, 3), (0.5, 1), (1.0, 0)])
def test_the_line_may_be_set(threshold: float, shown: int) -> None:
    assert listed(scored([0.1, 0.39, 0.6], threshold=threshold)).shown == shown


LANES = [[0.9, 0, 0, 0], [0.9, 0, 0, 0], [0.9, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 0.45, 0], [0, 0, 0, 0.3]]


def test_an_interest_gets_a_place_for_its_best_paper_and_all_interests_together_a_third() -> None:
    papers = scored([0.9, 0.9, 0.9, 0.5, 0.45, 0.3], by_interest=LANES)
    found = listed(papers)
    assert found.order[:3].tolist() == [0, 1, 3]
    assert found.interest_places == {3: 1}


def test_with_too_few_places_for_a_third_no_interest_gets_one() -> None:
    assert listed(scored([0.9, 0.9, 0.9, 0.5, 0.45, 0.3], by_interest=LANES), top_k=2).interest_places == {}


def test_an_interest_never_lifts_a_paper_over_the_threshold() -> None:
    papers = scored([0.9, 0.9, 0.9, 0.39, 0.39, 0.3], by_interest=LANES)  # a verdict has put two of them below it
    assert listed(papers).interest_places == {}


PLAIN, OTHER = "segmentation by a transformer", "segmentation by an LSTM"  # same problem, other method


def test_the_pick_has_the_last_place_and_is_above_the_line() -> None:
    texts = [PLAIN, PLAIN, PLAIN, OTHER]
    found = listed(scored([0.9, 0.8, 0.7, 0.5], texts=texts), include_contrastive=True)
    assert found.contrast is not None
    assert found.order.tolist() == [0, 1, 3, 2]
    below = listed(scored([0.9, 0.8, 0.7, 0.3], texts=texts), include_contrastive=True)
    assert below.contrast is None
    assert (below.order[:3].tolist(), below.shown) == ([0, 1, 2], 3)


def test_with_fewer_papers_above_the_threshold_than_places_there_is_no_pick() -> None:
    found = listed(scored([0.9, 0.8, 0.3], texts=[PLAIN, PLAIN, OTHER]), include_contrastive=True, top_k=4)
    assert (found.contrast, found.shown) == (None, 2)


def test_similarity_to_a_paper_above_costs_places() -> None:
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float32)
    found = listed(scored([0.69, 0.68, 0.65, 0.55], vectors=vectors), ranking_mode="diversity")
    assert found.order.tolist() == [0, 2, 1, 3]
    assert found.diversity_penalty.tolist() == [0.0, SCORING.diversity_penalty, 0.0, SCORING.diversity_penalty]


def test_papers_below_the_threshold_lower_no_other_paper() -> None:
    vectors = np.array([[1, 0], [1, 0]], dtype=np.float32)
    found = listed(scored([0.3, 0.2], vectors=vectors), ranking_mode="diversity")
    assert found.diversity_penalty.tolist() == [0.0, 0.0]


PREFERRED = PreferredProbability(probability=0.8, slope=0.2, most=1.0)


def test_for_ideas_the_edge_of_the_interests_comes_before_what_is_sure_and_both_before_what_is_not() -> None:
    papers = scored([0.999, 0.82, 0.45, 0.39])
    assert listed(papers).order.tolist() == [0, 1, 2, 3]
    found = listed(replace(papers, preferred_probability=PREFERRED))
    assert (found.order.tolist(), found.shown) == ([1, 0, 2, 3], 3)


def test_the_match_that_is_shown_goes_down_beyond_the_edge_by_one_point_at_most() -> None:
    header = {
        "preference_weight": 10,
        "preference_baseline": 0.2,
        "threshold": 0.2,
        "weights": {"semantic_relevance": 0.3},
        "preferred_probability": asdict(PREFERRED),
    }
    rows = [{"semantic_relevance": p, "final": 0.2 + 0.3 * p} for p in (0.2, 0.8, 0.9, 0.9999999)]
    preferred_probability = np.log(4) + np.log(4)  # from .2 to .8 in log odds
    beyond = np.log(9) - np.log(4)
    assert [match_of(row, header) for row in rows] == pytest.approx(
        [0, preferred_probability, preferred_probability - 0.2 * beyond, preferred_probability - 1]
    )


def test_for_ideas_papers_that_are_somewhat_alike_are_kept_apart() -> None:
    vectors = np.array(
        [[1, 0, 0], [0.7, 0.714, 0], [0, 0, 1]], dtype=np.float32
    )  # cosine .7: not yet a repetition elsewhere
    papers = scored([0.79, 0.78, 0.6], vectors=vectors)
    assert listed(papers, ranking_mode="diversity").diversity_penalty.tolist() == [0.0, 0.0, 0.0]
    assert listed(replace(papers, preferred_probability=PREFERRED)).diversity_penalty.tolist() == [
        0.0,
        SCORING.diversity_penalty,
        0.0,
    ]


def test_for_ideas_the_verifier_is_asked_about_papers_that_could_reach_the_edge() -> None:
    papers = replace(scored([0.99, 0.99, 0.99, 0.5]), preferred_probability=PREFERRED)
    wanted = RankingOptions.model_validate({"top_k": 3})
    assert asked_first(papers, np.array([3]), options=wanted, scoring=SCORING).tolist() == [3]


def test_the_verifier_asks_the_most_promising_first() -> None:
    papers = scored([0.45, 0.95, 0.65, 0.2, 0.55])
    doubtful = np.array([0, 2, 4])
    options = RankingOptions(top_k=3)
    assert asked_first(papers, doubtful, options=options, scoring=SCORING).tolist() == [2, 4, 0]


def test_the_verifier_is_not_asked_about_papers_that_no_verdict_brings_into_the_list() -> None:
    papers = scored([1.0, 1.0, 0.65, 0.66], code=[0, 1, 2], author=[0, 1])
    doubtful = np.array([2, 3])
    for mode in ("practicality", "balanced"):
        options = RankingOptions(top_k=2, ranking_mode=mode)
        assert asked_first(papers, doubtful, options=options, scoring=SCORING).tolist() == []
    with_pick = RankingOptions(top_k=2, ranking_mode="practicality", include_contrastive=True)
    assert len(asked_first(papers, doubtful, options=with_pick, scoring=SCORING)) == 2


RULE = ThresholdRule(lowest=0.2, right=0.6)


@pytest.mark.parametrize(
    ("probabilities", "listed_ones"),
    [
        ([0.95, 0.9, 0.8, 0.3, 0.21, 0.19], 5),  # sure papers pay for doubtful ones, down to the lowest threshold
        ([0.7, 0.5, 0.49, 0.3], 2),  # a weak day is not filled with doubtful ones
        ([0.61, 0.3], 1),  # the day's only good paper is shown
        ([0.58, 0.58, 0.58], 0),
        ([], 0),
    ],
)
def test_a_list_goes_as_far_down_as_enough_of_it_is_expected_to_be_right(
    probabilities: list[float], listed_ones: int
) -> None:
    threshold = RULE.threshold(np.array(probabilities))
    assert sum(p >= threshold for p in probabilities) == listed_ones
    assert RULE.threshold(np.array(probabilities[::-1])) == threshold
    first_list = replace(RULE, first_list=True, alone=0.2).threshold(np.array(probabilities))
    assert sum(p >= first_list for p in probabilities) == (listed_ones or sum(p == 0.58 for p in probabilities))


def test_the_threshold_is_what_one_more_paper_would_need() -> None:
    rule = ThresholdRule(lowest=0.2, right=0.75)
    for probabilities, needed in (([0.92, 0.57], 0.58), ([0.9, 0.62, 0.61], 0.62), ([0.7, 0.5], 0.75)):
        assert rule.threshold(np.array(probabilities)) == pytest.approx(needed)


def test_the_best_paper_of_a_list_that_may_not_be_empty_still_needs_some_probability() -> None:
    rule = replace(RULE, first_list=True, alone=0.05)
    assert [rule.threshold(np.array(each)) for each in ([0.21, 0.2], [0.19, 0.1], [0.04])] == [0.21, 0.19, 0.2]


def test_a_short_first_list_is_filled_in_part_with_doubtful_papers() -> None:
    rule = replace(RULE, first_list=True, alone=0.05, fewest=3, doubtful=0.15)
    for probabilities, listed_ones in (
        ([0.9, 0.16, 0.15, 0.15, 0.1], 4),  # those with the same probability too
        ([0.9, 0.16, 0.14], 2),
        ([0.9, 0.14], 1),
        ([0.5, 0.5, 0.5, 0.5], 4),
        ([0.9, 0.8, 0.7, 0.19], 3),  # long enough
        ([0.08, 0.04], 1),
        ([0.04], 0),
    ):
        threshold = rule.threshold(np.array(probabilities[::-1]))
        assert sum(p >= threshold for p in probabilities) == listed_ones
    later = replace(rule, first_list=False).threshold(np.array([0.9, 0.16, 0.15]))
    assert later == rule.lowest


@pytest.mark.parametrize(("probabilities", "doubtful"), [([0.9, 0.19, 0.1], True), ([0.9, 0.8, 0.7], False)])
def test_a_first_list_records_whether_it_shows_doubtful_papers(probabilities: list[float], doubtful: bool) -> None:
    rule = ThresholdRule(lowest=0.2, right=0.6, first_list=True, fewest=2, doubtful=0.15)
    papers = replace(scored(probabilities, threshold=0.2), threshold_rule=rule).with_days_threshold()
    assert papers.shows_doubtful is doubtful
    later = replace(papers, threshold_rule=replace(rule, first_list=False)).with_days_threshold()
    assert not later.shows_doubtful


def test_the_list_follows_the_threshold_of_its_day_and_is_arranged_the_same_again() -> None:
    papers = replace(
        scored([0.3, 0.7, 0.3], code=[0], threshold=0.2), threshold_rule=ThresholdRule(lowest=0.2, right=0.6)
    )
    papers = papers.with_days_threshold()
    found = listed(papers)
    assert (papers.threshold, found.order.tolist(), found.shown) == (pytest.approx(0.5), [1, 0, 2], 1)
    again = StoredScores(
        probability=papers.relevance,
        final=found.final,
        by_interest=np.zeros((3, 0)),
        contrastive=np.zeros(3, dtype=bool),
        header={
            "top_k": 3,
            "threshold": papers.threshold,
            "preference_weight": 4.0,
            "weights": {"semantic_relevance": WEIGHTS[0]},
            "threshold_rule": asdict(RULE),
        },
    )
    order, shown = arrange(again)
    assert (order.tolist(), shown) == ([1, 0, 2], 1)
