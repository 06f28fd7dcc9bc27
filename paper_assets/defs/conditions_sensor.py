"""The sensor that reports changed profiles and ratings and then evaluates the conditions, every few seconds.

Separate sensors cost four times as much, and an edit waited for two of them; one sensor requests the ranking in the
tick that detects the edit. Belongs here: what one tick does. Not here: what is due (automation.py).

Dagster offers a run for each partition, or a backfill, which its daemon checks every 30 seconds. Here run requests of
neighbouring partitions are merged into one run (A3).
"""

import json
from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from itertools import groupby
from typing import Any

import dagster as dg

from paper_assets.defs import environment
from paper_assets.defs.abandoned_runs import runs_in_progress
from paper_assets.defs.change_detection import files_of, is_unchanged, remember_unchanged, state_of
from paper_assets.defs.dagster_internals import SensorExecutionData, kept_connections, restore_cursor
from paper_assets.defs.external_assets import report_profiles, report_ratings
from paper_assets.defs.partitions import partition_of, profiles
from paper_assets.errors import InvalidProfile, StoreError
from paper_assets.pipeline.profiles import find_profiles
from paper_assets.pipeline.step import Grid, Partition
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace

_reported_faults: set[str] = set()  # of profiles, as the last tick logged them


class ConditionsSensor(dg.AutomationConditionSensorDefinition):
    """Evaluate conditions in the code server after reporting changes; merge their run requests."""

    @property
    def required_resource_keys(self) -> set[str]:
        return {"workspace"}

    def evaluate_tick(self, context: dg.SensorEvaluationContext) -> Any:  # Dagster's own type of a tick is private
        of_home = environment.settings
        state = state_of(of_home.profiles_dir, *files_of(of_home.warehouse_path))
        if is_unchanged(self.name, state and (state, context.cursor)):
            return SensorExecutionData(
                skip_message="nothing has changed since the last evaluation", cursor=context.cursor
            )
        instance = context.instance
        if context.cursor is None:
            restore_cursor(context, stored_cursor(instance))
        store_was_read = report_changes(instance, context.resources.workspace, context.log)
        with kept_connections(instance):  # a tick reads the history hundreds of times
            tick = super().evaluate_tick(context)
        store_cursor(instance, str((context.log_key or [""])[-1]), began=context.cursor, ended=tick.cursor)
        if store_was_read and not tick.run_requests and not runs_in_progress(instance):
            # Skip only after two such ticks, because an evaluation may depend on the one before.
            same = is_unchanged(f"{self.name}, once", state)
            remember_unchanged(self.name, state and (state, tick.cursor) if same else None, instance)
            remember_unchanged(f"{self.name}, once", state, instance)
        return SensorExecutionData(
            run_requests=merged_requests(tick.run_requests or (), instance.get_dynamic_partitions(str(profiles.name))),
            skip_message=tick.skip_message,
            cursor=tick.cursor,
            log_key=tick.log_key,
            automation_condition_evaluations=tick.automation_condition_evaluations,
        )

    def with_attributes(self, *, jobs: Any = None, metadata: Any = None) -> "ConditionsSensor":
        """Return a copy of this class; Dagster's own would be a plain condition sensor."""
        return ConditionsSensor(
            self.name,
            target=self._sensor_target,
            description=self.description,
            metadata=self._metadata if metadata is None else metadata,
            default_status=self.default_status,
            minimum_interval_seconds=self.minimum_interval_seconds,
            emit_backfills=self.emit_backfills,
            use_user_code_server=True,
        )


def report_changes(instance: dg.DagsterInstance, workspace: Workspace, log: Any) -> bool:
    """Report added, changed and removed profiles and new ratings (A1, L6); return whether the store could be read.

    A profile that cannot be read changes nothing and is logged once.
    """
    try:
        found = find_profiles(workspace.settings.profiles_dir)
        for name in report_profiles(instance, found).removed:
            instance.delete_dynamic_partition(str(profiles.name), name)
        faults = {f"{fault}; its last good ranking stays" for fault in found.faults.values()}
    except InvalidProfile as fault:
        faults = {f"{fault}"}
    for line in sorted(faults - _reported_faults):
        log.warning(line)
    _reported_faults.clear()
    _reported_faults.update(faults)
    try:
        report_ratings(instance, workspace)
    except StoreError as busy:
        log.warning(f"{busy}")
        return False
    return True


_KEY = "paper_assets/cursor_of_conditions"


def store_cursor(instance: dg.DagsterInstance, tick: str, *, began: str | None, ended: str | None) -> None:
    """Store the cursors with which a tick (its number in Dagster's storage) began and ended."""
    cursors = json.dumps({"tick": tick, "began": began, "ended": ended})
    instance.daemon_cursor_storage.set_cursor_values({_KEY: cursors})


def stored_cursor(instance: dg.DagsterInstance) -> str | None:
    """Return the cursor to continue with if Dagster has none; None before the first tick.

    It is the one with which the last tick ended, or began if Dagster has not recorded that tick's runs.
    """
    text = instance.daemon_cursor_storage.get_cursor_values({_KEY}).get(_KEY)
    if not text:
        return None
    cursors: dict[str, str] = json.loads(text)
    return cursors["ended" if _has_recorded_runs(instance, cursors["tick"]) else "began"]


def _has_recorded_runs(instance: dg.DagsterInstance, tick: str) -> bool:
    """Return whether Dagster has recorded the tick's runs, so that it requests them even after a restart."""
    storage = instance.schedule_storage
    if storage is None or not tick.isdigit():
        return False
    try:
        return bool(storage.get_tick(int(tick)).tick_data.reserved_run_ids)
    except dg.DagsterInvariantViolationError:  # the tick was purged
        return False


RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"  # tags
_PARTITION = "dagster/partition"  # prefix of the tags of a run of one partition; one more tag for each dimension
_STEP_OF = {name: step for step in STEPS for name in step.makes}


def merged_requests(requests: Sequence[dg.RunRequest], known_profiles: Sequence[str]) -> list[dg.RunRequest]:
    """Merge requests of neighbouring partitions of the same assets, up to the number that their steps take in a run.

    Neighbours are consecutive days, or profiles of one day that are consecutive in `known_profiles`.
    """
    place = {name: at for at, name in enumerate(known_profiles)}
    merged: list[dg.RunRequest] = []
    mergeable: dict[tuple[Any, ...], list[tuple[Partition, dg.RunRequest]]] = {}
    for request in requests:
        assets = tuple(sorted(key.to_user_string() for key in request.asset_selection or ()))
        steps = [_STEP_OF[name] for name in assets if name in _STEP_OF]
        chunk = min((step.partitions_per_run or 1 for step in steps), default=1)
        if not request.partition_key or chunk == 1 or len({step.grid for step in steps}) > 1:
            merged.append(request)
            continue
        grid = steps[0].grid
        (partition,) = partition_of(grid, [request.partition_key])
        if partition.profile is not None and partition.profile not in place:  # removed since
            merged.append(request)
            continue
        checks = frozenset(request.asset_check_keys or ())
        mergeable.setdefault((assets, grid, chunk, checks), []).append((partition, request))
    for (_assets, grid, chunk, _checks), pairs in mergeable.items():
        apart = partial(_diagonal, grid=grid, place=place)
        for _, row in groupby(enumerate(_in_order(pairs, place)), apart):
            neighbours = [request for _, (_, request) in row]
            merged += [_one_run(neighbours[at : at + chunk]) for at in range(0, len(neighbours), chunk)]
    return merged


def _in_order(
    pairs: Sequence[tuple[Partition, dg.RunRequest]], place: dict[str, int]
) -> list[tuple[Partition, dg.RunRequest]]:
    return sorted(pairs, key=lambda pair: (pair[0].day or date.min, place.get(pair[0].profile or "", 0)))


def _diagonal(at: tuple[int, tuple[Partition, dg.RunRequest]], *, grid: Grid, place: dict[str, int]) -> tuple[Any, ...]:
    """Return a key that is equal for neighbours: position minus number is constant in a row of them."""
    number, (partition, _) = at
    if grid is Grid.DAY:
        return (partition.of_day - timedelta(days=number),)
    return partition.day, place[partition.of_profile] - number


def _one_run(neighbours: Sequence[dg.RunRequest]) -> dg.RunRequest:
    if len(neighbours) == 1:
        return neighbours[0]
    first, last = neighbours[0], neighbours[-1]
    tags = {name: value for name, value in first.tags.items() if not name.startswith(_PARTITION)}
    return dg.RunRequest(
        asset_selection=first.asset_selection,
        asset_check_keys=first.asset_check_keys,
        tags={**tags, RANGE_START: str(first.partition_key), RANGE_END: str(last.partition_key)},
    )
