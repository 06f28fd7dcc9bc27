"""The assets themselves, materialized in this process: real stores, real model, arXiv on loopback."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pytest
from dagster._core.storage.tags import TagType, get_tag_type

from paper_assets.definitions import defs
from paper_assets.defs import assets, runs
from paper_assets.defs.assets import ASSETS
from paper_assets.defs.partitions import grid_key
from paper_assets.defs.reports import ATTENDED
from paper_assets.errors import ModelUnavailable
from paper_assets.models.embedder import Embedder
from paper_assets.pipeline import embeddings, gatekeeper, papers
from paper_assets.pipeline.step import Grid, Partition, Product
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.settings import load_settings
from paper_assets.stores.embeddings import unembedded_count
from paper_assets.stores.harvests import day_troubles
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.papers import paper_counts, papers_by_id
from paper_assets.stores.rankings import candidates, ranking
from tests.defs.in_dagster import latest, made
from tests.desk import GRAPHS, SPEECH, Desk
from tests.digests.invented import paper
from tests.loopback import Answer
from tests.loopback_arxiv import LoopbackArxiv, invented_paper, loopback_arxiv

MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)
NOW = datetime(2026, 3, 5, 7, 30, tzinfo=UTC)


class Graph:
    """The real assets over one folder and one instance."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, arxiv: LoopbackArxiv) -> None:
        environment = {
            "PAPER_ASSETS_ARXIV_URL": arxiv.url,
            "PAPER_ASSETS_REQUEST_INTERVAL": "0",
            "PAPER_ASSETS_REQUEST_GATE": str(folder / "gate"),
            "PAPER_ASSETS_FIRST_DAY": "2026-01-01",
        }
        self.arxiv = arxiv
        self.instance = instance
        self.folder = folder
        self.workspace = open_workspace(load_settings(environment, folder), {}, clock=lambda: NOW)

    @property
    def warehouse(self) -> Any:
        return self.workspace.warehouse

    def profile(self, name: str, content: Mapping[str, Any]) -> None:
        Desk(self.folder).profile(name, content)
        self.instance.add_dynamic_partitions("profile", [name])

    def materialize(self, *assets: str, first: str, last: str | None = None) -> dg.ExecuteInProcessResult:
        return made(self.instance, self.workspace, *assets, first=first, last=last)

    def versions(self, asset: str) -> dict[str, str]:
        """The data version last reported for each partition."""
        found: dict[str, str] = {}
        for record in self.instance.fetch_materializations(dg.AssetKey(asset), limit=200).records:
            event = record.asset_materialization
            assert event is not None and event.tags is not None
            found.setdefault(str(event.partition), event.tags["dagster/data_version"])
        return found

    def metadata(self, asset: str, partition: str) -> dict[str, Any]:
        return latest(self.instance, asset, partition)[1]


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    papers = [
        invented_paper(number, day, title=f"{topic} {number}")
        for day in (MONDAY, TUESDAY)
        for number, topic in enumerate(["Traffic forecasting on road networks", "Speech recognition"] * 3)
    ]
    with dg.DagsterInstance.ephemeral() as instance, loopback_arxiv(papers) as arxiv:
        yield Graph(tmp_path, instance, arxiv)


def checks(outcome: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {check.check_name: check.passed for check in outcome.get_asset_check_evaluations()}


def test_a_day_goes_from_arxiv_to_an_explained_ranking(graph: Graph) -> None:
    graph.profile("graphs", GRAPHS)
    key = grid_key(TUESDAY, "graphs")
    fetched = graph.materialize("arxiv_papers", first=f"{MONDAY}", last=f"{TUESDAY}")
    embedded = graph.materialize("paper_embeddings", first=f"{MONDAY}", last=f"{TUESDAY}")
    ranked = graph.materialize("filtered_candidates", "scored_rankings", first=key)
    assert all([*checks(fetched).values(), *checks(embedded).values(), *checks(ranked).values()])
    assert len(checks(fetched) | checks(embedded) | checks(ranked)) == 7

    metadata = graph.metadata("scored_rankings", key)
    assert metadata["dagster/row_count"] == 12
    assert "Traffic forecasting" in str(metadata["top_papers"].records[0].data["paper"])
    assert metadata["score_breakdown"].schema.columns[-1].name.startswith("What each dimension brought")
    assert graph.metadata("filtered_candidates", key)["passed"] == 12
    assert graph.metadata("arxiv_papers", f"{MONDAY}")["dagster/row_count"] == 6
    shown = ranking(graph.warehouse, TUESDAY, "graphs").rows.slice(0, 2).column("paper_id").to_pylist()
    titles = papers_by_id(graph.warehouse, shown).column("title").to_pylist()
    assert all(title.startswith("Traffic") for title in titles)


def test_a_ranking_is_made_before_the_answers_of_the_same_run(graph: Graph) -> None:
    graph.profile("graphs", GRAPHS)
    graph.materialize("arxiv_papers", "paper_embeddings", first=f"{MONDAY}")
    asked = ("balanced_retrievals", "filtered_candidates", "scored_rankings")
    outcome = graph.materialize(*asked, first=grid_key(MONDAY, "graphs"))
    begun = [event.step_key for event in outcome.all_events if event.event_type_value == "STEP_START"]
    assert begun == ["gatekeeper", "balanced_retrievals"]


def test_only_the_day_that_changed_has_a_new_version_in_a_run_over_several(graph: Graph) -> None:
    graph.materialize("arxiv_papers", first=f"{MONDAY}", last=f"{TUESDAY}")
    before = graph.versions("arxiv_papers")
    graph.materialize("arxiv_papers", first=f"{MONDAY}", last=f"{TUESDAY}")
    assert graph.versions("arxiv_papers") == before, "the same data again has the same version"
    graph.arxiv.papers[0] = replace(graph.arxiv.papers[0], version=2, title="Corrected")
    graph.materialize("arxiv_papers", first=f"{MONDAY}", last=f"{TUESDAY}")
    after = graph.versions("arxiv_papers")
    assert {day for day in before if after[day] != before[day]} == {f"{MONDAY}"}


def test_a_day_that_fails_leaves_the_other_days_stored_and_reported(graph: Graph) -> None:
    complete = graph.arxiv.answer
    cut = Answer(body=b"<html>Down for maintenance</html>")
    graph.arxiv.answer = lambda request: cut if "20260302" in str(request.query) else complete(request)  # type: ignore[method-assign]
    outcome = graph.materialize("arxiv_papers", first=f"{MONDAY}", last=f"{TUESDAY}")
    assert not outcome.success
    assert paper_counts(graph.warehouse) == {TUESDAY: 6}
    assert set(graph.versions("arxiv_papers")) == {f"{TUESDAY}"}


def test_a_weekday_without_papers_is_a_warning_and_not_silence(graph: Graph) -> None:
    outcome = graph.materialize("arxiv_papers", first="2026-02-26")
    assert outcome.success
    assert checks(outcome) == {"ids_are_unique": True, "no_weekday_without_papers": False}


def test_a_failed_check_stays_red_after_the_next_day_until_its_own_day_passes(graph: Graph) -> None:
    empty, name = "2026-02-27", "no_weekday_without_papers"
    assert not checks(graph.materialize("arxiv_papers", first=empty))[name]
    outcome = graph.materialize("arxiv_papers", first=f"{MONDAY}")
    (evaluation,) = [each for each in outcome.get_asset_check_evaluations() if each.check_name == name]
    assert not evaluation.passed and evaluation.metadata["failing"].value == [[empty, None]]
    merge_papers(graph.warehouse, [paper(1, published=datetime(2026, 2, 27, 9, tzinfo=UTC))])
    assert checks(graph.materialize("arxiv_papers", first=f"{TUESDAY}"))[name]


@pytest.mark.parametrize(
    "product", [product for step in STEPS for product in step.products], ids=lambda each: each.name
)
def test_an_asset_is_importable_by_its_name_and_each_of_its_checks_can_be_executed_alone(
    graph: Graph, product: Product
) -> None:
    asset = getattr(assets, product.name)
    assert dg.AssetKey(product.name) in asset.keys and asset.can_subset
    for check in product.checks:
        outcome = dg.materialize(
            ASSETS,
            selection=dg.AssetSelection.checks(dg.AssetCheckKey(dg.AssetKey(product.name), check.name)),
            instance=graph.instance,
            resources={"workspace": graph.workspace},
        )
        assert outcome.success and [*checks(outcome)] == [check.name]


def test_without_a_model_keywords_rank_and_the_report_warns(graph: Graph) -> None:
    def unavailable() -> None:
        raise ModelUnavailable("model files are gone; install again")

    graph.profile("graphs", GRAPHS)
    graph.workspace = replace(graph.workspace, load_embedder=unavailable)
    key = grid_key(MONDAY, "graphs")
    graph.materialize("arxiv_papers", first=f"{MONDAY}")
    embedded = graph.materialize("paper_embeddings", first=f"{MONDAY}")
    assert embedded.success and not any(checks(embedded).values())
    assert graph.materialize("filtered_candidates", "scored_rankings", first=key).success
    assert "keywords only" in graph.metadata("scored_rankings", key)["warnings"]
    assert "Traffic" in str(graph.metadata("scored_rankings", key)["top_papers"].records[0].data["paper"])


@pytest.mark.parametrize("works_for", [(), ("paper",)], ids=["never", "until the papers"])
def test_a_model_that_fails_when_asked_fails_no_day_and_nothing_of_it_is_kept(
    graph: Graph, works_for: tuple[str, ...]
) -> None:
    model: Embedder = graph.workspace.load_embedder()

    def one(text: str) -> np.ndarray:
        return model._one(text) if text in works_for else np.full(model.dimension, np.nan)

    graph.materialize("arxiv_papers", first=f"{MONDAY}")
    broken = replace(model, _one=one, _memory=type(model._memory)())
    graph.workspace = replace(graph.workspace, load_embedder=lambda: broken)
    embedded = graph.materialize("paper_embeddings", first=f"{MONDAY}")
    assert embedded.success and not any(checks(embedded).values())
    assert unembedded_count(graph.warehouse, MONDAY, MONDAY, model=model.name) == 6
    graph.workspace = replace(graph.workspace, load_embedder=lambda: model)
    assert all(checks(graph.materialize("paper_embeddings", first=f"{MONDAY}")).values())


def test_a_broken_profile_is_ranked_by_its_last_good_content_and_never_by_nothing(graph: Graph) -> None:
    graph.profile("graphs", GRAPHS)
    for day in (MONDAY, TUESDAY):
        graph.materialize("arxiv_papers", first=f"{day}")
        graph.materialize("paper_embeddings", first=f"{day}")
    graph.materialize("filtered_candidates", "scored_rankings", first=grid_key(MONDAY, "graphs"))
    (graph.folder / "profiles" / "graphs" / "profile.json").write_text('{"inter', encoding="utf-8")
    outcome = graph.materialize("filtered_candidates", "scored_rankings", first=grid_key(TUESDAY, "graphs"))
    assert outcome.success
    assert sum(ranking(graph.warehouse, TUESDAY, "graphs").rows.column("shown").to_pylist()) == 2

    graph.profile("new", SPEECH)
    (graph.folder / "profiles" / "new" / "profile.json").write_text("{}", encoding="utf-8")
    failed = graph.materialize("filtered_candidates", "scored_rankings", first=grid_key(TUESDAY, "new"))
    assert not failed.success
    failure = failed.get_step_failure_events()[0].step_failure_data.user_failure_data
    assert failure is not None and "new/profile.json: interests" in str(failure.description)


def test_candidates_alone_can_be_materialized_and_a_ranking_without_them_says_what_to_do(graph: Graph) -> None:
    graph.profile("graphs", GRAPHS)
    key = grid_key(MONDAY, "graphs")
    graph.materialize("arxiv_papers", first=f"{MONDAY}")
    alone = graph.materialize("scored_rankings", first=key)
    assert "materialize filtered_candidates" in str(
        alone.get_step_failure_events()[0].step_failure_data.user_failure_data
    )
    assert graph.materialize("filtered_candidates", first=key).success
    assert candidates(graph.warehouse, MONDAY, "graphs").num_rows == 6


def ranked_day(graph: Graph) -> str:
    """Papers and vectors of Monday and a profile, with its key."""
    graph.profile("graphs", GRAPHS)
    graph.materialize("arxiv_papers", first=f"{MONDAY}")
    graph.materialize("paper_embeddings", first=f"{MONDAY}")
    return grid_key(MONDAY, "graphs")


def test_options_of_a_run_go_before_the_profiles_and_the_same_run_without_them_goes_back(graph: Graph) -> None:
    key = ranked_day(graph)

    def ranked(**options: Any) -> dg.ExecuteInProcessResult:
        options_of_run = {"gatekeeper": options} if options else None
        asked = ("filtered_candidates", "scored_rankings")
        return made(graph.instance, graph.workspace, *asked, first=key, options=options_of_run)

    assert ranked(top_k=1, purpose="idea_generation").success
    stored = ranking(graph.warehouse, MONDAY, "graphs")
    assert (stored.header["top_k"], stored.header["purpose"]) == (1, "idea_generation")
    assert sum(stored.rows.column("shown").to_pylist()) == 1
    assert ranked().success
    assert ranking(graph.warehouse, MONDAY, "graphs").header["top_k"] == 2
    with pytest.raises(dg.DagsterInvalidConfigError, match=r"purpose not in enum type purpose got leisure"):
        ranked(purpose="leisure")


def test_a_profile_that_fails_leaves_the_others_of_the_run_ranked(graph: Graph) -> None:
    ranked_day(graph)
    graph.profile("broken", {"interests": 3})
    outcome = graph.materialize(
        "filtered_candidates",
        "scored_rankings",
        first=grid_key(MONDAY, "graphs"),
        last=grid_key(MONDAY, "broken"),
    )
    assert not outcome.success
    failure = outcome.get_step_failure_events()[0].step_failure_data.user_failure_data
    assert failure is not None and "1 of 2 partitions not made; 2026-03-02 broken" in str(failure.description)
    assert grid_key(MONDAY, "graphs") in graph.versions("scored_rankings")


def test_far_fewer_papers_than_before_fail_the_day_and_remove_nothing_unless_the_run_accepts_it(graph: Graph) -> None:
    graph.materialize("arxiv_papers", first=f"{MONDAY}")
    del graph.arxiv.papers[2:]
    assert not graph.materialize("arxiv_papers", first=f"{MONDAY}").success
    assert paper_counts(graph.warehouse) == {MONDAY: 6}
    options = {"arxiv_papers": {"accept_fewer": True}}
    assert made(graph.instance, graph.workspace, "arxiv_papers", first=f"{MONDAY}", options=options).success
    assert paper_counts(graph.warehouse) == {MONDAY: 2}


def test_days_that_a_run_did_not_come_to_are_named(graph: Graph) -> None:
    graph.materialize("arxiv_papers", first=f"{MONDAY}", last=f"{TUESDAY}")
    graph.arxiv.answer = lambda request: Answer(status=429, headers={"Retry-After": "7200"})  # type: ignore[method-assign]
    assert not graph.materialize("arxiv_papers", first=f"{MONDAY}", last=f"{TUESDAY}").success
    named = {trouble.day: trouble.reason for trouble in day_troubles(graph.warehouse, sources=["arxiv"])}
    assert set(named) == {MONDAY, TUESDAY} and named[MONDAY].startswith("not requested, after")
    assert paper_counts(graph.warehouse) == {MONDAY: 6, TUESDAY: 6}


def test_the_list_of_runs_names_what_a_command_makes_and_shows_only_tags_for_a_person(graph: Graph) -> None:
    graph.profile("graphs", GRAPHS)
    for step in (papers.STEP, embeddings.STEP, gatekeeper.STEP):
        each = Partition(MONDAY, "graphs") if step.grid is Grid.PROFILE_DAY else Partition(MONDAY)
        runs.materialize(graph.instance, graph.workspace, step, each, each)
    found = graph.instance.get_runs()
    assets_of_runs = [{key.to_user_string() for key in run.asset_selection or ()} for run in found]
    assert assets_of_runs == [{"filtered_candidates", "scored_rankings"}, {"paper_embeddings"}, {"arxiv_papers"}]
    for run in found:
        of_a_person = {name: value for name, value in run.tags.items() if get_tag_type(name) is TagType.USER_PROVIDED}
        assert of_a_person == {ATTENDED: "command"}


def test_a_failed_run_of_a_command_begins_with_its_one_line_and_is_left_to_the_person(graph: Graph) -> None:
    graph.arxiv.answer = lambda request: Answer(status=404)  # type: ignore[method-assign]
    outcome = runs.materialize(graph.instance, graph.workspace, papers.STEP, Partition(MONDAY), Partition(MONDAY))
    [run] = graph.instance.get_runs()
    assert run.status is dg.DagsterRunStatus.FAILURE
    [failed] = [each for each in graph.instance.all_logs(run.run_id) if each.step_key and "Failure" in str(each)][-1:]
    assert f"{outcome.failures[Partition(MONDAY)]}" in str(failed).split("Stack Trace")[0]
    assert (
        run.tags["dagster/max_retries"] == "0"
    )  # a daemon cannot start it again, and ended its log with a line on that


def test_every_sensor_schedule_and_check_has_a_description_in_the_ui() -> None:
    repository = defs.get_repository_def()
    checks = [repository.asset_graph.get_check_spec(key) for key in repository.asset_graph.asset_check_keys]
    acting = [*repository.sensor_defs, *repository.schedule_defs, *checks]
    assert len(acting) > 20
    assert [each.name for each in acting if not each.description] == []
