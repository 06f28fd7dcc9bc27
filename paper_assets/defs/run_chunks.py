"""Runs that the conditions ask for: at once, and one for each chunk of neighbouring partitions (A3).

Dagster offers a run for each partition, or a backfill, for which its daemon looks every 30 seconds and no sooner: the
first lists of two profiles took two minutes. Here the runs of each partition are put together before they are handed
over. Belongs here: which of them make one run. Not here: what is due (automation.py), when it is asked (looks.py).
"""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from itertools import groupby
from typing import Any

import dagster as dg

from paper_assets.defs.partitions import partition_of
from paper_assets.pipeline.step import Grid, Partition
from paper_assets.pipeline.steps import STEPS

RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"  # tags
_PARTITION = "dagster/partition"  # begins the tags of a run of one partition; one more for each dimension
_STEP_OF = {name: step for step in STEPS for name in step.makes}


def in_chunks(requests: Sequence[dg.RunRequest], known_profiles: Sequence[str]) -> list[dg.RunRequest]:
    """Those of one partition each as one for each chunk of neighbours: days that follow one another, or profiles of one
    day that do so in `known_profiles`. As many as the steps take in a run; all others stay as they are.
    """
    place = {name: at for at, name in enumerate(known_profiles)}
    found: list[dg.RunRequest] = []
    together: dict[tuple[Any, ...], list[tuple[Partition, dg.RunRequest]]] = {}
    for request in requests:
        assets = tuple(sorted(key.to_user_string() for key in request.asset_selection or ()))
        steps = [_STEP_OF[name] for name in assets if name in _STEP_OF]
        chunk = min((step.partitions_per_run or 1 for step in steps), default=1)
        if not request.partition_key or chunk == 1 or len({step.grid for step in steps}) > 1:
            found.append(request)
            continue
        grid = steps[0].grid
        (partition,) = partition_of(grid, [request.partition_key])
        if partition.profile is not None and partition.profile not in place:  # removed since
            found.append(request)
            continue
        checks = frozenset(request.asset_check_keys or ())
        together.setdefault((assets, grid, chunk, checks), []).append((partition, request))
    for (_assets, grid, chunk, _checks), pairs in together.items():
        apart = partial(_diagonal, grid=grid, place=place)
        for _, row in groupby(enumerate(_in_order(pairs, place)), apart):
            neighbours = [request for _, (_, request) in row]
            found += [_one_run(neighbours[at : at + chunk]) for at in range(0, len(neighbours), chunk)]
    return found


def _in_order(
    pairs: Sequence[tuple[Partition, dg.RunRequest]], place: dict[str, int]
) -> list[tuple[Partition, dg.RunRequest]]:
    return sorted(pairs, key=lambda pair: (pair[0].day or date.min, place.get(pair[0].profile or "", 0)))


def _diagonal(at: tuple[int, tuple[Partition, dg.RunRequest]], *, grid: Grid, place: dict[str, int]) -> tuple[Any, ...]:
    """The same for neighbours: as far apart in the order as in their number."""
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
