"""`balanced_retrievals`: the real asset over real stores and the real model."""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import product
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from paper_assets.defs.partitions import grid_key
from paper_assets.defs.runs import RunResult, bring_up_to_date
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import Paper
from paper_assets.pipeline import retrievals
from paper_assets.pipeline.step import Partition
from paper_assets.retrieval.grading import similarity_grader
from paper_assets.retrieval.search import Corpus
from paper_assets.stores.documents import retrieval_inputs, retrievals_of
from paper_assets.stores.papers import day_fingerprints
from tests.answering_models import answering_model, obeys
from tests.chroma_folder import entries
from tests.defs.test_assets import MONDAY, TUESDAY, Graph, checks
from tests.desk import GRAPHS
from tests.invented_pdfs import pdf
from tests.loopback_arxiv import loopback_arxiv
from tests.loopback_llm import fault, loopback_llm
from tests.retrieval.invented_corpus import add

ASSET = "balanced_retrievals"
KEY = grid_key(TUESDAY, "graphs")
QUESTION = {
    "question": "How is traffic forecast?",
    "rewritten_question": "forecasting traffic on road networks",
    "filters": {"sides": ["cs.CL", "cs.LG", "cs.XX"]},
    "generation_required": True,
}


def papers_of(*days: date) -> list[Paper]:
    """Three papers a day in each of two categories."""
    subjects = ("Traffic forecasting on road networks", "Speech recognition", "Protein folding")
    return [
        Paper(
            paper_id=f"2603.{day.day:02d}{number:03d}",
            title=f"{subject} {number}",
            abstract=f"We study {subject.lower()}.",
            authors=("Ada Moreau",),
            published=datetime(day.year, day.month, day.day, 9, tzinfo=UTC),
            categories=(category,),
            primary_category=category,
        )
        for day in days
        for number, (category, subject) in enumerate(product(("cs.CL", "cs.LG"), subjects))
    ]


def store(graph: Graph, papers: Sequence[Paper]) -> None:
    """Store papers with their vectors and report them to Dagster."""
    add(Corpus(warehouse=graph.warehouse, embedder=load_embedder()), papers)
    for day, content in day_fingerprints(graph.warehouse, None, None).items():
        tags = {"dagster/data_version": content}
        graph.instance.report_runless_asset_event(
            dg.AssetMaterialization("paper_embeddings", partition=f"{day}", tags=tags)
        )


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    """Two days of papers and a profile with one question."""
    with dg.DagsterInstance.ephemeral() as instance, loopback_arxiv([]) as arxiv:
        graph = Graph(tmp_path, instance, arxiv)
        grader = replace(similarity_grader(load_embedder()), note="graded <b>otherwise</b>")
        graph.workspace = replace(graph.workspace, load_grader=lambda: grader)
        graph.profile("graphs", GRAPHS)
        ask(graph, QUESTION)
        store(graph, papers_of(MONDAY, TUESDAY))
        yield graph


def ask(graph: Graph, *questions: Any, profile: str = "graphs") -> None:
    file = graph.folder / "profiles" / profile / "questions.json"
    file.write_text(json.dumps(questions), encoding="utf-8")


def test_the_page_of_a_day_says_for_each_side_what_was_found_by_which_filter_and_why_no_more(graph: Graph) -> None:
    outcome = graph.materialize(ASSET, first=KEY)
    assert outcome.success and all(checks(outcome).values()) and len(checks(outcome)) == 2
    metadata = graph.metadata(ASSET, KEY)
    assert (metadata["dagster/row_count"], metadata["questions"]) == (4, 1)
    shown = metadata["question_1"].splitlines()
    assert sum("](https://arxiv.org/abs/2603." in line for line in shown) == 4
    assert shown[2].startswith("| cs.CL | ") and "Traffic forecasting" in shown[2]
    assert shown[-1] == "| cs.XX | – | – | – |"
    assert "none with primary" in str(metadata["sides"].records) and "cs.XX" in str(metadata["sides"].records)
    assert (
        metadata["filters"].splitlines()[1].startswith('{"1. cs.CL": {"$and": [{"primary_category": {"$eq": "cs.CL"}}')
    )
    assert "Traffic forecasting" in str(metadata["passages_1"].records)
    assert "otherwise" in metadata["notes"] and "<b>" not in metadata["notes"]
    (answer,) = retrievals_of(graph.warehouse, TUESDAY, "graphs")
    assert [len(side["documents"]) for side in answer["sides"]] == [2, 2, 0]


def test_a_profiles_pdfs_are_searched_and_indexed_but_hidden_from_others_and_removed_with_their_folder(
    graph: Graph,
) -> None:
    folder = graph.folder / "profiles" / "graphs" / "pdf"
    folder.mkdir()
    (folder / "secret-offer.pdf").write_bytes(pdf("Our own counts of lorries improve the forecast of traffic."))
    side = {"name": "mine", "query": "forecast of traffic by counts of lorries"}
    ask(graph, {**QUESTION, "filters": {"sides": [side]}, "data_type": ["fulltext"]})
    assert graph.materialize(ASSET, first=KEY).success
    (answer,) = retrievals_of(graph.warehouse, TUESDAY, "graphs")
    assert "lorries" in answer["sides"][0]["documents"][0]["page_content"]
    metadata = graph.metadata(ASSET, KEY)
    assert metadata["question_1"].count("a private document of the profile") == 1
    assert "a private document of the profile" in str(metadata["passages_1"].records)
    assert not any(word in str(metadata) for word in ("secret-offer", "counts of lorries improve"))
    index = graph.workspace.vector_index
    assert len(entries(index, "fulltext")) == 0, "private documents are in no shared collection"
    shutil.rmtree(folder)
    assert graph.materialize(ASSET, first=KEY).success
    (answer,) = retrievals_of(graph.warehouse, TUESDAY, "graphs")
    assert answer["sides"][0]["documents"] == [] and len(entries(index, "fulltext")) == 0


def test_the_same_again_is_not_computed_and_an_edit_is(graph: Graph) -> None:
    graph.materialize(ASSET, first=KEY)
    version, inputs = graph.versions(ASSET), retrieval_inputs(graph.warehouse, TUESDAY, "graphs")
    refuse = lambda: pytest.fail("what is graded already is not graded again")  # noqa: E731
    graph.workspace = replace(graph.workspace, load_grader=refuse)
    assert graph.materialize(ASSET, first=KEY).success
    assert (graph.versions(ASSET), retrieval_inputs(graph.warehouse, TUESDAY, "graphs")) == (version, inputs)
    ask(graph, {**QUESTION, "generation_required": False})
    assert graph.materialize(ASSET, first=KEY).success
    assert graph.versions(ASSET) != version
    ask(graph)
    assert graph.materialize(ASSET, first=KEY).success
    assert graph.metadata(ASSET, KEY)["dagster/row_count"] == 0
    assert retrievals_of(graph.warehouse, TUESDAY, "graphs") == []


def test_papers_that_change_no_answer_leave_the_version_unchanged(graph: Graph) -> None:
    first = grid_key(MONDAY, "graphs")
    ask(graph, {**QUESTION, "filters": {"sides": ["cs.CL"], "enddate": f"{MONDAY}"}})
    graph.materialize(ASSET, first=first)
    before = graph.versions(ASSET)
    store(graph, [replace(papers_of(MONDAY)[-1], version=2, title="Bees")])  # of another category
    graph.materialize(ASSET, first=first)
    assert graph.versions(ASSET) == before


def test_a_side_that_fails_fails_the_check_and_not_the_run_and_is_asked_again(graph: Graph) -> None:
    ask(graph, {**QUESTION, "filters": {"sides": ["cs.CL", {"name": "odd", "where": {"colour": "red"}}]}})
    outcome = graph.materialize(ASSET, first=KEY)
    assert outcome.success
    (failed,) = [check for check in outcome.get_asset_check_evaluations() if not check.passed]
    assert failed.check_name == "sides_are_balanced_or_the_shortfall_is_named"
    assert "odd: 'colour' is not a field" in str(failed.metadata["failed"].value)
    good, odd = retrievals_of(graph.warehouse, TUESDAY, "graphs")[0]["sides"]
    assert len(good["documents"]) == 2 and good["error"] is None and odd["documents"] == []
    assert str(retrieval_inputs(graph.warehouse, TUESDAY, "graphs")).endswith("unfinished")


def test_the_command_line_asks_only_where_there_is_something_to_do(graph: Graph) -> None:
    def retrieve(profile: str = "graphs") -> bool:
        done = RunResult()
        bring_up_to_date(graph.instance, graph.workspace, retrievals.STEP, [Partition(TUESDAY, profile)], done)
        return bool(done.made.get(ASSET))

    assert [retrieve(), retrieve()] == [True, False]
    ask(graph)
    assert [retrieve(), retrieve()] == [True, False], "questions taken away take their answers with them"
    graph.profile("silent", GRAPHS)
    assert not retrieve("silent")


ANSWERED = {"rewritten_question": "How is traffic on road networks forecast?", "answer": True}


def test_a_question_is_answered_in_sentences_from_what_was_stored_on_the_day(graph: Graph) -> None:
    ask(graph, ANSWERED)
    with loopback_llm(answering_model(obeys)) as server:
        context = replace(graph.workspace.load_answering_context(), environ=server.environ("openai"))
        graph.workspace = replace(graph.workspace, load_answering_context=lambda: context)
        outcome = graph.materialize(ASSET, first=grid_key(MONDAY, "graphs"), last=KEY)
        assert outcome.success and all(checks(outcome).values())
        paid = len(server.requests)
        assert graph.materialize(ASSET, first=KEY).success and len(server.requests) == paid
    (monday,), (tuesday,) = (retrievals_of(graph.warehouse, day, "graphs") for day in (MONDAY, TUESDAY))
    cited = [each["paper_id"] for sentence in monday["answer"]["sentences"] for each in sentence["citations"]]
    assert cited and all(each.startswith(f"2603.{MONDAY.day:02d}") for each in cited)
    assert any(
        each["paper_id"].startswith(f"2603.{TUESDAY.day:02d}")
        for sentence in tuesday["answer"]["sentences"]
        for each in sentence["citations"]
    )
    metadata = graph.metadata(ASSET, KEY)["question_1"]
    assert "We study traffic forecasting on road networks" in metadata and "](https://arxiv.org/abs/2603." in metadata


def test_an_answer_that_the_model_could_not_write_is_quoted_and_written_by_the_next_run(graph: Graph) -> None:
    ask(graph, ANSWERED)
    with loopback_llm(fault(400), answering_model(obeys)) as server:
        context = replace(graph.workspace.load_answering_context(), environ=server.environ("openai"))
        graph.workspace = replace(graph.workspace, load_answering_context=lambda: context)
        assert graph.materialize(ASSET, first=KEY).success
        (first,) = retrievals_of(graph.warehouse, TUESDAY, "graphs")
        assert graph.materialize(ASSET, first=KEY).success
        (second,) = retrievals_of(graph.warehouse, TUESDAY, "graphs")
    assert (first["answer"]["kind"], second["answer"]["kind"]) == ("extractive", "written")
    assert "quoted without a language model" in " ".join(first["answer"]["notes"])
