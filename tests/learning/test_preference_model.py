"""A model of what a reader likes: without ratings the formula, moved a little by each, out where it proves nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper_assets.learning.preference_model import kernel, nuisance, pulls, train
from paper_assets.learning.proof import NEEDED, NEEDED_EACH, Proof, prove
from paper_assets.learning.questions import MOST, questions
from paper_assets.ranking.preferences import log_odds, shifted, telling_words
from tests.learning.readers import reader


def test_without_ratings_nothing_is_moved() -> None:
    model = train(reader(0, seed=1))
    assert not model.vector.any() and not model.words and not model.dimensions.any()
    probability = np.array([0.0, 0.1, 0.7, 1.0])
    assert (shifted(probability, np.zeros(4)) == probability).all()


def test_one_rating_moves_papers_like_it_a_little_and_more_ratings_more() -> None:
    def moved(count: int) -> float:
        rated = reader(count, seed=1)
        return float(train(replace(rated, liked=np.ones(count, dtype=bool))).vector @ rated.vectors[0])

    assert 0 < moved(1) < moved(5)
    disliked = replace(reader(1, seed=1), liked=np.zeros(1, dtype=bool))
    assert train(disliked).vector @ disliked.vectors[0] < 0


def test_the_most_telling_words_are_those_of_the_liked_topic_and_of_the_other() -> None:
    up, down = telling_words(train(reader(40, seed=2)).words, 2)
    assert (set(up), set(down)) == ({"graph", "road"}, {"speech", "voice"})


@settings(max_examples=20, deadline=None)
@given(count=st.integers(1, 25), seed=st.integers(0, 1000), share=st.floats(0, 1))
def test_the_dual_is_the_maximum_of_the_posterior(count: int, seed: int, share: float) -> None:
    """The gradient of log likelihood plus log prior is 0 there: a = t - p (Rasmussen & Williams 2006, 3.4)."""
    rated = reader(count, seed=seed, lots=share)
    covariance = kernel(rated) + nuisance(rated)
    dual = pulls(covariance, rated.odds, rated.liked)
    probability = 1 / (1 + np.exp(-(rated.odds + covariance @ dual)))
    assert dual == pytest.approx(rated.liked - probability, abs=1e-5)


def test_the_same_ratings_give_the_same_model() -> None:
    assert train(reader(30, seed=3)).version == train(reader(30, seed=3)).version
    assert train(reader(30, seed=3)).version != train(reader(30, seed=3, likes="speech")).version


def test_a_reader_who_likes_one_of_two_topics_is_learned_from() -> None:
    found = prove(reader(30, seed=4), learning="auto")
    assert found.earned and found.gain > NEEDED and found.with_learning > found.without
    assert found.sentence.startswith("Your ratings take part")


def test_learning_stays_out_for_readers_who_rate_by_lot() -> None:
    """By chance a few pass for a while; the more they rate, the fewer."""
    series = [(seed, share) for seed in range(15) for share in (0.3, 0.5, 0.8)]
    for count in (60, 200):
        found = [prove(reader(count, seed=seed, lots=share), learning="auto") for seed, share in series]
        assert sum(each.earned for each in found) <= len(series) // 10, count
        assert all("stay out" in each.sentence for each in found if not each.earned)
        assert np.median([each.gain for each in found]) < -1


def test_learning_stays_out_where_it_is_switched_off_or_one_kind_of_word_is_missing() -> None:
    assert "off in the profile" in prove(reader(30, seed=4), learning="off").sentence
    assert not prove(reader(30, seed=4), learning="off").earned
    liked = replace(reader(30, seed=4), liked=np.ones(30, dtype=bool))
    assert f"at least {NEEDED_EACH} of each" in prove(liked, learning="auto").sentence
    assert "Nothing is learned" in Proof(worth=0, no=0).sentence


def test_no_rating_is_predicted_from_a_later_one() -> None:
    """The gain over the first ratings is the same whatever the later ones say."""
    rated = reader(40, seed=5)
    later = np.arange(40) >= 33  # the last block
    turned = replace(rated, liked=np.where(later, ~rated.liked, rated.liked))
    first = replace(
        rated,
        **{name: getattr(rated, name)[:33] for name in ("ids", "liked", "odds", "vectors", "dimensions")},
        words=rated.words[:33],
    )
    gains = [prove(each, learning="auto").gain for each in (first, rated, turned)]
    assert gains[1] > gains[0] > gains[2]


def test_certain_probabilities_can_be_moved_and_come_back() -> None:
    probability = np.array([1e-12, 0.3, 1 - 1e-12])
    assert shifted(shifted(probability, np.full(3, 2.0)), np.full(3, -2.0)) == pytest.approx(probability)
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()


def row(paper_id: str, probability: float, lane: str, *, shown: bool = False) -> dict[str, object]:
    return {"paper_id": paper_id, "semantic_relevance": probability, "learned": None, "lane": lane, "shown": shown}


def test_it_asks_about_the_least_sure_paper_of_each_interest_the_least_served_first() -> None:
    rows = [
        row("sure", 0.99, "graphs", shown=True),
        row("a", 0.6, "graphs"),
        row("b", 0.52, "graphs"),
        row("c", 0.3, "speech"),
        row("rated", 0.5, "speech"),
        row("hopeless", 0.001, "roads"),
    ]
    assert questions(rows, {"rated"}) == ["c", "b"]
    many = [row(f"{number}", 0.5, f"lane {number}") for number in range(9)]
    assert len(questions(many, ())) == MOST
