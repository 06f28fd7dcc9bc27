"""An import or run killed at several moments and started again loses and doubles nothing (A4)."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.desk import PATIENCE, Desk, imported_desk, week
from tests.forked_commands import Command

DAYS = ("2026-03-02", "2026-03-03", "2026-03-04")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Return a desk with papers and no results."""
    return imported_desk(tmp_path_factory.mktemp("imported"), DAYS, each=15)


@pytest.fixture(scope="module")
def reference(imported: Desk, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[Any]], float]:
    """Return what an undisturbed run stores, and how long it takes."""
    desk = copy_of(imported, tmp_path_factory.mktemp("reference"))
    seconds = undisturbed(desk, "run", "--since", DAYS[0])
    return desk.state(), seconds


def undisturbed(desk: Desk, *arguments: str) -> float:
    """Return how long a command takes whose process starts as those that are killed."""
    began = time.monotonic()
    process = desk.start(*arguments)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return time.monotonic() - began


def copy_of(desk: Desk, folder: Path) -> Desk:
    shutil.copytree(desk.folder, folder, dirs_exist_ok=True)
    return Desk(folder)


def kill(process: Command, after: float) -> None:
    """Kill the process and its children, unless it has ended."""
    try:
        process.wait(timeout=after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


# The outcome must be the same whatever happens at these shares of a run's time.
@pytest.mark.parametrize("share", [0.6, 0.85])
def test_a_run_killed_half_way_and_started_again_stores_the_same_as_an_undisturbed_one(
    imported: Desk, reference: tuple[dict[str, list[Any]], float], tmp_path: Path, share: float
) -> None:
    expected, seconds = reference
    desk = copy_of(imported, tmp_path)
    kill(desk.start("run", "--since", DAYS[0]), after=share * seconds)
    desk.run("run", "--since", DAYS[0])
    assert desk.state() == expected


def test_an_import_killed_half_way_and_started_again_stores_every_paper_once(imported: Desk, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    file = desk.papers("papers.jsonl", week(DAYS, each=400))
    seconds, whole = undisturbed(desk, "import", str(file)), desk.state()
    shutil.rmtree(desk.folder / "data")
    for share in (0.5, 0.7, 0.85):
        kill(desk.start("import", str(file)), after=share * seconds)
    desk.run("import", str(file))
    assert desk.state() == whole
    left = sorted(entry.name for entry in (desk.folder / "data").iterdir())
    assert left == ["warehouse.duckdb", "warehouse.duckdb.lock"], "the lock's file stays"
