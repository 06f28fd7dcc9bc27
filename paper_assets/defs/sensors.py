"""Define the sensors: one for changed profiles and ratings and due conditions, one for decisions on rewrites (A3).

The first reports changes and then evaluates the conditions, every few seconds. Separate sensors cost four times as
much, and an edit waited for two of them; one sensor requests the ranking in the tick that detects the edit. Dagster
offers a run for each partition, or a backfill, which its daemon checks every 30 seconds. Here run requests of
neighbouring partitions are merged into one run.

The second resumes rewrites on which a person has decided, and retries abandoned ones once a day.

Belongs here: for which partitions a run is due, and what one tick does. Not here: what is due (automation.py), what a
run does (pipeline/rewrites.py), what a decision is (rewriting/loop.py).
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any

import dagster as dg

from paper_assets.defs import resources
from paper_assets.defs.abandoned_runs import runs_in_progress
from paper_assets.defs.change_detection import ChangeDrivenSensor, files_of, is_unchanged, remember_unchanged, state_of
from paper_assets.defs.dagster_internals import SensorExecutionData, kept_connections, restore_cursor
from paper_assets.defs.external_assets import report_profiles, report_ratings
from paper_assets.defs.partitions import grid_key, partition_of, profiles
from paper_assets.errors import InvalidProfile, StoreError
from paper_assets.pipeline.profiles import find_profiles
from paper_assets.pipeline.rewrite_items import known_step
from paper_assets.pipeline.staleness import GIVEN_UP_AFTER
from paper_assets.pipeline.step import Grid, Partition
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace
from paper_assets.rewriting.policy import Wait, Write
from paper_assets.settings import RewritingConfig
from paper_assets.stores.rankings import latest_ranking_day
from paper_assets.stores.rewrite_progress import StoredDecision, asked_by, decisions_after
from paper_assets.stores.rewrites import RewriteItem, unfinished_items
from paper_assets.stores.warehouse import Warehouse

_reported_faults: set[str] = set()  # of profiles, as the last tick logged them


class ConditionsSensor(dg.AutomationConditionSensorDefinition):
    """Evaluate conditions in the code server after reporting changes; merge their run requests."""

    @property
    def required_resource_keys(self) -> set[str]:
        return {"workspace"}

    def evaluate_tick(self, context: dg.SensorEvaluationContext) -> Any:  # Dagster's own type of a tick is private
        of_home = resources.settings
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


DayAndProfile = tuple[date, str]
_NAME = "decision_sensor"


def decided(
    made: Iterable[StoredDecision], *, usable: Callable[[DayAndProfile], bool], otherwise: DayAndProfile | None
) -> dict[DayAndProfile, int]:
    """Return the partitions of new decisions, each with the number of its last decision: one run handles all of them.

    `otherwise`: the partition whose run handles decisions without a usable partition; every run handles all decisions.
    """
    instead = [otherwise] if otherwise else []
    return {
        partition: decision.place for decision in made for partition in [*filter(usable, decision.asked_by)] or instead
    }


def abandoned(
    items: Iterable[RewriteItem], *, as_of: datetime, with_model: bool, config: RewritingConfig
) -> list[RewriteItem]:
    """Return items that wait for no person and are unchanged since yesterday: their run ended early or had no model."""
    return [
        item
        for item in items
        if item.moved_at.date() < as_of.date()
        and item.moved_at > as_of - GIVEN_UP_AFTER
        and not isinstance(step := known_step(item, config=config), Wait | None)
        and (with_model or not isinstance(step, Write))
    ]


def run_requests(
    touched: Mapping[DayAndProfile, int], left: Collection[DayAndProfile], *, today: date
) -> list[dg.RunRequest]:
    """Return one run for each partition; its key prevents a second run for a repeated request."""
    runs = [(f"decision-{place}", partition) for partition, place in sorted(touched.items())]
    runs += [(f"unfinished-{today}", partition) for partition in sorted(set(left) - touched.keys())]
    return [
        dg.RunRequest(run_key=f"{why}-{day}-{profile}", partition_key=grid_key(day, profile))
        for why, (day, profile) in runs
    ]


def latest_ranked(warehouse: Warehouse, known: Iterable[str], *, first: date, today: date) -> DayAndProfile | None:
    """Return the newest ranked day of any known profile, within the grid; None if there is none."""
    found = [(latest_ranking_day(warehouse, name, until=today), name) for name in known]
    return max([(day, name) for day, name in found if day is not None and day >= first], default=None)


def has_unhandled_decision(items: Sequence[RewriteItem], asking: Mapping[DayAndProfile, Sequence[str]]) -> bool:
    """Return whether one of the items has a decision and none of these partitions requests it."""
    reports = {item for asked in asking.values() for item in asked}
    return any(item.decisions and item.item not in reports for item in items)


def new_decisions(
    context: dg.SensorEvaluationContext,
    workspace: dg.ResourceParam[Workspace],
) -> dg.SensorResult:
    """Request runs of the days and profiles whose rewrites have a new decision or were abandoned.

    The cursor is the place of the last decision read. Skips with the store's message if the store cannot be read.
    """
    settings, warehouse = workspace.settings, workspace.warehouse
    state = state_of(*files_of(settings.warehouse_path))
    place, now = int(context.cursor or 0), workspace.clock()
    known = set(context.instance.get_dynamic_partitions(str(profiles.name)))

    def usable(partition: DayAndProfile) -> bool:
        day, profile = partition
        return profile in known and settings.first_day <= day <= now.date()

    try:
        with warehouse.read_together() as opened:
            made = decisions_after(opened, place)
            left = abandoned(
                unfinished_items(opened),
                as_of=now,
                with_model=workspace.load_verifier().model is not None,
                config=settings.rewriting,
            )
            asking = asked_by(opened, [item.item for item in left])
            otherwise = latest_ranked(opened, known, first=settings.first_day, today=now.date())
    except StoreError as error:  # the next tick continues from the same cursor
        return dg.SensorResult(skip_reason=dg.SkipReason(str(error)))
    waiting = {partition: items for partition, items in asking.items() if usable(partition)}
    instead = {otherwise} if otherwise and has_unhandled_decision(left, waiting) else set()
    touched = decided(made, usable=usable, otherwise=otherwise)
    requests = run_requests(touched, waiting.keys() | instead, today=now.date())
    cursor = str(made[-1].place if made else place)
    if not requests:
        remember_unchanged(_NAME, state and (state, cursor), context.instance)
        return dg.SensorResult(skip_reason=dg.SkipReason("no new decision"), cursor=cursor)
    return dg.SensorResult(run_requests=requests, cursor=cursor)


decision_sensor = ChangeDrivenSensor(
    name=_NAME,
    evaluation_fn=new_decisions,
    description="Continues rewrites on which a person has decided, and retries abandoned ones once a day.",
    target=dg.AssetSelection.assets("paper_rewrites"),
    minimum_interval_seconds=resources.sensor_seconds(3),  # a model takes longer than that for a rewrite
    default_status=dg.DefaultSensorStatus.RUNNING,
    depends_on=files_of(resources.settings.warehouse_path),
)
