"""A short part of the fault-injection test; `make storm` runs all of it (A4)."""

import os
from pathlib import Path

import pytest

from tests.faults.storm import kills, processes
from tests.faults.storm.counts import Counts

# Every eighth command, for seconds; SWEEP=full kills all of them, and works for minutes.
_FULL = os.environ.get("SWEEP") == "full"
_EACH, _KILLS, _SECONDS = (1, 40, 120) if _FULL else (8, 4, 4)


@pytest.mark.timeout(1800)  # minutes on an idle machine
def test_a_command_killed_at_any_write_and_repeated_leaves_the_home_of_an_undisturbed_one(tmp_path: Path) -> None:
    cases = tuple(case for case in kills.CASES if not case.costly)[::_EACH]
    counts = kills.run(20261122, _KILLS, tmp_path, cases=cases)
    assert counts.held, "\n".join(counts.lines())


@pytest.mark.timeout(1800)
def test_five_processes_on_one_home_lose_nothing_and_no_reader_fails(tmp_path: Path) -> None:
    counts = processes.run(20261122, _SECONDS, tmp_path)
    assert counts.held, "\n".join(counts.lines())


def test_a_run_that_loses_doubles_or_hides_anything_has_failed() -> None:
    counts = {"part": "kills", "unit": "kill points", "tried": 3}
    assert Counts(**counts, whole=2, missing=1).held  # type: ignore[arg-type]
    for fault in ("lost", "doubled", "silent"):
        assert not Counts(**counts, whole=3, **{fault: 1}).held  # type: ignore[arg-type]
    assert not Counts(**counts, whole=2).held, "one is not accounted for"  # type: ignore[arg-type]
