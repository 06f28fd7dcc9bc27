"""Fail the runs whose process has ended (A4). Every run names its process in a tag.

Dagster's monitor checks only runs that it launched, while it runs. A killed command's run, or any run before a power
failure, would stay STARTED.
"""

import time
from pathlib import Path

import dagster as dg
from dagster import DagsterRunStatus

from paper_assets.defs.history_files import prune_history
from paper_assets.pipeline.health import repair
from paper_assets.processes import ProcessId, is_gone, parse_process, this_process

# Tag of a run: the process that executes it. Dagster hides tags with this prefix; the list of runs would show a line of
# JSON for each run.
PROCESS = ".dagster/paper_assets_process"
_INTERVAL = 30  # seconds
_STARTS_WITHIN = 180  # seconds; a run names its process once that has loaded the graph
_IN_PROGRESS = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


def process_tag() -> dict[str, str]:
    """Return the tag with which a run names this process."""
    return {PROCESS: str(this_process())}


def process_of(run: dg.DagsterRun) -> ProcessId | None:
    """Return the process that executes a run; None before the run has reached it."""
    return parse_process(run.tags.get(PROCESS))


def fail_abandoned_runs(instance: dg.DagsterInstance) -> list[str]:
    """Fail every run whose process has ended; return the failed ids.

    A run without a process in its tags has not reached its process yet, and has ended if it never will.
    """
    ended = []
    for record in instance.get_run_records(filters=dg.RunsFilter(statuses=_IN_PROGRESS)):
        run, process = record.dagster_run, process_of(record.dagster_run)
        if is_gone(process) if process else record.update_timestamp.timestamp() < time.time() - _STARTS_WITHIN:
            who = f"Its process {process.pid}" if process else "The process that was starting it"
            instance.report_run_failed(run, f"{who} has ended unexpectedly: it was killed, or the power failed.")
            ended.append(run.run_id)
    return ended


def cancel_process_runs(instance: dg.DagsterInstance) -> None:
    """Record the runs of this process as canceled, because it is about to end."""
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=_IN_PROGRESS, tags=process_tag())):
        instance.report_run_canceled(run, "The command that executed it was stopped.")


def runs_in_progress(instance: dg.DagsterInstance) -> str:
    """Describe the runs in progress for a message; empty if there are none."""
    return ", ".join(
        f"run {run.run_id[:8]}{f' (pid {process.pid})' if (process := process_of(run)) else ''}"
        for run in instance.get_runs(filters=dg.RunsFilter(statuses=_IN_PROGRESS))
    )


@dg.sensor(
    description="Fails runs whose process has ended; what they were to make is due again.",
    required_resource_keys={"workspace"},
    minimum_interval_seconds=_INTERVAL,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def abandoned_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fail the runs whose process has ended, and remove old history."""
    instance = context.instance
    ended = fail_abandoned_runs(instance)
    prune_history(Path(instance.root_directory))
    if ended:
        repair(context.resources.workspace)
    return dg.SkipReason(f"failed runs without a process: {', '.join(ended)}" if ended else "every run has its process")
