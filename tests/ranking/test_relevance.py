import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.profile import Interests
from paper_assets.ranking.relevance import interest_text, keyword_relevance
from paper_assets.ranking.similarity import cosines
from tests.ranking.invented import unit_vectors
from tests.ranking.plain_twin import cosine

REPEATS = (3, 2, 1)
INTERESTS = Interests(primary=["graph learning", "zero-shot transfer"], secondary=["pruning"], exploratory=["robots"])


def test_interests_are_repeated_three_two_and_one_times() -> None:
    text = interest_text(INTERESTS, repeats=REPEATS)
    counts = [text.count(words) for words in ("graph learning", "zero-shot transfer", "pruning", "robots")]
    assert counts == [3, 3, 2, 1]


def test_every_interest_occurs_once_before_any_is_repeated() -> None:
    text = interest_text(INTERESTS, repeats=REPEATS)
    assert text.index("robots") < text.index("graph learning", 1)


def test_relevance_is_the_cosine_and_never_negative() -> None:
    vectors = np.array([[1, 0], [0, 1], [-1, 0], [3, 4], [0, 0], [np.nan, 1]], dtype=np.float32)
    relevance = cosines(vectors, np.array([[2, 0]], dtype=np.float32))[:, 0]
    assert relevance.tolist() == pytest.approx([1.0, 0.0, 0.0, 0.6, 0.0, 0.0])


@given(count=st.integers(0, 40), seed=st.integers(0, 2**32 - 1))
def test_relevance_agrees_with_the_plain_cosine(count: int, seed: int) -> None:
    vectors = unit_vectors(count + 1, seed=seed)
    relevance = cosines(vectors[1:], vectors[:1])[:, 0]
    plain = [cosine(row.tolist(), vectors[0].tolist()) for row in vectors[1:]]
    assert np.allclose(relevance, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dimension", [24, 384, 385])
def test_relevance_has_the_same_bits_whatever_other_papers_there_are(dimension: int) -> None:
    vectors = unit_vectors(5001, seed=dimension, dimension=dimension)
    interest, papers = vectors[:3], vectors[1:]
    together = cosines(papers, interest)
    order = np.random.default_rng(1).permutation(len(papers))
    assert np.array_equal(cosines(papers[order], interest), together[order])
    assert np.array_equal(cosines(np.asfortranarray(papers), interest), together)
    for row in (0, 1, 4095, 4096, 4999):
        assert np.array_equal(cosines(papers[row : row + 1], interest)[0], together[row])


def test_without_a_model_the_share_of_an_interests_words_counts_by_its_weight() -> None:
    texts = pa.chunked_array([["graph learning", "a graph of robots", "pruned", "the learning of zero shot transfer"]])
    relevance = keyword_relevance(texts, INTERESTS, repeats=REPEATS)
    whole = 3 + 3 + 2 + 1
    assert relevance.tolist() == pytest.approx([3 / whole, (1.5 + 1) / whole, 0.0, (1.5 + 3) / whole])


def test_small_words_of_an_interest_are_not_asked_for() -> None:
    texts = pa.chunked_array([["the theory of the graph", "the of and"]])
    relevance = keyword_relevance(texts, Interests(primary=["theory of graphs"]), repeats=REPEATS)
    assert relevance.tolist() == [1.0, 0.0]


VISIBLE = st.characters(exclude_categories=("C",))  # a profile and a paper are read without control characters


@given(st.lists(st.text(VISIBLE, min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=3))
def test_any_interest_is_fully_met_by_its_own_words(interests: list[str]) -> None:
    texts = pa.chunked_array([[" | ".join(interests)]])
    relevance = keyword_relevance(texts, Interests(primary=interests), repeats=REPEATS)
    assert relevance[0] == pytest.approx(1.0) or not any(c.isalnum() for c in "".join(interests))


def test_interests_without_a_word_match_nothing() -> None:
    assert keyword_relevance(pa.chunked_array([["a"]]), Interests(primary=["--"]), repeats=REPEATS).tolist() == [0.0]
