"""Grading: the best chunks pass, the grader is named, and odd scores and titles are refused."""

import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.errors import ModelUnavailable
from paper_assets.models.cross_encoder import load_cross_encoder
from paper_assets.models.embedder import load_embedder
from paper_assets.retrieval.grading import (
    Grader,
    Reranker,
    link_list,
    load_grader,
    similarity_grader,
    softmax,
)
from paper_assets.retrieval.merge import Candidate
from paper_assets.settings import RetrievalConfig

QUESTION = "what shelters young fish"


def document(doc_id: str, content: str = "", **metadata: object) -> Candidate:
    about = {"title": f"On {doc_id}", "url": f"https://arxiv.org/abs/{doc_id}", **metadata}
    return Candidate(doc_id, content, about, 0.5, "similarity", doc_id)


def grader(scores: dict[str, float]) -> Grader:
    """Score chunks by the first word of each, else 0."""

    def score(question: str, passages: Sequence[str]) -> np.ndarray:
        return np.array([scores.get(passage.split()[0], 0.0) for passage in passages])

    return Grader(name="by hand", kind="cross-encoder", score=score)


def grade(question: str, documents: Sequence[Candidate], *, grader: Grader, **config: int) -> dict[str, Any]:
    return Reranker(question=question, grader=grader, config=RetrievalConfig(**config)).graded(documents)


def plain_softmax(scores: list[float]) -> list[float]:
    weights = [math.exp(score) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=20))
def test_softmax_agrees_with_its_plain_form(scores: list[float]) -> None:
    np.testing.assert_allclose(softmax(np.array(scores)), plain_softmax(scores), rtol=1e-9)


@given(st.lists(st.floats(), max_size=20))
def test_softmax_of_anything_is_shares_that_sum_to_one(scores: list[float]) -> None:
    shares = softmax(np.array(scores))
    usable = [score for score in scores if math.isfinite(score)]
    assert shares.sum() == pytest.approx(1.0 if usable else 0.0)
    assert ((shares >= 0) & (shares <= 1)).all()
    for score, share in zip(scores, shares, strict=True):
        assert math.isfinite(score) or share == 0
        assert not usable or score != max(usable) or share > 0


def test_huge_scores_neither_overflow_nor_become_nan() -> None:
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(softmax(np.array([1e308, 1e308, -1.7e308])), [0.5, 0.5, 0])
    np.testing.assert_allclose(softmax(np.array([1000.0, 1001.0])), plain_softmax([0, 1]))


def test_the_best_chunks_pass_on_with_document_share_and_link() -> None:
    long = " ".join(
        f"S{at} says that kelp shelters young fish and that urchins eat the kelp that does so." for at in range(8)
    )
    documents = [document("a", long), document("b", "T0 says the same.", url=None)]
    graded = grade(
        QUESTION, documents, grader=grader({"S3": 2.0, "T0": 1.0}), best_chunks=2, chunk_characters=90, chunk_overlap=0
    )
    assert [(chunk["doc_id"], chunk["raw_score"]) for chunk in graded["chunks"]] == [("a", 2.0), ("b", 1.0)]
    assert [chunk["url"] for chunk in graded["chunks"]] == ["https://arxiv.org/abs/a", None]
    assert graded["chunks"][0]["text"].startswith("S3 says")
    assert [chunk["score"] for chunk in graded["chunks"]] == pytest.approx(plain_softmax([2.0, 1.0, *[0.0] * 7])[:2])
    assert (graded["chunks_looked_at"], graded["notes"]) == (9, [])
    mapping = json.loads(json.dumps(graded, allow_nan=False))
    assert mapping["chunks"][0]["title"] == "On a"
    assert mapping["grader"] == {"name": "by hand", "kind": "cross-encoder"}


def test_a_passage_is_whole_sentences_and_never_the_papers_own_title() -> None:
    title = "Kelp in Cold Water"
    long = f"We count kelp in {' and '.join(f'bay {n}' for n in range(60))}."
    text = f"{title}\n\nWe study kelp. It grows. {long}"
    paper = document("a", text, title=title)
    passages = [chunk["text"] for chunk in grade(QUESTION, [paper], grader=grader({}))["chunks"]]
    assert sorted(passages) == sorted(["We study kelp. It grows.", long])
    alone = document("b", title, title=title)
    assert grade(QUESTION, [alone], grader=grader({}))["chunks"] == []


@given(st.permutations("abcdefg"))
def test_equal_scores_pass_in_the_order_of_the_ids_whatever_the_order_of_the_documents(ids: list[str]) -> None:
    documents = [document(doc_id, "Kelp grows.") for doc_id in ids]
    graded = grade(QUESTION, documents, grader=grader({}), best_chunks=3)
    assert [chunk["doc_id"] for chunk in graded["chunks"]] == ["a", "b", "c"]
    assert [chunk["score"] for chunk in graded["chunks"]] == pytest.approx([1 / 7] * 3)


def test_a_document_that_two_sides_found_is_graded_once() -> None:
    graded = grade(QUESTION, [document("a", "Kelp."), document("a", "Kelp.")], grader=grader({}))
    assert len(graded["chunks"]) == graded["chunks_looked_at"] == 1


def test_a_chunk_without_a_score_does_not_pass_and_is_reported() -> None:
    scores = {"Kelp": math.nan, "Urchins": -4.0, "Otters": math.inf}
    documents = [document(word.lower(), f"{word} are here.") for word in ("Kelp", "Urchins", "Otters", "Fish")]
    graded = grade(QUESTION, documents, grader=grader(scores))
    assert [chunk["doc_id"] for chunk in graded["chunks"]] == ["fish", "urchins"]
    assert graded["notes"] == ["2 of 4 chunks got no score from by hand and were left out"]
    nothing = grade(QUESTION, documents[:1], grader=grader(scores))
    assert (nothing["chunks"], nothing["chunks_looked_at"]) == ([], 1)


def test_no_documents_or_empty_ones_give_no_chunks() -> None:
    def never(question: str, passages: Sequence[str]) -> np.ndarray:
        raise AssertionError("asked for nothing")

    for documents in ([], [document("a"), document("b", " \n ")]):
        graded = grade(QUESTION, documents, grader=Grader(name="none", kind="cross-encoder", score=never))
        assert (graded["chunks"], graded["chunks_looked_at"]) == ([], 0)


def test_without_a_cross_encoder_the_embedder_grades_and_is_named(tmp_path: Path) -> None:
    instead = load_grader(partial(load_cross_encoder, str(tmp_path)), load_embedder)
    documents = [
        document("stocks", "Interest rates rose in the second quarter of the year."),
        document("kelp", "Kelp forests give shelter to juvenile fish."),
    ]
    graded = grade(QUESTION, documents, grader=instead)
    assert [chunk["doc_id"] for chunk in graded["chunks"]] == ["kelp", "stocks"]
    assert graded["chunks"][0]["score"] > 0.9  # cosines as they are would give 0.6
    assert graded["grader"] == {"name": "all-MiniLM-L6-v2", "kind": "embedding similarity"}
    assert graded["notes"][0].startswith("ordered by similarity of meaning, which is less exact than a cross-encoder: ")


def test_without_any_model_nothing_is_graded() -> None:
    def absent() -> object:
        raise ModelUnavailable("not here")

    with pytest.raises(ModelUnavailable, match="not here"):
        load_grader(absent, absent)  # type: ignore[arg-type]


def test_there_is_one_link_for_each_paper_in_the_order_of_the_documents() -> None:
    documents = [document("b"), document("a"), document("b"), document("mine", url=None)]
    assert link_list(documents) == ("- [On b](https://arxiv.org/abs/b)\n- [On a](https://arxiv.org/abs/a)\n- On mine")
    assert link_list([]) == ""


def test_nothing_in_a_title_or_an_address_ends_the_link() -> None:
    title = "Kelp](http://evil.example)\n\n<script>alert(1)</script> [& *more* \\] `x` ![i](j)\u2028# y"
    url = "https://kelp.example/a b(c)?q=[1]\n\"'<x>\\`"
    (line,) = link_list([document("a", title=title, url=url)]).splitlines()
    assert line == (
        r"- [Kelp\]\(http://evil.example\) \<script\>alert\(1\)\</script\> \[\& \*more\* \\\] \`x\` \!\[i\]\(j\) \# y]"
        "(https://kelp.example/a%20b%28c%29?q=%5B1%5D%0A%22'%3Cx%3E%5C%60)"
    )


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "//kelp.example", "https://", "http://[x", "", None, 7]
)
def test_only_addresses_of_the_web_become_links(url: object) -> None:
    assert link_list([document("a", url=url)]) == "- On a"
    assert link_list([document("a", url=url, title="1. kelp")]) == "- 1\\. kelp"


def test_a_title_that_is_not_known_is_replaced_by_the_id() -> None:
    assert link_list([document("2603.00017", title=None)]) == "- [2603.00017](https://arxiv.org/abs/2603.00017)"


def test_no_passages_have_no_similarities() -> None:
    assert similarity_grader(load_embedder()).score(QUESTION, []).shape == (0,)
