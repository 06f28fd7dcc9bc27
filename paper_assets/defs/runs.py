"""Materialize from a program instead of the UI: same assets, same instance, in this process.

Belongs here: what the command line needs from Dagster. Not here: printing, what is current and what assets do
(pipeline/).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import dagster as dg

from paper_assets.defs.abandoned_runs import bounded_slot_wait, process_tag
from paper_assets.defs.assets import ASSETS
from paper_assets.defs.external_assets import known_versions
from paper_assets.defs.partitions import partition_key
from paper_assets.defs.partitions import profiles as profile_partitions
from paper_assets.defs.reports import ATTENDED, separate_events
from paper_assets.errors import PaperAssetsError, StoreBusy, named_error
from paper_assets.paper import Paper
from paper_assets.pipeline import papers
from paper_assets.pipeline.step import Grid, Partition, Step, ascending, by_profile, stale
from paper_assets.pipeline.workspace import Workspace
from paper_assets.stores.paper_merging import MergeReport, merge_papers
from paper_assets.stores.papers import day_fingerprints

STEP = "paper_assets/step"  # tag: the step that a run of the command line makes
_DAYS_AT_ONCE = 31  # whose papers are in memory together when they are reported


def import_papers(
    instance: dg.DagsterInstance, workspace: Workspace, found: Iterable[Paper], *, progress: Callable[[int], None]
) -> tuple[MergeReport, int]:
    """Merge papers into the warehouse and report to Dagster which days changed, so that later steps follow.

    Return what was merged, and how many of the changed days are partitions (the days from `first_day` on).
    """
    merged = merge_papers(workspace.warehouse, found, progress=progress)
    return merged, report_papers(instance, workspace)


def report_papers(instance: dg.DagsterInstance, workspace: Workspace) -> int:
    """Report the days whose papers differ from what Dagster knows; return their number.

    These are days of an import that has just ended or was killed before its report, and days that lost their papers.
    """
    stored = day_fingerprints(workspace.warehouse, workspace.settings.first_day, None)
    known = {date.fromisoformat(key): version for key, version in known_versions(instance, papers.NAME).items()}
    now = {**dict.fromkeys(known, papers.EMPTY), **stored}
    news = [day for day in sorted(now) if known.get(day) != now[day]]
    for at in range(0, len(news), _DAYS_AT_ONCE):
        reports = papers.day_reports(workspace, news[at : at + _DAYS_AT_ONCE])
        for event in separate_events(papers.NAME, {day.isoformat(): report for day, report in reports.items()}):
            instance.report_runless_asset_event(event)
    return len(news)


@dataclass(slots=True)
class RunResult:
    """The result of a run over the steps: partitions made, what waits and why, what failed."""

    made: dict[str, list[Partition]] = field(default_factory=dict)  # by step
    waiting: dict[Partition, str] = field(default_factory=dict)
    failures: dict[Partition, PaperAssetsError] = field(default_factory=dict)
    failed: set[tuple[str, str | None]] = field(default_factory=set)  # (product, profile)


def bring_up_to_date(
    instance: dg.DagsterInstance,
    workspace: Workspace,
    step: Step,
    partitions: Sequence[Partition],
    done: RunResult,
) -> None:
    """Make the outdated partitions of a step, profile by profile, and record the result in `done`.

    A profile of which something above has failed is left alone, and a failure here stops no other profile.
    """
    pieces: Iterable[tuple[str | None, list[Partition]]]
    if workspace.cluster and step.side_by_side:
        _make_side_by_side(instance, workspace, step, partitions, done)
        failed = {profile for product, profile in done.failed if product in step.makes}
        partitions = [each for each in partitions if each.profile not in failed]
    if step.grid is Grid.PROFILE_DAY:
        pieces = [(name, [Partition(day, name) for day in days]) for name, days in by_profile(partitions)]
    elif step.grid is Grid.PROFILE:
        pieces = [(each.of_profile, [each]) for each in partitions]
    else:
        pieces = [(None, list(partitions))]
    needs = {dep for product in step.products for dep in product.deps}
    for profile, asked in pieces:
        if any(product in needs and whose in (profile, None) for product, whose in done.failed):
            done.failed |= {(name, profile) for name in step.makes}
            continue
        try:
            todo = _to_make(instance, workspace, step, asked, done)
            if todo:
                materialize(instance, workspace, step, todo[0], todo[-1])
            done.made.setdefault(step.name, []).extend(todo)
        except Exception as error:
            done.failures[asked[-1]] = named_error(error, f"{step.name} of {asked[-1]}")
            done.failed |= {(name, profile) for name in step.makes}


def _make_side_by_side(
    instance: dg.DagsterInstance, workspace: Workspace, step: Step, partitions: Sequence[Partition], done: RunResult
) -> None:
    """On a cluster, make the outdated partitions of all profiles in one run, so that a day's are computed together.

    Dagster's runs take a rectangle of days and profiles; where it would hold a profile that was not asked for, or of
    which something has failed, nothing is made here.
    """
    needs = {dep for product in step.products for dep in product.deps}
    failed = {profile for product, profile in done.failed if product in needs}
    todo = _to_make(instance, workspace, step, partitions, RunResult())
    known = list(instance.get_dynamic_partitions(str(profile_partitions.name)))
    names = [name for name in known if name in _names(todo)]
    if len(names) < 2 or failed or known[known.index(names[0]) :][: len(names)] != names:
        return
    try:
        days = sorted({each.of_day for each in todo})
        materialize(instance, workspace, step, Partition(days[0], names[0]), Partition(days[-1], names[-1]))
    except Exception as error:
        left = _to_make(instance, workspace, step, partitions, RunResult())
        done.failures[(left or todo)[0]] = named_error(error, step.name)
        done.failed |= {(name, profile) for name in step.makes for profile in _names(left)}
        todo = [each for each in todo if each not in left]
    done.made.setdefault(step.name, []).extend(todo)


def _names(partitions: Iterable[Partition]) -> set[str]:
    return {each.of_profile for each in partitions}


def is_due(
    instance: dg.DagsterInstance, workspace: Workspace, step: Step, partitions: Sequence[Partition], done: RunResult
) -> bool:
    """Return whether `bring_up_to_date` would make anything; record in `done` what waits. Raises PaperAssetsError."""
    return bool(_to_make(instance, workspace, step, partitions, done))


def _to_make(
    instance: dg.DagsterInstance, workspace: Workspace, step: Step, partitions: Sequence[Partition], done: RunResult
) -> list[Partition]:
    """Return outdated partitions, and those that Dagster does not know because a run was killed before its report.

    Partitions that wait for something that no run provides are recorded in `done` instead. Opens the store once.
    """
    with workspace.warehouse.read_together() as opened:
        workspace = replace(workspace, warehouse=opened)
        due = set(stale(step, workspace, partitions))
        for product, reported in step.reported(workspace, partitions).items():
            keys = {each: partition_key(step.grid, each) for each in reported}
            known = known_versions(instance, product, list(keys.values()))
            due |= {each for each, version in reported.items() if known.get(keys[each]) != version}
        reasons = {each: reason for each in due if (reason := step.waits_for(workspace, each))}
    done.waiting |= reasons
    return [each for each in ascending(partitions) if each in due and each not in reasons]


def materialize(
    instance: dg.DagsterInstance, workspace: Workspace, step: Step, first: Partition, last: Partition
) -> None:
    """Run a step for first..last on the instance. Raises PaperAssetsError with the run's one line."""
    keys = partition_key(step.grid, first), partition_key(step.grid, last)
    span = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[1]}
    with bounded_slot_wait(instance, deadline=workspace.settings.store_deadline) as refused:
        outcome = _job_of(step, workspace).execute_in_process(
            instance=instance,
            partition_key=keys[0] if first == last else None,
            tags={ATTENDED: "yes", STEP: step.name, **process_tag(), **({} if first == last else span)},
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
    if outcome.success:
        return
    if refused:
        raise StoreBusy(refused[0])
    failed = outcome.get_step_failure_events()
    error = failed[0].step_failure_data if failed else None
    if error and error.user_failure_data and error.user_failure_data.description:
        raise PaperAssetsError(error.user_failure_data.description)
    reason = error.error.message.strip() if error and error.error else "the run failed"
    raise PaperAssetsError(f"{step.name}: {reason}; see run {outcome.run_id} in the Dagster UI")


def _job_of(step: Step, workspace: Workspace) -> dg.JobDefinition:
    """Return a job named after the step; `dg.materialize` would show as `__ephemeral_asset_job__` in the UI."""
    name = f"make_{step.name}"
    job = dg.define_asset_job(name, selection=sorted(step.makes))
    return dg.Definitions(jobs=[job], assets=ASSETS, resources={"workspace": workspace}).resolve_job_def(name)
