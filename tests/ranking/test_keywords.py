import gzip
import json
import sys
import unicodedata
from importlib.resources import files
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.paper import papers_to_table
from paper_assets.ranking.keywords import distinct, keywords_in, paper_texts
from paper_assets.text.words import normal_form
from tests.ranking.invented import KEYWORDS, WORDS, paper
from tests.ranking.plain_twin import keyword_pattern, plain


def stands_in(keyword: str, text: str) -> bool:
    return bool(keywords_in(pa.chunked_array([[text]], type=pa.string()), [keyword])[0, 0])


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("RL", "We use RL."),
        ("rl", "(RL)-based"),
        ("language model", "Large language models are few"),
        ("language models", "a LANGUAGE MODEL"),
        ("zero-shot", "zero shot transfer"),
        ("zero shot", "zero-shot transfer"),
        ("zero-shot", "zero\u2010shot and zero \u2013 shot"),
        ("multi modal", "multi-\nmodal input"),
        ("neural  network", "neural\n   networks"),
        ("benchmark", "two benchmarks"),
        ("benchmarks", "one benchmark"),
        ("class", "many classes"),
        ("classes", "one class"),
        ("databases", "a database"),
        ("case study", "three case studies"),
        ("case studies", "a case study"),
        ("bias", "biases"),
        ("GPU", "eight GPUs"),
        ("GPUs", "one GPU"),
        ("naive Bayes", "a na\u00efve Bayes classifier"),
        ("na\u00efve bayes", "nai\u0308ve Bayes"),
        ("Søren", "the Soren rule"),
        ("efficient", "e\ufb03cient inference"),
        ("C++", "written in C++."),
        ("C++", "C++17 code"),
        (".NET", "the .NET runtime"),
        ("R&D", "industrial R&D"),
        ("GPT-4", "GPT-4's answers"),
        ("GPT-4", "GPT 4"),
        ("language model", "language model\u2019s"),
        ("강화학습", "심층강화학습을 이용한"),
        ("強化学習", "深層強化学習による"),
        ("大模型", "基于大模型的方法"),
        ("LLM", "LLM을 이용한"),
        ("\u0433\u0440\u0430\u0444", "\u0413\u0440\u0430\u0444 \u0437\u043d\u0430\u043d\u0438\u0439"),
    ],
)
def test_a_keyword_is_found(keyword: str, text: str) -> None:
    assert stands_in(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("RL", "the URL"),
        ("RL", "RLHF"),
        ("medical", "biomedical"),
        ("class", "classify classics"),
        ("classes", "clas"),
        ("loss", "Los Angeles"),
        ("news", "a new method"),
        ("new", "the news"),
        ("genetics", "a genetic algorithm"),
        ("gas", "GA search"),
        ("C", "written in C++ and C#"),
        ("GPT-4", "GPT-4o"),
        ("GPT-4", "GPT4"),
        ("R", "RS"),
        (".NET", "example.net"),
        ("language model", "language, model"),
        ("language model", "language vs. model"),
        ("graf", "\u0413\u0440\u0430\u0444"),
        ("か", "が"),
        ("++", "C++ ++"),
        ("\u2014", "a \u2014 b"),
        ("...", "..."),
        ("_", "_ _"),
    ],
)
def test_a_keyword_is_not_found(keyword: str, text: str) -> None:
    assert not stands_in(keyword, text)


def test_every_dash_of_unicode_counts_as_a_space() -> None:
    dashes = [chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code)) == "Pd"]
    assert [dash for dash in [*dashes, "\u2212"] if not stands_in("zero shot", f"zero{dash}shot")] == []


def test_every_white_space_is_one_space() -> None:
    spaces = [chr(code) for code in range(sys.maxunicode) if chr(code).isspace()]
    assert [space for space in spaces if not stands_in("zero shot", f"zero {space} shot")] == []


def test_an_invisible_character_hides_nothing() -> None:
    assert stands_in("benchmark", "bench\u00admark")
    assert stands_in("benchmark", "\ufeffbench\u200bmark")


def test_no_phrase_reaches_from_the_title_into_the_abstract() -> None:
    texts = paper_texts(papers_to_table([paper(title="On language", abstract="Model theory.")]))
    assert keywords_in(texts, ["language model", "model theory", "on language"]).tolist() == [[False, True, True]]


def test_no_phrase_reaches_from_one_paper_into_the_next() -> None:
    texts = pa.chunked_array([["on language", "model theory", "\0model\0", "language\0model"]])
    assert keywords_in(texts, ["language model"])[:, 0].tolist() == [False, False, False, True]


def test_matches_belong_to_their_papers_for_any_batch_size() -> None:
    texts_drawn = [
        f"zero {'ö ' if row % 3 else ''}{'shot' if row % 7 == 0 else 'shots'[: row % 5]} end" for row in range(5000)
    ]
    pattern = keyword_pattern("zero shot")
    assert pattern
    found = keywords_in(pa.chunked_array([texts_drawn[:1500], texts_drawn[1500:]]), ["absent", "zero shot"])
    assert not found[:, 0].any()
    assert found[:, 1].tolist() == [bool(pattern.search(plain(text))) for text in texts_drawn]


def test_equal_keywords_count_once_and_symbols_alone_not_at_all() -> None:
    assert distinct(["Zero-Shot", "zero shot", "--", "RL", "rl ", "++"]) == ["Zero-Shot", "RL"]


def test_no_texts_and_no_keywords_are_not_an_error() -> None:
    empty = pa.chunked_array([], type=pa.string())
    assert keywords_in(empty, ["a b"]).shape == (0, 1)
    assert keywords_in(pa.chunked_array([["x"]]), []).shape == (1, 0)
    assert keywords_in(pa.chunked_array([["x", None]]).fill_null(""), ["x"]).tolist() == [[True], [False]]


ODD = [
    "x_1", "graph_", "_graph", "$\\alpha$-RL", "RL$_2$", "\\emph{language", "model}", "C#", "C++17", "c++", "RL/graph",
    "graph\u2011neural", "graph\u2014", "언어RL", "RL언어", "graph언어", "e\u0301tude", "\u0301graph", "graph\u0301s",
    "gr\u00adaph", "ﬁnance", "\u2460graph", "model\u00a0s", "３graph", "graph３", "\x01", "GPT-4_o", "survey++",
]  # fmt: skip
ODD_KEYWORDS = [
    "graph_",
    "x 1",
    "RL_2",
    "C#",
    "c*",
    "graph*",
    "fin*",
    "R*",
    "models\u2011s",
    "alpha RL",
    "RL 2",
    "3graph",
]


@given(
    texts=st.lists(
        st.lists(st.sampled_from([*WORDS, *ODD]), max_size=10).flatmap(
            lambda words: st.sampled_from([" ", "-", ""]).map(lambda between: between.join(words))
        ),
        max_size=8,
    ),
    keywords=st.lists(st.sampled_from([*KEYWORDS, *ODD_KEYWORDS]), max_size=5),
)
def test_looking_keywords_up_finds_what_the_plain_search_finds(texts: list[str], keywords: list[str]) -> None:
    found = keywords_in(pa.chunked_array([texts], type=pa.string()), keywords)
    patterns = [keyword_pattern(keyword) for keyword in keywords]
    assert found.tolist() == [[bool(pattern and pattern.search(plain(text))) for pattern in patterns] for text in texts]


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_keyword_of_letters_is_found_in_itself_and_case_does_not_matter(keyword: str, around: str) -> None:
    try:
        (keyword + around).encode()
    except UnicodeEncodeError:
        return
    if distinct([keyword]):
        text = f"{around} | {keyword} | {around}"
        assert stands_in(keyword, text)
        assert stands_in(keyword.swapcase(), text) or normal_form(keyword.swapcase()) != normal_form(keyword)


@pytest.mark.parametrize("source", ["invented", pytest.param("recorded", marks=pytest.mark.shared_data)])
def test_on_whole_abstracts_too_looking_up_finds_what_the_plain_search_finds(
    source: str, request: pytest.FixtureRequest
) -> None:
    if source == "invented":
        example = files("paper_assets.setup") / "example_papers.jsonl"
        texts = [json.loads(line)["abstract"] for line in example.read_text(encoding="utf-8").splitlines()]
        texts.append("A survey of RL and AI: GPT-4 writes C++ and R, zero-shot, on na\u00efve datasets.")
    else:
        shared_data: Path = request.getfixturevalue("shared_data")
        with gzip.open(shared_data / "arxiv_papers" / "papers.jsonl.gz", "rt", encoding="utf-8") as lines:
            texts = [json.loads(line)["abstract"] for line in islice(lines, 2000)]
    keywords = [
        "large language model",
        "RL",
        "AI",
        "GPT-4",
        "C++",
        "survey",
        "datasets",
        "zero-shot",
        "R",
        "na\u00efve",
    ]
    found = keywords_in(pa.chunked_array([texts]), keywords)
    for column, keyword in enumerate(keywords):
        pattern = keyword_pattern(keyword)
        assert pattern
        assert found[:, column].tolist() == [bool(pattern.search(plain(text))) for text in texts], keyword
    assert found[:, [0, 1, 2, 5, 6, 7]].any(axis=0).all()


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("robot*", "a robotic arm"),
        ("mobile robot*", "mobile robotics"),
        ("GPT-4*", "we ask GPT-4o"),
        ("GPT-4*", "GPT 4 and others"),
        ("transform*", "transformers"),
        ("A*", "the A* search"),
        ("강화*", "심층강화학습"),
    ],
)
def test_a_star_widens_a_keyword(keyword: str, text: str) -> None:
    assert stands_in(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("class", "classic and classical logic"),
        ("robot", "a robotic arm"),
        ("robotics", "a robot"),
        ("robotic", "a robot"),
        ("GPT-4", "we ask GPT-4o"),
        ("A*", "all of an area"),
        ("form*", "transformers"),
        ("RL*", "an URL"),
    ],
)
def test_widening_a_keyword_does_not_reach_another_word(keyword: str, text: str) -> None:
    assert not stands_in(keyword, text)


def test_a_title_keyword_looks_at_titles_only() -> None:
    papers = [
        paper("2603.00001", title="A survey of kelp", abstract="Kelp."),
        paper("2603.00002", title="Kelp", abstract="A survey, the survey."),
        paper("2603.00003", title="Surveys", abstract="A survey."),
    ]
    found = keywords_in(paper_texts(papers_to_table(papers)), ["title:survey", "Title: sur*", "survey", "title:"])
    assert found.T.tolist() == [[True, False, True], [True, False, True], [True, True, True], [False] * 3]
    assert distinct(["title:survey", "TITLE: Survey", "survey", "survey*", "title:"]) == [
        "title:survey",
        "survey",
        "survey*",
    ]
