"""Partitions of the lineage: which day, which profile, both, or the whole (SPEC 1)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from itertools import groupby


class Grid(Enum):
    """How an asset is cut into partitions."""

    WHOLE = "whole"
    PROFILE = "profile"
    DAY = "day"  # of first submission, UTC
    PROFILE_DAY = "profile_day"


@dataclass(frozen=True, slots=True)
class Partition:
    """One piece of an asset; what its grid does not cut by is None."""

    day: date | None = None
    profile: str | None = None

    def __str__(self) -> str:
        return " ".join(f"{part}" for part in (self.day, self.profile) if part is not None) or "all"

    @property
    def of_day(self) -> date:
        """The day of a partition that has one."""
        if self.day is None:
            raise ValueError(f"partition {self} has no day")
        return self.day

    @property
    def of_profile(self) -> str:
        """The profile of a partition that has one."""
        if self.profile is None:
            raise ValueError(f"partition {self} has no profile")
        return self.profile


WHOLE = Partition()


def ascending(partitions: Iterable[Partition]) -> list[Partition]:
    """By day, then profile: a day's candidates lack what the days before have shown (SPEC 1)."""
    return sorted(partitions, key=lambda each: (each.day or date.min, each.profile or ""))


def by_profile(partitions: Iterable[Partition]) -> Iterator[tuple[str, list[date]]]:
    """Each profile with its days, ascending."""
    ordered = sorted(partitions, key=lambda each: (each.of_profile, each.of_day))
    for profile, own in groupby(ordered, key=lambda each: each.of_profile):
        yield profile, [each.of_day for each in own]


def days_of(partitions: Sequence[Partition]) -> list[date]:
    """The days of the partitions, ascending, each once."""
    return sorted({each.of_day for each in partitions})
