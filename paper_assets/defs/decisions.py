"""A person's decision resumes its rewrite (A3); and what a language model's failure left undone is tried once a day.

Belongs here: for which partitions a run is due. Not here: what it does (rewrites.py), what a decision is (the loop).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime

import dagster as dg

from paper_assets.defs import environment
from paper_assets.defs.nothing_new import QuietSensor, files_of, remember_quiet, state_of
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
    """The partitions that decisions touch, each with the place of the last one: one run serves all of them.

    `otherwise`: whose run carries out what no usable partition asks for, since every run takes decisions along.
    """
    instead = [otherwise] if otherwise else []
    return {
        partition: decision.place for decision in made for partition in [*filter(usable, decision.asked_by)] or instead
    }


def abandoned(
    items: Iterable[RewriteItem], *, as_of: datetime, with_model: bool, config: RewritingConfig
) -> list[RewriteItem]:
    """Items that neither wait for a person nor moved since the day before: a run ended early, or without a model."""
    return [
        item
        for item in items
        if item.moved_at.date() < as_of.date()
        and item.moved_at > as_of - GIVEN_UP_AFTER
        and not isinstance(step := step_of(item, config=config), Wait)
        and (with_model or not isinstance(step, Write))
    ]


def run_requests(touched: Mapping[Partition, int], left: Collection[Partition], *, today: date) -> list[dg.RunRequest]:
    """One run a partition; the run key keeps a request that is made twice from being carried out twice."""
    runs = [(f"decision-{place}", partition) for partition, place in sorted(touched.items())]
    runs += [(f"unfinished-{today}", partition) for partition in sorted(set(left) - touched.keys())]
    return [
        dg.RunRequest(run_key=f"{why}-{day}-{profile}", partition_key=grid_key(day, profile))
        for why, (day, profile) in runs
    ]


def latest_ranked(warehouse: Warehouse, known: Iterable[str], *, first: date, today: date) -> Partition | None:
    """The newest ranked day of any known profile, within the grid; None if there is none."""
    found = [(latest_ranking_day(warehouse, name, until=today), name) for name in known]
    return max([(day, name) for day, name in found if day is not None and day >= first], default=None)


def untold(items: Sequence[RewriteItem], asking: Mapping[Partition, Sequence[str]]) -> bool:
    """Whether one of the items was decided on and none of these partitions asks for it."""
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
    except StoreError as error:  # the next tick looks again from the same place
        return dg.SensorResult(skip_reason=dg.SkipReason(str(error)))
    waiting = {partition: items for partition, items in asking.items() if usable(partition)}
    instead = {otherwise} if otherwise and untold(left, waiting) else set()
    touched = decided(made, usable=usable, otherwise=otherwise)
    requests = run_requests(touched, waiting.keys() | instead, today=now.date())
    cursor = str(made[-1].place if made else place)
    if not requests:
        remember_quiet(_NAME, state and (state, cursor), context.instance)
        return dg.SensorResult(skip_reason=dg.SkipReason("no decision is new"), cursor=cursor)
    return dg.SensorResult(run_requests=requests, cursor=cursor)


decision_sensor = QuietSensor(
    name=_NAME,
    evaluation_fn=new_decisions,
    description="Requests the rewrites on which somebody has decided; the cursor is the last decision seen.",
    target=dg.AssetSelection.assets("paper_rewrites"),
    minimum_interval_seconds=environment.seconds_between(3),  # a model takes longer than that to write anew
    default_status=dg.DefaultSensorStatus.RUNNING,
    rests_on=files_of(environment.settings.warehouse_path),
)
