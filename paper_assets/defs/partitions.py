"""Define Dagster's partitions: days (of first submission, UTC), profiles and the grid of both.

Belongs here: partition definitions, and their keys from and to the pipeline's partitions. Not here: assets, conditions.
"""

from collections.abc import Iterable, Sequence
from datetime import date

import dagster as dg

from paper_assets.defs.resources import settings
from paper_assets.pipeline.step import Grid, Partition, ascending

# A day is a partition once it has begun (end_offset), because bulk files and tests may contain today's papers.
days = dg.DailyPartitionsDefinition(start_date=settings.first_day.isoformat(), timezone="UTC", end_offset=1)
profiles = dg.DynamicPartitionsDefinition(name="profile")
profile_days = dg.MultiPartitionsDefinition({"day": days, "profile": profiles})

# A ranking reads every day of its profile's window, whose length is the profile's own choice; Dagster has no
# built-in mapping from a window of days to a grid. The ranking's input fingerprint records what was read.
any_day = dg.AllPartitionMapping()


def partitions_of(grid: Grid) -> dg.PartitionsDefinition | None:
    """Return Dagster's definition of a grid."""
    return {Grid.WHOLE: None, Grid.PROFILE: profiles, Grid.DAY: days, Grid.PROFILE_DAY: profile_days}[grid]


def grid_key(day: date, profile: str) -> str:
    """Return the grid's key of a day and a profile."""
    return dg.MultiPartitionKey({"day": day.isoformat(), "profile": profile})


def partition_key(grid: Grid, partition: Partition) -> str:
    """Return Dagster's key of a partition; empty for an asset without partitions."""
    if grid is Grid.WHOLE:
        return ""
    if grid is Grid.PROFILE:
        return partition.of_profile
    return partition.of_day.isoformat() if grid is Grid.DAY else grid_key(partition.of_day, partition.of_profile)


def partition_of(grid: Grid, keys: Iterable[str]) -> list[Partition]:
    """Return the partitions of Dagster's keys, ascending, so that ALREADY_SHOWN sees the days before."""
    if grid is Grid.PROFILE:
        return ascending(Partition(profile=key) for key in keys)
    if grid is Grid.DAY:
        return ascending(Partition(date.fromisoformat(key)) for key in keys)
    pairs = (profile_days.get_partition_key_from_str(key).keys_by_dimension for key in keys)
    return ascending(Partition(date.fromisoformat(pair["day"]), pair["profile"]) for pair in pairs)


PARTITIONS_TOGETHER = 500  # a rectangle that has reached this number takes no further profile


def rectangles(due: Sequence[Partition], known: Sequence[str]) -> list[list[Partition]]:
    """Split partitions into rectangles of days and profiles, as Dagster's runs take them.

    Profiles with the same first and last day that are neighbours in `known`, Dagster's order, are in one rectangle.
    """
    place = {name: at for at, name in enumerate(known)}
    days: dict[str | None, list[Partition]] = {}
    for each in sorted(ascending(due), key=lambda each: place.get(each.profile or "", -1)):
        days.setdefault(each.profile, []).append(each)
    found: list[list[Partition]] = []
    before: tuple[object, ...] = ()
    for at, (profile, own) in enumerate(days.items()):
        rectangle = own[0].day, own[-1].day, place.get(profile or "", -1) - at
        if rectangle != before or len(found[-1]) >= PARTITIONS_TOGETHER:
            found.append([])
        found[-1] += own
        before = rectangle
    return found
