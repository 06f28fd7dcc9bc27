from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.ranking.calibration import standard_calibration
from paper_assets.ranking.term_matching import Background, tfidf_cosines, word_shares
from paper_assets.text.bm25 import index_words
from tests.ranking import plain_relevance
from tests.ranking.invented import texts

K1 = 1.2
NOTHING_KNOWN = Background(papers=1, holders={}, weight=0.0)
BACKGROUND = standard_calibration().background
some_texts = st.lists(texts, min_size=1, max_size=8)


def shares(papers: list[str], *asked: str, background: Background = NOTHING_KNOWN) -> np.ndarray:
    return word_shares(index_words(papers), asked, background=background, k1=K1)


def likeness(papers: list[str], *liked: str, background: Background = BACKGROUND) -> np.ndarray:
    return tfidf_cosines(index_words(papers), liked, background=background)


def test_a_paper_with_every_asked_word_once_has_all_there_is() -> None:
    scores = shares(["a graph of networks", "pruning networks", "graphs", "nothing"], "Graph network")[:, 0]
    assert scores[0] == 1.0
    assert 0 < scores[2] < 1
    assert scores[3] == 0


def test_words_of_one_family_are_the_same_word() -> None:
    assert shares(["robotic pruners", "x"], "robots pruning")[:, 0].tolist() == [1.0, 0.0]


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    scores = shares(["graph", "model", "model", "model"], "graph model")[:, 0]
    assert scores[0] > scores[1] == scores[2]


def test_among_few_papers_the_background_says_which_word_is_rare() -> None:
    background = Background(papers=100, holders={"model": 80, "graph": 5}, weight=1000)
    scores = shares(["graph", "model"], "graph model", background=background)[:, 0]
    assert scores[0] > 0.9
    assert scores[1] < 0.1


def test_a_word_asked_three_times_counts_three_times() -> None:
    assert shares(["graph", "model"], "graph graph graph model")[:, 0] == pytest.approx([0.75, 0.25])


def test_saying_more_never_costs_a_paper_anything() -> None:
    short, long = shares(["graph model", "graph model and a hundred other words " * 20], "graph model")[:, 0]
    assert short == 1.0 == long


def test_a_text_without_a_word_to_look_for_says_nothing() -> None:
    found = shares(["graph", "model"], "C++ of the", "graph", "")
    assert np.isnan(found[:, [0, 2]]).all()
    assert found[:, 1].tolist() == [1.0, 0.0]
    assert likeness(["graph"], "C++ of the").tolist() == [[0.0]]


def test_no_papers_and_no_texts_are_no_trouble() -> None:
    assert shares([], "graph").shape == likeness([], "graph").shape == (0, 1)
    assert shares(["graph"]).shape == likeness(["graph"]).shape == (1, 0)


@pytest.mark.parametrize("other", ["PHA", "phases", "case", "ca", "nets", ""])
def test_what_an_interest_finds_does_not_depend_on_the_others_or_their_order(other: str) -> None:
    papers = ["phase retrieval in two phases", "phas and PHA", "the case of CA", "a net of nets"]
    for interest in ("phase retrieval", "case studies", "neural nets"):
        alone = shares(papers, interest)[:, 0]
        assert np.array_equal(shares(papers, interest, other)[:, 0], alone)
        assert np.array_equal(shares(papers, other, interest)[:, 1], alone)


def test_it_is_the_bm25_of_bm25s_without_length_normalisation_with_the_idf_squared() -> None:
    chance = np.random.default_rng(3)
    words = np.array(["graph", "token", "prune", "robot", "speech", "kernel"])  # no two of one family
    papers = [list(chance.choice(words, size=size)) for size in chance.integers(1, 12, size=40)]
    stems = [[plain_relevance.stem(word) for word in paper] for paper in papers]
    index = bm25s.BM25(method="lucene", k1=K1, b=0.0, dtype="float64")
    index.index(stems, show_progress=False)
    asked = Counter({"token": 2, "speech": 1})
    expected, weights = np.zeros(len(papers)), 0.0
    for word, often in asked.items():
        held = sum(word in paper for paper in stems)
        idf = np.log1p((len(papers) - held + 0.5) / (held + 0.5))
        expected += often * idf * index.get_scores([word]) * (K1 + 1)
        weights += often * idf**2
    ours = shares([" ".join(paper) for paper in papers], "token tokens speech")[:, 0]
    assert ours == pytest.approx(np.minimum(expected / weights, 1.0), abs=1e-12)


@given(papers=some_texts, asked=some_texts)
def test_shares_agree_with_the_plain_ones(papers: list[str], asked: list[str]) -> None:
    plain = [plain_relevance.shares([Counter(plain_relevance.stems(one)) for one in papers], text) for text in asked]
    ours = shares(papers, *asked, background=BACKGROUND).T
    for found, expected in zip(ours, plain, strict=True):
        assert np.isnan(found).all() if expected is None else found == pytest.approx(expected, abs=1e-12)


@given(papers=some_texts, liked=some_texts)
def test_likeness_agrees_with_the_plain_one(papers: list[str], liked: list[str]) -> None:
    plain = [plain_relevance.tfidf([Counter(plain_relevance.stems(one)) for one in papers], text) for text in liked]
    assert pytest.approx(np.array(plain), abs=1e-12) == likeness(papers, *liked).T


@given(papers=some_texts, asked=some_texts, data=st.data())
def test_the_order_of_the_papers_changes_no_bit(papers: list[str], asked: list[str], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(papers))))
    for measure in (shares, likeness):
        shuffled = measure([papers[at] for at in order], *asked, background=BACKGROUND)
        assert np.array_equal(shuffled, measure(papers, *asked, background=BACKGROUND)[order], equal_nan=True)


@given(papers=some_texts, asked=texts, more=texts)
def test_adding_words_to_a_paper_never_lowers_its_share(papers: list[str], asked: str, more: str) -> None:
    before = shares(papers, asked)[0, 0]
    after = shares([f"{papers[0]} {more}", *papers[1:]], asked)[0, 0]
    assert np.isnan(before) or 0 <= before <= after + 1e-12 <= 1 + 1e-12
