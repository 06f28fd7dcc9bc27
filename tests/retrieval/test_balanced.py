"""Test balanced retrieval on a real corpus: all sides alike, reasons for shortfalls, faults that stay in one side."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.errors import InvalidInput, ModelUnavailable, StoreBusy
from paper_assets.models.embedder import load_embedder
from paper_assets.retrieval.answers import balanced_answer, has_failed, retrieve_balanced
from paper_assets.retrieval.findings import Caller, Findings
from paper_assets.retrieval.grading import Grader, similarity_grader
from paper_assets.retrieval.merge import most_tokens
from paper_assets.retrieval.search import Corpus
from tests.retrieval.invented_corpus import add, corpus_of, paper, passage, plan

ANYBODY = Caller()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """24 papers of four days, in three categories; one category has a single paper; passages of two papers."""
    papers = [paper(at, day=1 + at % 4, category=("cs.CL", "cs.LG")[at % 2]) for at in range(23)]
    lone = paper(23, day=2, category="math.ST", subject=0)
    own = {"access_level": "private", "owner": "ann"}
    passages = {
        "p0": [
            passage(f"p0/{at}", "2603.00000", f"Faithful answers rest on passages, remark {at}.") for at in range(8)
        ],
        "p2": [passage("p2/0", "2603.00002", "A reranker makes answers more faithful.")],
        "ann": [passage("ann/0", "pdf:ann/own", "My own notes: passages keep answers faithful.", **own)],
    }
    return corpus_of(tmp_path_factory.mktemp("corpus"), [*papers, lone], passages)


def found(evidence: Sequence[Findings]) -> dict[str | None, list[str]]:
    return {side.side: [document.doc_id for document in side.documents] for side in evidence}


def reasons(evidence: Sequence[Findings]) -> dict[str | None, str | None]:
    return {side.side: side.shortfall for side in evidence}


def test_each_side_has_the_same_number_of_documents_under_the_same_conditions(corpus: Corpus) -> None:
    asked = plan(parameters={"k_per_side": 3}, filters={"startdate": "2026-03-02", "enddate": "2026-03-03"})
    evidence = retrieve_balanced(corpus, asked, caller=ANYBODY)
    assert [side.side for side in evidence] == ["cs.CL", "cs.LG"]
    for side in evidence:
        assert len(side.documents) == 3 and side.shortfall is None and side.error is None
        assert all(document.metadata["primary_category"] == side.side for document in side.documents)
        assert all(20260302 <= document.metadata["date_int"] <= 20260303 for document in side.documents)
        scores = [document.score for document in side.documents]
        assert scores == sorted(scores, reverse=True)
    assert evidence[0].filter == {
        "$and": [
            {"primary_category": {"$eq": "cs.CL"}},
            {"date_int": {"$gte": 20260302}},
            {"date_int": {"$lte": 20260303}},
            {"access_level": {"$eq": "public"}},
        ]
    }


def test_the_order_of_the_sides_is_the_plans_and_changes_nothing_else(corpus: Corpus) -> None:
    there = retrieve_balanced(corpus, plan(filters={"sides": ["cs.CL", "cs.LG"]}), caller=ANYBODY)
    back = retrieve_balanced(corpus, plan(filters={"sides": ["cs.LG", "cs.CL"]}), caller=ANYBODY)
    assert list(there) == list(reversed(back))


def test_a_side_may_ask_in_its_own_words(corpus: Corpus) -> None:
    sides = [{"name": "for", "query": "passages keep answers faithful"}, {"name": "bees", "query": "bees and light"}]
    evidence = retrieve_balanced(corpus, plan(filters={"sides": sides}), caller=ANYBODY)
    assert [side.query for side in evidence] == ["passages keep answers faithful", "bees and light"]
    assert all("Bees" in document.metadata["title"] for document in evidence[1].documents)
    assert all("faithful" in document.metadata["title"] for document in evidence[0].documents)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"filters": {"sides": ["cs.XX"]}}, "none with primary_category cs.XX"),
        (
            {"filters": {"sides": ["cs.CL"], "startdate": "2025-01-01", "enddate": "2025-01-31"}},
            "none from 2025-01-01 until 2025-01-31",
        ),
        ({"filters": {"sides": ["cs.CL"], "topic_id": "astro"}}, "none with topic_id astro"),
        ({"filters": {"sides": ["cs.CL"]}, "parameters": {"language": "ko"}}, "none in the language 'ko'"),
        ({"filters": {"sides": ["cs.CL"]}, "data_type": ["rewrite"]}, "none of type rewrite"),
        (
            {"filters": {"sides": ["math.ST"], "startdate": "2026-03-03"}},
            "none with primary_category math.ST (1 alone) and from 2026-03-03 (11 alone)",
        ),
        ({"filters": {"sides": ["math.ST"]}}, "only 1 of type abstract meet the conditions"),
        (
            {"filters": {"sides": [{"name": "odd", "where": {"$or": [{"version": 7}, {"version": 8}]}}]}},
            "none that meets the condition of side 'odd'",
        ),
    ],
)
def test_a_side_that_runs_short_says_why(corpus: Corpus, record: dict[str, Any], reason: str) -> None:
    (side,) = retrieve_balanced(corpus, plan(**record), caller=ANYBODY)
    assert len(side.documents) < 2
    assert side.shortfall == reason


def test_a_side_with_a_broken_filter_is_named_and_leaves_the_others_whole(corpus: Corpus) -> None:
    broken = {"name": "broken", "where": {"colour": {"$eq": "red"}}}
    alone = retrieve_balanced(corpus, plan(filters={"sides": ["cs.CL", "cs.LG"]}), caller=ANYBODY)
    beside = retrieve_balanced(corpus, plan(filters={"sides": ["cs.CL", broken, "cs.LG"]}), caller=ANYBODY)
    assert found([beside[0], beside[2]]) == found(alone)
    assert beside[1].documents == () and "colour" in str(beside[1].error)
    assert beside[1].filter is not None and beside[0].error is beside[2].error is None


def test_an_unexpected_error_of_a_search_is_reported_for_its_side_alone(
    corpus: Corpus, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing:
        """An embedder that one wording breaks."""

        real = load_embedder()
        name, dimension = real.name, real.dimension

        def encode(self, texts: Sequence[str]) -> np.ndarray:
            if "break" in texts[0]:
                raise MemoryError("no room\nfor it")
            return self.real.encode(texts)

    sides = [{"name": "good", "query": "faithful answers"}, {"name": "bad", "query": "break"}]
    failing = replace(corpus, embedder=Failing())  # type: ignore[arg-type]
    good, bad = retrieve_balanced(failing, plan(filters={"sides": sides}), caller=ANYBODY)
    assert len(good.documents) == 2 and good.error is None
    assert bad.error == "MemoryError: no room for it" and bad.documents == ()
    assert any(record.exc_info for record in caplog.records), "a fault of ours leaves its trace in the log"


def test_a_store_that_another_process_holds_is_not_a_fault_of_a_side(corpus: Corpus) -> None:
    class Busy:
        name, dimension = "all-MiniLM-L6-v2", 384

        def encode(self, texts: Sequence[str]) -> np.ndarray:
            raise StoreBusy("held")

    with pytest.raises(StoreBusy):
        retrieve_balanced(replace(corpus, embedder=Busy()), plan(), caller=ANYBODY)  # type: ignore[arg-type]


def test_the_log_has_one_line_a_side_with_filter_count_and_reason(
    corpus: Corpus, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="paper_assets.retrieval"):
        retrieve_balanced(
            corpus, plan(filters={"sides": ["cs.CL", "cs.XX", {"name": "b", "where": {"x": 1}}]}), caller=ANYBODY
        )
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert lines[0].startswith(
        'cs.CL: 2 of 2 documents; 12 meet the filter {"$and": [{"primary_category": {"$eq": "cs.CL"}}'
    )
    assert "compress dropped 10 (beyond the best 2)" in lines[0]
    assert "cs.XX: 0 of 2 documents; 0 meet" in lines[1] and "short: none with primary_category cs.XX" in lines[1]
    assert lines[2].startswith("b: 0 of 2 documents") and "failed: " in lines[2]
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO", "WARNING"]


def test_nothing_of_after_the_day_of_asking_is_found_or_counted(corpus: Corpus) -> None:
    evidence = retrieve_balanced(corpus, plan(parameters={"k_per_side": 50}), caller=Caller(as_of=date(2026, 3, 2)))
    dates = {document.metadata["date_int"] for side in evidence for document in side.documents}
    assert dates == {20260301, 20260302}
    (short,) = retrieve_balanced(corpus, plan(filters={"sides": ["math.ST"]}), caller=Caller(as_of=date(2026, 3, 1)))
    assert short.shortfall == "none with primary_category math.ST", "the one of the day after is not let on"


def test_a_past_day_gives_the_same_answer_when_more_has_come_since(tmp_path: Path) -> None:
    growing = corpus_of(tmp_path, [paper(at, day=1, category=("cs.CL", "cs.LG")[at % 2]) for at in range(8)])
    asked, caller = plan(), Caller(as_of=date(2026, 3, 1))
    before = retrieve_balanced(growing, asked, caller=caller)
    add(growing, [paper(20 + at, day=2, category="cs.CL", subject=0) for at in range(4)])
    assert retrieve_balanced(growing, asked, caller=caller) == before
    assert found(retrieve_balanced(growing, asked, caller=ANYBODY)) != found(before)


def test_private_documents_come_to_their_owner_alone(corpus: Corpus) -> None:
    asked = plan(data_type=["fulltext"], parameters={"k_per_side": 5}, filters={"sides": ["cs.CL"]})
    callers = {name: Caller(owner=name) for name in (None, "bob", "ann")}
    seen = {name: retrieve_balanced(corpus, asked, caller=caller)[0] for name, caller in callers.items()}
    assert "ann/0" in [document.doc_id for document in seen["ann"].documents]
    for name in (None, "bob"):
        assert "ann/0" not in [document.doc_id for document in seen[name].documents]
        assert seen[name].matching == 9, "nor is it counted"
        assert "private" not in str(seen[name].shortfall)


def test_one_source_fills_no_side_and_the_search_goes_deeper_for_others(tmp_path: Path) -> None:
    near = [passage(f"near/{at}", "near", f"Do retrieved passages keep answers faithful? {at}") for at in range(60)]
    far = [passage("far/0", "far", "Bees find their way home.")]
    corpus = corpus_of(tmp_path, [], {"near": near, "far": far})
    asked = plan(data_type=["fulltext"], parameters={"k_per_side": 3}, filters={"sides": ["cs.CL"]})
    (side,) = retrieve_balanced(corpus, asked, caller=ANYBODY)
    sources = [document.source_id for document in side.documents]
    assert sources == ["near", "near", "far"]
    assert [(drop.stage, len(drop.doc_ids)) for drop in side.drops] == [("diversify", 58)]
    (lone,) = retrieve_balanced(
        corpus, plan(data_type=["fulltext"], parameters={"k_per_side": 4}, filters={"sides": ["cs.CL"]}), caller=ANYBODY
    )
    assert lone.shortfall == "61 of type fulltext meet the conditions: 58 more than 2 of one source"


def test_passages_of_an_older_version_than_the_paper_has_are_not_shown(tmp_path: Path) -> None:
    passages = {
        "old": [passage("old/0", "2603.00001", "Retrieved passages keep answers faithful.", version=1)],
        "new": [passage("new/0", "2603.00002", "Bees find their way home.", version=2)],
    }
    corpus = corpus_of(tmp_path, [paper(1, version=2), paper(2, version=2)], passages)
    asked = plan(data_type=["fulltext"], filters={"sides": ["cs.CL"]})
    (side,) = retrieve_balanced(corpus, asked, caller=ANYBODY)
    assert [document.doc_id for document in side.documents] == ["new/0"]
    assert side.shortfall == "2 of type fulltext meet the conditions: 1 not the latest version"


def test_an_undated_pdf_of_the_owner_always_counts_and_a_dated_one_from_its_day_on(tmp_path: Path) -> None:
    own = {"access_level": "private", "owner": "ann"}
    notes = [
        passage("ann/0", "pdf:ann/notes", "Notes: retrieved passages keep answers faithful.", date_int=None, **own),
        passage("ann/1", "pdf:ann/later", "Later: retrieved passages keep answers faithful.", date_int=20260305, **own),
        passage("open/0", "2603.00009", "Passages keep answers faithful.", date_int=None),
    ]
    desk = corpus_of(tmp_path, [], {"ann": notes})
    asked = plan(data_type=["fulltext"], filters={"sides": ["cs.CL"]}, parameters={"k_per_side": 5})
    seen = {
        (owner, day): found(retrieve_balanced(desk, asked, caller=Caller(owner=owner, as_of=date(2026, 3, day))))[
            "cs.CL"
        ]
        for owner in ("ann", "bob", None)
        for day in (1, 5)
    }
    assert sorted(seen["ann", 1]) == ["ann/0"] and sorted(seen["ann", 5]) == ["ann/0", "ann/1"]
    assert not any(seen[owner, day] for owner in ("bob", None) for day in (1, 5))


def test_kinds_of_documents_are_compared_by_their_scores_and_by_words_alone_take_turns(corpus: Corpus) -> None:
    asked = plan(data_type=["abstract", "fulltext"], parameters={"k_per_side": 4}, filters={"sides": ["cs.CL"]})
    (side,) = retrieve_balanced(corpus, asked, caller=ANYBODY)
    each = [
        candidate
        for data_type in ("abstract", "fulltext")
        for candidate in retrieve_balanced(corpus, replace(asked, data_types=(data_type,)), caller=ANYBODY)[0].documents
    ]
    best = sorted(each, key=lambda candidate: (-candidate.score, candidate.doc_id))[:4]
    assert [document.doc_id for document in side.documents] == [document.doc_id for document in best]
    (by_words,) = retrieve_balanced(replace(corpus, embedder=None), asked, caller=ANYBODY)
    kinds = [document.metadata["data_type"] for document in by_words.documents]
    assert set(kinds[:2]) == {"abstract", "fulltext"}


def test_without_a_model_words_alone_are_compared_and_the_answer_reports_it(corpus: Corpus) -> None:
    silent = plan("xylophone", filters={"sides": ["cs.CL"]})
    without = replace(corpus, embedder=None)
    evidence = retrieve_balanced(without, plan(), caller=ANYBODY)
    assert {side.methods for side in evidence} == {("lexical",)}
    assert all("passages" in side.documents[0].content for side in evidence)
    (short,) = retrieve_balanced(without, silent, caller=ANYBODY)
    assert short.documents == () and "12 share no word with the question" in str(short.shortfall)


def test_all_sides_have_the_same_limit_of_text(corpus: Corpus) -> None:
    evidence = retrieve_balanced(corpus, plan(parameters={"k_per_side": 5, "max_tokens": 80}), caller=ANYBODY)
    assert {len(side.documents) for side in evidence} == {1}
    assert all("not fit into 40 tokens" in str(side.shortfall) for side in evidence)
    assert all(sum(most_tokens(each.content) for each in side.documents) <= 40 for side in evidence)


def test_a_plan_without_any_side_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no sides"):
        retrieve_balanced(Corpus.__new__(Corpus), replace(plan(), sides=()), caller=ANYBODY)


def no_grader() -> Grader:
    raise ModelUnavailable("no model is here")


def test_an_answer_is_graded_or_a_list_of_links_as_the_plan_asks(corpus: Corpus) -> None:
    def grader() -> Grader:
        return similarity_grader(load_embedder())

    graded = balanced_answer(corpus, plan(generation_required=True), caller=ANYBODY, load_grader=grader)
    for side in graded["sides"]:
        assert "links" not in side and side["graded"]["grader"]["name"] == "all-MiniLM-L6-v2"
        assert {chunk["doc_id"] for chunk in side["graded"]["chunks"]} <= {each["doc_id"] for each in side["documents"]}
    listed = balanced_answer(corpus, plan(), caller=ANYBODY, load_grader=no_grader)
    for side in listed["sides"]:
        first = side["documents"][0]["metadata"]
        assert f"](https://arxiv.org/abs/{first['paper_id']})" in side["links"].splitlines()[0]
        assert "graded" not in side


def test_sides_named_as_parties_are_answered_under_that_name_too(corpus: Corpus) -> None:
    asked = plan(filters={"party": ["cs.CL", "cs.LG"]}, generation_required=False)
    answer = balanced_answer(corpus, asked, caller=ANYBODY, load_grader=lambda: similarity_grader(None))
    assert [each["party"] for each in answer["documents_by_party"]] == ["cs.CL", "cs.LG"]
    assert [each["documents"] for each in answer["documents_by_party"]] == [s["documents"] for s in answer["sides"]]
    metadata = answer["documents_by_party"][0]["documents"][0]["metadata"]
    assert metadata["date"].replace("-", "") == f"{metadata['date_int']}"
    named = plan(filters={"sides": ["cs.CL", "cs.LG"]}, generation_required=False)
    assert "documents_by_party" not in balanced_answer(
        corpus, named, caller=ANYBODY, load_grader=lambda: similarity_grader(None)
    )


def test_without_any_model_to_grade_the_documents_are_returned_with_a_note(corpus: Corpus) -> None:
    answer = balanced_answer(corpus, plan(generation_required=True), caller=ANYBODY, load_grader=no_grader)
    assert answer["notes"] == ["not graded: no model is here"]
    assert all(side["graded"] is None and len(side["documents"]) == 2 for side in answer["sides"])
    assert not has_failed(answer)


def test_an_answer_reports_conditions_that_were_left_out_and_sides_that_failed(corpus: Corpus) -> None:
    asked = plan(filters={"startdate": "soon", "sides": ["cs.CL", {"name": "b", "where": {"x": 1}}]})
    answer = balanced_answer(corpus, asked, caller=Caller(as_of=date(2026, 3, 4)), load_grader=no_grader)
    assert answer["notes"] == ["startdate 'soon' is not a day like 2026-03-01; left out"]
    assert answer["as_of"] == "2026-03-04" and answer["startdate"] is None
    assert has_failed(answer) and [bool(side["error"]) for side in answer["sides"]] == [False, True]
