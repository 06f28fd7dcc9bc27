"""Test the cross-encoder with a tiny real model, loaded as any other."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from paper_assets.errors import ModelUnavailable
from paper_assets.models.cross_encoder import CrossEncoder, load_cross_encoder
from paper_assets.models.embedder import load_embedder
from paper_assets.retrieval.grading import Reranker, load_grader
from paper_assets.retrieval.merge import Candidate
from tests.invented_cross_encoder import tiny_cross_encoder

QUESTION = "what shelters young fish"
PASSAGES = ["kelp forests", "urchins eat them", "", "the water is cold", "kelp " * 100, "단백질 🙂"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_cross_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def tiny(folder: Path) -> CrossEncoder:
    return load_cross_encoder(str(folder))


def refused(model: str, words: str) -> str:
    with pytest.raises(ModelUnavailable, match=words) as caught:
        load_cross_encoder(model)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_scores_are_the_models_raw_outputs(folder: Path, tiny: CrossEncoder) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModelForSequenceClassification.from_pretrained(folder).eval(),
    )
    pieces = tokenizer(
        [QUESTION] * len(PASSAGES), PASSAGES, padding=True, truncation=True, max_length=48, return_tensors="pt"
    )
    with torch.no_grad():
        expected = model(**pieces).logits.view(-1).numpy()
    scores = tiny.score(QUESTION, PASSAGES)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert scores.dtype == np.float64
    assert scores.min() < 0 or scores.max() > 1  # no sigmoid
    assert np.ptp(scores) > 0.01


def test_scores_do_not_depend_on_the_order_of_the_passages(tiny: CrossEncoder) -> None:
    scores = tiny.score(QUESTION, PASSAGES)
    np.testing.assert_array_equal(tiny.score(QUESTION, PASSAGES[::-1]), scores[::-1])
    np.testing.assert_array_equal(tiny.score(QUESTION, [*PASSAGES, *PASSAGES]), np.tile(scores, 2))


def test_the_evidence_of_a_question_is_graded_by_it(folder: Path, tiny: CrossEncoder) -> None:
    documents = [
        Candidate(name, text, {"title": f"On {name}"}, 0.5, "similarity", name)
        for name, text in (("a", "kelp forests"), ("b", "urchins eat them"))
    ]
    grader = load_grader(lambda: tiny, load_embedder)
    graded = Reranker(question=QUESTION, grader=grader).graded(documents)
    assert (graded["grader"], graded["notes"]) == ({"name": str(folder), "kind": "cross-encoder"}, [])
    assert sum(chunk["score"] for chunk in graded["chunks"]) == pytest.approx(1)
    assert graded["chunks"][0]["raw_score"] > graded["chunks"][1]["raw_score"]


def test_no_passages_give_no_scores(tiny: CrossEncoder) -> None:
    assert tiny.score(QUESTION, []).shape == (0,)


def test_a_lone_surrogate_is_not_a_failure(tiny: CrossEncoder) -> None:
    broken, whole = tiny.score("what \ud83d", ["kelp \ud83d"]), tiny.score("what ?", ["kelp ?"])
    np.testing.assert_array_equal(broken, whole)


def test_a_model_is_loaded_once_and_known_by_its_place(folder: Path, tiny: CrossEncoder, monkeypatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert load_cross_encoder("tiny") is tiny
    assert tiny.name == str(folder.resolve())
    assert tiny.device.startswith(("cpu", "cuda", "mps"))


def test_loading_draws_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tiny_cross_encoder(tmp_path / "quiet")
    capfd.readouterr()
    load_cross_encoder(str(folder))
    assert "it/s" not in capfd.readouterr().err


def test_a_model_that_does_not_grade_is_refused(tmp_path: Path) -> None:
    refused(str(tiny_cross_encoder(tmp_path / "three", outputs=3)), "gives 3 numbers for a passage; give one")


def test_a_model_without_finite_scores_is_refused(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    weights = load_file(broken / "model.safetensors")
    weights["classifier.bias"][:] = float("nan")
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    refused(str(broken), "gives no finite scores")


def test_a_damaged_or_empty_folder_is_one_line(folder: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(folder, tmp_path / "damaged"))
    (damaged / "model.safetensors").write_bytes(b"not weights")
    assert str(damaged) in refused(str(damaged), "cannot be loaded")
    (tmp_path / "empty").mkdir()
    refused(str(tmp_path / "empty"), "cannot be loaded")


@pytest.mark.parametrize("name", ["no-such/model", "no such model", ""])
def test_an_unknown_model_is_one_line_at_once(name: str, tmp_path: Path) -> None:
    """Without the hub (as on a machine that is offline); a minute of retries would run into the time limit."""
    code = f"""
        import sys
        from paper_assets.errors import ModelUnavailable
        from paper_assets.models.cross_encoder import load_cross_encoder
        try:
            load_cross_encoder({name!r})
        except ModelUnavailable as error:
            print(error)
        print([module for module in ("torch", "sentence_transformers") if module in sys.modules])
    """
    answer = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={"PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    scores, loaded = answer.stdout.strip().splitlines()
    assert scores.startswith(f"cross-encoder {name!r}")
    assert loaded == "[]"
