"""The list as a reader gets it: filled places, levels, the match, interests, the pick, quiet days."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paper_assets.profile import RankingOptions
from paper_assets.ranking.final_list import FinalList, Scored, final_list, list_order, match_of
from paper_assets.ranking.levels import headline_of, level_of
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
    floor: float | None = 0.1,
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
        floor=floor,
        preference_weight=4.0,
    )


def listed(papers: Scored, **options: Any) -> FinalList:
    wanted = RankingOptions.model_validate({"top_k": 3, **options})
    return final_list(papers, options=wanted, scoring=SCORING, taxonomy=standard_taxonomy())


def test_every_place_is_filled_with_the_possible_papers_that_match_best() -> None:
    assert listed(scored([0.9, 0.12, 0.2, 0.05, 0.11])).order[:3].tolist() == [0, 2, 1]
    assert listed(scored([0.9, 0.12, 0.2, 0.05, 0.11]), top_k=10).shown == 4


def test_a_day_is_quiet_only_if_nothing_is_even_possible() -> None:
    assert listed(scored([0.09, 0.01])).shown == 0
    assert listed(scored([])).shown == 0
    assert listed(scored([0.09]), top_k=1, include_contrastive=True).shown == 0


def test_the_threshold_does_not_rise_with_the_best_paper_of_the_day() -> None:
    broad = scored([0.99] * 4 + [0.41, 0.3])
    assert listed(broad, top_k=5).order[:5].tolist() == [0, 1, 2, 3, 4]


def test_code_and_a_followed_author_never_lift_an_unlikely_paper_over_a_likely_one() -> None:
    found = listed(scored([0.51, 0.49, 0.52], code=[1], author=[1]), ranking_mode="novelty")
    assert found.final[1] > max(found.final[0], found.final[2])
    assert found.order.tolist() == [2, 0, 1]


def test_code_and_an_author_move_a_paper_a_little() -> None:
    papers = scored([0.62, 0.68, 0.75, 0.40], code=[0, 3], author=[3])
    assert listed(papers).order.tolist() == [2, 0, 1, 3]


def test_code_moves_a_paper_further_if_it_counts_more() -> None:
    papers = scored([0.60, 0.68, 0.66, 0.65], code=[0])
    assert listed(papers).order.tolist() == [1, 0, 2, 3]
    assert listed(replace(papers, preference_weight=SCORING.preference_weight)).order[0] == 0


def test_papers_that_are_not_possible_follow_by_the_same_rule() -> None:
    assert listed(scored([0.01, 0.03, 0.02, 0.9], code=[0], author=[0])).order.tolist() == [3, 1, 0, 2]


def test_without_a_floor_the_score_alone_decides_and_every_place_is_filled() -> None:
    found = listed(scored([0.1, 0.39, 0.2, 0.0], code=[0], author=[0], floor=None))
    assert (found.order.tolist(), found.shown) == ([0, 1, 2, 3], 3)


@pytest.mark.parametrize(("floor", "shown"), [(0.0, 3), (0.5, 1), (1.0, 0)])
def test_the_lowest_probability_may_be_set(floor: float, shown: int) -> None:
    assert listed(scored([0.1, 0.39, 0.6], floor=floor)).shown == shown


def test_levels_are_named_from_the_highest() -> None:
    assert [level_of(p).name for p in (0.99, 0.6, 0.2, 0.0)] == ["very likely", "likely", "possible", "possible"]


def test_the_headline_counts_what_is_shown_and_what_follows() -> None:
    levels = {"very likely": 1, "likely": 2, "possible": 2}
    assert headline_of({"levels": levels, "more_likely": 0}, 5) == "5 papers for you: 3 likely, 2 possible"
    assert headline_of({"levels": {**levels, "possible": 0}, "more_likely": 8}, 3) == (
        "3 papers for you: 3 likely. 8 more likely"
    )
    assert headline_of({"quiet": True, "levels": None}, 0).startswith("A quiet day")
    assert headline_of({"levels": None}, 1) == "1 paper for you"


def test_a_likely_paper_by_a_followed_person_is_always_in_the_list_and_an_unlikely_one_is_not_lifted() -> None:
    papers = scored([0.99, 0.98, 0.97, 0.6, 0.4])
    followed = replace(papers, followed=np.array([False, False, False, True, True]))
    assert listed(papers).order[:3].tolist() == [0, 1, 2]
    assert listed(followed).order.tolist() == [0, 1, 3, 2, 4]
    lanes = replace(followed, by_interest=np.array([[0.9, 0], [0.9, 0], [0, 0.9], [0.9, 0], [0, 0]]))
    assert 3 in listed(lanes).order[:3]


def test_papers_that_enter_for_a_person_and_for_an_interest_stand_in_the_order_of_match() -> None:
    lanes = [[0.9, 0], [0.9, 0], [0.9, 0], [0, 0.9], [0.9, 0]]
    papers = replace(scored([0.98, 0.97, 0.96, 0.95, 0.6], by_interest=lanes), followed=np.array([False] * 4 + [True]))
    found = listed(papers)
    assert found.order.tolist() == [0, 3, 4, 1, 2]
    assert found.interest_places == {3: 1}


LANES = [[0.9, 0], [0.9, 0], [0.9, 0], [0, 0.9], [0, 0.9]]


def test_an_interest_without_a_place_gets_one_for_a_paper_that_is_about_as_likely() -> None:
    found = listed(scored([0.98, 0.97, 0.96, 0.92, 0.91], by_interest=LANES))
    assert found.order[:3].tolist() == [0, 1, 3]
    assert found.interest_places == {3: 1}


@pytest.mark.parametrize("best", [0.9, 0.39])
def test_no_paper_that_is_less_likely_gets_a_place_for_an_interest(best: float) -> None:
    found = listed(scored([0.998, 0.995, 0.99, best, 0.3], by_interest=LANES))
    assert (found.order[:3].tolist(), found.interest_places) == ([0, 1, 2], {})


def test_a_paper_leaves_only_if_its_interest_keeps_another() -> None:
    lanes = [[0.9, 0, 0], [0, 0.9, 0], [0.9, 0, 0], [0, 0, 0.9]]
    assert listed(scored([0.9, 0.9, 0.9, 0.88], by_interest=lanes)).order[:3].tolist() == [0, 1, 3]
    only = [[0.9, 0, 0], [0, 0.9, 0], [0, 0, 0.9], [0, 0, 0]]
    assert listed(scored([0.9, 0.9, 0.9, 0.9], by_interest=only)).interest_places == {}


def test_with_too_few_places_for_a_third_no_interest_gets_one() -> None:
    assert listed(scored([0.9, 0.9, 0.9, 0.9, 0.9], by_interest=LANES), top_k=2).interest_places == {}


PLAIN, OTHER = "segmentation by a transformer", "segmentation by an LSTM"  # same problem, other method


def test_the_pick_has_the_last_place_and_is_possible() -> None:
    texts = [PLAIN, PLAIN, PLAIN, OTHER]
    found = listed(scored([0.9, 0.8, 0.7, 0.5], texts=texts), include_contrastive=True)
    assert found.contrast is not None
    assert found.order.tolist() == [0, 1, 3, 2]
    below = listed(scored([0.9, 0.8, 0.7, 0.03], texts=texts), include_contrastive=True)
    assert below.contrast is None
    assert (below.order[:3].tolist(), below.shown) == ([0, 1, 2], 3)


def test_with_fewer_possible_papers_than_places_there_is_no_pick() -> None:
    found = listed(scored([0.9, 0.8, 0.03], texts=[PLAIN, PLAIN, OTHER]), include_contrastive=True, top_k=4)
    assert (found.contrast, found.shown) == (None, 2)


def test_similarity_to_a_paper_above_costs_places() -> None:
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float32)
    found = listed(scored([0.69, 0.68, 0.65, 0.55], vectors=vectors), ranking_mode="diversity")
    assert found.order.tolist() == [0, 2, 1, 3]
    assert found.diversity_penalty.tolist() == [0.0, SCORING.diversity_penalty, 0.0, SCORING.diversity_penalty]


def test_papers_that_are_not_possible_lower_no_other_paper() -> None:
    vectors = np.array([[1, 0], [1, 0]], dtype=np.float32)
    found = listed(scored([0.03, 0.02], vectors=vectors), ranking_mode="diversity")
    assert found.diversity_penalty.tolist() == [0.0, 0.0]


def test_for_ideas_what_is_sure_counts_no_more_than_what_is_very_likely() -> None:
    papers = scored([0.999, 0.82, 0.45, 0.09], code=[1])
    assert listed(papers).order.tolist() == [0, 1, 2, 3]
    assert listed(replace(papers, probability_cap=0.8)).order.tolist() == [1, 0, 2, 3]


def test_the_match_that_is_shown_is_capped_for_ideas() -> None:
    header = {
        "preference_weight": 10,
        "preference_baseline": 0.2,
        "weights": {"semantic_relevance": 0.3},
        "probability_cap": 0.8,
    }
    rows = [{"semantic_relevance": p, "final": 0.2 + 0.3 * p} for p in (0.2, 0.5, 0.8, 0.9999999)]
    assert [match_of(row, header) for row in rows] == pytest.approx([-np.log(4), 0, np.log(4), np.log(4)])


def test_for_ideas_and_variety_papers_that_are_somewhat_alike_are_kept_apart() -> None:
    vectors = np.array([[1, 0, 0], [0.7, 0.714, 0], [0, 0, 1]], dtype=np.float32)  # cosine .7
    papers = scored([0.79, 0.78, 0.6], vectors=vectors)
    lowered = [0.0, SCORING.diversity_penalty, 0.0]
    assert listed(papers, ranking_mode="diversity").diversity_penalty.tolist() == lowered
    assert listed(replace(papers, probability_cap=0.8)).diversity_penalty.tolist() == lowered
    assert not any(listed(replace(papers, floor=None), ranking_mode="diversity").diversity_penalty)  # mode seed


def test_novelty_puts_the_newest_first_among_papers_of_a_level_and_says_if_that_changes_nothing() -> None:
    papers = replace(scored([0.95, 0.92, 0.6, 0.7, 0.3]), days=np.array([1.0, 2.0, 3.0, 2.0, 9.0]))
    newest = listed(papers, ranking_mode="novelty", top_k=5)
    assert newest.order.tolist() == [1, 0, 2, 3, 4]
    assert newest.notes == ("the mode novelty puts the newest first among likely papers of one level",)
    assert "novelty changes nothing" in listed(scored([0.95, 0.92]), ranking_mode="novelty").notes[0]
    assert "diversity changes nothing" in listed(scored([0.95, 0.92]), ranking_mode="diversity").notes[0]


def test_a_setting_whose_papers_are_missing_says_so() -> None:
    papers = replace(scored([0.95, 0.3]), looked_for={"no survey": np.array([False, True])})
    assert listed(papers).notes == ("no survey",)
    assert listed(replace(papers, looked_for={"no survey": np.array([True, False])})).notes == ()


def test_a_missing_contrast_is_announced() -> None:
    (note,) = listed(scored([0.95, 0.92]), include_contrastive=True).notes
    assert note == "no likely paper contrasts with the list in its method"


def test_the_verifier_is_asked_in_the_order_of_the_list() -> None:
    order = list_order(scored([0.45, 0.95, 0.65, 0.2, 0.55]), options=RankingOptions(top_k=3), scoring=SCORING)
    assert order.tolist() == [1, 2, 4, 0, 3]
