"""Test that runs whose process has ended are failed."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterRunStatus

from paper_assets.defs.abandoned_runs import (
    PROCESS,
    cancel_process_runs,
    fail_abandoned_runs,
    process_tag,
)
from paper_assets.defs.dagster_internals import close_files
from paper_assets.defs.history_files import RUNS, is_settled, prune_history
from paper_assets.processes import this_process

GONE = {PROCESS: str(replace(this_process(), started="1"))}


@dg.asset
def papers() -> None:
    """Makes nothing."""


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(temp_dir=str(tmp_path), overrides={"telemetry": {"enabled": False}}) as instance:
        yield instance


def begun(
    instance: dg.DagsterInstance, tags: dict[str, str], *, status: DagsterRunStatus = DagsterRunStatus.STARTED
) -> str:
    """A run under way, as a killed process leaves it."""
    job = dg.Definitions([papers]).resolve_implicit_global_asset_job_def()
    return instance.create_run_for_job(job, status=status, tags=tags).run_id


def status(instance: dg.DagsterInstance, run_id: str) -> DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run
    return run.status


def test_a_run_whose_process_is_gone_is_failed(instance: dg.DagsterInstance) -> None:
    dead = begun(instance, GONE)
    assert fail_abandoned_runs(instance) == [dead]
    assert status(instance, dead) is DagsterRunStatus.FAILURE
    assert fail_abandoned_runs(instance) == []


def test_a_history_is_settled_until_a_run_is_in_progress_or_was_killed(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    assert is_settled(tmp_path)
    begun(instance, GONE)
    assert not is_settled(tmp_path)
    fail_abandoned_runs(instance)
    assert not is_settled(tmp_path), "the next command may have to report what was stored"
    begun(instance, {}, status=DagsterRunStatus.SUCCESS)
    assert is_settled(tmp_path)
    close_files()
    (tmp_path / RUNS).write_bytes(b"a letter" * 1_000)
    assert not is_settled(tmp_path)


def test_a_run_at_work_keeps_its_status(instance: dg.DagsterInstance) -> None:
    alive = begun(instance, process_tag())
    elsewhere = begun(instance, {PROCESS: str(replace(this_process(), host="elsewhere.example"))})
    unnamed = begun(instance, {})
    assert fail_abandoned_runs(instance) == []
    assert {status(instance, each) for each in (alive, elsewhere, unnamed)} == {DagsterRunStatus.STARTED}


def test_a_run_that_reaches_no_process_has_ended_after_some_minutes_and_one_that_waits_has_not(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting = begun(instance, {}, status=DagsterRunStatus.STARTING)
    waiting = begun(instance, {}, status=DagsterRunStatus.NOT_STARTED)
    assert fail_abandoned_runs(instance) == []
    now = time.time()
    monkeypatch.setattr("paper_assets.defs.abandoned_runs.time.time", lambda: now + 1_000)
    assert fail_abandoned_runs(instance) == [starting]
    assert status(instance, waiting) is DagsterRunStatus.NOT_STARTED


def test_a_command_that_is_stopped_leaves_its_run_cancelled(instance: dg.DagsterInstance) -> None:
    own, other = begun(instance, process_tag()), begun(instance, GONE)
    cancel_process_runs(instance)
    assert status(instance, own) is DagsterRunStatus.CANCELED
    assert status(instance, other) is DagsterRunStatus.STARTED


def test_a_run_of_the_daemon_names_its_process_before_its_first_step(instance: dg.DagsterInstance) -> None:
    from paper_assets.defs.resources import WorkspaceResource

    @dg.asset(required_resource_keys={"workspace"})
    def looks(context: dg.AssetExecutionContext) -> None:
        run = context.instance.get_run_by_id(context.run.run_id)
        assert run and run.tags[PROCESS] == str(this_process())

    made = dg.materialize([looks], instance=instance, resources={"workspace": WorkspaceResource()})
    assert made.success


@pytest.mark.parametrize("by", ["number", "size"])
def test_old_logs_go_and_what_was_made_stays_known(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    home = Path(instance.root_directory)
    going = begun(instance, process_tag())
    instance.report_engine_event("at work", instance.get_run_by_id(going))
    free = dg.asset(name="free")(lambda: None)
    made = [dg.materialize([free], instance=instance).run_id for _ in range(4)]
    logs = [file.stat().st_size for file in (home / "history" / "runs").glob("*.db") if file.stem != "index"]
    limit = ("KEPT_LOGS", 2) if by == "number" else ("LOG_BYTES", max(logs) * 2.5)
    monkeypatch.setattr(f"paper_assets.defs.history_files.{limit[0]}", limit[1])
    prune_history(home)
    left = {file.stem for file in (home / "history" / "runs").glob("*.db")} - {"index"}
    assert left == {going, *made[2:]}
    assert instance.get_latest_materialization_event(dg.AssetKey("free")) is not None
    assert {run.run_id for run in instance.get_runs()} == {going, *made}
