"""Materialize from a program instead of the UI: same assets, same instance, in this process.

Belongs here: what the command line needs from Dagster. Not here: printing, what is current and what assets do
(pipeline/).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from types import SimpleNamespace
from typing import Any

import dagster as dg

from paper_assets.defs.abandoned_runs import process_tag
from paper_assets.defs.assets import ASSETS
from paper_assets.defs.due import RANGE_END, RANGE_START, due_of_each
from paper_assets.defs.external_assets import known_versions
from paper_assets.defs.partitions import partition_key, rectangles
from paper_assets.defs.partitions import profiles as profile_partitions
from paper_assets.defs.reports import ATTENDED, separate_events
from paper_assets.errors import PaperAssetsError, StoreError, named_error
from paper_assets.pipeline import papers
from paper_assets.pipeline.step import Made, Partition, Step, failure_of
from paper_assets.pipeline.workspace import Workspace
from paper_assets.stores.papers import day_fingerprints

_DAYS_AT_ONCE = 31  # whose papers are in memory together when they are reported
_LONGEST_REASON = 300  # characters of an error that is shown in one line


def report_papers(instance: dg.DagsterInstance, workspace: Workspace) -> int:
    """Report the days whose papers differ from what Dagster knows, so that later steps follow; return their number.

    These are days of an import that has just ended or was killed before its report, and days that lost their papers.
    Days after today are not partitions yet.
    """
    today = workspace.clock().date()
    stored = day_fingerprints(workspace.warehouse, workspace.settings.first_day, today)
    known = {date.fromisoformat(key): version for key, version in known_versions(instance, papers.NAME).items()}
    now = {**dict.fromkeys(known, papers.EMPTY), **stored}
    news = [day for day in sorted(now) if day <= today and known.get(day) != now[day]]
    for at in range(0, len(news), _DAYS_AT_ONCE):
        reports = papers.day_reports(workspace, news[at : at + _DAYS_AT_ONCE])
        for event in separate_events(papers.NAME, {day.isoformat(): report for day, report in reports.items()}):
            instance.report_runless_asset_event(event)
    return len(news)


@dataclass(slots=True)
class RunResult:
    """The result of a run over the steps: partitions made, and what failed."""

    made: dict[str, list[Partition]] = field(default_factory=dict)  # by step
    failures: dict[Partition, PaperAssetsError] = field(default_factory=dict)
    failed: set[tuple[str, str | None]] = field(default_factory=set)  # (product, profile)


def bring_up_to_date(
    instance: dg.DagsterInstance,
    workspace: Workspace,
    step: Step,
    partitions: Sequence[Partition],
    done: RunResult,
) -> None:
    """Make the outdated partitions of a step, those of all profiles in one run, and record the result in `done`.

    A profile with a failure upstream is skipped, and a failure here affects no other profile.
    """
    needs = {dep for product in step.products for dep in product.deps}
    stopped = {profile for product, profile in done.failed if product in needs}
    asked = [each for each in partitions if not {None, each.profile} & stopped]
    for profile in {each.profile for each in partitions} - {each.profile for each in asked}:
        done.failed |= {(name, profile) for name in step.makes}
    try:
        due, failures = due_of_each(instance, workspace, step, asked)
    except StoreError as busy:
        due, failures = {}, {asked[-1]: busy}
    for each, error in failures.items():
        _record(step, [each], Made(failures={each: error}), done)
    known = list(instance.get_dynamic_partitions(str(profile_partitions.name)))
    for todo in rectangles([*due], known):
        try:
            made = materialize(instance, workspace, step, todo[0], todo[-1])
        except Exception as error:
            made = Made(failures=dict.fromkeys(todo, named_error(error, f"{step.name} of {todo[-1]}")))
        _record(step, todo, made, done)


def _record(step: Step, todo: Sequence[Partition], made: Made, done: RunResult) -> None:
    """Record what a run has made; a profile of which a partition failed or is missing has failed."""
    for profile in dict.fromkeys(each.profile for each in todo):
        own = [each for each in todo if each.profile == profile]
        failed = {each: error for each, error in made.failures.items() if each.profile == profile}
        if not failed and all(each in made.new for each in own):
            done.made.setdefault(step.name, []).extend(own)
            continue
        done.failed |= {(name, profile) for name in step.makes}
        if failed:
            new = {each: True for each in made.new if each.profile == profile}
            failure = failure_of(Made(new=new, failures=failed), own)
            done.failures[own[-1]] = failure if failure is not None else next(iter(failed.values()))


# The person at the terminal repeats a command. A daemon cannot, and ended the log of a failed run with a line on that.
_NOT_RETRIED = {"dagster/max_retries": "0"}


def materialize(
    instance: dg.DagsterInstance, workspace: Workspace, step: Step, first: Partition, last: Partition
) -> Made:
    """Run a step for first..last on the instance; return what it made and which partitions failed.

    Raises PaperAssetsError with the run's one line if it failed otherwise.
    """
    keys = partition_key(step.grid, first), partition_key(step.grid, last)
    span = {RANGE_START: keys[0], RANGE_END: keys[1]}
    outcomes: list[Made] = []
    instance.compute_log_manager.capture_logs = _nothing_captured  # type: ignore[method-assign]
    _workspace.set(replace(workspace, on_made=outcomes.append))
    outcome = _job().execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(name) for name in sorted(step.makes)],
        partition_key=keys[0] if first == last else None,
        tags={ATTENDED: "command", **_NOT_RETRIED, **process_tag(), **({} if first == last else span)},
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )
    if outcomes and (outcome.success or outcomes[-1].failures):
        return outcomes[-1]
    failed = outcome.get_step_failure_events()
    error = failed[0].step_failure_data if failed else None
    if error and error.user_failure_data and error.user_failure_data.description:
        raise PaperAssetsError(error.user_failure_data.description)
    fault = error.error if error else None
    while fault is not None and fault.cause is not None:  # Dagster's own error only says that it gave up
        fault = fault.cause
    reason = " ".join(fault.message.split())[:_LONGEST_REASON] if fault else "the run failed"
    raise PaperAssetsError(f"{step.name}: {reason}; see run {outcome.run_id} in the Dagster UI")


def fetch_days(instance: dg.DagsterInstance, workspace: Workspace, days: Sequence[Partition]) -> Made:
    """Fetch consecutive days. Raises the PaperAssetsError of a day that failed; the others are kept."""
    made = materialize(instance, workspace, papers.STEP, days[0], days[-1])
    failure = failure_of(made, days)
    if failure is not None:
        raise failure
    return made


@contextmanager
def _nothing_captured(log_key: Sequence[str]) -> Iterator[Any]:
    """Keep no output of a command's run: the person at the terminal sees it.

    Dagster copies it by two processes, which it could end only after a minute where signals are blocked, as in a
    command.
    """
    urls = dict.fromkeys(("external_url", "external_stdout_url", "external_stderr_url", "shell_cmd"))
    yield SimpleNamespace(log_key=log_key, **urls)


_workspace: ContextVar[Workspace] = ContextVar("workspace")  # of the run in progress; one is after the other


@cache
def _job() -> dg.JobDefinition:
    """Return the job of all assets, as the UI runs them, so that the UI lists a command's run by its assets."""
    workspace = dg.ResourceDefinition(lambda _: _workspace.get())
    return dg.Definitions(assets=ASSETS, resources={"workspace": workspace}).resolve_implicit_global_asset_job_def()
