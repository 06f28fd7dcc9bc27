"""Test what is requested automatically: the real conditions of the real assets, driven by reported events."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import AssetMaterializationPlannedData

from paper_assets.defs import resources
from paper_assets.defs.assets import ASSETS
from paper_assets.defs.automation import conditions, fetched_day, repaired_days
from paper_assets.defs.partitions import grid_key
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.settings import load_settings
from paper_assets.stores.feedback import NewRating, append_ratings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse
from tests.defs.conditions import evaluated, materialized
from tests.desk import no_clock
from tests.pipeline.test_rankings import paper

RESOURCES = {
    "workspace": open_workspace(load_settings({}, Path("/nowhere")), {}, clock=no_clock)
}  # conditions open nothing
DEFINITIONS = dg.Definitions(assets=ASSETS, sensors=[conditions], resources=RESOURCES)
CANDIDATES, RANKINGS = "filtered_candidates", "scored_rankings"


class Desk:
    """An instance on which materializations are reported instead of run, and conditions ticked by hand."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.cursor: object = None
        self.asked: dict[str, set[str]] = {}

    def report(self, asset: str, partition: str, version: str) -> None:
        materialized(self.instance, asset, partition, version)

    def tick(self) -> dict[str, set[str]]:
        """One evaluation; what it asks for by asset."""
        result = evaluated(DEFINITIONS, self.instance, cursor=self.cursor)
        self.cursor = result.cursor
        self.asked = {
            asset: {str(key) for key in keys}
            for asset in ("paper_embeddings", "preference_model", CANDIDATES, RANKINGS)
            if (keys := result.get_requested_partitions(dg.AssetKey(asset)))
        }
        return self.asked

    def carry_out(self, version: str) -> None:
        """Report as done what the last tick asked for."""
        for asset, keys in self.asked.items():
            for key in keys if asset != "preference_model" else ():
                day, _, profile = key.partition("|")
                self.report(asset, grid_key(date.fromisoformat(day), profile) if profile else key, version)

    def settle(self, version: str = "settled") -> None:
        while self.tick():
            self.carry_out(version)


@pytest.fixture
def desk() -> Iterator[Desk]:
    """Two profiles and two days, everything computed."""
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("profile", ["ann", "bob"])
        desk = Desk(instance)
        for name in ("ann", "bob"):
            desk.report("research_profile", name, f"{name}-1")
        for day in ("2026-03-01", "2026-03-02"):
            desk.report("arxiv_papers", day, "papers-1")
        desk.settle()
        yield desk


def ranked(asked: dict[str, set[str]]) -> set[str]:
    assert asked.get(CANDIDATES) == asked.get(RANKINGS), "candidates and rankings are one step"
    return asked.get(RANKINGS, set())


def test_papers_found_at_the_first_start_are_embedded_and_only_the_latest_day_is_ranked() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("profile", ["ann"])
        desk = Desk(instance)
        desk.report("research_profile", "ann", "1")
        desk.report("arxiv_papers", "2026-03-01", "1")
        desk.report("arxiv_papers", "2026-03-02", "1")
        assert desk.tick() == {"paper_embeddings": {"2026-03-01", "2026-03-02"}}
        desk.carry_out("1")
        assert ranked(desk.tick()) == {"2026-03-02|ann"}


def test_a_profile_edited_before_anybody_looked_is_ranked_again(desk: Desk) -> None:
    first = Desk(desk.instance)
    first.report("research_profile", "ann", "ann-2")
    assert ranked(first.tick()) == {"2026-03-02|ann", "2026-03-02|bob"}, (
        "which papers it was is unknown; bob stays the same"
    )
    first.carry_out("2")
    assert first.tick() == {}


def test_an_edited_profile_is_ranked_again_alone_and_once(desk: Desk) -> None:
    desk.report("research_profile", "ann", "ann-2")
    assert ranked(desk.tick()) == {"2026-03-02|ann"}
    desk.carry_out("2")
    assert desk.tick() == {}
    assert desk.tick() == {}


def test_a_profile_changed_there_and_back_is_ranked_both_times(desk: Desk) -> None:
    for version in ("ann-2", "ann-1"):
        desk.report("research_profile", "ann", version)
        assert ranked(desk.tick()) == {"2026-03-02|ann"}, version
        desk.carry_out(version)
        assert desk.tick() == {}


def test_an_edit_between_request_and_next_tick_is_not_lost(desk: Desk) -> None:
    desk.report("research_profile", "ann", "ann-2")
    desk.tick()
    desk.report("research_profile", "ann", "ann-3")
    assert ranked(desk.tick()) == {"2026-03-02|ann"}


def test_the_same_content_reported_again_asks_for_nothing(desk: Desk) -> None:
    desk.report("research_profile", "ann", "ann-1")
    desk.report("arxiv_papers", "2026-03-02", "papers-1")
    assert desk.tick() == {}


def test_changed_papers_are_embedded_and_the_latest_day_ranked_for_every_profile(desk: Desk) -> None:
    desk.report("arxiv_papers", "2026-03-01", "papers-2")
    assert desk.tick() == {"paper_embeddings": {"2026-03-01"}}
    desk.carry_out("embedded-2")
    assert ranked(desk.tick()) == {"2026-03-02|ann", "2026-03-02|bob"}


def test_a_new_day_is_embedded_before_it_is_ranked(desk: Desk) -> None:
    desk.report("arxiv_papers", "2026-03-03", "papers-1")
    assert desk.tick() == {"paper_embeddings": {"2026-03-03"}}
    assert desk.tick() == {}
    desk.asked = {"paper_embeddings": {"2026-03-03"}}
    desk.carry_out("1")
    assert ranked(desk.tick()) == {"2026-03-03|ann", "2026-03-03|bob"}


def in_progress(instance: dg.DagsterInstance, day: str) -> None:
    """Record a run that is embedding the day."""
    run = instance.create_run_for_job(
        dg.Definitions(assets=ASSETS, resources=RESOURCES).get_implicit_global_asset_job_def(),
        asset_selection=frozenset({dg.AssetKey("paper_embeddings")}),
        tags={"dagster/partition": day},
        status=dg.DagsterRunStatus.STARTED,
    )
    planned = dg.DagsterEvent(
        "ASSET_MATERIALIZATION_PLANNED",
        "__ASSET_JOB",
        event_specific_data=AssetMaterializationPlannedData(dg.AssetKey("paper_embeddings"), partition=day),
    )
    instance.report_dagster_event(planned, run.run_id)


def test_an_edit_is_ranked_while_older_papers_are_being_embedded(desk: Desk) -> None:
    desk.report("arxiv_papers", "2026-02-01", "papers-1")
    assert desk.tick() == {"paper_embeddings": {"2026-02-01"}}
    in_progress(desk.instance, "2026-02-01")
    desk.report("research_profile", "ann", "ann-2")
    assert ranked(desk.tick()) == {"2026-03-02|ann"}


def test_a_backlog_is_ranked_once_all_of_it_is_embedded(desk: Desk) -> None:
    in_progress(desk.instance, "2026-02-01")
    desk.report("arxiv_papers", "2026-02-02", "papers-1")
    desk.tick()
    desk.carry_out("1")
    assert ranked(desk.tick()) == set()
    desk.report("paper_embeddings", "2026-02-01", "1")
    assert ranked(desk.tick()) == {"2026-03-02|ann", "2026-03-02|bob"}


def test_an_edit_waits_while_papers_of_the_ranked_day_are_being_embedded(desk: Desk) -> None:
    in_progress(desk.instance, "2026-03-02")
    desk.report("research_profile", "ann", "ann-2")
    assert ranked(desk.tick()) == set()


def test_a_new_profile_is_ranked_for_the_latest_day(desk: Desk) -> None:
    desk.instance.add_dynamic_partitions("profile", ["eve"])
    desk.report("research_profile", "eve", "eve-1")
    assert ranked(desk.tick()) == {"2026-03-02|eve"}


def test_a_removed_profile_requests_nothing_and_affects_no_other_profile(desk: Desk) -> None:
    desk.instance.delete_dynamic_partition("profile", "bob")
    assert desk.tick() == {}
    desk.report("research_profile", "ann", "ann-2")
    assert ranked(desk.tick()) == {"2026-03-02|ann"}


def test_a_day_is_fetched_two_days_later_and_again_on_the_following_sundays() -> None:
    assert fetched_day(date(2026, 3, 4)) == date(2026, 3, 2)
    sunday = repaired_days(date(2026, 3, 8))
    assert (sunday[0], sunday[-1], len(sunday)) == (date(2026, 2, 21), date(2026, 3, 6), 14)


def test_a_rating_is_learned_from_and_then_ranks_its_profile_alone(desk: Desk) -> None:
    desk.report("reader_ratings", "ann", "rated-1")
    assert desk.tick() == {"preference_model": {"ann"}}
    assert desk.tick() == {}, "asked for once, and no ranking before it is made"
    desk.report("preference_model", "ann", "model-1")
    assert ranked(desk.tick()) == {"2026-03-02|ann"}
    desk.carry_out("2")
    assert desk.tick() == {}


def test_an_edited_profile_with_ratings_is_ranked_at_once_and_again_after_its_model_is_trained_again(
    desk: Desk,
) -> None:
    desk.report("reader_ratings", "ann", "rated-1")
    desk.tick()
    desk.report("preference_model", "ann", "model-1")
    desk.settle()
    desk.report("research_profile", "ann", "ann-2")
    asked = desk.tick()
    assert asked["preference_model"] == {"ann"} and ranked(asked) == {"2026-03-02|ann"}
    desk.report("preference_model", "ann", "model-2")
    assert ranked(desk.tick()) == {"2026-03-02|ann"}


@pytest.mark.parametrize(("day", "asked"), [("2026-03-01", {"ann"}), ("2026-03-02", set())])
def test_a_late_paper_of_a_rated_day_makes_the_model_again_and_one_of_another_day_does_not(
    desk: Desk, day: str, asked: set[str]
) -> None:
    """The formula judges rated papers among the others of their days; no new rating is needed for that."""
    warehouse = Warehouse(resources.settings.warehouse_path, deadline=10)
    merge_papers(warehouse, [replace(paper(100, "A walk in nature"), published=datetime(2026, 3, 1, tzinfo=UTC))])
    now = datetime(2026, 4, 1, tzinfo=UTC)
    append_ratings(warehouse, "ann", [NewRating(paper_id="2603.00100", rating="worth")], given_in="page", now=now)
    desk.report("reader_ratings", "ann", "rated-1")
    desk.tick()
    desk.report("preference_model", "ann", "model-1")
    desk.settle()
    desk.report("paper_embeddings", day, "a late paper")
    assert desk.tick().get("preference_model", set()) == asked
    desk.report("preference_model", "ann", "model-2")
    desk.settle()
    assert desk.tick() == {}


def test_a_rating_is_learned_from_while_older_papers_are_embedded(desk: Desk) -> None:
    in_progress(desk.instance, "2026-03-01")
    desk.report("reader_ratings", "ann", "rated-1")
    assert desk.tick()["preference_model"] == {"ann"}
