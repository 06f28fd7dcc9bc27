import gzip
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.ranking.keywords import keywords_in
from paper_assets.ranking.traits import TRAIT_DIMENSIONS, Taxonomy, load_taxonomy, standard_taxonomy, traits_of
from tests.ranking.invented import texts

PHRASES = ["graph", "graph neural networks", "language model", "zero-shot", "RL", "study", "class", "GPT", "GPT-4"]
PHRASES += ["vae", "medical", "neural network", "models", "classes"]


@pytest.fixture(scope="session")
def one_phrase_each() -> Taxonomy:
    """A taxonomy in which each phrase is a separate trait."""
    traits = "\n".join(f'"{phrase}" = ["{phrase}"]' for phrase in PHRASES)
    return load_taxonomy(f"[problem]\n[method]\n{traits}\n[assumption]\n[domain]")


def shown(text: str) -> dict[str, list[str]]:
    taxonomy = standard_taxonomy()
    (row,) = traits_of([text], taxonomy)
    return {dimension: taxonomy.named(row, dimension) for dimension in TRAIT_DIMENSIONS}


@given(papers=st.lists(texts, max_size=5))
def test_a_phrase_is_found_where_the_same_keyword_is(one_phrase_each: Taxonomy, papers: list[str]) -> None:
    column = pa.chunked_array([pa.array(papers, type=pa.string())])
    assert np.array_equal(traits_of(papers, one_phrase_each), keywords_in(column, PHRASES))


def test_a_paper_is_read_in_four_dimensions() -> None:
    assert shown("Self-supervised Mamba models for the segmentation of satellite images") == {
        "problem": ["segmentation"],
        "method": ["state-space model"],
        "assumption": ["self-supervised"],
        "domain": ["images", "remote sensing"],
    }


@pytest.mark.parametrize(
    ("text", "assumption"),
    [
        ("A supervised classifier", ["supervised"]),
        ("Supervised learning", ["supervised"]),
        ("A self-supervised classifier", ["self-supervised"]),
        ("Self-Supervised\nLearning", ["self-supervised"]),
        ("Weakly supervised and semi-supervised learning", ["semi-supervised", "weakly supervised"]),
        ("An unsupervised classifier", ["unsupervised"]),
        ("Self-supervised pretraining, then supervised training", ["supervised", "self-supervised", "transfer"]),
    ],
)
def test_self_supervised_does_not_count_as_supervised(text: str, assumption: list[str]) -> None:
    assert shown(text)["assumption"] == assumption


@pytest.mark.parametrize("text", ["state-of-the-art", "a random forest", "a student model", "in this form", "", None])
def test_everyday_words_show_no_field(text: str) -> None:
    assert shown(text)["domain"] == []


def test_no_phrase_reaches_across_punctuation_or_from_the_title_into_the_abstract() -> None:
    assert shown("We draw a graph, neural networks are not used")["method"] == []
    assert shown("a graph/convolution kernel")["method"] == ["convolutional network"]
    assert shown("We draw a graph \x01 neural networks are not used")["method"] == []
    assert shown("Graph neural networks")["method"] == ["graph network"]


def test_a_language_model_is_a_transformer_too() -> None:
    assert {"language model", "transformer"} <= set(shown("Prompting LLMs")["method"])


def test_the_columns_of_the_dimensions_cover_all_traits_once() -> None:
    taxonomy = standard_taxonomy()
    columns = [column for name in TRAIT_DIMENSIONS for column in range(len(taxonomy.names))[taxonomy.columns[name]]]
    assert columns == list(range(len(taxonomy.names)))
    assert traits_of([], taxonomy).shape == (0, len(taxonomy.names))


def test_no_trait_of_the_taxonomy_has_two_names_and_every_phrase_can_be_found() -> None:
    taxonomy = standard_taxonomy()
    assert len(set(taxonomy.names)) == len(taxonomy.names)
    assert all(phrase.replace(" ", "").isalnum() for phrase in taxonomy.shows)


def test_most_papers_of_the_example_show_a_problem_a_method_and_a_field() -> None:
    lines = (files("paper_assets.setup") / "example_papers.jsonl").read_text(encoding="utf-8").splitlines()
    taxonomy = standard_taxonomy()
    traits = traits_of([f"{paper['title']} . {paper['abstract']}" for paper in map(json.loads, lines)], taxonomy)
    share = {name: traits[:, taxonomy.columns[name]].any(axis=1).mean() for name in TRAIT_DIMENSIONS}
    assert share["problem"] > 0.6 and share["method"] > 0.5 and share["domain"] > 0.65 and share["assumption"] > 0.2


@pytest.mark.shared_data
def test_most_real_papers_show_a_problem_a_method_and_a_field(shared_data: Path) -> None:
    with gzip.open(shared_data / "arxiv_papers" / "papers.jsonl.gz", "rt", encoding="utf-8") as lines:
        papers = [json.loads(line) for line, _ in zip(lines, range(1500), strict=False)]
    taxonomy = standard_taxonomy()
    traits = traits_of([f"{paper['title']} . {paper['abstract']}" for paper in papers], taxonomy)
    share = {name: traits[:, taxonomy.columns[name]].any(axis=1).mean() for name in TRAIT_DIMENSIONS}
    assert share["problem"] > 0.8 and share["method"] > 0.75 and share["domain"] > 0.8 and share["assumption"] > 0.5
