"""Steps of the lineage: what each makes from what, how, whether it is current, and what it reports and checks.

Every step has a `Step` here; the Dagster assets with their data versions, checks and metadata (defs/assets.py), the
question "is it current?" (`stale`), and the commands `run` and `status` are derived from it. To add an asset, add a
file with a `Step` and a line in `pipeline/steps.py`, and its `Tracked` to the table in `pipeline/staleness.py`.

A report consists of values that know no interface (tables, Markdown); defs/reports.py renders them. The report of each
asset is beside its step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from itertools import cycle, groupby
from pathlib import Path
from typing import Any

from paper_assets.errors import ClusterUnavailable, PaperAssetsError, RateLimited, StoreBusy, named_error
from paper_assets.pipeline.workspace import Workspace
from paper_assets.progress import Progress, ignore_progress


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
class Markdown:
    """Markdown from this program, in which texts from outside are escaped."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A URL of this installation."""

    url: str


Value = Table | Columns | Markdown | Link | Path | str | int | float


def bars(counts: Mapping[str, int], *, title: str) -> Markdown:
    """Draw counts as bars of text in the given order: an import reports hundreds of days, and a picture takes 0.1 s."""
    most = max([1, *counts.values()])
    lines = [f"{name[:28]:<28} {'█' * round(40 * count / most)} {count}" for name, count in counts.items()]
    return Markdown("\n".join([title, "```", *lines, "```"]))


_MARKS = "█▓▒░▚▤▥▧●◆"  # one for each part, repeated after ten
_BAR = 24  # characters of the longest bar


def stacked_bars(rows: Sequence[str], parts: Mapping[str, Sequence[float]], *, title: str) -> Table:
    """Return a table with a bar of text for each row; its header names the parts, and a minus precedes negative ones.

    Parts that are 0 in every row are left out. Names of rows come last: the UI cuts wide tables at the right.
    """
    used = {name: sizes for name, sizes in parts.items() if any(sizes)}
    marks = dict(zip(used, cycle(_MARKS), strict=False))
    longest = max((sum(abs(sizes[at]) for sizes in used.values()) for at in range(len(rows))), default=0.0) or 1.0

    def bar(at: int, sign: int) -> str:
        drawn, end = "", 0.0
        for name, sizes in used.items():
            end += max(sign * sizes[at], 0.0)
            drawn += marks[name] * (round(_BAR * end / longest) - len(drawn))
        return drawn

    lines = []
    for at, row in enumerate(rows):
        total, negative = sum(sizes[at] for sizes in used.values()), bar(at, -1)
        lines.append((f"{total:.3g}", bar(at, 1) + (f" −{negative}" if negative else ""), row))
    return Table(["sum", ", ".join(f"{mark} {name}" for name, mark in marks.items()) or "parts", title], lines)


@dataclass(frozen=True, slots=True)
class Report:
    """One partition's outcome: a version that changes only with the data, and what to show."""

    data_version: str
    values: Mapping[str, Value] = field(default_factory=dict)


class Grid(Enum):
    """The partitioning of an asset."""

    WHOLE = "whole"
    PROFILE = "profile"
    DAY = "day"  # of first submission, UTC
    PROFILE_DAY = "profile_day"


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of an asset; a dimension that its grid lacks has the value None."""

    day: date | None = None
    profile: str | None = None

    def __str__(self) -> str:
        return " ".join(f"{part}" for part in (self.day, self.profile) if part is not None) or "all"

    @property
    def of_day(self) -> date:
        """Return the day of a partition that has one. Raises ValueError."""
        if self.day is None:
            raise ValueError(f"partition {self} has no day")
        return self.day

    @property
    def of_profile(self) -> str:
        """Return the profile of a partition that has one. Raises ValueError."""
        if self.profile is None:
            raise ValueError(f"partition {self} has no profile")
        return self.profile


WHOLE = Partition()


def ascending(partitions: Iterable[Partition]) -> list[Partition]:
    """Sort by day, then profile: a day's candidates exclude what earlier days showed (SPEC 1)."""
    return sorted(partitions, key=lambda each: (each.day or date.min, each.profile or ""))


def by_profile(partitions: Iterable[Partition]) -> Iterator[tuple[str, list[date]]]:
    """Group the partitions by profile; yield each with its days, ascending."""
    ordered = sorted(partitions, key=lambda each: (each.of_profile, each.of_day))
    for profile, own in groupby(ordered, key=lambda each: each.of_profile):
        yield profile, [each.of_day for each in own]


def keys_of(partitions: Iterable[Partition]) -> list[tuple[str, date]]:
    """Return the profile and day of the partitions that have both."""
    return [(each.profile, each.day) for each in partitions if each.profile is not None and each.day is not None]


def days_of(partitions: Sequence[Partition]) -> list[date]:
    """Return the days of the partitions, ascending, each once."""
    return sorted({each.of_day for each in partitions})


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The result of one run of a step: for each partition whether it is new, or the failure that stopped it.

    `also_changed`: partitions of the step that changed without being made. `details`: for the step's reports and
    checks.
    """

    new: Mapping[Partition, bool] = field(default_factory=dict)
    failures: Mapping[Partition, PaperAssetsError] = field(default_factory=dict)
    also_changed: Sequence[Partition] = ()
    details: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The outcome of a check, with what it counted."""

    passed: bool
    counted: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """A claim about an asset that is recomputed from what is stored: the name and docstring of a function.

    `blocking`: nothing downstream is made while it fails. `serious`: an error, not a warning.
    """

    holds: Callable[[Workspace, Sequence[Partition], Made], Checked]
    serious: bool = False
    blocking: bool = False

    @property
    def name(self) -> str:
        """Return the name of the check."""
        return self.holds.__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """An asset that a step makes. `deps`: assets that it reads; those in `any_day` are read over a window."""

    name: str
    description: str
    kinds: frozenset[str]
    report: Callable[[Workspace, Partition, Made], Report]
    deps: tuple[str, ...] = ()
    any_day: frozenset[str] = frozenset()
    checks: tuple[Check, ...] = ()


Reported = Callable[[Workspace, Sequence[Partition]], Mapping[str, Mapping[Partition, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """What determines whether the partitions of a step are out of date.

    `inputs` returns for each partition the fingerprint of what it would be made from now, `stored` that of what it was
    made from (None: missing or incomplete): it is current if both are equal. `waits_for` describes what a partition
    waits for that no run can provide. `in_order`: a later day depends on the earlier ones of its profile. `backfills`:
    every requested day is made, otherwise the last one. `reads_all_days`: it is made from papers of any day, so it
    waits until a backlog of old days is done. `days_back`: earlier days that the daemon compares too.
    """

    name: str
    grid: Grid
    inputs: Callable[[Workspace, Sequence[Partition]], Mapping[Partition, str]]
    stored: Callable[[Workspace, Sequence[Partition]], Mapping[Partition, str | None]]
    waits_for: Callable[[Workspace, Partition], str | None] = lambda workspace, partition: None
    in_order: bool = False
    backfills: bool = True
    reads_all_days: bool = False
    days_back: int = 0


def on_request(name: str, grid: Grid) -> Tracked:
    """Return the definition of a step that is made only when a person or a schedule requests it."""
    return Tracked(
        name=name, grid=grid, inputs=lambda workspace, partitions: {}, stored=lambda workspace, partitions: {}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One or several products made together, partition by partition; `tracked` determines when.

    `make` makes the partitions, ascending; it can make some of several `products` only. `reported` returns for each
    product and stored partition the data version that Dagster should know, unless a run was killed before reporting it.
    `reports_only_read`: reports and checks use the warehouse and no other store, and write nothing.
    """

    tracked: Tracked
    products: tuple[Product, ...]
    group: str
    code_version: str
    make: Callable[[Workspace, Sequence[Partition], frozenset[str]], Made]
    reported: Reported = lambda workspace, partitions: {}
    reports_only_read: bool = False
    partitions_per_run: int | None = 100

    @property
    def name(self) -> str:
        """Return the name of the step."""
        return self.tracked.name

    @property
    def grid(self) -> Grid:
        """Return the partitioning of its assets."""
        return self.tracked.grid

    @property
    def makes(self) -> frozenset[str]:
        """Return the names of all products."""
        return frozenset(product.name for product in self.products)


def stale(step: Tracked, workspace: Workspace, partitions: Sequence[Partition]) -> list[Partition]:
    """Return the partitions that are out of date, ascending."""
    return out_of_date(step, partitions, step.inputs(workspace, partitions), step.stored(workspace, partitions))


def out_of_date(
    step: Tracked,
    partitions: Sequence[Partition],
    inputs: Mapping[Partition, str],
    stored: Mapping[Partition, str | None],
) -> list[Partition]:
    """Return the partitions whose inputs differ from what they were made from, ascending.

    If a step is made in order, every later day of a profile with an outdated one is out of date too.
    """
    changed = [each for each in ascending(partitions) if inputs.get(each) != stored.get(each)]
    if not step.in_order:
        return changed
    first = {each.profile: each.of_day for each in reversed(changed)}
    return [each for each in ascending(partitions) if each.profile in first and each.of_day >= first[each.profile]]


STOPS_ALL = (RateLimited, StoreBusy, ClusterUnavailable)  # every other partition would fail the same way


def make_each(
    partitions: Sequence[Partition],
    make: Callable[[Partition], bool],
    *,
    in_order: bool = False,
    newest_first: bool = False,
    progress: Progress = ignore_progress,
) -> tuple[dict[Partition, bool], dict[Partition, PaperAssetsError]]:
    """Make each partition, ascending or `newest_first`; a failure stops only partitions that depend on it.

    After a failure of `STOPS_ALL` nothing more is tried. Returns (new, failures).
    """
    new: dict[Partition, bool] = {}
    failures: dict[Partition, PaperAssetsError] = {}
    ordered = ascending(partitions)
    for number, partition in enumerate(reversed(ordered) if newest_first else ordered):
        progress(number, len(partitions))
        if in_order and any(failed.profile == partition.profile for failed in failures):
            continue
        try:
            new[partition] = make(partition)
        except Exception as error:
            failures[partition] = failure = named_error(error, f"{partition}")
            if isinstance(failure, STOPS_ALL):
                break
    return new, failures


def failure_of(made: Made, partitions: Sequence[Partition]) -> PaperAssetsError | None:
    """Return the failures of a run as one error of the type of the first; None if there are none."""
    if not made.failures:
        return None
    (failed, reason), missing = next(iter(made.failures.items())), len(partitions) - len(made.new)
    if len(partitions) == 1:
        return reason
    return type(reason)(f"{missing} of {len(partitions)} partitions not made; {failed}: {reason}")
