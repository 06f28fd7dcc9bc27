"""Test that runs whose process has ended are failed and free their slots, and that waiting for a slot ends in time."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterRunStatus

from paper_assets.defs.abandoned_runs import (
    PROCESS,
    bounded_slot_wait,
    cancel_process_runs,
    fail_abandoned_runs,
    process_tag,
)
from paper_assets.defs.dagster_internals import close_files
from paper_assets.defs.history_files import RUNS, is_settled
from paper_assets.defs.instance import remove_old_logs
from paper_assets.processes import this_process

GONE = {PROCESS: str(replace(this_process(), started="1"))}


@dg.asset(pool="arxiv")
def papers() -> None:
    """Needs the only place of its pool."""


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    settings = {"concurrency": {"pools": {"default_limit": 1}}, "telemetry": {"enabled": False}}
    with dg.instance_for_test(temp_dir=str(tmp_path), overrides=settings) as instance:
        yield instance


def begun(
    instance: dg.DagsterInstance,
    tags: dict[str, str],
    *,
    holds: str | None = "arxiv",
    status: DagsterRunStatus = DagsterRunStatus.STARTED,
) -> str:
    """A run under way, as a killed process leaves it, with its pool's slot."""
    job = dg.Definitions([papers]).resolve_implicit_global_asset_job_def()
    run = instance.create_run_for_job(job, status=status, tags=tags)
    if holds:
        instance.event_log_storage.initialize_concurrency_limit_to_default(holds)
        assert instance.event_log_storage.claim_concurrency_slot(holds, run.run_id, "papers").is_claimed
    return run.run_id


def status(instance: dg.DagsterInstance, run_id: str) -> DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run
    return run.status


def held(instance: dg.DagsterInstance) -> set[str]:
    return instance.event_log_storage.get_concurrency_info("arxiv").active_run_ids


def test_a_run_whose_process_is_gone_is_failed_and_its_slot_is_free(instance: dg.DagsterInstance) -> None:
    dead = begun(instance, GONE)
    assert fail_abandoned_runs(instance) == [dead]
    assert status(instance, dead) is DagsterRunStatus.FAILURE
    assert held(instance) == set()
    assert fail_abandoned_runs(instance) == []


def test_a_history_is_settled_until_a_run_is_in_progress_or_was_killed(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    assert is_settled(tmp_path)
    begun(instance, GONE)
    assert not is_settled(tmp_path)
    fail_abandoned_runs(instance)
    assert not is_settled(tmp_path), "the next command may have to report what was stored"
    begun(instance, {}, holds=None, status=DagsterRunStatus.SUCCESS)
    assert is_settled(tmp_path)
    close_files()
    (tmp_path / RUNS).write_bytes(b"a letter" * 1_000)
    assert not is_settled(tmp_path)


def test_a_run_at_work_keeps_its_status_and_its_slot(instance: dg.DagsterInstance) -> None:
    alive = begun(instance, process_tag())
    elsewhere = begun(instance, {PROCESS: str(replace(this_process(), host="elsewhere.example"))}, holds=None)
    unnamed = begun(instance, {}, holds=None)
    assert fail_abandoned_runs(instance) == []
    assert {status(instance, each) for each in (alive, elsewhere, unnamed)} == {DagsterRunStatus.STARTED}
    assert held(instance) == {alive}


def test_a_run_that_names_no_process_is_over_once_the_machine_has_started_again(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = begun(instance, {})
    monkeypatch.setattr("paper_assets.defs.abandoned_runs._boot_time", lambda: 4e9)
    assert fail_abandoned_runs(instance) == [before]
    assert held(instance) == set()


def test_a_starting_run_is_failed_after_a_minute_if_its_launcher_was_replaced(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon was killed with all its processes, the machine was not: no process starts the run any more."""
    starting = begun(instance, {}, status=DagsterRunStatus.STARTING)
    at_work = begun(instance, {}, holds=None)
    now = time.time()
    assert fail_abandoned_runs(instance) == [], "a command launches nothing, and knows nothing of who does"
    assert fail_abandoned_runs(instance, launcher_since=now + 1) == [], "the one before may still be at it"
    monkeypatch.setattr("paper_assets.defs.abandoned_runs.time.time", lambda: now + 100)
    assert fail_abandoned_runs(instance, launcher_since=now - 100) == [], "it was launched by the present one"
    assert fail_abandoned_runs(instance, launcher_since=now + 10) == [starting]
    assert status(instance, at_work) is DagsterRunStatus.STARTED


def test_a_run_that_waited_in_the_queue_while_its_launcher_was_changed_is_left_to_start(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = begun(instance, {}, holds=None, status=DagsterRunStatus.NOT_STARTED)
    now = time.time()
    event = dg.DagsterEvent(event_type_value="PIPELINE_STARTING", job_name="any")
    instance.run_storage.handle_run_event(queued, event, datetime.fromtimestamp(now + 3600, UTC))
    assert status(instance, queued) is DagsterRunStatus.STARTING
    monkeypatch.setattr("paper_assets.defs.abandoned_runs.time.time", lambda: now + 3700)
    assert fail_abandoned_runs(instance, launcher_since=now + 600) == []
    assert fail_abandoned_runs(instance, launcher_since=now + 3650) == [queued]


def test_the_slot_of_a_run_that_was_killed_after_its_end_is_freed(instance: dg.DagsterInstance) -> None:
    over = begun(instance, process_tag())
    run = instance.get_run_by_id(over)
    assert run
    instance.report_run_failed(run)
    fail_abandoned_runs(instance)
    assert held(instance) == set()


def test_a_command_that_is_stopped_leaves_its_run_cancelled_and_no_slot_held(instance: dg.DagsterInstance) -> None:
    own, other = begun(instance, process_tag()), begun(instance, GONE, holds=None)
    cancel_process_runs(instance)
    assert status(instance, own) is DagsterRunStatus.CANCELED
    assert status(instance, other) is DagsterRunStatus.STARTED
    assert held(instance) == set()


def test_waiting_for_a_slot_ends_at_the_deadline_and_names_the_holder(instance: dg.DagsterInstance) -> None:
    holder = begun(instance, process_tag())
    with bounded_slot_wait(instance, deadline=0.2) as refused:
        result = dg.materialize([papers], instance=instance, raise_on_error=False)
    assert not result.success
    [message] = refused
    assert (
        holder[:8] in message
        and f"pid {this_process().pid}" in message
        and "'arxiv'" in message
        and "\n" not in message
    )
    assert held(instance) == {holder}
    assert instance.event_log_storage.get_concurrency_run_ids() == {holder}


def test_a_waiting_process_gets_the_slot_when_its_holder_is_killed(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(instance, GONE)
    monkeypatch.setattr("paper_assets.defs.abandoned_runs._SLOT_PAUSE", 0.01)
    with bounded_slot_wait(instance, deadline=200):
        assert dg.materialize([papers], instance=instance).success


def test_a_run_of_the_daemon_names_its_process_before_its_first_step(instance: dg.DagsterInstance) -> None:
    from paper_assets.defs.resources import WorkspaceResource

    @dg.asset(required_resource_keys={"workspace"})
    def looks(context: dg.AssetExecutionContext) -> None:
        run = context.instance.get_run_by_id(context.run.run_id)
        assert run and run.tags[PROCESS] == str(this_process())

    made = dg.materialize([looks], instance=instance, resources={"workspace": WorkspaceResource()})
    assert made.success


def test_old_logs_go_and_what_was_made_stays_known(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paper_assets.defs.instance.KEPT_LOGS", 2)
    home = Path(instance.root_directory)
    going = begun(instance, process_tag(), holds=None)
    instance.report_engine_event("at work", instance.get_run_by_id(going))
    free = dg.asset(name="free")(lambda: None)
    made = [dg.materialize([free], instance=instance).run_id for _ in range(4)]
    assert remove_old_logs(instance, home) == 2
    left = {file.stem for file in (home / "history" / "runs").glob("*.db")} - {"index"}
    assert left == {going, *made[2:]}
    assert instance.get_latest_materialization_event(dg.AssetKey("free")) is not None
    assert {run.run_id for run in instance.get_runs()} == {going, *made}
