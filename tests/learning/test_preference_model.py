"""Test the preference model: the formula without ratings, changed by each rating, weighted by the evidence."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.learning.preference_model import (
    PRIOR,
    PRIORS,
    SHARPNESS,
    Evidence,
    evidence_weight,
    kernels,
    nuisance_covariance,
    pulls,
    recalibrated,
    train,
    weigh,
)
from paper_assets.ranking.preferences import log_odds, shifted, strongest_stems
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
    up, down = strongest_stems(train(reader(40, seed=2)).words, 2)
    assert (set(up), set(down)) == ({"graph", "road"}, {"speech", "voice"})


@given(count=st.integers(1, 25), seed=st.integers(0, 1000), share=st.floats(0, 1))
def test_the_dual_is_the_maximum_of_the_posterior(count: int, seed: int, share: float) -> None:
    """The gradient of log likelihood plus log prior is 0 there: a = t - p (Rasmussen & Williams 2006, 3.4)."""
    rated = reader(count, seed=seed, lots=share)
    for kernel, covariance in zip(kernels(rated), rated.covariances, strict=True):
        assert covariance == pytest.approx(kernel + nuisance_covariance(rated))
        dual = pulls(covariance, rated.odds, rated.liked)
        probability = 1 / (1 + np.exp(-(rated.odds + covariance @ dual)))
        assert dual == pytest.approx(rated.liked - probability, abs=1e-7)


def test_a_guess_to_begin_with_changes_the_time_and_not_the_result() -> None:
    rated = reader(30, seed=4)
    covariance, first = rated.covariances[2], slice(0, 20)
    earlier = pulls(covariance[first, first], rated.odds[first], rated.liked[first][first])
    guesses = np.zeros(30), np.concatenate([earlier, np.zeros(10)])
    found = [pulls(covariance, rated.odds, rated.liked, start=each) for each in guesses]
    assert found[0] == pytest.approx(found[1], abs=1e-7)


@given(count=st.integers(1, 25), seed=st.integers(0, 1000), share=st.floats(0, 1))
def test_bias_and_slope_alone_are_the_dual_with_their_covariance(count: int, seed: int, share: float) -> None:
    rated = reader(count + 5, seed=seed, lots=share)
    covariance, before, later = nuisance_covariance(rated), slice(0, count), slice(count, None)
    dual = pulls(covariance[before, before], rated.odds[before], rated.liked[before][before])
    found = recalibrated(rated.odds[before], rated.liked[before][before], later=rated.odds[later])
    assert found == pytest.approx(rated.odds[later] + covariance[later, before] @ dual, abs=1e-4)


def test_the_same_ratings_give_the_same_model() -> None:
    assert train(reader(30, seed=3)).version == train(reader(30, seed=3)).version
    assert train(reader(30, seed=3)).version != train(reader(30, seed=3, likes="speech")).version


def test_the_ratings_of_a_consistent_reader_count_more_with_each_few() -> None:
    shares = [weigh(reader(count, seed=4), learning="auto").share for count in (3, 10, 30)]
    assert PRIOR / 10 < shares[0] < PRIOR / 3 < 0.6 < shares[1] < shares[2] and shares[2] > 0.95
    evidence = weigh(reader(30, seed=4), learning="auto")
    assert evidence.with_learning >= evidence.without and evidence.gain > 3
    assert evidence.sentence.startswith(f"Your ratings count {100 * evidence.share:.0f} %: ")
    assert "better" in evidence.sentence


def test_the_average_moves_papers_by_the_average_of_the_models_shifts() -> None:
    rated = reader(30, seed=4)
    alone = [train(rated, each) for each in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    shifts = [float(np.linalg.norm(each.vector)) for each in alone]
    assert shifts[0] < shifts[1] < shifts[2], "from cautious to bold"
    average = train(rated, (0.5, 0.3, 0.2))
    assert average.vector == pytest.approx(np.array([0.5, 0.3, 0.2]) @ np.array([each.vector for each in alone]))
    assert average.words["graph"] == pytest.approx(np.dot([0.5, 0.3, 0.2], [each.words["graph"] for each in alone]))


def test_a_consistent_reader_strengthens_the_bold_models_and_a_random_one_the_cautious() -> None:
    before = np.array(PRIORS) / PRIOR
    consistent = weigh(reader(30, seed=4), learning="auto").strengths
    by_chance = weigh(reader(60, seed=1, lots=0.5), learning="auto").strengths
    assert sum(consistent) == pytest.approx(1) and consistent[0] < before[0] < by_chance[0]


def test_the_ratings_of_a_random_reader_soon_count_almost_nothing() -> None:
    series = [(seed, share) for seed in range(6) for share in (0.3, 0.5, 0.8)]
    shares = {
        count: [weigh(reader(count, seed=seed, lots=share), learning="auto").share for seed, share in series]
        for count in (3, 30, 60, 200)
    }
    means = [float(np.mean(shares[count])) for count in (3, 30, 60, 200)]
    assert means[0] < 0.5 and max(means[1:]) < 0.3 and means[-1] < 0.07
    assert weigh(reader(200, seed=1, lots=0.5), learning="auto").sentence.endswith("worse than the profile alone.")


def test_the_share_has_no_threshold() -> None:
    """One more nat of evidence multiplies the odds by e, wherever they are."""
    few = np.array([Evidence(worth=1, no=1, gain=gain).share for gain in np.linspace(-3, 3, 7)])
    shares = few / evidence_weight(2)
    odds = shares / (1 - shares)
    assert odds[1:] / odds[:-1] == pytest.approx(np.exp(SHARPNESS))


def test_ratings_of_one_kind_alone_teach() -> None:
    """Eight papers on graphs rated "not for me" move graphs down against speech, and the other way round."""
    both = reader(60, seed=6)
    graphs = both.vectors[:, 0] > both.vectors[:, 1]
    eight = np.flatnonzero(graphs)[:8]
    one_topic = replace(
        both,
        **{name: getattr(both, name)[eight] for name in ("odds", "vectors", "dimensions")},
        ids=tuple(both.ids[at] for at in eight),
        words=both.words[eight],
        liked=np.zeros(8, dtype=bool),
    )
    for liked in (False, True):
        rated = replace(one_topic, liked=np.full(8, liked))
        assert weigh(rated, learning="auto").share > 0.3
        shift = both.vectors @ train(rated).vector
        assert (shift[graphs].mean() < shift[~graphs].mean()) != liked


def test_eight_not_for_me_and_two_worth_reading_teach() -> None:
    both = reader(60, seed=6)
    graphs = both.vectors[:, 0] > both.vectors[:, 1]
    ten = np.concatenate([np.flatnonzero(graphs)[:8], np.flatnonzero(~graphs)[:2]])
    rated = replace(
        both,
        **{name: getattr(both, name)[ten] for name in ("odds", "vectors", "dimensions")},
        ids=tuple(both.ids[at] for at in ten),
        words=both.words[ten],
        liked=~graphs[ten],
    )
    shift = both.vectors @ train(rated).vector
    assert weigh(rated, learning="auto").share > 0.5 and shift[graphs].mean() < 0 < shift[~graphs].mean()


def test_ratings_that_count_much_without_evidence_are_not_called_as_good_as_none() -> None:
    evidence = Evidence(worth=14, no=4, gain=0.1)
    assert evidence.share > 0.8
    assert evidence.sentence.endswith("later ratings neither confirmed nor contradicted what earlier ones taught.")


def test_learning_counts_nothing_if_it_is_switched_off_or_nothing_is_rated() -> None:
    off = weigh(reader(30, seed=4), learning="off")
    assert "off in the profile" in off.sentence and off.share == 0
    nothing = Evidence(worth=0, no=0)
    assert "Nothing is learned" in nothing.sentence and nothing.share == 0


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
    gains = [weigh(each, learning="auto").gain for each in (first, rated, turned)]
    assert gains[1] > gains[0] > gains[2]


def test_certain_probabilities_can_be_moved_and_come_back() -> None:
    probability = np.array([1e-12, 0.3, 1 - 1e-12])
    assert shifted(shifted(probability, np.full(3, 2.0)), np.full(3, -2.0)) == pytest.approx(probability)
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()


def test_ratings_of_other_papers_on_its_subject_hardly_lower_a_liked_paper() -> None:
    disliked, graphs = reader(10, seed=2, likes="speech"), np.array([[1.0, 0.0, 0.0]], dtype=np.float32)
    alone, both = train(disliked), train(replace(disliked, library=graphs))
    assert (graphs @ alone.vector).item() < -2.0
    assert -0.15 < (graphs @ both.vector).item() <= 0.0
    speech = np.array([0.0, 1.0, 0.0])
    assert both.vector @ speech == pytest.approx(alone.vector @ speech, abs=0.05), "and nothing else is lost"
    graphs_liked = replace(reader(10, seed=2), library=graphs)
    assert train(graphs_liked).version == train(reader(10, seed=2)).version, (
        "a liked paper that is raised changes nothing"
    )
