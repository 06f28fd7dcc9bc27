"""BM25 over any part of the texts is what bm25s gives when it is built over that part alone."""

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper_assets.settings import RetrievalConfig
from paper_assets.text.bm25 import bm25, query_words
from paper_assets.text.words import word_forms, words_in
from tests.counted_texts import counted, share

K1, B = RetrievalConfig().bm25_k1, RetrievalConfig().bm25_b
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
    found = share([texts[row] for row in rows], question)
    copies = np.array([int(row in rows) for row in range(len(texts))])
    words, index = query_words(question), counted(texts)
    holders = [
        (held[copies[held] > 0], times[copies[held] > 0])
        for held, times in index.holders_of([word.forms for word in words])
    ]
    among = bm25(words, holders, index.lengths, copies=copies, k1=1.2, b=0.4)
    np.testing.assert_array_equal(among[rows], found)
    assert found.max(initial=0.0) < 1.0
    if expected.any():
        np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), atol=1e-6)
    assert (found > 0).tolist() == (expected > 0).tolist()


def test_texts_without_words_shorten_the_mean_length_as_in_bm25s() -> None:
    part = [[], [], ["graph"], ["graph", "graph"]]
    plain = bm25s.BM25(k1=1.2, b=0.4, method="lucene")
    plain.index(part, show_progress=False)
    expected = plain.get_scores(["graph"])
    found = share([" ".join(words) for words in part], "graph")
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), atol=1e-6)


def test_a_text_of_mean_length_with_every_asked_word_once_has_a_known_share_and_saying_more_still_counts() -> None:
    scores = share(["graph tree", "graph loop", "bee bee"], "graph tree")
    assert scores[0] == pytest.approx(1 / 2.2)
    often = share(["graph tree graph tree", "graph tree bee loop", "bee bee bee loop"], "graph tree")
    assert often[0] > often[1] > 0
    assert 0 < scores[1] < scores[0]
    assert scores[2] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Graph-based RE-RANKING, 2nd ed.", ["graph", "based", "re", "ranking", "2nd", "ed"]),
        ("Poincaré naïveté — ÉTUDE", ["poincare", "naivete", "etude"]),
        ("Zero-shot GPT_4, (naïve) Å β-VAE\u00a0C++!", ["zero", "shot", "gpt", "4", "naive", "a", "β", "vae", "c"]),
        ("Zero-shot GPT_4, (naive) C++!", ["zero", "shot", "gpt", "4", "naive", "c"]),
        ("", []),
        ("...", []),
    ],
)
def test_words_are_letters_and_digits_without_case_and_accents(text: str, words: list[str]) -> None:
    assert words_in(text) == words
    assert sorted(counted([text]).beginning("")) == sorted(set(words))


@given(st.lists(st.text(), max_size=5))
def test_counting_finds_the_words_that_splitting_finds(texts: list[str]) -> None:
    index = counted(texts)
    for row, text in enumerate(texts):
        words = words_in(text)
        assert index.lengths[row] == len(words)
        for word in words:
            [(rows, times)] = index.holders_of([[word]])
            assert times[rows == row].tolist() == [words.count(word)]


def test_a_plural_is_the_same_word() -> None:
    plurals = {"study": "studies", "class": "classes", "box": "boxes", "phase": "phases", "graph": "graphs"}
    for word, plural in plurals.items():
        assert plural in word_forms(word) and word in word_forms(plural)
        assert share([plural, "other"], word)[0] == share([word, "other"], plural)[0] > 0
    assert word_forms("dynamics") == ["dynamics"]
    assert [word.often for word in query_words("A phase and two phases")] == [2, 1]


def test_texts_in_any_script_share_one_index() -> None:
    texts = ["étude of graphs", "plain graph", "그래프 검색", ""]
    assert (share(texts, "Etude") > 0).tolist() == [True, False, False, False]
    assert (share(texts, "graph") > 0).tolist() == [True, True, False, False]
    assert (share(texts, "검색") > 0).tolist() == [False, False, True, False]


def test_small_words_ask_for_nothing() -> None:
    assert [word.forms[0] for word in query_words("What is the role of graphs in it?")] == ["role", "graphs"]
    assert not share(["the of it", "graph"], "what is it").any()
    assert not share(["they should", "graph"], "should they").any(), "a question's function words"
    vitamins = share(["vitamin d", "vitamin c"], "Is it vitamin C?")
    assert vitamins[1] > vitamins[0] > 0, "a letter may mean much"


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=12),
    asked=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
    drawn=st.data(),
)
def test_the_order_of_the_texts_changes_no_score(texts: list[str], asked: str, drawn: st.DataObject) -> None:
    order = drawn.draw(st.permutations(range(len(texts))))
    np.testing.assert_array_equal(share([texts[at] for at in order], asked), share(texts, asked)[order])


def test_an_abbreviation_beside_a_plural_is_another_word() -> None:
    assert [word.forms[0] for word in query_words("phases PHA phase")] == ["phases", "pha"]
    assert (share(["Retrieval of phases", "A PHA", "nothing"], "PHA") > 0).tolist() == [False, True, False]


def test_no_texts_have_no_scores_and_copies_count_as_texts() -> None:
    assert share([], "graph").shape == (0,)
    words, index = query_words("graph bee"), counted(["graph tree", "bee"])
    holders = index.holders_of([word.forms for word in words])
    scores = bm25(words, holders, index.lengths, copies=np.array([3, 1]), k1=K1, b=B)
    np.testing.assert_array_equal(scores, share(["graph tree", "bee", "graph tree", "graph tree"], "graph bee")[:2])


def test_many_texts_are_counted_as_a_few_are() -> None:
    few = ["graph tree", "bee", "étude of a graph"]
    many = share(few * 7_000, "graph étude")
    assert len(set(many[0::3])) == len(set(many[1::3])) == len(set(many[2::3])) == 1
    assert (np.argsort(many[:3]) == np.argsort(share(few, "graph étude"))).all()
