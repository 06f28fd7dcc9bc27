from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.ranking.contrast import comparison_notes, contrastive_paper
from paper_assets.ranking.traits import standard_taxonomy
from paper_assets.settings import ScoringConfig

SCORING = ScoringConfig()
IDS = [f"2603.{row:05d}" for row in range(10)]


def notes(titles: list[str], vectors: list[tuple[float, ...]] | None = None, **given: Any) -> list[dict[str, Any]]:
    rows = None if vectors is None else np.array(vectors, dtype=np.float32).reshape(len(titles), -1 if titles else 3)
    return comparison_notes(
        IDS[: len(titles)], titles, [""] * len(titles), rows, taxonomy=standard_taxonomy(), scoring=SCORING, **given
    )


def test_two_similar_papers_are_noted_with_what_they_share_and_how_they_differ() -> None:
    titles = ["Transformers for clinical forecasting", "A clinical LSTM", "Transformers for robots"]
    assert notes(titles, [(1, 0), (4, 3), (-3, 4)]) == [
        {
            "paper_ids": ["2603.00000", "2603.00001"],
            "relation": "similar_approach",
            "shared_traits": ["medicine"],
            "differentiator": "2603.00000: forecasting, transformer; 2603.00001: recurrent network",
        }
    ]


def test_sharing_problem_and_method_counts_only_where_the_vectors_do_not_speak_against_it() -> None:
    titles = ["Transformers for summarization of dialogue", "Transformers for summarization"]
    near = SCORING.similar_pair_with_traits + 0.01
    assert near < SCORING.similar_pair
    assert len(notes(titles)) == 1
    assert len(notes(titles, [(1, 0), (near, (1 - near**2) ** 0.5)])) == 1
    assert notes(titles, [(1, 0), (near - 0.02, (1 - (near - 0.02) ** 2) ** 0.5)]) == []
    assert notes(["Transformers for summarization", "Transformers for captioning"]) == []
    assert notes(["Transformers for summarization", "An LSTM for summarization"]) == []


def test_without_traits_the_words_of_the_titles_speak() -> None:
    (note,) = notes(["Bright purple elephants", "Purple elephants at night"], [(1, 0), (1, 0)])
    assert note["shared_traits"] == ["purple", "elephants"]
    assert note["differentiator"] == "2603.00000: bright; 2603.00001: night"
    (note,) = notes(["Purple elephants"] * 2, [(1, 0), (1, 0)])
    assert note["differentiator"] == "title and abstract show no difference"


def test_a_differentiator_stays_short() -> None:
    rich = "LSTM, Mamba, diffusion models and random forests for summarization, captioning and machine translation"
    (note,) = notes([rich, "Summarization"], [(1, 0), (1, 0)])
    assert note["differentiator"].count(",") == 2


def test_the_contrastive_pick_is_compared_with_the_papers_it_contrasts_with_and_with_no_other() -> None:
    titles = ["Transformers for summarization", "Transformers for captioning", "Transformers for summarization again"]
    titles.append("An LSTM for summarization")
    contrast = contrastive_paper(
        pa.chunked_array([titles]), np.arange(4), chosen=3, kind="method", taxonomy=standard_taxonomy()
    )
    found = notes(titles, [(1, 0)] * 4, contrast=contrast)
    assert [note["paper_ids"] for note in found[:-1]] == [[IDS[0], IDS[1]], [IDS[0], IDS[2]], [IDS[1], IDS[2]]]
    assert found[-1] == {
        "paper_ids": [IDS[3], IDS[0], IDS[2]],
        "relation": "contrastive",
        "contrast_point": "same problem (summarization), other method: recurrent network instead of transformer",
    }


def test_no_papers_no_notes() -> None:
    assert notes([]) == []
    assert notes(["Transformers for summarization"], [(1, 0)]) == []
    assert (
        comparison_notes([], [], [], np.zeros((0, 384), np.float32), taxonomy=standard_taxonomy(), scoring=SCORING)
        == []
    )


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 8))
def test_each_pair_is_listed_once_in_the_order_of_the_ranks(seed: int, count: int) -> None:
    chance = np.random.default_rng(seed)
    words = ["transformer", "LSTM", "summarization", "captioning", "robots", "clinical"]
    titles = [" and ".join(chance.choice(words, 3)) for _ in range(count)]
    vectors = [tuple(row) for row in chance.normal(size=(count, 3)).tolist()]
    pairs = [tuple(note["paper_ids"]) for note in notes(titles, vectors)]
    assert pairs == sorted(set(pairs)) and all(one < other for one, other in pairs)
    rows = np.array(vectors).reshape(count, 3)
    lengths = np.linalg.norm(rows, axis=1)
    cosines = rows @ rows.T / np.outer(lengths, lengths)
    close = {(IDS[i], IDS[j]) for i in range(count) for j in range(i + 1, count) if cosines[i, j] > 0.7001}
    assert close <= set(pairs)
