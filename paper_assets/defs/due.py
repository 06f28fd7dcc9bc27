"""Decide which runs to request (A2): what `stale` finds due, in the order of `run`, one run for each step.

Nothing is remembered between two decisions. What is due is read from the store; what is in progress, what failed and
when it is tried again from Dagster's list of runs. So a daemon that is killed at any moment forgets nothing.

Belongs here: the decision. Not here: what makes a partition due (pipeline/staleness.py), when to decide (sensors.py).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any

import dagster as dg
from dagster import DagsterRunStatus

from paper_assets.defs.external_assets import known_versions
from paper_assets.defs.partitions import partition_key, profiles, rectangles
from paper_assets.defs.resources import BACKLOG
from paper_assets.errors import InvalidProfile, PaperAssetsError, StoreError, named_error
from paper_assets.pipeline.profiles import usable_profile
from paper_assets.pipeline.staleness import partitions_of_days
from paper_assets.pipeline.step import Grid, Partition, Step, ascending, keys_of, out_of_date
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.stores.papers import latest_day, paper_counts

STEP = "paper_assets/due"  # tag of a run that was requested here: its step
FAILURE = "paper_assets/failure"  # tag of a failed run: one of the two below; a killed run has none
LASTING, PASSING = "lasting", "passing"  # a repetition meets the same error; it may succeed
FAILING = "failing"  # metadata of a check: the partitions that fail it
_ASKED = ".dagster/paper_assets_asked"  # tag: for each partition the reason for which it was due; hidden in the UI
RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"  # tags
_PARTITION = "dagster/partition"  # tag
_UNFINISHED = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
_EVALUATIONS = 10  # of a check, planned ones included, among which the last is found
_EARLIER_RUNS = 60  # of a step or fetch, among which those for the same reason are counted
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(minutes=2), timedelta(hours=6)  # before the same is tried again; trebled
_KILLED_AT_ONCE = 2  # runs for the same reason that were killed and are repeated without a pause
_PRIORITY = 10_000  # of the first step; a run that a person starts has 0


def outdated(
    instance: dg.DagsterInstance, workspace: Workspace, step: Step, partitions: Sequence[Partition]
) -> dict[Partition, str]:
    """Return what is due, ascending, each with a fingerprint of the reason.

    Due are partitions that are out of date, and those that Dagster does not know because a run was killed before its
    report. Those that wait for something that no run provides are not left out.
    """
    if not partitions:
        return {}
    inputs, stored = step.tracked.inputs(workspace, partitions), step.tracked.stored(workspace, partitions)
    due, unknown = set(out_of_date(step.tracked, partitions, inputs, stored)), dict[Partition, str]()
    for product, reported in step.reported(workspace, partitions).items():
        keys = {each: partition_key(step.grid, each) for each in reported}
        known = known_versions(instance, product, list(keys.values()))
        unknown |= {each: version for each, version in reported.items() if known.get(keys[each]) != version}
    return {
        each: sha256(f"{inputs.get(each)}\n{stored.get(each)}\n{unknown.get(each)}".encode()).hexdigest()[:12]
        for each in ascending(due | unknown.keys())
    }


def due_of_each(
    instance: dg.DagsterInstance, workspace: Workspace, step: Step, partitions: Sequence[Partition]
) -> tuple[dict[Partition, str], dict[Partition, PaperAssetsError]]:
    """Return what is due and does not wait for something that no run provides, and by partition what failed.

    Where this fails, each profile is compared alone, so that one stops no other. Raises StoreError.
    """
    if not partitions:
        return {}, {}
    try:
        with workspace.warehouse.read_together(keys_of(partitions)) as opened:
            together = replace(workspace, warehouse=opened)
            due = outdated(instance, together, step, partitions)
            return {each: reason for each, reason in due.items() if not step.tracked.waits_for(together, each)}, {}
    except StoreError:
        raise
    except Exception as error:
        names = list(dict.fromkeys(each.profile for each in partitions))
        if len(names) == 1:
            return {}, {partitions[-1]: named_error(error, f"{step.name} of {partitions[-1]}")}
        found: dict[Partition, str] = {}
        failures: dict[Partition, PaperAssetsError] = {}
        for name in names:
            own, failed = due_of_each(instance, workspace, step, [each for each in partitions if each.profile == name])
            found, failures = found | own, failures | failed
        return {each: found[each] for each in ascending(found)}, failures


@dataclass(frozen=True, slots=True)
class Tried:
    """A finished run that was requested here: what was due for which reason, how it ended, and when."""

    asked: Mapping[str, str]
    failure: str | None  # LASTING, PASSING or "killed"
    ended: datetime


def next_try(tried: Sequence[Tried], *, longest: timedelta = _LONGEST_PAUSE) -> datetime | None:
    """Return when something is tried again after these runs for the same reason, newest first; None: at once.

    Pauses grow, also after runs that succeeded and left it due, as without a language model. After an error that a
    repetition meets again the pause is the longest, so that a repaired program is noticed; other inputs are another
    reason.
    """
    if not tried or (tried[0].failure == "killed" and len(tried) <= _KILLED_AT_ONCE):
        return None
    pause = min(_FIRST_PAUSE * 3 ** min(len(tried) - 1, 9), longest)
    return tried[0].ended + (longest if tried[0].failure == LASTING else pause)


def tried_runs(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> list[Tried]:
    """Return the finished runs with these tags, newest first."""
    found = []
    for record in instance.get_run_records(dg.RunsFilter(tags={**tags}), limit=_EARLIER_RUNS):
        run, changed = record.dagster_run, record.update_timestamp
        if run.is_finished:
            failure = run.tags.get(FAILURE, "killed") if run.status is DagsterRunStatus.FAILURE else None
            ended = changed if changed.tzinfo else changed.replace(tzinfo=UTC)
            found.append(Tried(json.loads(run.tags.get(_ASKED, "{}")), failure, ended))
    return found


@dataclass(slots=True)
class Decision:
    """The runs to request now, and the next moment at which something that failed is tried again."""

    requests: list[dg.RunRequest] = field(default_factory=list)
    again: datetime | None = None
    is_waiting: bool = False  # for a run in progress


def decide(instance: dg.DagsterInstance, workspace: Workspace) -> Decision:
    """Return one run for each step that has something due; several if its profiles are not neighbours in Dagster.

    A step waits while it, or a step above it, is in progress, and while one above it is due. Papers outside the windows
    of all lists are a backlog, made last and newest first, for which only steps wait that read papers of any day.
    Raises StoreError.
    """
    decision, today, first_day = Decision(), workspace.clock().date(), workspace.settings.first_day
    with workspace.warehouse.read_together() as opened:
        workspace = replace(workspace, warehouse=opened)
        names = list(instance.get_dynamic_partitions(str(profiles.name)))
        newest, usable = latest_day(opened, until=today), _usable_profiles(workspace, names)
        in_progress = _in_progress(instance)
        decision.is_waiting = bool(in_progress)
        if newest is None:
            return decision
        busy, busy_with_old = set[str](), set[str]()  # steps that are due or in progress
        for step in STEPS:
            asked = partitions_of_days(step.tracked, usable, [newest], first_day=first_day)
            first_read = asked[0].of_day if step.grid is Grid.DAY else newest
            if step.grid is Grid.PROFILE_DAY and step.tracked.days_back:
                days = [newest - timedelta(days=back) for back in range(step.tracked.days_back, 0, -1)]
                asked += [Partition(day, name) for name in usable for day in days if day >= first_day]
            backlog: list[Partition] = []
            if step.grid is Grid.DAY:
                stored = {Partition(day) for day in paper_counts(opened) if first_day <= day <= today}
                backlog = ascending(stored - set(asked))
            for last in in_progress.get(step.name, ()):
                (busy_with_old if last and last < f"{first_read}" else busy).add(step.name)
            recent, old = (_now_due(instance, workspace, step, some, decision) for some in (asked, backlog))
            if (recent or old) and (failing := failing_profiles(instance, step)):
                recent, old = (
                    {each: due[each] for each in due if not {None, each.profile} & failing} for due in (recent, old)
                )
            due = recent if recent or step.name in busy_with_old else old
            above = _above(step.name)
            waits = bool({step.name, *above} & busy or (step.tracked.reads_all_days and above & busy_with_old))
            if due and not waits:
                runs = _runs(step, [*due], names)
                decision.requests += [_request(step, run, due, is_backlog=due is old) for run in runs]
            busy |= {step.name} if recent else set()
            busy_with_old |= {step.name} if old else set()
    return decision


@cache
def _direct(step_name: str) -> frozenset[str]:
    """Return the names of the steps whose assets a step reads."""
    makers = {product: step.name for step in STEPS for product in step.makes}
    (step,) = (each for each in STEPS if each.name == step_name)
    return frozenset(makers[dep] for product in step.products for dep in product.deps if dep in makers) - {step_name}


@cache
def _above(step_name: str) -> frozenset[str]:
    """Return the names of all steps above a step: while papers are fetched or embedded, nothing is rewritten."""
    direct = _direct(step_name)
    return direct.union(*map(_above, direct))


def _usable_profiles(workspace: Workspace, names: Iterable[str]) -> dict[str, Profile]:
    found = {}
    for name in names:
        try:
            found[name] = usable_profile(workspace, name)
        except InvalidProfile:  # there never was a valid one; `report_changes` names it
            continue
    return found


def _now_due(
    instance: dg.DagsterInstance, workspace: Workspace, step: Step, partitions: Sequence[Partition], decision: Decision
) -> dict[Partition, str]:
    """Return what is due and does not wait for its next try."""
    due, _ = due_of_each(instance, workspace, step, partitions)
    tried, now = tried_runs(instance, {STEP: step.name}) if due else [], workspace.clock()
    found = {}
    for each, reason in due.items():
        again = next_try([run for run in tried if run.asked.get(str(each)) == reason])
        if again is None or again <= now:
            found[each] = reason
        else:
            decision.again = min(decision.again or again, again)
    return found


def _in_progress(instance: dg.DagsterInstance) -> dict[str, list[str]]:
    """Return the steps of which runs are queued or in progress, also those that a person started.

    With the last day of each run as text, empty for a run that is not of days.
    """
    found: dict[str, list[str]] = {}
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=_UNFINISHED)):
        assets = {key.to_user_string() for key in run.asset_selection or ()}
        last = run.tags.get(RANGE_END) or run.tags.get(_PARTITION) or ""
        for step in STEPS:
            if step.makes & assets:
                has_days = step.grid in (Grid.DAY, Grid.PROFILE_DAY)
                found.setdefault(step.name, []).append(last.partition("|")[0] if has_days else "")
    return found


def failing_profiles(instance: dg.DagsterInstance, step: Step) -> set[str | None]:
    """Return the profiles (None: all) for which a blocking check of an asset that the step reads fails."""
    found: set[str | None] = set()
    for product in (product for each in STEPS if each.name in _direct(step.name) for product in each.products):
        if names := [check.name for check in product.checks if check.blocking]:
            failing = failing_partitions(instance, product.name, names)
            found |= {each.profile for partitions in failing.values() for each in partitions}
    return found


def failing_partitions(instance: dg.DagsterInstance, asset: str, checks: Sequence[str]) -> dict[str, list[Partition]]:
    """Return by check the partitions that failed it when it was evaluated last."""
    found: dict[str, list[Partition]] = {}
    for name in checks:
        key = dg.AssetCheckKey(dg.AssetKey(asset), name)
        records = instance.event_log_storage.get_asset_check_execution_history(key, limit=_EVALUATIONS)
        events = (record.event.dagster_event for record in records if record.event)  # planned ones have none
        data = (event.event_specific_data for event in events if event)
        last = next((each for each in data if isinstance(each, dg.AssetCheckEvaluation)), None)
        pairs: Any = last.metadata[FAILING].value if last and not last.passed and FAILING in last.metadata else ()
        found[name] = [Partition(date.fromisoformat(day) if day else None, profile) for day, profile in pairs]
    return found


def _runs(step: Step, due: Sequence[Partition], names: Sequence[str]) -> list[list[Partition]]:
    """Return the partitions of each run: a rectangle of days and profiles; of days only the newest ones."""
    most = step.partitions_per_run or 1
    if step.grid is Grid.DAY:
        newest = max(each.of_day for each in due)
        return [[each for each in due if newest - each.of_day < timedelta(days=most)]]
    by_day = ([each for each in due if each.day == day] for day in sorted({each.day or date.min for each in due}))
    rows = (row for some in (by_day if due[0].day else [due]) for row in rectangles(some, names))
    return [row[at : at + most] for row in rows for at in range(0, len(row), most)]


def _request(step: Step, run: Sequence[Partition], due: Mapping[Partition, str], *, is_backlog: bool) -> dg.RunRequest:
    first, last = (partition_key(step.grid, each) for each in (run[0], run[-1]))
    tags = {
        STEP: step.name,
        _ASKED: json.dumps({f"{each}": due[each] for each in run}),
        "dagster/priority": f"{1 if is_backlog else _PRIORITY - STEPS.index(step)}",
        "dagster/max_retries": "0",  # it is due again
        **({BACKLOG: "yes"} if is_backlog else {}),
        **({RANGE_START: first, RANGE_END: last} if first != last else {}),
    }
    return dg.RunRequest(
        asset_selection=[dg.AssetKey(name) for name in sorted(step.makes)],
        partition_key=first if first == last and first else None,
        tags=tags,
    )
