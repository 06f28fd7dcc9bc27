import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from paper_assets.ranking.calibration import (
    any_of,
    interests_judged,
    library_judged,
    probability,
    share_of_best,
    standard_calibration,
    standardized,
    with_library,
)

CALIBRATION = standard_calibration()
LEVELS = (1.0, 0.7, 0.4)
from_0_to_1 = st.floats(0, 1)


USUAL = np.random.default_rng(5).normal(CALIBRATION.cosines.mean, 0.08, size=(3, 200))  # cosines of other papers


def relevance(own: np.ndarray | None, words: np.ndarray | None, liked: np.ndarray | None) -> float:
    """One paper's probability among 200: by three interests, and by liked papers (cosines, TF-IDF cosines), if any."""
    known = None if own is None else np.hstack([own, USUAL])
    extended = None if words is None else np.hstack([words, np.where(np.isnan(words), np.nan, np.zeros((3, 200)))])
    logits = any_of(interests_judged(known, extended, weights=LEVELS, calibration=CALIBRATION).logits)[:1]
    if liked is not None:
        judged, _ = library_judged(liked[0][:, None], liked[1][:, None], calibration=CALIBRATION)
        logits = with_library(logits, judged.logits, liked=liked.shape[1], calibration=CALIBRATION)
    (found,) = probability(logits).tolist()
    return float(found)


@given(
    own=arrays(float, (3, 1), elements=from_0_to_1),
    words=arrays(float, (3, 1), elements=from_0_to_1),
    liked=arrays(float, (2, 7), elements=from_0_to_1),
    wordless=st.booleans(),
    given_=st.tuples(st.booleans(), st.booleans()),
    lifted=st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 6), from_0_to_1),
)
def test_a_paper_nearer_in_one_part_is_not_less_probable(
    own: np.ndarray,
    words: np.ndarray,
    liked: np.ndarray,
    wordless: bool,
    given_: tuple[bool, bool],
    lifted: tuple[int, int, int, float],
) -> None:
    if wordless:
        words[1] = np.nan
    parts = [own, words, liked]
    part, first, second, to = lifted
    nearer = [one.copy() for one in parts]
    at = (first, second) if part == 2 else (second % 3, 0)
    nearer[part][at] = max(nearer[part][at], to)  # NaN stays NaN

    def judged(values: list[np.ndarray]) -> float:
        by_words, by_liked = given_
        return relevance(values[0], values[1] if by_words else None, values[2] if by_liked else None)

    assert 0 <= judged(parts) <= judged(nearer) + 1e-12 <= 1 + 1e-12


def test_any_interest_will_do() -> None:
    logits = np.array([[0.0, -40.0, 50.0], [0.0, -40.0, -3.0]])
    assert probability(any_of(logits)) == pytest.approx([0.75, 2 * math.exp(-40), 1.0], rel=1e-9)


def test_twenty_interests_far_away_do_not_make_a_paper_worth_reading() -> None:
    usual = CALIBRATION.cosines
    cosines = np.random.default_rng(1).normal(usual.mean, usual.spread, size=(20, 500))
    cosines[:, 0] = usual.mean + 0.75 * usual.spread
    judged = interests_judged(cosines, np.zeros((20, 500)), weights=(1.0,) * 20, calibration=CALIBRATION)
    assert probability(any_of(judged.logits))[0] < 0.05


def test_how_near_is_near_depends_on_what_other_papers_are_to_the_interest() -> None:
    generic, rare = np.full(500, 0.35), np.full(500, 0.05)
    generic[0] = rare[0] = 0.4
    spread = 0.02 * np.random.default_rng(2).standard_normal(500)
    scores = standardized(np.stack([generic, rare]) + spread, CALIBRATION.cosines)
    assert scores[1, 0] > 3 > scores[0, 0] > 0


def test_among_few_papers_near_is_what_is_near_in_a_week() -> None:
    usual = CALIBRATION.cosines
    cosines = np.random.default_rng(3).normal(usual.mean, usual.spread, size=(1, 1000))
    cosines[0, :2] = 0.5
    week = standardized(cosines, CALIBRATION.cosines)
    alone = standardized(cosines[:, :20], CALIBRATION.cosines)
    assert alone[0, 0] == pytest.approx(week[0, 0], rel=0.2)


def test_an_interest_of_a_lower_level_is_less_probable_by_its_weight_in_odds() -> None:
    same = np.full((3, 1), 0.6)
    judged = interests_judged(same, same, weights=LEVELS, calibration=CALIBRATION)
    odds = np.exp(judged.logits[:, 0])
    assert odds / odds[0] == pytest.approx(LEVELS)


def test_a_level_of_weight_zero_does_not_change_the_result() -> None:
    both = np.full((2, 1), 0.9)
    judged = interests_judged(both, both, weights=(1.0, 0.0), calibration=CALIBRATION)
    alone = interests_judged(both[:1], both[:1], weights=(1.0,), calibration=CALIBRATION)
    assert any_of(judged.logits) == pytest.approx(any_of(alone.logits))


def test_few_liked_papers_move_little_and_many_move_more() -> None:
    words = np.zeros(1)
    moved = [with_library(words, np.full(1, 3.0), liked=count, calibration=CALIBRATION)[0] for count in (1, 3, 30)]
    assert 0 < moved[0] < moved[1] < moved[2] < 0.6 * (3.0 - CALIBRATION.library_base)


def test_papers_like_five_of_the_liked_ones_rank_above_a_paper_like_one() -> None:
    near = np.array([[0.8, 0.8], *([[0.0, 0.8]] * 4), [0.0, 0.0]])
    judged, each = library_judged(near, near / 2, calibration=CALIBRATION)
    assert judged.logits[1] > judged.logits[0]
    assert each.argmax(axis=0).tolist() == [0, 0]


def test_what_a_paper_shares_with_all_papers_does_not_make_it_like_the_liked_ones() -> None:
    near, usual = np.full((2, 2), 0.4), np.array([0.1, 0.3])
    for part in ((usual, None), (None, usual), (usual, usual)):
        own, common = library_judged(near, near, usual=part, calibration=CALIBRATION)[0].logits
        assert own > common + 0.1


def test_three_liked_titles_that_agree_say_more_than_one_and_a_sixth_says_no_more() -> None:
    near = np.zeros((6, 1))
    titles = [np.array([[1.0]] * held + [[0.0]] * (6 - held)) for held in range(7)]
    by_titles = [library_judged(near, near, each, calibration=CALIBRATION)[0].logits[0] for each in titles]
    assert all(one < other for one, other in pairwise(by_titles[:6]))
    assert by_titles[6] == by_titles[5]
    assert library_judged(near, near, calibration=CALIBRATION)[0].logits[0] == by_titles[0]
    linear = replace(CALIBRATION, library=replace(CALIBRATION.library, saturation=0.0))
    none, one, four = (
        library_judged(near[:count], near[:count], held * np.ones((count, 1)), calibration=linear)[0].logits[0]
        for count, held in ((1, 0.0), (1, 1.0), (4, 1.0))
    )
    assert four - none == pytest.approx(2 * (one - none))


def test_strong_evidence_raises_the_probability_ever_less_but_always() -> None:
    near = np.linspace(0.0, 1.0, 40)[None]
    wordless = CALIBRATION.interest_wordless
    linear = replace(CALIBRATION, interest_wordless=replace(wordless, saturation=0.0))
    logits, evidence = (
        interests_judged(near, np.full_like(near, np.nan), weights=(1.0,), calibration=each).logits[0]
        for each in (CALIBRATION, linear)
    )
    assert (np.diff(logits) > 0).all()
    slopes = np.diff(logits) / np.diff(evidence)
    assert slopes[0] > 0.98
    assert slopes[-1] == pytest.approx(1 - wordless.saturation, abs=0.01)
    assert (np.diff(slopes) < 0).all()


def test_an_interest_without_words_to_look_for_is_judged_by_its_meaning() -> None:
    own = np.array([[0.2, 0.8]])
    judged = interests_judged(own, np.full((1, 2), np.nan), weights=(1.0,), calibration=CALIBRATION)
    meaning = CALIBRATION.interest_wordless
    evidence = meaning.intercept + meaning.meaning * standardized(own, CALIBRATION.cosines)[0]
    assert judged.logits[0] == pytest.approx(evidence - meaning.saturation * np.log1p(np.exp(evidence + 1)))


def test_one_interest_alone_is_meant_more_broadly_than_one_of_several() -> None:
    own, words = np.array([[0.3, 0.6]]), np.array([[0.2, 0.9]])
    alone, *of_several = (
        interests_judged(np.repeat(own, n, 0), np.repeat(words, n, 0), weights=(1.0,) * n, calibration=CALIBRATION)
        for n in (1, 2, 9)
    )
    for judged in of_several:
        assert (judged.logits[0] < alone.logits[0]).all()
    assert (of_several[1].logits[0] < of_several[0].logits[0]).all()
    unweighted = interests_judged(
        np.repeat(own, 2, 0), np.repeat(words, 2, 0), weights=(1.0, 0.0), calibration=CALIBRATION
    )
    assert unweighted.logits[0].tolist() == alone.logits[0].tolist()


def test_a_paper_that_holds_an_interest_best_is_probable_even_if_its_score_of_words_is_low() -> None:
    low = np.random.default_rng(4).random((1, 2000)) ** 8 / 3
    alike = np.full(low.shape, CALIBRATION.cosines.mean)
    judged = interests_judged(alike, low, weights=(1.0,), calibration=CALIBRATION).logits[0]
    best, worst = low[0].argmax(), low[0].argmin()
    by_its_score = CALIBRATION.interest.words * (low[0, best] - low[0, worst])
    assert judged[best] - judged[worst] > by_its_score + 1.5
    assert (np.diff(judged[np.argsort(low[0])]) >= 0).all()


def test_papers_that_were_shown_keep_the_others_from_seeming_the_best() -> None:
    scores = np.random.default_rng(4).random((2, 300)) ** 4
    every = share_of_best(scores, None, CALIBRATION.highest_scores)
    best = np.argsort(-scores[0])[:12]
    left = np.setdiff1d(np.arange(300), best)
    rest = share_of_best(scores[:, left], scores[:, best], CALIBRATION.highest_scores)
    np.testing.assert_allclose(rest, every[:, left], rtol=1e-12)
    assert (share_of_best(scores[:, left], None, CALIBRATION.highest_scores)[0] > rest[0]).all()


def test_among_papers_of_one_narrow_topic_the_near_ones_stay_probable_by_the_known_model() -> None:
    usual = CALIBRATION.cosines
    cosines = np.random.default_rng(3).normal(usual.mean, usual.spread, size=(1, 1000))
    cosines[0, :60] = np.linspace(0.55, 0.45, 60)
    narrow = cosines[:, :80]
    no_words = np.zeros((1, 80))
    known, other = (
        probability(interests_judged(narrow, no_words, weights=(1.0,), calibration=each).logits[0, :60])
        for each in (CALIBRATION, CALIBRATION.for_model("another-model"))
    )
    assert known.min() > 3 * other.max()
