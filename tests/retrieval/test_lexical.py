"""BM25 over any part of the texts is what bm25s gives when it is built over that part alone."""

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper_assets.retrieval.lexical import bm25, index_words, words_asked, words_in

WORDS = ("graph", "tree", "loop", "sparse", "bee")


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=12),
    question=st.lists(st.sampled_from([*WORDS, "unheard"]), min_size=1, max_size=5).map(" ".join),
    drawn=st.data(),
)
@settings(max_examples=60)
def test_scores_are_in_proportion_to_those_of_bm25s_built_over_these_rows_alone(
    texts: list[str], question: str, drawn: st.DataObject
) -> None:
    rows = np.array(sorted(drawn.draw(st.sets(st.sampled_from(range(len(texts))), min_size=1))))
    part = [words_in(texts[row]) for row in rows]
    plain = bm25s.BM25(k1=1.2, b=0.4, method="lucene")
    known = {word for words in part for word in words}
    if not known:
        return
    plain.index(part, show_progress=False)
    asked = [word for word in words_in(question) if word in known]
    expected = plain.get_scores(asked) if asked else np.zeros(len(rows))
    found = bm25(index_words(texts), question, rows=rows, k1=1.2, b=0.4)
    assert found.max(initial=0.0) < 1.0
    if expected.any():
        np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), atol=1e-6)
    assert (found > 0).tolist() == (expected > 0).tolist()


def test_a_text_of_mean_length_with_every_asked_word_once_has_a_known_share_and_saying_more_still_counts() -> None:
    scores = bm25(index_words(["graph tree", "graph loop", "bee bee"]), "graph tree", k1=1.2)
    assert scores[0] == pytest.approx(1 / 2.2)
    often = bm25(index_words(["graph tree graph tree", "graph tree bee loop", "bee bee bee loop"]), "graph tree")
    assert often[0] > often[1] > 0
    assert 0 < scores[1] < scores[0]
    assert scores[2] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Graph-based RE-RANKING, 2nd ed.", ["graph", "based", "re", "ranking", "2nd", "ed"]),
        ("Poincaré naïveté — ÉTUDE", ["poincare", "naivete", "etude"]),
        ("studies classes boxes analysis corpus less", ["study", "class", "box", "analysis", "corpus", "less"]),
        ("", []),
        ("...", []),
    ],
)
def test_words_are_compared_without_case_accents_and_plural(text: str, words: list[str]) -> None:
    assert words_in(text) == words


def test_texts_in_any_script_lie_in_one_index() -> None:
    index = index_words(["étude of graphs", "plain graph", "그래프 검색", ""])
    assert (bm25(index, "Etude") > 0).tolist() == [True, False, False, False]
    assert (bm25(index, "graph") > 0).tolist() == [True, True, False, False]
    assert (bm25(index, "검색") > 0).tolist() == [False, False, True, False]


def test_small_words_ask_for_nothing() -> None:
    assert words_asked("What is the role of graphs in it?") == ["role", "graph"]
    assert not bm25(index_words(["the of it", "graph"]), "what is it").any()


def test_no_texts_and_no_rows_have_no_scores() -> None:
    assert bm25(index_words([]), "graph").shape == (0,)
    assert bm25(index_words(["graph"]), "graph", rows=np.array([], dtype=np.intp)).shape == (0,)


def test_many_texts_are_counted_as_a_few_are() -> None:
    few = ["graph tree", "bee", "étude of a graph"]
    many = index_words(few * 7_000)
    scores = bm25(many, "graph étude", rows=np.array([20_997, 20_998, 20_999]))
    np.testing.assert_array_equal(scores, bm25(index_words(few), "graph étude"))
