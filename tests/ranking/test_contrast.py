from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.profile import ContrastiveType
from paper_assets.ranking.contrast import SHARED, Contrast, common_traits, contrast_tags, contrastive_paper
from paper_assets.ranking.traits import TRAIT_DIMENSIONS, standard_taxonomy

# Words and the one trait each shows.
WORDS = {
    "problem": {"segmentation": "segmentation", "forecasting": "forecasting", "hallucination": "hallucination"},
    "method": {"transformer": "transformer", "LSTM": "recurrent network", "Mamba": "state-space model"},
    "assumption": {"supervised": "supervised", "self-supervised": "self-supervised", "few-shot": "few-shot"},
    "domain": {"clinical": "medicine", "satellite": "remote sensing", "robot": "robotics"},
}
KINDS: tuple[ContrastiveType, ...] = ("method", "assumption", "domain")

Words = dict[str, list[str]]
papers = st.lists(
    st.fixed_dictionaries({name: st.lists(st.sampled_from(list(words)), max_size=2) for name, words in WORDS.items()}),
    max_size=10,
)


def pick(texts: list[str], chosen: int, kind: ContrastiveType = "method") -> Contrast | None:
    column = pa.chunked_array([pa.array(texts, type=pa.string())])
    return contrastive_paper(column, np.arange(len(texts)), chosen=chosen, kind=kind, taxonomy=standard_taxonomy())


def text(words: Words) -> str:
    return " , ".join(word for some in words.values() for word in some)


def traits(words: Words, dimension: str) -> set[str]:
    return {WORDS[dimension][word] for word in words[dimension]}


def plain_common(chosen: list[Words], dimension: str) -> set[str]:
    counts = Counter(trait for words in chosen for trait in traits(words, dimension))
    half = {trait for trait, count in counts.items() if count >= len(chosen) / 2}
    return half or {trait for trait, count in counts.items() if count == max(counts.values())}


@given(papers=papers, chosen=st.integers(0, 5), kind=st.sampled_from(KINDS))
def test_the_pick_is_the_first_that_contrasts_and_shares(
    papers: list[Words], chosen: int, kind: ContrastiveType
) -> None:
    first = papers[:chosen]
    theirs = set().union(*(traits(words, kind) for words in first))
    fits = [
        place
        for place, words in enumerate(papers)
        if place >= chosen
        and theirs
        and traits(words, kind)
        and not traits(words, kind) & theirs
        and traits(words, SHARED[kind]) & plain_common(first, SHARED[kind])
    ]
    found = pick([text(words) for words in papers], chosen, kind)
    assert (found.place if found else None) == (fits[0] if fits else None)
    if found:
        this = papers[found.place]
        assert set(found.shared) == traits(this, SHARED[kind]) & plain_common(first, SHARED[kind])
        assert found.like and all(traits(first[place], SHARED[kind]) & set(found.shared) for place in found.like)
        assert set(found.info["this_paper_traits"]) == set().union(*(traits(this, name) for name in TRAIT_DIMENSIONS))
        differences = found.info["contrast_dimensions"]
        assert differences[0]["dimension"] == found.info["type"] == kind
        for each in differences:
            assert set(each["this"]) == traits(this, each["dimension"])
            assert set(each["others"]) == plain_common(first, each["dimension"])
            assert not set(each["this"]) & set().union(*(traits(words, each["dimension"]) for words in first))


@given(papers=papers, chosen=st.integers(1, 4), kind=st.sampled_from(KINDS), data=st.data())
def test_the_order_of_the_rows_changes_nothing(
    papers: list[Words], chosen: int, kind: ContrastiveType, data: st.DataObject
) -> None:
    rows = data.draw(st.permutations(range(len(papers))))
    column = pa.chunked_array([pa.array([text(papers[row]) for row in rows], type=pa.string())])
    order = np.argsort(np.array(rows, dtype=np.int64))
    found = contrastive_paper(column, order, chosen=chosen, kind=kind, taxonomy=standard_taxonomy())
    assert found == pick([text(words) for words in papers], chosen, kind)


@pytest.mark.parametrize(
    ("kind", "chosen", "candidates", "expected"),
    [
        (
            "method",
            "Transformers for the summarization of news",
            ["Transformers for machine translation", "An LSTM for machine translation", "An LSTM for summarization"],
            {"dimension": "method", "others": ["transformer"], "this": ["recurrent network"]},
        ),
        (
            "assumption",
            "Supervised training of a U-Net",
            ["A supervised U-Net", "A self-supervised transformer", "A self-supervised U-Net"],
            {"dimension": "assumption", "others": ["supervised"], "this": ["self-supervised"]},
        ),
        (
            "domain",
            "Diffusion models for images",
            ["Graph networks for speech", "Diffusion models for better images", "Diffusion models for speech"],
            {"dimension": "domain", "others": ["images"], "this": ["speech and audio"]},
        ),
    ],
)
def test_same_in_one_thing_other_in_the_next(
    kind: ContrastiveType, chosen: str, candidates: list[str], expected: dict[str, object]
) -> None:
    found = pick([chosen, chosen, *candidates], 2, kind)
    assert found is not None
    assert found.place == 4
    assert found.like == (0, 1)
    assert found.info["contrast_dimensions"][0] == expected
    assert contrast_tags(kind) == ("CONTRASTIVE_PICK", f"CONTRASTIVE_{kind.upper()}")


def test_a_contrast_far_down_the_list_is_found() -> None:
    same, other = "Transformers for summarization", "An LSTM for summarization"
    for place in (63, 64, 65, 66, 191, 192, 193, 500):
        found = pick([same] * place + [other] + [same] * 3, 2)
        assert found is not None and found.place == place


@pytest.mark.parametrize(
    ("texts", "chosen"),
    [
        ([], 4),
        (["Transformers for summarization"], 4),
        (["Transformers for summarization", "An LSTM for summarization"], 0),
        (["Transformers for summarization", "An LSTM for captioning"], 1),
        (["Transformers for summarization", "Transformers and an LSTM for summarization"], 1),
        (["Transformers for summarization", "On summarization"], 1),
        (["On summarization", "An LSTM for summarization"], 1),
        (["Transformers", "An LSTM for summarization"], 1),
    ],
)
def test_without_a_contrasting_paper_there_is_no_pick(texts: list[str], chosen: int) -> None:
    assert pick(texts, chosen) is None


def test_common_is_what_half_have_else_what_most_have() -> None:
    assert common_traits(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)).tolist() == [1, 1, 0]
    five = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], dtype=bool)
    assert common_traits(five).tolist() == [1, 0, 0, 0]
    four = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 0]], dtype=bool)
    assert common_traits(four).tolist() == [1, 1, 0]
    assert common_traits(np.zeros((3, 2), dtype=bool)).tolist() == [0, 0]
    assert common_traits(np.zeros((0, 2), dtype=bool)).tolist() == [0, 0]
