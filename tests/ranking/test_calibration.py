import json
from importlib.resources import files
from io import BytesIO

import numpy as np
import pytest

from paper_assets.ranking.calibration import Calibration, Logit, calibration_from, standard_calibration

RECORD = json.loads((files("paper_assets.ranking") / "calibration.json").read_text(encoding="utf-8"))


def vectors(adapter: list[list[float]], mean: list[float]) -> bytes:
    """The content of a file of vectors."""
    content = BytesIO()
    np.savez(content, adapter=np.array(adapter), mean=np.array(mean))
    return content.getvalue()


def test_nearness_never_counts_against_a_paper() -> None:
    logits = [
        value
        for value in map(standard_calibration().__getattribute__, Calibration.__slots__)
        if isinstance(value, Logit)
    ]
    assert len(logits) == 6
    assert all(logit.meaning >= 0 and logit.words >= 0 and logit.meaning + logit.words > 0 for logit in logits)


def test_the_background_knows_common_words_and_rare_ones() -> None:
    background = standard_calibration().background
    assert background.holders["model"] > background.papers / 4
    assert background.holders["hallucin"] < background.papers / 20
    assert 0 < background.words["optimizer"] < background.words["optimize"] < background.holders["optim"]


@pytest.mark.parametrize("changed", ["a coefficient", "the stems", "the words", "the vectors"])
def test_other_coefficients_or_another_background_are_another_version(changed: str) -> None:
    record, frequencies, words = json.loads(json.dumps(RECORD)), "graph\t5\n", "graph\t4\n"
    known = vectors([[1, 0], [0, 1]], [0, 0])
    before = calibration_from(record, frequencies=frequencies, words=words, vectors=known)
    if changed == "a coefficient":
        record["logits"]["interest"]["words"] += 0.01
    elif changed == "the words":
        words += "tree\t6\n"
    elif changed == "the vectors":
        known = vectors([[1, 0], [0, 1]], [0, 0.1])
    else:
        frequencies += "tree\t7\n"
    after = calibration_from(record, frequencies=frequencies, words=words, vectors=known)
    assert after.version != before.version


def test_interests_are_adapted_for_the_model_whose_map_it_is_only() -> None:
    standard = standard_calibration()
    queries = np.random.default_rng(2).normal(size=(2, 384)).astype(np.float32)
    assert not np.allclose(standard.adapted(queries), queries)
    assert np.array_equal(standard.for_model("all-MiniLM-L6-v2").adapted(queries), standard.adapted(queries))
    assert np.array_equal(standard.for_model("another").adapted(queries), queries)
    assert np.array_equal(standard.adapted(queries[:, :5]), queries[:, :5])
    assert standard.for_model("another").usual_cosines(queries) is None
    assert standard.adapted(queries[:0]).shape == (0, 384)


def test_the_mean_cosine_to_papers_on_anything_is_that_to_their_mean() -> None:
    papers = np.array([[3.0, 4.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    known = calibration_from(RECORD, frequencies="", words="", vectors=vectors([[1, 0], [0, 1]], [0.3, 0.1]))
    assert known.usual_cosines(papers) == pytest.approx([0.26, 0.1, -0.3, 0.0])
