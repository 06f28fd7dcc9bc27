"""Cached texts equal texts read again, whatever was cached before, dropped, or is read at the same time."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.ranking.calibration import standard_calibration
from paper_assets.ranking.term_matching import tfidf_cosines_and_usual, unit_tfidf
from paper_assets.text.forward_index import ForwardIndex, IndexedTexts
from paper_assets.text.words import normal_form, words_in
from tests.counted_texts import counted

WORDS = [
    "graph",
    "Graphs",
    "graphing",
    "tree",
    "x_1",
    "C++",
    "naïve",
    "그래프",
    "robotics",
    "a",
    "zero-shot",
    "\0",
    "é",
]
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join) | st.text(max_size=12)
days = st.lists(st.lists(texts, max_size=6), min_size=1, max_size=5)
BACKGROUND = standard_calibration().background


def column(day_texts: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(day_texts, pa.string())])


@given(days=days, most=st.integers(1, 12))
def test_cached_texts_have_the_same_words_as_texts_read_again(days: list[list[str]], most: int) -> None:
    index = ForwardIndex(most)
    views = [index.of(column(day_texts)) for day_texts in days]
    for day_texts, view in zip(days, views, strict=True):  # asked after later days have come and earlier ones have gone
        anew = counted(day_texts)
        assert view.normal(np.arange(len(day_texts))) == [normal_form(text.replace("\0", " ")) for text in day_texts]
        words = [*anew.beginning(""), "unheard"]
        for (rows, times), word in zip(view.holders_of([[word] for word in words]), words, strict=True):
            [held] = anew.holders_of([[word]])
            assert [part.tolist() for part in held] == [rows.tolist(), times.tolist()]
        ((rows, times),) = view.holders_of([words])
        lengths = np.zeros(len(day_texts), dtype=int)
        lengths[rows] = times
        assert lengths.tolist() == [len(words_in(text)) for text in day_texts]
        start = view.beginning("gr")
        assert set(start) >= {word for word in words if word.startswith("gr")}


@given(days=days, most=st.integers(1, 12), asked=st.lists(texts, min_size=1, max_size=3))
def test_days_that_come_and_go_change_no_bit_of_any_score(days: list[list[str]], most: int, asked: list[str]) -> None:
    index = ForwardIndex(most)
    for day_texts in days:
        view, anew = index.of(column(day_texts)), counted(day_texts)
        one, other = (tfidf_cosines_and_usual(each, asked, background=BACKGROUND)[0] for each in (view, anew))
        np.testing.assert_array_equal(one, other)
        (held, stems), (held_anew, stems_anew) = (unit_tfidf(words, background=BACKGROUND) for words in (view, anew))
        assert stems == stems_anew
        np.testing.assert_array_equal(held.toarray(), held_anew.toarray())


def test_a_text_is_read_once_however_often_it_is_asked_for() -> None:
    index = ForwardIndex()
    first, again = index.of(column(["a graph", "a graph", "a tree"])), index.of(column(["a tree", "a graph"]))
    assert again.texts[0] is first.texts[2]
    assert again.texts[1] is first.texts[0] is first.texts[1]


def test_threads_that_read_at_once_get_their_own_words() -> None:
    index = ForwardIndex(500)
    day_texts = [[f"thread{number} text{row} graph" for row in range(100)] for number in range(20)]

    def read(mine: list[str]) -> IndexedTexts:
        return index.of(column(mine))

    with ThreadPoolExecutor(8) as threads:
        views = list(threads.map(read, day_texts))
    for number, view in enumerate(views):
        (whole, one) = view.holders_of([[f"thread{number}"], ["text7"]])
        assert (len(whole[0]), one[0].tolist()) == (100, [7])
        assert view.spellings({"graph"}) == {"graph": ["graph"]}
