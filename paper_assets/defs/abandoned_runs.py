"""Fail the runs whose process has ended, and free their pool slots (A4). Every run names its process in a tag.

Dagster's monitor checks only runs that it launched, while it runs. A killed command's run, or any run before a power
failure, would stay STARTED and keep its slot.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
from dagster import DagsterRunStatus

from paper_assets.defs.instance import remove_old_logs
from paper_assets.errors import StoreBusy
from paper_assets.pipeline.health import repair
from paper_assets.processes import ProcessId, command_of, is_gone, parse_process, this_process

# Tag of a run: the process that executes it. Dagster hides tags with this prefix; the list of runs would show a line of
# JSON for each run.
PROCESS = ".dagster/paper_assets_process"
_INTERVAL = 30  # seconds
_STARTS_WITHIN = 60  # seconds; a run names its process once that has loaded the graph
_SLOT_PAUSE = 0.5  # seconds between two attempts to claim a slot; a run takes seconds at least
_FAIL_EVERY = 10  # attempts; a holder that is killed meanwhile frees its slot too
_LOADED_AT = time.time()
_IN_PROGRESS = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


def process_tag() -> dict[str, str]:
    """Return the tag with which a run names this process."""
    return {PROCESS: str(this_process())}


def process_of(run: dg.DagsterRun) -> ProcessId | None:
    """Return the process that executes a run; None before the run has reached it."""
    return parse_process(run.tags.get(PROCESS))


def fail_abandoned_runs(
    instance: dg.DagsterInstance, *, launcher_since: float = 0.0, never_start: bool = False
) -> list[str]:
    """Fail every run whose process has ended; free its slots and those of finished runs; return the failed ids.

    A run without a process in its tags has not reached its process yet: it has ended if the machine was restarted
    since. A starting one has also ended if the launcher of runs was started since (`launcher_since`, seconds since
    1970) and a minute has passed. `never_start`: the launcher has just ended, so no starting run will start.
    """
    booted, starting_before = _boot_time(), min(launcher_since, time.time() - _STARTS_WITHIN)
    if never_start:
        starting_before = time.time()
    ended = []
    for record in instance.get_run_records(filters=dg.RunsFilter(statuses=_IN_PROGRESS)):
        run = record.dagster_run
        process = process_of(run)
        never_starts = run.status is DagsterRunStatus.STARTING and record.update_timestamp.timestamp() < starting_before
        unnamed_is_over = never_starts or record.create_timestamp.timestamp() < booted
        if is_gone(process) if process else unnamed_is_over:
            who = f"Its process {process.pid}" if process else "The process that was starting it"
            instance.report_run_failed(run, f"{who} has ended unexpectedly: it was killed, or the power failed.")
            ended.append(run.run_id)
    _free_slots(instance)
    return ended


def cancel_process_runs(instance: dg.DagsterInstance) -> None:
    """Record the runs of this process as canceled and free their slots, because it is about to end."""
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=_IN_PROGRESS, tags=process_tag())):
        instance.report_run_canceled(run, "The command that executed it was stopped.")
    _free_slots(instance)


def runs_in_progress(instance: dg.DagsterInstance) -> str:
    """Describe the runs in progress for a message; empty if there are none."""
    return ", ".join(
        f"run {run.run_id[:8]}{f' (pid {process.pid})' if (process := process_of(run)) else ''}"
        for run in instance.get_runs(filters=dg.RunsFilter(statuses=_IN_PROGRESS))
    )


def slot_holders(instance: dg.DagsterInstance, pool: str) -> str:
    """Describe the runs in the slots of a pool, for a message."""
    held = []
    for slot in instance.event_log_storage.get_concurrency_info(pool).claimed_slots:
        run = instance.get_run_by_id(slot.run_id)
        process = process_of(run) if run else None
        command = command_of(process.pid) if process else ""
        by = f", pid {process.pid}{f' ({command})' if command else ''}" if process else ""
        held.append(f"{slot.step_key} (run {slot.run_id[:8]}{by})")
    return "; ".join(held) or "another run"


@dg.sensor(
    description="Fails runs whose process has ended and frees their slots; what they were to make is due again.",
    required_resource_keys={"workspace"},
    minimum_interval_seconds=_INTERVAL,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def abandoned_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fail the runs whose process has ended, and remove old logs."""
    instance = context.instance
    ended = fail_abandoned_runs(instance, launcher_since=_LOADED_AT)
    remove_old_logs(instance, Path(instance.root_directory))
    if ended:
        repair(context.resources.workspace)
    return dg.SkipReason(f"failed runs without a process: {', '.join(ended)}" if ended else "every run has its process")


def _free_slots(instance: dg.DagsterInstance) -> None:
    """Free the slots and places in the queue of finished runs, which a killed run leaves behind."""
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return
    found = storage.get_concurrency_run_ids()
    for pool in storage.get_concurrency_keys():
        found |= storage.get_concurrency_info(pool).active_run_ids
    for run_id in found:
        run = instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            storage.free_concurrency_slots_for_run(run_id)


def _boot_time() -> float:
    """Return when the machine started, in seconds since 1970; 0 if unknown."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
            if line.startswith("btime "):
                return float(line.split()[1])
    return 0.0


@contextmanager
def bounded_slot_wait(instance: dg.DagsterInstance, *, deadline: float) -> Iterator[list[str]]:
    """Let steps of this instance wait at most `deadline` seconds for a slot of their pool.

    Dagster's in-process executor waits without limit, without a message and without a pause. A step that gives up
    fails its run; the yielded list then has the message.
    """
    storage = instance.event_log_storage
    claim = storage.claim_concurrency_slot
    refused: list[str] = []

    def claim_within_deadline(concurrency_key: str, run_id: str, step_key: str, priority: int | None = None) -> Any:
        ends, attempts = time.monotonic() + deadline, 0
        while not (status := claim(concurrency_key, run_id, step_key, priority)).is_claimed:
            if time.monotonic() > ends:
                refused.append(
                    f"the only slot of pool {concurrency_key!r} is held by {slot_holders(instance, concurrency_key)}; "
                    f"waited {deadline:g} s. Let it finish or stop it, or wait longer with PAPER_ASSETS_STORE_DEADLINE"
                )
                raise StoreBusy(refused[0])
            attempts += 1
            if attempts % _FAIL_EVERY == 0:
                fail_abandoned_runs(instance)
            time.sleep(_SLOT_PAUSE)
        return status

    storage.claim_concurrency_slot = claim_within_deadline  # type: ignore[method-assign]
    try:
        yield refused
    finally:
        del storage.claim_concurrency_slot  # restores the method of the class
