from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.ranking.calibration import standard_calibration
from paper_assets.ranking.term_matching import (
    Background,
    PaperWords,
    Term,
    matched_terms,
    paper_words,
    similarity_by_words,
    term_scores,
    terms_of,
    tfidf_cosines_and_usual,
)
from paper_assets.text.words import normal_form, spellings
from tests.counted_texts import counted
from tests.ranking import plain_relevance
from tests.ranking.invented import texts

NOTHING_KNOWN = Background(papers=1, holders={}, words={}, weight=0.0)
BACKGROUND = standard_calibration().background
some_texts = st.lists(texts, min_size=1, max_size=8)


Paper = tuple[str, str]
some_papers = st.lists(st.tuples(texts, texts), min_size=1, max_size=8)


def scores(papers: Sequence[Paper | str], *asked: str, background: Background = NOTHING_KNOWN) -> np.ndarray:
    """Papers are (title, abstract), or an abstract without title."""
    fields = [("", paper) if isinstance(paper, str) else paper for paper in papers]
    table = pa.table(
        {
            "title": pa.array([title for title, _ in fields], pa.string()),
            "abstract": pa.array([abstract for _, abstract in fields], pa.string()),
        }
    )
    return term_scores(paper_words(table), asked, background=background)


def words_of(papers: list[str]) -> PaperWords:
    return paper_words(pa.table({"title": pa.array([""] * len(papers)), "abstract": pa.array(papers, pa.string())}))


def likeness(papers: list[str], *liked: str, background: Background = BACKGROUND) -> np.ndarray:
    return tfidf_cosines_and_usual(counted(papers), liked, background=background)[0]


def test_a_plural_is_the_same_word_and_a_derived_form_counts_less_the_more_papers_hold_one() -> None:
    papers = ["an optimizer", "optimizers", "we optimize it", "to optimize", "a tokenizer"]
    optimizer, plural, *derived, other = scores(papers, "optimizers")[:, 0]
    assert optimizer == plural > 4 * derived[0] > 0
    assert derived[0] == derived[1] and other == 0
    rare = scores([*papers[:3], "tokens", "tokens"], "optimizers")[:, 0]
    assert rare[2] / rare[0] > derived[0] / optimizer


def test_a_derived_form_adds_nothing_to_the_word_itself_and_counts_more_in_the_title() -> None:
    word, both, abstract, title = scores(
        [("x", "reasoning"), ("x", "reasoning that reasons"), ("x", "it reasons"), ("It reasons", "x")], "reasoning"
    )[:, 0]
    assert word == both > title > abstract > 0


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("quantisation", "quantization"),
        ("optimisers", "optimizers"),
        ("behaviour cloning", "behavior cloning"),
        ("analysing labelled tumours", "analyzing labeled tumors"),
        ("defences", "defenses"),
        ("paediatric imaging", "pediatric imaging"),
    ],
)
def test_british_and_american_spelling_are_the_same_word(british: str, american: str) -> None:
    found = scores([f"On {british} here", f"On {american} here"], british, american, f"{british}; {american}")
    assert (found > 0).all()
    np.testing.assert_array_equal(found[:, 0], found[0, 0])
    np.testing.assert_array_equal(found, found[:, :1].repeat(3, axis=1))
    assert matched_terms(british, american, "")[0]


@pytest.mark.parametrize("word", ["catalogue", "catalogued", "cataloged", "colour", "imaging", "tokeniser", "noise"])
def test_a_spelling_belongs_to_one_word_alone(word: str) -> None:
    assert all(set(spellings(other)) == set(spellings(word)) for other in spellings(word))


@pytest.mark.parametrize(("one", "many"), [("cache", "caches"), ("disease", "diseases"), ("batch", "batches")])
def test_regular_plurals_in_es_are_the_same_word(one: str, many: str) -> None:
    found = scores([f"On the {one} here", f"On the {many} here"], one, many)
    np.testing.assert_array_equal(found, found[0, 0])
    assert found[0, 0] > 0


def test_words_side_by_side_count_for_more_than_words_apart() -> None:
    together, hyphen, apart = scores(
        ["a state space model", "a state-space model", "a model of the space state of a state"], "state space models"
    )[:, 0]
    assert together == hyphen > apart > 0


def test_a_word_of_the_title_counts_for_more() -> None:
    title, abstract = scores([("optimal transport", "words"), ("words", "optimal transport")], "optimal transport")
    assert title > abstract > 0


def test_a_pair_never_reaches_from_title_to_abstract_or_across_a_mark_of_the_interest() -> None:
    across, within = scores([("a state", "space"), ("the state space", "")], "state space")[:, 0]
    assert across < within
    assert terms_of("agents; planning, of robots") == [Term(first=word) for word in ("agent", "planning", "robot")]


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    found = scores(["graph", "model", "model", "model"], "graph and model")[:, 0]
    assert found[0] > found[1] == found[2]


def test_a_common_word_that_is_all_a_reader_names_counts_but_not_so_beside_others() -> None:
    paper = ("Interactive benchmarks", "a benchmark of many words " * 25)
    alone, beside = scores([paper], "benchmarks", "optimal transport benchmarks", background=BACKGROUND)[0]
    assert alone > 5 * beside > 0


def test_among_few_papers_the_background_says_which_word_is_rare() -> None:
    background = Background(papers=100, holders={}, words={"model": 80, "graph": 5}, weight=1000)
    rare, common = scores(["graph", "model"], "graph and model", background=background)[:, 0]
    assert rare > 5 * common


def test_a_long_paper_needs_more_of_the_words() -> None:
    short, long = scores(["graph" + " filler" * 100, "graph" + " filler" * 300], "graph")[:, 0]
    assert short > long > 0
    assert np.ptp(scores(["graph", "graph" + " filler" * 40], "graph")) == 0  # an abstract has fifty words


def test_a_text_without_searchable_words_has_no_score() -> None:
    found = scores(["graph", "model"], "C++ of the", "graph", "")
    assert np.isnan(found[:, [0, 2]]).all()
    assert (found[:, 1] > 0).tolist() == [True, False]
    assert likeness(["graph"], "C++ of the").tolist() == [[0.0]]


def test_no_papers_and_no_texts_are_not_an_error() -> None:
    assert scores([], "graph").shape == likeness([], "graph").shape == (0, 1)
    assert scores(["graph"]).shape == likeness(["graph"]).shape == (1, 0)


@pytest.mark.parametrize("other", ["PHA", "phases", "case", "ca", "nets", ""])
def test_what_an_interest_finds_does_not_depend_on_the_others_or_their_order(other: str) -> None:
    papers = ["phase retrieval in two phases", "phas and PHA", "the case of CA", "a net of nets"]
    for interest in ("phase retrieval", "case studies", "neural nets"):
        alone = scores(papers, interest)[:, 0]
        assert np.array_equal(scores(papers, interest, other)[:, 0], alone)
        assert np.array_equal(scores(papers, other, interest)[:, 1], alone)


@given(papers=some_papers, asked=some_texts)
def test_scores_agree_with_the_plain_ones(papers: list[Paper], asked: list[str]) -> None:
    plain = [plain_relevance.word_scores(papers, text) for text in asked]
    ours = scores(papers, *asked, background=BACKGROUND).T
    for found, expected in zip(ours, plain, strict=True):
        assert np.isnan(found).all() if expected is None else found == pytest.approx(expected, abs=1e-12)


@given(papers=some_texts, liked=some_texts)
def test_likeness_agrees_with_the_plain_one(papers: list[str], liked: list[str]) -> None:
    for normal in (None, [normal_form(paper) for paper in papers]):
        held, asked = plain_relevance.without_rare_pairs(
            *(plain_relevance.counted(each, pairs=normal is not None) for each in (papers, liked))
        )
        plain = [plain_relevance.tfidf(held, one) for one in asked]
        found, _ = tfidf_cosines_and_usual(counted(papers), liked, background=BACKGROUND, normal=normal)
        assert pytest.approx(np.array(plain), abs=1e-12) == found.T


def test_a_paper_with_the_pairs_of_a_liked_one_is_more_like_it_than_one_with_the_same_words_apart() -> None:
    papers = ["graph attention beats deep models", "deep attention beats graph models", "stones"]
    _, together, apart = similarity_by_words(words_of(["", *papers[:2]]), ["graph attention"], background=BACKGROUND)[
        0
    ][:, 0]
    assert together > apart > 0
    without = likeness(papers, "graph attention")[:, 0]
    assert without[0] == without[1]


@given(papers=some_texts, asked=some_texts, data=st.data())
def test_the_order_of_the_papers_changes_no_bit(papers: list[str], asked: list[str], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(papers))))
    for measure in (scores, likeness):
        shuffled = measure([papers[at] for at in order], *asked, background=BACKGROUND)
        assert np.array_equal(shuffled, measure(papers, *asked, background=BACKGROUND)[order], equal_nan=True)
    again = [papers[at] for at in order]
    for part in (0, 1):
        first, second = (
            similarity_by_words(words_of(each), asked, background=BACKGROUND)[part] for each in (papers, again)
        )
        assert np.array_equal(second, first[order])


def test_the_words_of_an_interest_that_a_paper_holds_are_named_where_they_are() -> None:
    title, abstract = "Optimal transports for graphs", "We compute barycenters. Transport is optimal in optimizers."
    found = matched_terms("optimal transport and Wasserstein barycenter, optimizer", title, abstract)
    assert found == (("optimal transport",), ("barycenter", "optimizer"))
    assert matched_terms("state space", "A state", "The space of a state") == (("state",), ("space",))
    assert matched_terms("the of", title, abstract) == ((), ())
    assert matched_terms("optimization of reasoning", "Reasons", "") == (("reasoning (reasons)",), ())
    assert matched_terms("reasoning", "x", "We reason and reason") == ((), ("reasoning (reason)",))


def test_an_acronym_and_its_phrase_find_each_other() -> None:
    papers = [("Steering with SAEs", "words"), ("Sparse autoencoders", "words"), ("An autoencoder", "words")]
    by_phrase, by_acronym = scores(papers, "sparse autoencoders", "SAE").T
    assert by_phrase[0] > by_phrase[2] and by_phrase[1] > by_phrase[2]
    assert np.array_equal(by_phrase, by_acronym)
    assert matched_terms("sparse autoencoders", *papers[0]) == (("sparse autoencoder (SAEs)",), ())


@pytest.mark.parametrize("interest", ["LLM inference", "large language model inference"])
def test_a_pair_is_found_where_an_acronym_is_one_of_its_words(interest: str) -> None:
    papers = [f"{text} " + "word " * 60 for text in ("LLM inference", "language model inference", "inference, an LLM")]
    short, long, apart = scores(papers, interest, background=BACKGROUND)[:, 0]
    assert short > apart and long > 0
    assert "model inference (LLM inference)" in matched_terms(interest, papers[0], "")[0]
    title = "SAMoE-VLA: a Vision-Language-Action Model"  # where an acronym of its first words precedes the phrase
    assert matched_terms("vision-language-action models", title, "")[0] == ("vision language action model",)


def test_an_acronym_counts_only_for_an_interest_that_holds_the_whole_phrase() -> None:
    found = scores([("Steering with SAEs", "words")], "sparse networks", "autoencoders", "sparse, autoencoders")
    assert not found.any()


def test_a_paper_of_common_words_is_more_like_a_paper_on_anything() -> None:
    papers = ["we propose a method and a model", "quokka marsupials on islands", ""]
    _, (common, rare, empty) = tfidf_cosines_and_usual(counted(papers), ["robots"], background=BACKGROUND)
    assert common > 3 * rare > 0 == empty
