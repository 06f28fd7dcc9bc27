import bm25s
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.ranking.lexical import lexical_relevance, words_in, words_of_papers
from tests.ranking.invented import texts
from tests.ranking.plain_twin import bm25

K1 = 1.2
some_texts = st.lists(texts, min_size=1, max_size=8)


def relevance(papers: list[str], *asked: str) -> np.ndarray:
    return lexical_relevance([words_in(paper) for paper in papers], asked, k1=K1)


def test_words_are_letters_and_digits_without_case_and_accents() -> None:
    assert " ".join(words_in("Zero-shot GPT_4, (naïve) Å β-VAE\u00a0C++!")) == "zero shot gpt 4 naive a β vae c"
    assert " ".join(words_in("Zero-shot GPT_4, (naive) C++!")) == "zero shot gpt 4 naive c"


def test_a_paper_with_every_asked_word_once_has_all_there_is() -> None:
    papers = ["a graph of networks", "pruning networks", "graphs", "nothing"]
    scores = relevance(papers, "Graph network")[:, 0]
    assert scores[0] == 1.0
    assert 0 < scores[2] < 1
    assert scores[3] == 0


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    scores = relevance(["graph", "model", "model", "model"], "graph model")[:, 0]
    assert scores[0] > scores[1] == scores[2]


def test_a_word_asked_three_times_counts_three_times() -> None:
    scores = relevance(["graph", "model"], "graph graph graph model")[:, 0]
    assert scores == pytest.approx([0.75, 0.25])


def test_saying_more_never_costs_a_paper_anything() -> None:
    short, long = relevance(["graph model", "graph model and a hundred other words " * 20], "graph model")[:, 0]
    assert short == 1.0 == long


def test_a_text_without_a_word_to_look_for_says_nothing() -> None:
    found = relevance(["graph", "model"], "C++ of the", "graph", "")
    assert np.isnan(found[:, [0, 2]]).all()
    assert found[:, 1].tolist() == [1.0, 0.0]


def test_no_papers_and_no_texts_are_no_trouble() -> None:
    assert relevance([], "graph").shape == (0, 1)
    assert relevance(["graph"]).shape == (1, 0)


def test_it_is_the_bm25_of_bm25s_without_length_normalisation() -> None:
    chance = np.random.default_rng(3)
    words = np.array(["graph", "model", "prune", "robot", "speech", "kernel", "token", "cache"])
    papers = [list(chance.choice(words, size=size)) for size in chance.integers(1, 12, size=40)]
    index = bm25s.BM25(method="lucene", k1=K1, b=0.0, dtype="float64")
    index.index(papers, show_progress=False)
    theirs = index.get_scores(["graph", "graph", "token", "speech"]) * (K1 + 1)
    ours = lexical_relevance(papers, ["graph graph token speech"], k1=K1)[:, 0]
    below = ours < 1
    ratio = ours[below & (theirs > 0)] / theirs[below & (theirs > 0)]
    assert len(ratio) > 20
    assert np.allclose(ratio, ratio[0], rtol=1e-12)
    assert ((ours == 0) == (theirs == 0)).all()
    assert (theirs[~below] * ratio[0] >= 1 - 1e-12).all()


@given(papers=some_texts, asked=texts)
def test_it_agrees_with_the_plain_one(papers: list[str], asked: str) -> None:
    plain = bm25(papers, asked)
    ours = relevance(papers, asked)[:, 0]
    assert np.isnan(ours).all() if plain is None else ours == pytest.approx(plain, abs=1e-12)


@given(papers=some_texts, asked=some_texts, data=st.data())
def test_the_order_of_the_papers_changes_no_bit(papers: list[str], asked: list[str], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(papers))))
    shuffled = relevance([papers[at] for at in order], *asked)
    assert np.array_equal(shuffled, relevance(papers, *asked)[order], equal_nan=True)


@given(papers=some_texts, asked=texts, more=texts)
def test_adding_words_to_a_paper_never_lowers_it(papers: list[str], asked: str, more: str) -> None:
    before = relevance(papers, asked)[0, 0]
    after = relevance([f"{papers[0]} {more}", *papers[1:]], asked)[0, 0]
    assert np.isnan(before) or 0 <= before <= after + 1e-12 <= 1 + 1e-12


def test_words_of_a_table_come_paper_by_paper() -> None:
    column = pa.chunked_array([["One paper", "naïve"], [], ["third"]])
    assert list(words_of_papers(column)) == [["one", "paper"], ["naive"], ["third"]]
