"""What a person is shown of a partition, in values that know no interface: the Dagster layer draws them.

Belongs here: the kinds of values. Not here: the report of each asset (beside its step).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Table:
    """A preview; cells are shown as text."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class Columns:
    """A table's schema: (name, type, description)."""

    named: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Bars:
    """Counts by name, in the given order."""

    counts: Mapping[str, int]
    title: str


@dataclass(frozen=True, slots=True)
class StackedBars:
    """One bar a row, made of its parts in order; the first row on top."""

    rows: Sequence[str]
    parts: Mapping[str, Sequence[float]]
    title: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points (n, 2), coloured by group."""

    points: NDArray[Any]
    groups: Sequence[str]
    title: str


@dataclass(frozen=True, slots=True)
class Markdown:
    """Markdown from this program, in which texts from outside are escaped."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A URL of this installation."""

    url: str


Value = Table | Columns | Bars | StackedBars | Scatter | Markdown | Link | Path | str | int | float


@dataclass(frozen=True, slots=True)
class Report:
    """One partition's outcome: a version that changes only with the data, and what to show."""

    data_version: str
    values: Mapping[str, Value] = field(default_factory=dict)
