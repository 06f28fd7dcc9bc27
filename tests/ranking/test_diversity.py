import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from paper_assets.ranking.scoring import alike, best_first, final_scores, repeating
from paper_assets.settings import ScoringConfig
from paper_assets.weights import DIMENSIONS
from tests.ranking.plain_greedy import greedy

SCORING = ScoringConfig()

# Lengths are whole numbers, so that cosines, 0.8 among them, are exact; the zero row is a missing vector.
DIRECTIONS = [(1, 0, 0), (4, 3, 0), (3, 4, 0), (0, 5, 0), (24, 7, 0), (7, 24, 0), (-1, 0, 0), (0, 3, 4), (0, 0, 0)]


@dataclass(frozen=True)
class Case:
    """Papers as `repeating` takes them."""

    final: NDArray[np.float64]
    lowered: NDArray[np.float64]
    vectors: NDArray[np.float32]
    days: NDArray[np.float64]
    ids: pa.ChunkedArray

    def repeating(self, places: int) -> NDArray[np.bool_]:
        return repeating(
            self.final,
            self.lowered,
            self.vectors,
            days=self.days,
            paper_ids=self.ids,
            places=places,
            similarity=SCORING.diversity_similarity,
        )

    def order(self, repeats: NDArray[np.bool_]) -> list[int]:
        return best_first(np.where(repeats, self.lowered, self.final), self.days, self.ids).tolist()

    def taken(self, rows: NDArray[np.int64]) -> "Case":
        return Case(self.final[rows], self.lowered[rows], self.vectors[rows], self.days[rows], self.ids.take(rows))


def case(final: list[float], vectors: object, days: list[float] | None = None) -> Case:
    scores = np.array(final, dtype=float)
    ids = pa.chunked_array([pa.array([f"2603.{row:05d}" for row in range(len(final))], type=pa.string())])
    lowered = np.maximum(scores + SCORING.diversity_penalty, SCORING.final_floor)
    rows = np.array(vectors, dtype=np.float32).reshape(len(final), -1 if len(final) else 3)
    return Case(scores, lowered, rows, np.array(days or [1.0] * len(final)), ids)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few scores and directions, so that ties and repetitions are common."""
    size = draw(st.integers(0, 12))
    scores = st.sampled_from([-0.5, -0.4, 0.1, 0.3, 0.3 + SCORING.diversity_penalty, 0.5, 0.6, 1.5])
    final = draw(st.lists(scores, min_size=size, max_size=size))
    vectors = draw(st.lists(st.sampled_from(DIRECTIONS), min_size=size, max_size=size))
    days = draw(st.lists(st.sampled_from([math.nan, 1.0, 2.0]), min_size=size, max_size=size))
    drawn = case(final, vectors, days)
    return drawn.taken(np.array(draw(st.permutations(range(size))), dtype=np.int64))


@given(papers=cases(), places=st.integers(0, 14))
def test_the_choice_is_the_plain_greedy_one(papers: Case, places: int) -> None:
    ties = [
        (math.inf if math.isnan(day) else -day, name)
        for day, name in zip(papers.days, papers.ids.to_pylist(), strict=True)
    ]
    order, lost = greedy(
        papers.final.tolist(),
        papers.lowered.tolist(),
        papers.vectors.astype(float),
        ties,
        places=places,
        similarity=SCORING.diversity_similarity,
    )
    repeats = papers.repeating(places)
    assert repeats.tolist() == lost
    assert papers.order(repeats) == order


@given(seed=st.integers(0, 2**32 - 1), places=st.integers(1, 30), spread=st.sampled_from([0.0, 0.01, 0.3]))
def test_neither_the_order_of_the_papers_nor_their_number_of_equals_matters(
    seed: int, places: int, spread: float
) -> None:
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(8, 24))
    vectors = centres[chance.integers(0, 8, 400)] + 0.5 * chance.normal(size=(400, 24))
    papers = case(
        (0.5 + spread * chance.random(400)).tolist(), vectors, chance.integers(0, 3, 400).astype(float).tolist()
    )
    shuffle = chance.permutation(400)
    assert papers.taken(shuffle).repeating(places).tolist() == papers.repeating(places)[shuffle].tolist()


def test_a_long_run_of_repetitions_is_seen_through_to_its_end() -> None:
    """300 papers like the first lie between it and the next that says something new."""
    papers = case([0.9 - row / 10_000 for row in range(301)], [(1, 0, 0)] * 300 + [(0, 1, 0)])
    repeats = papers.repeating(2)
    assert papers.order(repeats)[:2] == [0, 300]
    assert repeats.tolist() == [False] + [True] * 299 + [False]


def test_what_repeats_two_chosen_papers_loses_only_once() -> None:
    papers = case([0.9, 0.8, 0.7, 0.1], [(24, 7, 0), (3, -4, 0), (4, 3, 0), (24, 7, 0)])
    assert papers.repeating(2).tolist() == [False, False, True, True]
    assert papers.order(papers.repeating(3))[2] == 2


def test_the_better_of_two_similar_papers_keeps_its_score_even_if_both_are_chosen() -> None:
    papers = case([0.8, 0.9, 0.75], [(1, 0, 0), (1, 0, 0), (0, 1, 0)])
    repeats = papers.repeating(3)
    assert repeats.tolist() == [True, False, False]
    assert papers.order(repeats) == [1, 2, 0]


def test_a_paper_without_a_vector_neither_loses_nor_makes_lose() -> None:
    assert not case([0.9, 0.8, 0.7], [(0, 0, 0)] * 3).repeating(3).any()


def test_a_cosine_of_exactly_the_threshold_counts() -> None:
    assert case([0.9, 0.8], [(1, 0, 0), (4, 3, 0)]).repeating(2).tolist() == [False, True]
    assert case([0.9, 0.8], [(1, 0, 0), (4, 3.00001, 0)]).repeating(2).tolist() == [False, False]


def test_the_deduction_is_part_of_the_clamped_score() -> None:
    dimensions = np.zeros((2, len(DIMENSIONS)))
    lowered = final_scores(
        dimensions,
        SCORING.weights["general"],
        bonus=np.zeros(2),
        penalty=np.array([0.0, -0.4]),
        diversity_penalty=np.full(2, SCORING.diversity_penalty),
        scoring=SCORING,
    )
    assert lowered.tolist() == [-0.2, -0.5]


@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([2, 3, 24, 384]), offset=st.integers(-30, 30))
def test_close_calls_are_decided_exactly_and_alike_in_any_company(seed: int, size: int, offset: int) -> None:
    """Pairs whose cosine is within a few float32 steps of the threshold."""
    chance = np.random.default_rng(seed)
    one = chance.normal(size=(20, size))
    away = chance.normal(size=(20, size))
    one /= np.linalg.norm(one, axis=1, keepdims=True)
    away -= (away * one).sum(axis=1, keepdims=True) * one
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    wanted = SCORING.diversity_similarity + offset * 1e-8
    a, b = one.astype(np.float32), (wanted * one + math.sqrt(1 - wanted**2) * away).astype(np.float32)
    together = alike(a, b, SCORING.diversity_similarity)
    for row in range(20):
        alone = alike(a[[row]], b[[row]], SCORING.diversity_similarity)
        assert alone[0, 0] == together[row, row] == alike(b, a, SCORING.diversity_similarity)[row, row]
        x, y = a[row].astype(float).tolist(), b[row].astype(float).tolist()
        dot, xx, yy = (math.fsum(p * q for p, q in zip(*pair, strict=True)) for pair in ((x, y), (x, x), (y, y)))
        exact = dot / math.sqrt(xx * yy)
        if abs(exact - SCORING.diversity_similarity) > 1e-14:
            assert alone[0, 0] == (exact >= SCORING.diversity_similarity)


@pytest.mark.parametrize("odd", [math.nan, 1e-30, 1e30])
def test_odd_vectors_do_no_harm(odd: float) -> None:
    vectors = np.array([[odd, 0.0], [1.0, 0.0], [1.0, 0.0]], dtype=np.float32)
    assert alike(vectors, vectors, 0.8)[1:, 1:].all()
    assert alike(vectors, vectors, 0.8)[0, 1] == (not math.isnan(odd))
