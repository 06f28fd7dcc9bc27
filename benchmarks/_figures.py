"""Define the figures of `make bench`: a stage beside its named baseline in the same run (X1).

A module of this kind has a function that returns figures, and a `main` that prints them and ends with `exit_status`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Seconds of a stage and of its baseline. `target` is the minimum ratio, or None."""

    stage: str
    baseline: str
    seconds: float
    baseline_seconds: float
    target: float | None

    @property
    def ratio(self) -> float:
        """Return how many times as fast as the baseline the stage is."""
        return self.baseline_seconds / self.seconds

    @property
    def missed(self) -> bool:
        """Return whether a target was set and missed."""
        return self.target is not None and self.ratio < self.target

    def __str__(self) -> str:
        wanted = "" if self.target is None else f"target {self.target:g} x, {'MISSED' if self.missed else 'reached'}"
        return (
            f"{self.stage:<34} {1000 * self.seconds:10.1f} ms   {self.baseline:<20} "
            f"{1000 * self.baseline_seconds:10.1f} ms   {self.ratio:7.1f} x   {wanted}"
        ).rstrip()


def exit_status(figures: Sequence[Figure]) -> int:
    """Return 1 if any target was missed."""
    return int(any(figure.missed for figure in figures))


def seconds(work: Callable[[], object]) -> float:
    """Return how long the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
