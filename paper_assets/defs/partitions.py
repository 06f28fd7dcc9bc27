"""The grid: days (of first submission, UTC) by profiles, and how a run walks over it.

Belongs here: partition definitions and the reading of partition keys. Not here: assets, conditions.
"""

from collections.abc import Iterable
from datetime import date

import dagster as dg

from paper_assets.defs.environment import settings

# A day is a partition as soon as it has begun (end_offset), for bulk files and tests may hold today's papers.
days = dg.DailyPartitionsDefinition(start_date=settings.first_day.isoformat(), timezone="UTC", end_offset=1)
profiles = dg.DynamicPartitionsDefinition(name="profile")
profile_days = dg.MultiPartitionsDefinition({"day": days, "profile": profiles})

# A ranking reads every day of its profile's window, whose length is the profile's own choice; Dagster has no
# built-in mapping from a window of days to a grid. What was really read is in the ranking's input fingerprint.
any_day = dg.AllPartitionMapping()


def profile_day(day: date, profile: str) -> str:
    """The grid's key of a day and a profile."""
    return dg.MultiPartitionKey({"day": day.isoformat(), "profile": profile})


def by_day(keys: Iterable[str]) -> list[tuple[date, str]]:
    """(day, profile) of grid keys, days ascending, so that ALREADY_SHOWN sees the days before (SPEC 1)."""
    pairs = (profile_days.get_partition_key_from_str(key).keys_by_dimension for key in keys)
    return sorted((date.fromisoformat(pair["day"]), pair["profile"]) for pair in pairs)
