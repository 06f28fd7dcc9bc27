"""Test `paper_rewrites` in Dagster: what a run makes, what waits, and what decisions and new rankings cause (A3)."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from paper_assets.defs.due import outdated
from paper_assets.defs.partitions import grid_key
from paper_assets.defs.runs import RunResult, bring_up_to_date
from paper_assets.errors import ModelUnavailable
from paper_assets.paper import paper_from_mapping
from paper_assets.pipeline import rewrite_items, rewrites
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.pipeline.staleness import waits_of
from paper_assets.pipeline.step import Partition
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.profile import Profile, profile_content
from paper_assets.ranking.verifier import open_verifier
from paper_assets.retrieval.search import Corpus, search
from paper_assets.rewriting.loop import advance, decide
from paper_assets.settings import RewritingConfig, load_settings
from paper_assets.stores.documents import count_documents
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rewrites import RewriteItem, rewrites_of
from tests.defs.in_dagster import latest, made
from tests.desk import GRAPHS, Desk, week
from tests.loopback import refusing_port
from tests.loopback_llm import LoopbackLLM, loopback_llm
from tests.rewriting.scripted import Play, opened, writing

MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)
NOW = datetime(2026, 3, 5, 7, 30, tzinfo=UTC)
ASKING = {**GRAPHS, "rewriting": {"target_levels": ["public", "expert"], "papers": 1}}


def settings_in(folder: Path) -> Any:
    return load_settings({"PAPER_ASSETS_FIRST_DAY": "2026-01-01"}, folder)


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two ranked days of the profile `ann` and no rewrites."""
    folder = tmp_path_factory.mktemp("ranked")
    settings = settings_in(folder)
    warehouse = open_workspace(settings, {}, clock=lambda: NOW).warehouse
    merge_papers(warehouse, [paper_from_mapping(record) for record in week([f"{MONDAY}", f"{TUESDAY}"])])
    profile = Profile(name="ann", content=profile_content(ASKING, source="test"))
    for day in (MONDAY, TUESDAY):
        keep_candidates(warehouse, profile_day(warehouse, profile, day, settings=settings), settings=settings)
        keep_ranking(warehouse, profile, day, embedder=None, verifier=open_verifier({}), settings=settings, now=NOW)
    return folder


class Graph:
    """The real assets over a separate folder and instance; nothing is embedded unless a test requests it."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder, self.instance = folder, instance
        self.now = NOW
        self.set_llm({})
        self.warehouse = self.workspace.warehouse
        self.profile("ann", ASKING)

    def set_llm(self, environ: Mapping[str, str], *, embed: bool = False) -> None:
        opened = open_workspace(settings_in(self.folder), environ, clock=lambda: self.now)

        def unavailable() -> Any:
            raise ModelUnavailable("no model")

        self.workspace = opened if embed else _without_archive(replace(opened, load_embedder=unavailable))

    def profile(self, name: str, content: Mapping[str, Any]) -> None:
        Desk(self.folder).profile(name, content)
        self.instance.add_dynamic_partitions("profile", [name])

    def run(self, day: date = TUESDAY, profile: str = "ann") -> dg.ExecuteInProcessResult:
        return made(self.instance, self.workspace, "paper_rewrites", first=grid_key(day, profile))

    def rewrites(self, day: date | None = TUESDAY) -> list[RewriteItem]:
        return rewrites_of(self.warehouse, profile="ann", day=day)

    def latest(self, day: date = TUESDAY) -> tuple[str, dict[str, Any]]:
        """Data version and metadata last reported."""
        return latest(self.instance, "paper_rewrites", grid_key(day, "ann"))

    def due(self) -> dict[Partition, str]:
        """What the daemon's sensor finds due, each with its reason."""
        return outdated(self.instance, self.workspace, rewrites.STEP, [Partition(TUESDAY, "ann")])


def _without_archive(workspace: Workspace) -> Workspace:
    load = workspace.load_writer
    return replace(workspace, load_writer=lambda given: replace(load(given), archive=None))


@pytest.fixture
def graph(ranked: Path, tmp_path: Path) -> Iterator[Graph]:
    shutil.copytree(ranked, tmp_path, dirs_exist_ok=True)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Graph(tmp_path, instance)


def checks(outcome: dg.ExecuteInProcessResult) -> dict[str, bool]:
    assert outcome.success
    return {check.check_name: check.passed for check in outcome.get_asset_check_evaluations()}


def statuses(items: list[RewriteItem]) -> list[tuple[str, str | None]]:
    return [(item.target_level, item.outcome) for item in items]


GOOD = {"nothing_waits_for_the_model": True, "nothing_waits_too_long": True, "attempts_are_whole": True}


def test_the_best_papers_are_rewritten_for_each_level_and_reported_in_the_ui(graph: Graph) -> None:
    graph.profile("ann", {**GRAPHS, "rewriting": {"target_levels": ["public", "expert"], "papers": 2}})
    with loopback_llm(Play(92)) as server:
        prices = {"PAPER_ASSETS_LLM_PRICE_IN": "10", "PAPER_ASSETS_LLM_PRICE_OUT": "0"}
        graph.set_llm({**server.environ("ollama"), **prices})
        assert checks(graph.run()) == GOOD
        assert len(writing(server)) == 8
        requests = len(server.requests)  # with the checks of sentences, of which equal ones are asked once
        _, metadata = graph.latest()
        assert checks(graph.run()) == GOOD
        assert len(writing(server)) == 8, "what is done is not asked again"
    assert statuses(graph.rewrites()) == [("public", "passed"), ("expert", "passed")] * 2
    assert len({item.paper_id for item in graph.rewrites()}) == 2
    assert (metadata["dagster/row_count"], metadata["attempts"], metadata["scores"]) == (4, 4, "92, 92, 92, 92")
    assert 8 < requests <= 12
    spent = metadata["input_tokens"], metadata["output_tokens"], metadata["cost"]
    assert spent == (100 * requests, 10 * requests, requests / 1_000)
    assert "2603.002" in str(metadata["rewrites"].records) and "passed" in metadata["standing"]
    assert count_documents(graph.warehouse, "rewrite", None) == 4


def test_a_rewrite_that_an_earlier_version_paid_for_is_not_paid_for_again(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with loopback_llm(Play(96)) as server:
        graph.set_llm(server.environ("ollama"))
        assert checks(graph.run()) == GOOD
        before, paid = graph.rewrites(), len(writing(server))
        monkeypatch.setattr("paper_assets.rewriting.writing.prompt_version", lambda level: f"other prompts, {level}")
        assert checks(graph.run()) == GOOD
        assert graph.rewrites() == before
        assert len(writing(server)) == paid


def test_a_profile_that_asks_for_nothing_has_none_and_the_run_is_green_without_a_model(graph: Graph) -> None:
    graph.profile("ann", GRAPHS)
    assert checks(graph.run()) == GOOD
    assert graph.rewrites() == []
    assert graph.latest()[1]["dagster/row_count"] == 0


def test_what_waits_for_a_person_blocks_nothing_and_is_a_warning_after_some_days(graph: Graph) -> None:
    with loopback_llm(Play(88)) as server:
        graph.set_llm(server.environ("ollama"))
        assert checks(graph.run()) == GOOD
        version, metadata = graph.latest()
        assert "2" in metadata["standing"] and "waiting for a decision" in metadata["standing"]
        graph.now = NOW + timedelta(days=2, hours=23)
        assert checks(graph.run()) == GOOD
        graph.now = NOW + timedelta(days=3)
        assert checks(graph.run()) == {**GOOD, "nothing_waits_too_long": False}
        assert len(writing(server)) == 4
    assert graph.latest()[0] == version, "waiting leaves the version unchanged"


@pytest.mark.parametrize("unset", [True, False])
def test_a_dead_or_missing_model_ends_green_with_a_warning_and_a_later_run_continues(graph: Graph, unset: bool) -> None:
    with refusing_port() as port:
        nobody = {"LLM_PROVIDER": "ollama", "OLLAMA_BASE_URL": f"http://127.0.0.1:{port}"}
        graph.set_llm({} if unset else {**nobody, "PAPER_ASSETS_LLM_DEADLINE": "0.5"})
        assert checks(graph.run()) == {**GOOD, "nothing_waits_for_the_model": False}
    assert graph.latest()[1]["warnings"].startswith("2 rewrites wait for the language model: ")
    assert statuses(graph.rewrites()) == [("public", None), ("expert", None)]
    with loopback_llm(Play(92)) as server:
        graph.set_llm(server.environ("ollama"))
        assert checks(graph.run()) == GOOD
    assert graph.latest()[1]["warnings"] == "none"


def test_a_rewrite_that_no_profile_asks_for_waits_too_long_like_any_other(graph: Graph) -> None:
    [item] = opened(graph.warehouse)
    with loopback_llm(Play(88)) as server:
        graph.set_llm(server.environ("ollama"))
        advance(graph.warehouse, graph.workspace.load_writer(graph.workspace), item.item)
    graph.profile("ann", GRAPHS)
    graph.now = NOW + timedelta(days=3)
    assert checks(graph.run()) == {**GOOD, "nothing_waits_too_long": False}


def test_an_index_that_cannot_be_used_is_a_warning_and_the_rewrites_are_kept(graph: Graph) -> None:
    index = settings_in(graph.folder).vectors_path
    shutil.rmtree(index, ignore_errors=True)
    index.write_text("no folder", encoding="utf-8")
    with loopback_llm(Play(92)) as server:
        graph.set_llm(server.environ("ollama"), embed=True)
        graph.workspace = _without_archive(graph.workspace)
        assert checks(graph.run()) == GOOD
    assert statuses(graph.rewrites()) == [("public", "passed"), ("expert", "passed")]


def test_a_profile_that_no_longer_asks_for_rewrites_needs_no_model(graph: Graph) -> None:
    with loopback_llm(Play(92)) as server:
        graph.set_llm(server.environ("ollama"))
        graph.run()
    graph.set_llm({})
    partition = Partition(TUESDAY, "ann")

    graph.profile("ann", GRAPHS)
    bring_up_to_date(graph.instance, graph.workspace, rewrites.STEP, [partition], RunResult())
    assert waits_of(graph.workspace, "ann", TUESDAY) == []
    assert graph.rewrites() == []
    graph.profile("ann", {**GRAPHS, "rewriting": {"target_levels": ["student"], "papers": 1}})
    [reason] = waits_of(graph.workspace, "ann", TUESDAY)
    assert "no rewrites for student: no language model is set up" in reason


def test_an_edited_profile_asks_for_other_rewrites_and_the_old_ones_stay(graph: Graph) -> None:
    with loopback_llm(Play(92)) as server:
        graph.set_llm(server.environ("ollama"))
        graph.run()
        before, version = graph.rewrites(), graph.latest()[0]
        graph.profile("ann", {**GRAPHS, "rewriting": {"target_levels": ["student", "public"], "papers": 1}})
        graph.run()
        assert len(writing(server)) == 6
    after = graph.rewrites()
    assert statuses(after) == [("student", "passed"), ("public", "passed")]
    assert after[1] == before[0]
    assert graph.latest()[0] != version


def test_a_finished_rewrite_is_found_by_search(graph: Graph) -> None:
    with loopback_llm(Play(92, text="Roads forget no jam that ever stood on them for long")) as server:
        graph.set_llm(server.environ("ollama"), embed=True)
        assert checks(graph.run()) == GOOD
    corpus = Corpus(warehouse=graph.warehouse, embedder=graph.workspace.load_embedder())
    found = search(corpus, "jam on roads", data_type="rewrite", where=None, k=10, method="vector")
    assert (len(found.candidates), found.unembedded) == (2, 0)
    assert {candidate.metadata["access_level"] for candidate in found.candidates} == {"public"}


# Decisions


def waiting(graph: Graph, server: LoopbackLLM) -> list[RewriteItem]:
    graph.set_llm(server.environ("ollama"))
    graph.run()
    return graph.rewrites()


def word(graph: Graph, item: RewriteItem, decision: Any, attempt: int = 1) -> None:
    assert decide(graph.warehouse, item.item, attempt, decision, now=graph.now, config=RewritingConfig()).counted


# Automation


def test_each_decision_is_another_reason_to_run_and_none_is_left_afterwards(graph: Graph) -> None:
    with loopback_llm(Play(88, 88, 92)) as server:
        first, second = waiting(graph, server)
        assert graph.due() == {}
        word(graph, first, "accept")
        once = graph.due()
        word(graph, second, "retry")
        assert once.keys() == graph.due().keys() and once != graph.due()
        graph.run()
        word(graph, second, "retry", attempt=2)
        assert graph.due()
        graph.run()
        assert graph.due() == {}
    assert [item.outcome for item in graph.rewrites()] == ["accepted", "passed"]


def test_a_rewrite_whose_step_cannot_be_determined_does_not_block_others(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with loopback_llm(Play(88, 88)) as server:
        graph.set_llm(server.environ("ollama"))
        graph.run()
    public, expert = graph.rewrites()
    assert rewrites.waiting_by_profile(graph.warehouse, config=RewritingConfig()) == {"ann": 2}
    step_of = rewrite_items.step_of

    def failing(item: RewriteItem, **more: Any) -> Any:
        if item.item == public.item:
            raise IndexError("planted")
        return step_of(item, **more)

    monkeypatch.setattr(rewrite_items, "step_of", failing)
    assert rewrites.waiting_by_profile(graph.warehouse, config=RewritingConfig()) == {"ann": 1}
    assert f"the rewrite of {public.paper_id} for public" in caplog.text
    graph.now += timedelta(days=1)
    decide(graph.warehouse, expert.item, 1, "accept", now=graph.now, config=RewritingConfig())
    assert graph.due().keys() == {Partition(TUESDAY, "ann")}
