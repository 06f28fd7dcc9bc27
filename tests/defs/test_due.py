"""Which runs the daemon requests: read from the store and Dagster's list of runs, without anything remembered."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from paper_assets.defs.assets import ASSETS
from paper_assets.defs.due import FAILURE, LASTING, PASSING, RANGE_END, RANGE_START, Tried, decide, next_try
from paper_assets.defs.partitions import grid_key
from paper_assets.defs.reports import ATTENDED
from paper_assets.defs.sensors import report_changes
from paper_assets.errors import ModelUnavailable
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.settings import load_settings
from paper_assets.stores.paper_merging import merge_papers
from tests.defs.in_dagster import made
from tests.desk import Desk
from tests.digests.invented import paper

MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)
NOW = datetime(2026, 3, 5, 7, 30, tzinfo=UTC)
FROGS, NEWTS = ({"interests": {"primary": [word]}, "ranking": {"top_k": 2}} for word in ("frogs", "newts"))


class Log:
    """Keeps what a sensor logs."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, line: str) -> None:
        self.lines.append(line)


class Daemon:
    """One home and one instance; `tick` decides as the sensor does, `make` executes what it requests."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        def no_model() -> Any:
            raise ModelUnavailable("no model")

        settings = load_settings({"PAPER_ASSETS_FIRST_DAY": "2026-01-01"}, folder)
        workspace = open_workspace(settings, {}, clock=lambda: self.now)
        self.workspace: Workspace = replace(workspace, load_embedder=no_model)
        self.instance, self.folder, self.now, self.log = instance, folder, NOW, Log()

    def papers(self, day: date, *titles: str) -> None:
        published = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
        found = [paper(100 * day.day + at, title=title, published=published) for at, title in enumerate(titles)]
        merge_papers(self.workspace.warehouse, found)

    def profile(self, name: str, content: dict[str, Any] | str) -> None:
        Desk(self.folder).profile(name, content)

    def tick(self) -> list[dg.RunRequest]:
        report_changes(self.instance, self.workspace, self.log)
        return decide(self.instance, self.workspace).requests

    def make(self, requests: Sequence[dg.RunRequest], **more: str) -> list[dg.ExecuteInProcessResult]:
        return [
            made(
                self.instance,
                self.workspace,
                *assets_of(request),
                first=request.partition_key,
                tags={**request.tags, **more},
            )
            for request in requests
        ]

    def started(self, *assets: str, tags: Mapping[str, str]) -> dg.DagsterRun:
        """Record a run in progress."""
        return self.instance.create_run_for_job(
            dg.Definitions(assets=ASSETS, resources={"workspace": None}).resolve_implicit_global_asset_job_def(),
            status=dg.DagsterRunStatus.STARTED,
            tags=tags,
            asset_selection=frozenset(map(dg.AssetKey, assets)),
        )

    def settle(self) -> list[tuple[str, ...]]:
        """Make what is due until nothing is; return the assets of each run."""
        runs: list[tuple[str, ...]] = []
        while requests := self.tick():
            self.make(requests)
            runs += [assets_of(request) for request in requests]
            assert len(runs) < 20, runs
        return runs


def assets_of(request: dg.RunRequest) -> tuple[str, ...]:
    return tuple(key.to_user_string() for key in request.asset_selection or ())


RANKING = ("filtered_candidates", "scored_rankings")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with dg.DagsterInstance.ephemeral() as instance:
        found = Daemon(tmp_path, instance)
        found.papers(MONDAY, "frogs in ponds", "newts in ponds")
        found.profile("ann", FROGS)
        found.profile("bob", NEWTS)
        yield found


def test_one_run_for_each_step_in_the_order_of_run_until_nothing_is_due(daemon: Daemon) -> None:
    assert daemon.settle() == [RANKING, ("reading_digests",)]
    assert daemon.tick() == []


def test_an_edit_ranks_that_profile_only_and_saving_the_same_content_nothing(daemon: Daemon) -> None:
    daemon.settle()
    daemon.profile("ann", json.dumps(FROGS, indent=4))
    assert daemon.tick() == []
    for number in range(10):
        daemon.profile("ann", {**FROGS, "interests": {"primary": [f"frogs {number}"]}})
    (request,) = daemon.tick()
    assert request.partition_key == grid_key(MONDAY, "ann") and assets_of(request) == RANKING


def test_an_edit_and_its_reversal_are_both_ranked(daemon: Daemon) -> None:
    daemon.settle()
    for content in (NEWTS, FROGS):
        daemon.profile("ann", content)
        assert daemon.settle() == [RANKING, ("reading_digests",)]


def test_a_broken_file_ranks_and_removes_nothing_and_is_named_once_and_a_removed_folder_loses_its_partition(
    daemon: Daemon,
) -> None:
    daemon.settle()
    daemon.profile("ann", '{"interests": ')
    assert daemon.tick() == [] and daemon.tick() == []
    (line,) = daemon.log.lines
    assert "ann" in line and "line 1" in line
    (daemon.folder / "profiles" / "bob" / "profile.json").unlink()
    assert daemon.tick() == []
    assert daemon.instance.get_dynamic_partitions("profile") == ["ann"]
    daemon.profile("bob", NEWTS)
    daemon.tick()
    assert daemon.instance.get_dynamic_partitions("profile") == ["ann", "bob"]


def test_what_is_in_progress_is_not_requested_again_and_what_follows_waits(daemon: Daemon) -> None:
    (request,) = daemon.tick()
    run = daemon.started(*assets_of(request), tags=request.tags)
    assert daemon.tick() == []
    daemon.instance.report_run_failed(run, "killed")
    assert [assets_of(each) for each in daemon.tick()] == [RANKING], "a killed run is due again at once"


def test_while_papers_are_fetched_nothing_is_made_of_the_old_list(daemon: Daemon) -> None:
    daemon.make(daemon.tick())
    span = dict.fromkeys((RANGE_START, RANGE_END), f"{TUESDAY}")
    fetch = daemon.started("arxiv_papers", tags=span)
    assert daemon.tick() == [], "the digest of the old list waits"
    daemon.papers(TUESDAY, "frogs again")
    daemon.instance.report_run_canceled(fetch, "done")
    assert [assets_of(each) for each in daemon.tick()] == [RANKING]


def test_an_old_day_that_arrives_late_ranks_nothing_again(daemon: Daemon) -> None:
    daemon.settle()
    daemon.papers(MONDAY - timedelta(days=30), "frogs of last month")
    assert daemon.tick() == []


def test_a_new_day_ranks_every_profile_in_one_run(daemon: Daemon) -> None:
    daemon.settle()
    daemon.papers(TUESDAY, "frogs again")
    (request,) = daemon.tick()
    assert request.partition_key is None and assets_of(request) == RANKING
    assert len(json.loads(request.tags[".dagster/paper_assets_asked"])) == 2


def test_an_error_that_would_come_again_is_met_once_and_other_inputs_are_tried(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("paper_assets.pipeline.gatekeeper.new_candidates", broken)
    (failed,) = daemon.make(daemon.tick())
    assert not failed.success
    record = daemon.instance.get_run_by_id(failed.run_id)
    assert record is not None and record.tags[FAILURE] == LASTING
    assert daemon.tick() == []
    monkeypatch.undo()
    daemon.profile("ann", NEWTS)
    (request,) = daemon.tick()
    assert request.partition_key == grid_key(MONDAY, "ann")


def tried(*failures: str | None) -> list[Tried]:
    return [Tried({}, failure, NOW) for failure in failures]


@pytest.mark.parametrize(
    ("earlier", "minutes"),
    [
        (tried(PASSING), 2),
        (tried(PASSING, PASSING), 6),
        (tried(None, None, None), 18),
        (tried(*[PASSING] * 9), 360),
        (tried(LASTING), 360),
        (tried("killed", "killed", "killed"), 18),
    ],
)
def test_pauses_grow_with_the_tries_for_the_same_reason(earlier: list[Tried], minutes: int) -> None:
    assert next_try(earlier) == NOW + timedelta(minutes=minutes)


def test_nothing_pauses_before_the_first_try_and_after_a_killed_run() -> None:
    assert next_try([]) is None and next_try(tried("killed")) is None


def test_a_failed_blocking_check_of_one_profile_stops_what_follows_for_it_until_it_passes(daemon: Daemon) -> None:
    daemon.make(daemon.tick())
    daemon.workspace.warehouse.run("update rankings set final = 7 where profile = 'ann'")
    key = grid_key(MONDAY, "ann")
    checked = dg.materialize(
        ASSETS,
        selection=dg.AssetSelection.checks(dg.AssetCheckKey(dg.AssetKey("scored_rankings"), CHECK)),
        instance=daemon.instance,
        resources={"workspace": daemon.workspace},
        tags={ATTENDED: "yes"},
        raise_on_error=False,
    )
    (evaluation,) = checked.get_asset_check_evaluations()
    assert not evaluation.passed and evaluation.metadata["failing"].value == [[f"{MONDAY}", "ann"]]
    requests = daemon.tick()
    assert key not in {request.partition_key for request in requests if assets_of(request) == ("reading_digests",)}


CHECK = "scores_are_in_range_and_recomputable"
