"""The assets themselves, materialized in this process: real stores, real model, arXiv on loopback."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from paper_assets.defs.evaluation import ranking_quality
from paper_assets.defs.partitions import profile_day
from paper_assets.defs.reports import ATTENDED
from paper_assets.defs.resources import resources_for
from paper_assets.defs.runs import ASSETS
from paper_assets.errors import ModelUnavailable
from paper_assets.settings import load_settings
from paper_assets.stores.papers import paper_counts, papers_by_id
from paper_assets.stores.rankings import candidates, ranking
from tests.desk import GRAPHS, SPEECH
from tests.loopback_arxiv import Answer, LoopbackArxiv, invented_paper, loopback_arxiv

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
        self.resources = resources_for(load_settings(environment, folder), {}) | {"clock": lambda: NOW}

    @property
    def warehouse(self) -> Any:
        return self.resources["warehouse"]

    def profile(self, name: str, content: Mapping[str, Any]) -> None:
        file = self.folder / "profiles" / name / "profile.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content), encoding="utf-8")
        self.instance.add_dynamic_partitions("profile", [name])

    def materialize(self, *assets: str, first: str, last: str | None = None) -> dg.ExecuteInProcessResult:
        span = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last or first}
        return dg.materialize(
            ASSETS,
            selection=list(assets),
            instance=self.instance,
            resources=self.resources,
            partition_key=None if last else first,
            tags={ATTENDED: "yes", **(span if last else {})},
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )

    def versions(self, asset: str) -> dict[str, str]:
        """The data version last reported for each partition."""
        found: dict[str, str] = {}
        for record in self.instance.fetch_materializations(dg.AssetKey(asset), limit=200).records:
            event = record.asset_materialization
            assert event is not None and event.tags is not None
            found.setdefault(str(event.partition), event.tags["dagster/data_version"])
        return found

    def metadata(self, asset: str, partition: str) -> dict[str, Any]:
        event = self.instance.get_latest_data_version_record(dg.AssetKey(asset), partition_key=partition)
        assert event is not None and event.asset_materialization is not None
        return {name: value.value for name, value in event.asset_materialization.metadata.items()}


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
    key = profile_day(TUESDAY, "graphs")
    fetched = graph.materialize("arxiv_papers", first=f"{MONDAY}", last=f"{TUESDAY}")
    embedded = graph.materialize("paper_embeddings", first=f"{MONDAY}", last=f"{TUESDAY}")
    ranked = graph.materialize("filtered_candidates", "scored_rankings", first=key)
    assert all([*checks(fetched).values(), *checks(embedded).values(), *checks(ranked).values()])
    assert len(checks(fetched) | checks(embedded) | checks(ranked)) == 7

    told = graph.metadata("scored_rankings", key)
    assert told["dagster/row_count"] == 12
    assert "Traffic forecasting" in told["top_papers"]
    assert told["score_breakdown"].startswith("![What each dimension brought")
    assert graph.metadata("filtered_candidates", key)["passed"] == 12
    assert graph.metadata("arxiv_papers", f"{MONDAY}")["dagster/row_count"] == 6
    shown = ranking(graph.warehouse, TUESDAY, "graphs").rows.slice(0, 2).column("paper_id").to_pylist()
    titles = papers_by_id(graph.warehouse, shown).column("title").to_pylist()
    assert all(title.startswith("Traffic") for title in titles)


def test_only_the_day_that_changed_has_a_new_version_in_a_run_over_several(graph: Graph) -> None:
    graph.materialize("arxiv_papers", first=f"{MONDAY}", last=f"{TUESDAY}")
    before = graph.versions("arxiv_papers")
    graph.materialize("arxiv_papers", first=f"{MONDAY}", last=f"{TUESDAY}")
    assert graph.versions("arxiv_papers") == before, "the same data again is no news"
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
    outcome = graph.materialize("arxiv_papers", first="2026-03-04")
    assert outcome.success
    assert checks(outcome) == {"ids_are_unique": True, "no_weekday_without_papers": False}


def test_without_a_model_keywords_rank_and_everybody_is_told(graph: Graph) -> None:
    def unavailable() -> None:
        raise ModelUnavailable("model files are gone; install again")

    graph.profile("graphs", GRAPHS)
    graph.resources["embedder"] = unavailable
    key = profile_day(MONDAY, "graphs")
    graph.materialize("arxiv_papers", first=f"{MONDAY}")
    embedded = graph.materialize("paper_embeddings", first=f"{MONDAY}")
    assert embedded.success and not any(checks(embedded).values())
    assert graph.materialize("filtered_candidates", "scored_rankings", first=key).success
    assert "keywords only" in graph.metadata("scored_rankings", key)["warnings"]
    assert "Traffic" in graph.metadata("scored_rankings", key)["top_papers"].splitlines()[2]


def test_a_broken_profile_is_ranked_by_its_last_good_content_and_never_by_nothing(graph: Graph) -> None:
    graph.profile("graphs", GRAPHS)
    for day in (MONDAY, TUESDAY):
        graph.materialize("arxiv_papers", first=f"{day}")
        graph.materialize("paper_embeddings", first=f"{day}")
    graph.materialize("filtered_candidates", "scored_rankings", first=profile_day(MONDAY, "graphs"))
    (graph.folder / "profiles" / "graphs" / "profile.json").write_text('{"inter', encoding="utf-8")
    outcome = graph.materialize("filtered_candidates", "scored_rankings", first=profile_day(TUESDAY, "graphs"))
    assert outcome.success
    assert (
        len(
            ranking(graph.warehouse, TUESDAY, "graphs").rows.filter(
                ranking(graph.warehouse, TUESDAY, "graphs").rows.column("shown")
            )
        )
        == 2
    )

    graph.profile("new", SPEECH)
    (graph.folder / "profiles" / "new" / "profile.json").write_text("{}", encoding="utf-8")
    failed = graph.materialize("filtered_candidates", "scored_rankings", first=profile_day(TUESDAY, "new"))
    assert not failed.success
    failure = failed.get_step_failure_events()[0].step_failure_data.user_failure_data
    assert failure is not None and "new/profile.json: interests" in str(failure.description)


def test_candidates_alone_can_be_materialized_and_a_ranking_without_them_says_what_to_do(graph: Graph) -> None:
    graph.profile("graphs", GRAPHS)
    key = profile_day(MONDAY, "graphs")
    graph.materialize("arxiv_papers", first=f"{MONDAY}")
    alone = graph.materialize("scored_rankings", first=key)
    assert "materialize filtered_candidates" in str(
        alone.get_step_failure_events()[0].step_failure_data.user_failure_data
    )
    assert graph.materialize("filtered_candidates", first=key).success
    assert candidates(graph.warehouse, MONDAY, "graphs").num_rows == 6


def test_the_shipped_labelled_set_is_ranked_better_by_the_default_mode_than_by_any_baseline(graph: Graph) -> None:
    outcome = dg.materialize([ranking_quality], instance=graph.instance, resources=graph.resources)
    assert checks(outcome) == {
        "default_mode_beats_every_baseline": True,
        "every_judgement_is_of_a_known_document": True,
    }
