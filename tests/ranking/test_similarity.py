"""What a paper shares with the best matches of an interest counts for it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.ranking.calibration import interests_judged, standard_calibration
from paper_assets.ranking.similarity import similarity_to_best
from tests.ranking.invented import unit_vectors

LOGITS = np.array([[4.0, 3.0, -2.0, -5.0, -5.5, -6.0]])


def test_the_best_are_compared_with_one_another_and_not_with_themselves() -> None:
    vectors = np.eye(6, dtype=np.float32)
    assert similarity_to_best(vectors, LOGITS, most=2, otherwise=0.3)[0] == pytest.approx([0] * 6)
    vectors[3] = vectors[0] + vectors[1]
    found = similarity_to_best(vectors, LOGITS, most=2, otherwise=0.3)
    assert found[0] == pytest.approx([0, 0, 0, 0.5**0.5, 0, 0])


def test_a_copy_of_the_only_good_match_gains_nothing_by_it() -> None:
    vectors = np.eye(6, dtype=np.float32)
    vectors[1] = vectors[0]
    found = similarity_to_best(vectors, LOGITS, most=2, otherwise=0.3)
    assert found[0] == pytest.approx([0.3, 0.3, 0, 0, 0, 0])


def test_the_more_probable_ones_count_more() -> None:
    vectors = np.eye(6, dtype=np.float32)
    vectors[4], vectors[5] = 9 * vectors[0] + vectors[4], 9 * vectors[2] + vectors[5]
    found = similarity_to_best(vectors, LOGITS, most=3, otherwise=0.3)[0]
    assert found[4] > 0.45 > 0.1 > found[5] > 0


@given(seed=st.integers(0, 2**32 - 1), most=st.integers(1, 9), papers=st.integers(1, 12))
def test_a_papers_similarity_does_not_depend_on_the_order_of_the_papers(seed: int, most: int, papers: int) -> None:
    chance = np.random.default_rng(seed)
    vectors, logits = unit_vectors(papers, seed=seed, dimension=8), chance.normal(-4, 4, size=(3, papers))
    vectors[0] = 0  # a paper without a text
    vectors[-1], logits[:, -1] = vectors[papers // 2], logits[:, papers // 2]  # and a copy
    order = chance.permutation(papers)
    found = similarity_to_best(vectors, logits, most=most, otherwise=0.3)
    again = similarity_to_best(vectors[order], logits[:, order], most=most, otherwise=0.3)
    assert np.array_equal(again, found[:, order])
    assert np.isfinite(found).all()
    assert (np.abs(found) <= 1 + 1e-9).all()


def test_a_paper_in_other_words_gains_by_its_similarity_to_the_papers_that_name_the_interest() -> None:
    calibration, chance = standard_calibration(), np.random.default_rng(3)
    vectors = unit_vectors(300, seed=3, dimension=40)
    vectors[:8] = vectors[0] + 0.3 * vectors[:8]
    own, words = chance.normal(0.14, 0.08, size=(1, 300)), np.zeros((1, 300))
    own[0, :5], words[0, :5] = 0.5, 1.0  # they name the interest
    own[0, 5:10] = 0.35  # of these, three are like them and two are not
    judged = [
        interests_judged(own, words, weights=(1.0,), calibration=calibration, vectors=each) for each in (vectors, None)
    ]
    with_best, without = (each.logits[0] for each in judged)
    gained = with_best - without
    assert gained[5:8].min() > 0 > gained[8:10].max()
