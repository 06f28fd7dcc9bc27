"""The sensor that resumes rewrites on which a person has decided, and retries abandoned ones once a day (A3).

Belongs here: for which partitions a run is due. Not here: what the run does (pipeline/rewrites.py), what a decision is
(rewriting/loop.py).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime

import dagster as dg

from paper_assets.defs import environment
from paper_assets.defs.change_detection import ChangeDrivenSensor, files_of, remember_unchanged, state_of
from paper_assets.defs.partitions import grid_key, profiles
from paper_assets.errors import StoreError
from paper_assets.pipeline.rewrites import GIVEN_UP_AFTER
from paper_assets.pipeline.workspace import Workspace
from paper_assets.rewriting.loop import step_of
from paper_assets.rewriting.policy import Wait, Write
from paper_assets.settings import RewritingConfig
from paper_assets.stores.rankings import latest_ranking_day
from paper_assets.stores.rewrite_progress import StoredDecision, asked_by, decisions_after
from paper_assets.stores.rewrites import RewriteItem, unfinished_items
from paper_assets.stores.warehouse import Warehouse

Partition = tuple[date, str]
_NAME = "decision_sensor"


def decided(
    made: Iterable[StoredDecision], *, usable: Callable[[Partition], bool], otherwise: Partition | None
) -> dict[Partition, int]:
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
        and not isinstance(step := step_of(item, config=config), Wait)
        and (with_model or not isinstance(step, Write))
    ]


def run_requests(touched: Mapping[Partition, int], left: Collection[Partition], *, today: date) -> list[dg.RunRequest]:
    """Return one run for each partition; its key prevents a second run for a repeated request."""
    runs = [(f"decision-{place}", partition) for partition, place in sorted(touched.items())]
    runs += [(f"unfinished-{today}", partition) for partition in sorted(set(left) - touched.keys())]
    return [
        dg.RunRequest(run_key=f"{why}-{day}-{profile}", partition_key=grid_key(day, profile))
        for why, (day, profile) in runs
    ]


def latest_ranked(warehouse: Warehouse, known: Iterable[str], *, first: date, today: date) -> Partition | None:
    """Return the newest ranked day of any known profile, within the grid; None if there is none."""
    found = [(latest_ranking_day(warehouse, name, until=today), name) for name in known]
    return max([(day, name) for day, name in found if day is not None and day >= first], default=None)


def untold(items: Sequence[RewriteItem], asking: Mapping[Partition, Sequence[str]]) -> bool:
    """Return whether one of the items has a decision and none of these partitions requests it."""
    reports = {item for asked in asking.values() for item in asked}
    return any(item.decisions and item.item not in reports for item in items)


def new_decisions(
    context: dg.SensorEvaluationContext,
    workspace: dg.ResourceParam[Workspace],
) -> dg.SensorResult:
    settings, warehouse = workspace.settings, workspace.warehouse
    state = state_of(*files_of(settings.warehouse_path))
    place, now = int(context.cursor or 0), workspace.clock()
    known = set(context.instance.get_dynamic_partitions(str(profiles.name)))

    def usable(partition: Partition) -> bool:
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
    instead = {otherwise} if otherwise and untold(left, waiting) else set()
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
    minimum_interval_seconds=environment.sensor_seconds(3),  # a model takes longer than that for a rewrite
    default_status=dg.DefaultSensorStatus.RUNNING,
    depends_on=files_of(environment.settings.warehouse_path),
)
