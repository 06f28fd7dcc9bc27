"""Test a tick: edits and ratings are reported to Dagster, and what is due is requested in the same tick."""

import json
import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import InstigatorType, TickData, TickStatus
from dagster._core.utils import make_new_run_id

from paper_assets.definitions import defs
from paper_assets.defs import change_detection, resources, sensors
from paper_assets.defs.automation import conditions
from paper_assets.defs.external_assets import known_hashes
from paper_assets.defs.instance import open_instance
from paper_assets.defs.sensors import RANGE_END, RANGE_START, ConditionsSensor, report_changes
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.settings import load_settings
from tests.defs.conditions import materialized
from tests.desk import GRAPHS, SPEECH

NOW = datetime(2026, 3, 5, 7, 30, tzinfo=UTC)


@dataclass(slots=True)
class Looking:
    """A home whose sensor is ticked by hand, and the events reported to it."""

    instance: dg.DagsterInstance
    workspace: Workspace
    cursor: str | None = None

    def profile(self, name: str, content: dict[str, Any] | str) -> None:
        file = self.workspace.settings.profiles_dir / name / "profile.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")

    def tick(self, *, noted: bool = True) -> list[dg.RunRequest]:
        """One look; `noted`: whether the daemon lives until it has noted the runs to ask for."""
        tick = self.instance.create_tick(
            TickData(
                instigator_origin_id="origin",
                instigator_name=conditions.name,
                instigator_type=InstigatorType.SENSOR,
                status=TickStatus.STARTED,
                timestamp=0.0,
                selector_id="selector",
            )
        )
        repository = defs.get_repository_def()
        sensor = next(each for each in repository.sensor_defs if each.name == conditions.name)
        assert isinstance(sensor, ConditionsSensor)
        context = dg.build_sensor_context(
            instance=self.instance,
            repository_def=repository,
            sensor_name=sensor.name,
            cursor=self.cursor,
            resources={"workspace": self.workspace},
        )
        context._log_key = ["repository", sensor.name, str(tick.tick_id)]  # as the daemon hands it over
        found = sensor.evaluate_tick(context)
        asked = list(found.run_requests or ())
        if noted:
            self.cursor = found.cursor
            ids = [make_new_run_id() for _ in asked]
            self.instance.update_tick(tick.with_run_requests(asked, reserved_run_ids=ids))
        return asked

    def looked(self) -> bool:
        """Whether a tick evaluates the conditions: each evaluation has a new number in the cursor."""
        before = self.cursor
        self.tick()
        return self.cursor != before

    def report(self, asset: str, partition: str, version: str) -> None:
        materialized(self.instance, asset, partition, version)


def rankings(asked: list[dg.RunRequest]) -> list[str]:
    """The partitions of the rankings that are asked for; of several in one run, the first and the last."""
    return [
        request.partition_key or f"{request.tags[RANGE_START]} to {request.tags[RANGE_END]}"
        for request in asked
        if dg.AssetKey("scored_rankings") in (request.asset_selection or ())
    ]


def names(request: dg.RunRequest) -> list[str]:
    return [key.to_user_string() for key in request.asset_selection or ()]


@pytest.fixture
def looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looking]:
    monkeypatch.setenv("DAGSTER_HOME", f"{tmp_path / 'dagster_home'}")
    monkeypatch.setattr(change_detection, "_nothing_to_do", {})
    monkeypatch.setattr(sensors, "_reported_faults", set())
    monkeypatch.setattr(change_detection.time, "time", lambda: 1_790_000_000.0)
    settings = load_settings({"PAPER_ASSETS_HOME": f"{tmp_path / 'data'}"}, tmp_path)
    # Without stored papers, Dagster's list of days is used.
    no_papers = load_settings({"PAPER_ASSETS_PROFILES": f"{settings.profiles_dir}"}, tmp_path / "nobody-lives-here")
    monkeypatch.setattr(resources, "settings", no_papers)
    with open_instance(tmp_path / "dagster_home") as opened:
        yield Looking(opened, open_workspace(settings, {}, clock=lambda: NOW))


def _ranked(looking: Looking, *names: str) -> None:
    """A day with papers, ranked for these profiles."""
    looking.report("arxiv_papers", "2026-03-02", "1")
    looking.report("paper_embeddings", "2026-03-02", "1")
    looking.tick()
    for name in names:
        for asset in ("filtered_candidates", "scored_rankings"):
            looking.report(asset, f"2026-03-02|{name}", "1")
    looking.tick()


def test_the_profiles_of_a_first_look_are_ranked_in_one_run_and_without_a_backfill(looking: Looking) -> None:
    """Also says when Dagster no longer asks a sensor in this way."""
    looking.profile("ann", GRAPHS)
    looking.profile("bob", SPEECH)
    looking.report("arxiv_papers", "2026-03-02", "1")
    looking.report("paper_embeddings", "2026-03-02", "1")
    asked = looking.tick()
    assert not any(request.requires_backfill_daemon() for request in asked)
    assert rankings(asked) == ["2026-03-02|ann to 2026-03-02|bob"]


def test_an_edit_is_asked_for_in_the_tick_that_sees_it_and_only_for_its_profile(looking: Looking) -> None:
    looking.profile("ann", GRAPHS)
    looking.profile("bob", SPEECH)
    _ranked(looking, "ann", "bob")
    assert rankings(looking.tick()) == []
    for number in range(10):
        looking.profile("bob", {**SPEECH, "interests": {"primary": [f"speech recognition, part {number}"]}})
    assert rankings(looking.tick()) == ["2026-03-02|bob"]


def test_a_page_that_waits_is_made_though_dagster_has_lost_its_cursor(looking: Looking) -> None:
    """It does if the daemon is killed while it requests the runs of a tick, and started again."""
    looking.profile("ann", GRAPHS)
    _ranked(looking, "ann")
    following = ("balanced_retrievals", "paper_rewrites", "reading_digests")
    for asset in following:
        looking.report(asset, "2026-03-02|ann", "1")
    while looking.tick():
        pass
    looking.report("scored_rankings", "2026-03-02|ann", "2")
    waits_for = {asset for request in looking.tick() for asset in names(request)}
    assert "paper_rewrites" in waits_for and "reading_digests" not in waits_for
    looking.cursor = None
    for asset in following[:2]:
        looking.report(asset, "2026-03-02|ann", "1")  # the new ranking changes nothing in them
    assert [names(request) for request in looking.tick()] == [["reading_digests"]]


def test_runs_that_dagster_has_not_noted_are_asked_for_again(looking: Looking) -> None:
    looking.profile("ann", GRAPHS)
    looking.report("arxiv_papers", "2026-03-02", "1")
    looking.report("paper_embeddings", "2026-03-02", "1")
    asked = rankings(looking.tick(noted=False))
    assert asked == ["2026-03-02|ann"] and looking.cursor is None
    assert rankings(looking.tick(noted=False)) == asked
    assert rankings(looking.tick()) == asked
    looking.cursor = None
    assert rankings(looking.tick()) == []


def test_a_broken_profile_is_named_once_and_keeps_its_partition_and_its_content(
    looking: Looking, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("looks")
    looking.profile("ann", GRAPHS)
    looking.profile("bob", SPEECH)
    report_changes(looking.instance, looking.workspace, log)
    before = known_hashes(looking.instance)
    assert set(before) == {"ann", "bob"}
    looking.profile("ann", "{half")
    for _ in range(3):
        report_changes(looking.instance, looking.workspace, log)
    assert known_hashes(looking.instance) == before
    assert [record.getMessage().count("last good ranking stays") for record in caplog.records] == [1]
    assert "/ann/profile.json" in caplog.text


def test_a_profile_that_is_gone_loses_its_partition_and_one_that_comes_back_is_news(looking: Looking) -> None:
    log = logging.getLogger("looks")
    looking.profile("ann", GRAPHS)
    report_changes(looking.instance, looking.workspace, log)
    shutil.rmtree(looking.workspace.settings.profiles_dir / "ann")
    report_changes(looking.instance, looking.workspace, log)
    assert known_hashes(looking.instance) == {}
    looking.profile("ann", SPEECH)
    report_changes(looking.instance, looking.workspace, log)
    assert list(known_hashes(looking.instance)) == ["ann"]


def test_conditions_are_asked_again_once_nothing_was_due_and_then_only_after_news(looking: Looking) -> None:
    ticks = [looking.looked() for _ in range(8)]
    assert ticks[0] and not ticks[-1], ticks
    looking.profile("ann", GRAPHS)
    news = [looking.looked() for _ in range(8)]
    assert news[0] and not news[-1], news
