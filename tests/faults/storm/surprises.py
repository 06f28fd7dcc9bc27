"""Plant surprises in every step of the pipeline for one profile: the results of its neighbour do not change.

Most cases make the steps without Dagster. A third as many make them by Dagster and ask the page, MCP and `status`.
"""

import logging
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from paper_assets.defs.dagster_internals import close_files
from tests.desk import Desk
from tests.faults.storm.counts import Counts, Tally
from tests.faults.surprises import (
    BY_DAGSTER,
    DAYS,
    PLANTS,
    SOFT,
    VICTIM,
    Outcome,
    fill,
    planted,
    run_desk,
    run_pipeline,
)


def run(seed: int, size: int, folder: Path) -> Counts:
    """Try `size` of the plants, each on the first day, on the second, or on any."""
    logging.disable(logging.CRITICAL)  # the tracebacks of what is planted
    dice, tally, disturbed = random.Random(seed), Tally(), 0
    cases = [(plant, day) for plant in PLANTS for day in (None, *DAYS)]
    dice.shuffle(cases)
    by_dagster = [(plant, None) for plant in BY_DAGSTER]
    dice.shuffle(by_dagster)
    answers = 0
    for name, work, chosen in (
        ("steps", run_pipeline, cases[:size]),
        ("Dagster, page, MCP, status", run_desk, by_dagster[: (size + 2) // 3]),
    ):
        undisturbed = _outcome(folder, work, None, None)
        answers += len(chosen) * len(undisturbed.neighbour)
        for plant, day in chosen:
            outcome = _outcome(folder, work, plant, day)
            found = _faults(plant, outcome, undisturbed)
            disturbed += any(line.startswith("lost") for line in found)
            tally.add(f"{name}: {plant}, {day or 'any day'}", found)
    figures = (
        f"{len(cases[:size])} of {len(cases)} plants and days in the steps, {len(by_dagster[: (size + 2) // 3])} of "
        f"{len(by_dagster)} plants by Dagster; {answers:,} rows, files and answers of the neighbour compared; "
        f"disturbed neighbours: {disturbed}",
    )
    return tally.counts(part="surprises", unit="planted surprises", figures=figures)


def _outcome(folder: Path, work: Callable[[Desk], Outcome], plant: str | None, day: str | None) -> Outcome:
    """Do the work in a new home, in the same folder each time."""
    home = folder / "home"
    try:
        desk = fill(home)
        if plant is None:
            return work(desk)
        with planted(plant, day):
            return work(desk)
    finally:
        close_files()  # of Dagster's history, which the next home has under the same names
        shutil.rmtree(home, ignore_errors=True)


def _faults(plant: str, outcome: Outcome, undisturbed: Outcome) -> list[str]:
    """List what the surprise did to others, and whether it was reported."""
    if outcome.stopped:
        return [f"lost: it stopped {outcome.stopped}"]
    found = [
        f"lost: the neighbour's {name}"
        for name in undisturbed.neighbour
        if outcome.neighbour.get(name) != undisturbed.neighbour[name]
    ]
    found += [f"more: {name}" for name in outcome.neighbour.keys() - undisturbed.neighbour.keys()]
    found += [f"lost: {step} of {each}" for step, each in outcome.failures if each.profile != VICTIM]
    if plant not in SOFT and not any("Surprise" in reason for reason in outcome.failures.values()):
        found.append("silent: no step reports it")
    return found
