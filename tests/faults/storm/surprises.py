"""Plant surprises in every step of the pipeline for one profile: the results of its neighbour do not change."""

import random
import shutil
from pathlib import Path

from tests.faults.storm.counts import Counts, Tally
from tests.faults.surprises import DAYS, PLANTS, SOFT, VICTIM, Outcome, fill, planted, run_pipeline


def run(seed: int, size: int, folder: Path) -> Counts:
    """Try `size` of the plants, each on the first day, on the second, or on any."""
    dice, tally, disturbed = random.Random(seed), Tally(), 0
    cases = [(plant, day) for plant in PLANTS for day in (None, *DAYS)]
    dice.shuffle(cases)
    undisturbed = _outcome(folder, None, None)
    for plant, day in cases[:size]:
        outcome = _outcome(folder, plant, day)
        found = _faults(plant, outcome, undisturbed)
        disturbed += any(line.startswith("lost") for line in found)
        tally.add(f"{plant}, {day or 'any day'}", found)
    figures = (f"{len(cases[:size])} of {len(cases)} plants and days, disturbed neighbours: {disturbed}",)
    return tally.counts(part="surprises", unit="planted surprises", figures=figures)


def _outcome(folder: Path, plant: str | None, day: str | None) -> Outcome:
    """Run the pipeline in a new home, in the same folder each time."""
    home = folder / "home"
    try:
        desk = fill(home)
        if plant is None:
            return run_pipeline(desk)
        with planted(plant, day):
            return run_pipeline(desk)
    finally:
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
