"""A person's decision resumes its rewrite (A3); and what a language model's failure left undone is tried once a day.

Belongs here: for which partitions a run is due. Not here: what it does (rewrites.py), what a decision is (the loop).
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta

import dagster as dg

from paper_assets.defs import environment
from paper_assets.defs.partitions import profile_day, profiles
from paper_assets.defs.resources import Clock, LookTwice
from paper_assets.errors import StoreError
from paper_assets.rewriting.policy import Wait, Write
from paper_assets.rewriting.state import step_of
from paper_assets.settings import Rewriting, Settings
from paper_assets.stores.rewrites import RewriteItem, StoredDecision, asked_by, decisions_after, unfinished_items
from paper_assets.stores.warehouse import Warehouse

_GIVEN_UP_AFTER = timedelta(days=14)  # an item that no model could finish for so long is left alone

Partition = tuple[date, str]


def decided(made: Iterable[StoredDecision]) -> dict[Partition, int]:
    """The partitions that decisions touch, each with the place of the last one: one run serves all of them."""
    return {partition: decision.place for decision in made for partition in decision.asked_by}


def abandoned(
    items: Iterable[RewriteItem], *, as_of: datetime, with_model: bool, numbers: Rewriting
) -> list[RewriteItem]:
    """Items that neither wait for a person nor moved since the day before: a run ended early, or without a model."""
    return [
        item
        for item in items
        if item.moved_at.date() < as_of.date()
        and item.opened_at > as_of - _GIVEN_UP_AFTER
        and not isinstance(step := step_of(item, numbers=numbers), Wait)
        and (with_model or not isinstance(step, Write))
    ]


def run_requests(
    touched: Mapping[Partition, int], left: Collection[Partition], *, known: Collection[str], today: date
) -> list[dg.RunRequest]:
    """One run a partition; the run key keeps a request that is made twice from being carried out twice."""
    runs = [(f"decision-{place}", partition) for partition, place in sorted(touched.items())]
    runs += [(f"unfinished-{today}", partition) for partition in sorted(set(left) - touched.keys())]
    return [
        dg.RunRequest(run_key=f"{why}-{day}-{profile}", partition_key=profile_day(day, profile))
        for why, (day, profile) in runs
        if profile in known
    ]


@dg.sensor(
    target=dg.AssetSelection.assets("paper_rewrites"),
    minimum_interval_seconds=environment.settings.sensor_interval,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def decision_sensor(
    context: dg.SensorEvaluationContext,
    settings: dg.ResourceParam[Settings],
    warehouse: dg.ResourceParam[Warehouse],
    look_twice: dg.ResourceParam[LookTwice],
    clock: dg.ResourceParam[Clock],
) -> dg.SensorResult:
    """Requests the rewrites on which somebody has decided. The cursor is the place of the last decision seen."""
    place, now = int(context.cursor or 0), clock()
    try:
        made = decisions_after(warehouse, place)
        left = abandoned(
            unfinished_items(warehouse),
            as_of=now,
            with_model=look_twice().model is not None,
            numbers=settings.rewriting,
        )
        waiting = asked_by(warehouse, [item.item for item in left])
    except StoreError as error:  # the next tick looks again from the same place
        return dg.SensorResult(skip_reason=dg.SkipReason(str(error)))
    known = set(context.instance.get_dynamic_partitions(str(profiles.name)))
    requests = run_requests(decided(made), waiting, known=known, today=now.date())
    cursor = str(made[-1].place if made else place)
    if not requests:
        return dg.SensorResult(skip_reason=dg.SkipReason("no decision is new"), cursor=cursor)
    return dg.SensorResult(run_requests=requests, cursor=cursor)
