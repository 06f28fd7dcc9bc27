import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from paper_assets.ranking.calibration import standard_calibration
from paper_assets.ranking.probability import (
    any_of,
    in_company,
    interests_judged,
    library_judged,
    one_text_judged,
    probability,
    with_library,
)

CALIBRATION = standard_calibration()
LEVELS = (1.0, 0.7, 0.4)
from_0_to_1 = st.floats(0, 1)


def relevance(
    own: np.ndarray | None, together: np.ndarray | None, shares: np.ndarray | None, liked: np.ndarray | None
) -> float:
    """One paper's probability: three interests, and liked papers by cosine and TF-IDF cosine (2, m), if any."""
    logits = any_of(
        interests_judged(
            own, together, shares, weights=LEVELS, alike=np.full((3, 3), 0.5), calibration=CALIBRATION
        ).logits
    )
    if liked is not None:
        judged, _ = library_judged(liked[0][:, None], liked[1][:, None], calibration=CALIBRATION)
        logits = with_library(logits, judged.logits, liked=liked.shape[1], calibration=CALIBRATION)
    (found,) = probability(logits).tolist()
    return float(found)


@given(
    own=arrays(float, (3, 1), elements=from_0_to_1),
    together=arrays(float, (1,), elements=from_0_to_1),
    shares=arrays(float, (3, 1), elements=from_0_to_1),
    liked=arrays(float, (2, 7), elements=from_0_to_1),
    wordless=st.booleans(),
    given_=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    lifted=st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 6), from_0_to_1),
)
def test_a_paper_nearer_in_one_part_is_not_less_probable(
    own: np.ndarray,
    together: np.ndarray,
    shares: np.ndarray,
    liked: np.ndarray,
    wordless: bool,
    given_: tuple[bool, bool, bool],
    lifted: tuple[int, int, int, float],
) -> None:
    if wordless:
        shares[1] = np.nan
    parts = [own, together, shares, liked]
    part, first, second, to = lifted
    nearer = [one.copy() for one in parts]
    at = {0: (second % 3, 0), 1: (0,), 2: (second % 3, 0), 3: (first, second)}[part]
    nearer[part][at] = max(nearer[part][at], to)  # NaN stays NaN

    def judged(values: list[np.ndarray]) -> float:
        by_seed, by_words, by_liked = given_
        return relevance(
            values[0], values[1] if by_seed else None, values[2] if by_words else None, values[3] if by_liked else None
        )

    assert 0 <= judged(parts) <= judged(nearer) + 1e-12 <= 1 + 1e-12


def test_any_interest_will_do() -> None:
    logits = np.array([[0.0, -40.0, 50.0], [0.0, -40.0, -3.0]])
    assert probability(any_of(logits)) == pytest.approx([0.75, 2 * math.exp(-40), 1.0], rel=1e-9)


def test_twenty_interests_far_away_do_not_make_a_paper_worth_reading() -> None:
    judged = interests_judged(
        np.full((20, 1), 0.25),
        np.full(1, 0.25),
        np.zeros((20, 1)),
        weights=(1.0,) * 20,
        alike=np.full((20, 20), 0.3),
        calibration=CALIBRATION,
    )
    assert probability(any_of(judged.logits))[0] < 0.01


def test_an_interest_of_a_lower_level_is_less_probable_by_its_weight_in_odds() -> None:
    same = np.full((3, 1), 0.6)
    judged = interests_judged(same, None, same, weights=LEVELS, alike=np.eye(3), calibration=CALIBRATION)
    odds = np.exp(judged.logits[:, 0])
    assert odds / odds[0] == pytest.approx(LEVELS)


def test_a_level_that_counts_nothing_says_nothing() -> None:
    both = np.full((2, 1), 0.9)
    judged = interests_judged(both, None, both, weights=(1.0, 0.0), alike=np.eye(2), calibration=CALIBRATION)
    alone = interests_judged(both[:1], None, both[:1], weights=(1.0,), alike=np.eye(1), calibration=CALIBRATION)
    assert any_of(judged.logits) == pytest.approx(any_of(alone.logits))


def test_one_interest_is_its_own_company() -> None:
    assert in_company(np.array([[0.3, 0.0]]), np.ones((1, 1))).tolist() == [[0.3, 0.0]]


def test_an_interest_profits_from_likeness_to_one_that_is_met_and_not_from_one_without_words() -> None:
    shares = np.array([[0.0], [1.0], [np.nan]])
    near, far = np.eye(3), np.eye(3)
    near[0, 1] = near[1, 0] = 0.8
    assert in_company(shares, near)[0, 0] == pytest.approx(0.8 / 1.8)
    assert in_company(shares, far)[0, 0] == 0.0


def test_few_liked_papers_move_little_and_many_move_more() -> None:
    words = np.zeros(1)
    moved = [with_library(words, np.full(1, 3.0), liked=count, calibration=CALIBRATION)[0] for count in (1, 3, 30)]
    assert 0 < moved[0] < moved[1] < moved[2] < 0.6 * (3.0 - CALIBRATION.library_base)


def test_papers_like_five_of_the_liked_ones_stand_above_a_paper_like_one() -> None:
    near = np.array([[0.8, 0.8], *([[0.0, 0.8]] * 4), [0.0, 0.0]])
    judged, each = library_judged(near, near / 2, calibration=CALIBRATION)
    assert judged.logits[1] > judged.logits[0]
    assert each.argmax(axis=0).tolist() == [0, 0]


def test_without_words_to_look_for_one_text_is_judged_by_its_meaning() -> None:
    own = np.array([[0.2, 0.8]])
    judged = one_text_judged(own, np.full((1, 2), np.nan), calibration=CALIBRATION)
    meaning = CALIBRATION.seed_and_lanes_wordless
    assert judged.logits[0] == pytest.approx(meaning.intercept + meaning.meaning * own[0])
