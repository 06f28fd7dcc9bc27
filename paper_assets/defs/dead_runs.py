"""Runs whose process is gone: failed, their pool slots freed (A4). Every run carries its process as a tag.

Dagster's own monitor looks at runs that it launched itself, on a machine where it lives. A command's run that was
killed, or any run before a power cut, would stay STARTED, hold its slot and count among the runs in progress for ever.
"""

import time
from contextlib import suppress
from pathlib import Path

import dagster as dg
from dagster import DagsterRunStatus

from paper_assets.defs.history_size import forget_old_logs
from paper_assets.defs.nothing_new import QuietSensor, remember_quiet, state_of
from paper_assets.pipeline.health import repair
from paper_assets.pipeline.workspace import Workspace
from paper_assets.stores.locks import command_of, is_gone, parse_process, this_process

PROCESS = "paper_assets/process"  # tag of a run: who carries it out
_NAME = "dead_runs"
_LOOKED_FOR_EVERY = 30  # seconds
_STARTS_WITHIN = 60  # seconds; a run names its process as soon as that has loaded the graph
_LOADED_AT = time.time()
_UNDER_WAY = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


def own_tag() -> dict[str, str]:
    """The tag by which a run names this process as its own."""
    return {PROCESS: str(this_process())}


def end_dead_runs(instance: dg.DagsterInstance, *, launcher_since: float = 0.0, never_start: bool = False) -> list[str]:
    """Fail every run whose process is gone, and free its slots and those of runs that are over; the ids of the first.

    A run that names no process has not come so far as to have one, or was begun by an older version: it is over if
    the machine has started since. One that was told to start is so too if what launches runs has begun since
    (`launcher_since`, seconds since 1970), and a minute has passed in which it could have come so far. `never_start`:
    what launches runs has just ended, so that no run which is starting can become one that runs.
    """
    booted, told_before = _boot_time(), min(launcher_since, time.time() - _STARTS_WITHIN)
    if never_start:
        told_before = time.time()
    ended = []
    for record in instance.get_run_records(filters=dg.RunsFilter(statuses=_UNDER_WAY)):
        run = record.dagster_run
        process = parse_process(run.tags.get(PROCESS))
        never_starts = run.status is DagsterRunStatus.STARTING and record.update_timestamp.timestamp() < told_before
        unnamed_is_over = never_starts or record.create_timestamp.timestamp() < booted
        if is_gone(process) if process else unnamed_is_over:
            who = f"Its process {process.pid}" if process else "What was to start it"
            instance.report_run_failed(run, f"{who} has ended without a word: killed, or a power cut.")
            ended.append(run.run_id)
    _free_slots(instance)
    return ended


def cancel_own_runs(instance: dg.DagsterInstance) -> None:
    """Say of the runs of this process that they were stopped, and free their slots: it is about to end."""
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=_UNDER_WAY, tags=own_tag())):
        instance.report_run_canceled(run, "The command that carried it out was stopped.")
    _free_slots(instance)


def under_way(instance: dg.DagsterInstance) -> str:
    """The runs under way, for a message; empty if there are none."""
    return ", ".join(
        f"run {run.run_id[:8]}{f' (pid {process.pid})' if (process := parse_process(run.tags.get(PROCESS))) else ''}"
        for run in instance.get_runs(filters=dg.RunsFilter(statuses=_UNDER_WAY))
    )


def holders(instance: dg.DagsterInstance, pool: str) -> str:
    """Who holds the slots of a pool, for a message."""
    told = []
    for slot in instance.event_log_storage.get_concurrency_info(pool).claimed_slots:
        run = instance.get_run_by_id(slot.run_id)
        process = parse_process(run.tags.get(PROCESS)) if run else None
        command = command_of(process.pid) if process else ""
        by = f", pid {process.pid}{f' ({command})' if command else ''}" if process else ""
        told.append(f"{slot.step_key} (run {slot.run_id[:8]}{by})")
    return "; ".join(told) or "another run"


def _look(context: dg.SensorEvaluationContext, workspace: dg.ResourceParam[Workspace]) -> dg.SkipReason:
    state, instance = state_of(), context.instance
    ended = end_dead_runs(instance, launcher_since=_LOADED_AT)
    forget_old_logs(instance, Path(instance.root_directory))
    if ended:
        repair(workspace)
    elif not under_way(instance):
        remember_quiet(_NAME, state and (state, context.cursor), instance)
    return dg.SkipReason(f"runs without a process: {', '.join(ended)}" if ended else "every run has its process")


dead_runs = QuietSensor(
    name=_NAME,
    evaluation_fn=_look,
    description="Fails the runs whose process is gone, so that no slot is held by nobody; the daemon tries them again.",
    minimum_interval_seconds=_LOOKED_FOR_EVERY,
    default_status=dg.DefaultSensorStatus.RUNNING,
)


def _free_slots(instance: dg.DagsterInstance) -> None:
    """Free the slots and places in the queue of runs that are over: a killed run leaves them behind."""
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
    """When the machine started, in seconds since 1970; 0 where it does not say."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
            if line.startswith("btime "):
                return float(line.split()[1])
    return 0.0
