"""Nothing is lost silently: the warnings beside the documents of a side (SPEC R7, R8), and their order."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.retrieval.answers import balanced_answer, retrieve_balanced
from paper_assets.retrieval.findings import Caller, Findings
from paper_assets.retrieval.grading import Grader
from paper_assets.retrieval.search import Corpus
from paper_assets.stores.documents import replace_documents
from paper_assets.stores.paper_merging import merge_papers
from tests.retrieval.invented_corpus import corpus_of, paper, passage, plan

ANYBODY = Caller()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus_of(tmp_path_factory.mktemp("desk"), [paper(at) for at in range(12)])


def findings_of(corpus: Corpus, caller: Caller = ANYBODY, **record: Any) -> tuple[Findings, ...]:
    return retrieve_balanced(corpus, plan(**{"filters": {"sides": ["cs.CL"]}, **record}), caller=caller)


def test_two_wordings_that_find_the_same_documents_are_reported_and_values_of_a_field_never(corpus: Corpus) -> None:
    sides = [
        {"name": "for", "query": "arguments for faithful answers"},
        {"name": "against", "query": "arguments against faithful answers"},
    ]
    one, other = findings_of(corpus, filters={"sides": sides}, parameters={"k_per_side": 4})
    assert "documents are also on the side 'against'" in one.warnings[0] and "stance" in one.warnings[0]
    assert "documents are also on the side 'for'" in other.warnings[0]
    apart = [{"name": "bees", "query": "bees and polarised light"}, {"name": "loops", "query": "compilers fold loops"}]
    assert not any(
        side.warnings for side in findings_of(corpus, filters={"sides": apart}, parameters={"k_per_side": 2})
    )


def test_papers_without_a_vector_are_compared_by_words_and_counted(tmp_path: Path) -> None:
    desk = corpus_of(tmp_path, [paper(at) for at in range(9)])
    merge_papers(desk.warehouse, [replace(paper(20, subject=0), abstract="Faithful faithful answers of passages.")])
    (side,) = findings_of(desk, parameters={"k_per_side": 3})
    assert "2603.00020" in [each.doc_id for each in side.documents]
    assert side.warnings == (
        "1 of 10 documents have no vector yet and were compared by words alone; `paper-assets run` embeds them",
    )
    merge_papers(desk.warehouse, [paper(at) for at in range(30, 50)])
    (side,) = findings_of(desk, parameters={"k_per_side": 3})
    assert "21 of 30 documents have no vector yet and were compared by words alone" in side.warnings[0]


def test_undated_documents_under_a_date_filter_are_counted(tmp_path: Path) -> None:
    own = {"access_level": "private", "owner": "ann"}
    passages = [
        passage("dated/0", "d", "Passages keep answers faithful."),
        passage("open/0", "o", "Passages keep answers faithful, too.", date_int=None),
        passage("ann/0", "pdf:a", "My passages keep answers faithful.", date_int=None, **own),
    ]
    desk = corpus_of(tmp_path, [], {"p": passages})
    warning = "more would match but have no date, and the question limits dates"
    asked = {"data_type": ["fulltext"], "filters": {"sides": ["cs.CL"], "startdate": "2026-01-01"}}
    assert findings_of(desk, **asked)[0].warnings == (f"1 {warning}",)
    assert findings_of(desk, Caller(owner="ann"), **asked)[0].warnings == (f"2 {warning}",)
    of_the_day = {"data_type": ["fulltext"], "filters": {"sides": ["cs.CL"]}}
    assert findings_of(desk, Caller(as_of=date(2026, 3, 2)), **of_the_day)[0].warnings == (f"1 {warning}",)
    assert findings_of(desk, Caller(owner="ann", as_of=date(2026, 3, 2)), **of_the_day)[0].warnings == (f"1 {warning}",)
    assert findings_of(desk, **of_the_day)[0].warnings == ()


def test_a_text_that_is_cut_says_by_how_much(tmp_path: Path) -> None:
    long = [
        passage(f"l/{at}", f"l{at}", f"Passages keep answers faithful {at}. " + "More of it. " * 200) for at in range(2)
    ]
    desk = corpus_of(tmp_path, [], {"p": long})
    (side,) = findings_of(desk, data_type=["fulltext"], parameters={"k_per_side": 2, "max_tokens": 400})
    whole = {each.doc_id: each.text for each in long}
    left_out = {each.doc_id: len(whole[each.doc_id]) - len(each.content.removesuffix("…")) for each in side.documents}
    assert dict(side.cut) == left_out and min(left_out.values()) > 1_000
    assert side.warnings == (
        f"the text of 2 of 2 documents was cut to fit, by {sum(left_out.values()):,} characters (max_tokens)",
    )


@pytest.mark.parametrize("question", ["로봇 손은 물체를 어떻게 잡는가", "xylophone zither"])
def test_a_side_in_which_everything_is_weak_has_a_warning(corpus: Corpus, question: str) -> None:
    (side,) = retrieve_balanced(corpus, plan(question, filters={"sides": ["cs.CL"]}), caller=ANYBODY)
    assert any(warning.startswith("everything here is weak: the best similarity is 0.") for warning in side.warnings)
    assert not findings_of(corpus)[0].warnings


def test_without_the_model_every_side_says_that_only_words_were_compared(corpus: Corpus) -> None:
    (side,) = findings_of(replace(corpus, embedder=None))
    assert side.warnings == ("the embedding model cannot be used, so only words were compared",)


def test_the_grader_orders_the_shortlist_on_uncut_text_before_the_cut_to_k(tmp_path: Path) -> None:
    filler = "Faithful answers of retrieved passages. " * 12
    passages = [passage(f"d/{at}", f"d{at}", f"{filler} Remark {at}.") for at in range(12)]
    passages.append(passage("late/0", "late", f"Passages. {filler * 4} In the very end stands the jewel."))
    desk = corpus_of(tmp_path, [], {"p": passages})

    def score(question: str, chunks: Any) -> np.ndarray:
        return np.array([9.0 if "jewel" in chunk else -1.0 for chunk in chunks])

    asked = plan(
        data_type=["fulltext"],
        filters={"sides": ["cs.CL"]},
        parameters={"k_per_side": 2, "max_tokens": 200},
        generation_required=True,
    )
    for kind, first in (("cross-encoder", "late/0"), ("embedding similarity", None)):
        grader = Grader(name="by hand", kind=kind, score=score)  # type: ignore[arg-type]
        answer = balanced_answer(desk, asked, caller=ANYBODY, load_grader=lambda grader=grader: grader)
        [side] = answer["sides"]
        ids = [each["doc_id"] for each in side["documents"]]
        assert (ids[0] == first) is (first is not None), "a cosine of chunks is a worse order than the search's own"
        if first:
            assert "jewel" in side["graded"]["chunks"][0]["text"]
            assert "jewel" not in side["documents"][0]["page_content"] and side["documents"][0]["cut"] > 0
            assert side["documents"][0]["search_score"] < 1 < side["documents"][0]["score"]


def test_a_reranker_loses_no_document_that_it_cannot_score(tmp_path: Path) -> None:
    desk = corpus_of(tmp_path, [], {"p": [passage(f"d/{at}", f"d{at}", f"Passages {at}.") for at in range(3)]})
    grader = Grader(name="by hand", kind="cross-encoder", score=lambda question, chunks: np.full(len(chunks), np.nan))
    asked = plan(
        data_type=["fulltext"], filters={"sides": ["cs.CL"]}, parameters={"k_per_side": 3}, generation_required=True
    )
    answer = balanced_answer(desk, asked, caller=ANYBODY, load_grader=lambda: grader)
    assert len(answer["sides"][0]["documents"]) == 3
    replace_documents(desk.warehouse, "fulltext", origin="p", documents=[])
