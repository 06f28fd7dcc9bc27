"""Kill the daemon and its runs at a random moment after an edit; the next daemon must finish the work.

`size` is the number of power cuts. The home is compared with that of an undisturbed daemon.
"""

import os
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.desk import GRAPHS, Desk, imported_desk
from tests.faults.storm.counts import Counts, Tally
from tests.faults.storm.likeness import differences, heard, likeness

DAYS = ("2026-03-02", "2026-03-03")
_AT_REST = 4  # consecutive ticks without new work; a slow machine ticks later, not less
_PATIENCE = 600.0  # seconds for what takes some 20 undisturbed; runs without a process are detected every 30
EDITED = {**GRAPHS, "interests": {"primary": ["calibration of tree ensembles"]}}


def run(seed: int, size: int, folder: Path) -> Counts:
    """Kill `size` times, start the daemon again, and compare the result with the undisturbed home."""
    chance = random.Random(seed)
    desk, base = imported_desk(folder / "desk", DAYS), folder / "base"
    desk.run("run")
    with desk.daemon():  # it checks the stored state, and makes what a command leaves to it
        assert desk.happens(_rest(desk), within=_PATIENCE), desk.last_words()
    shutil.copytree(desk.folder, base)

    with desk.daemon():
        desk.profile("graphs", EDITED)
        began = time.monotonic()
        assert desk.happens(lambda: _page(desk.folder) != _page(base), within=_PATIENCE), desk.last_words()
        took = time.monotonic() - began
        assert desk.happens(_rest(desk), within=_PATIENCE), desk.last_words()
    twin, wanted = likeness(desk), heard(desk.folder / "dagster_home")
    print(f"daemon: undisturbed {took:.1f} s", flush=True)

    tally = Tally()
    for number in range(size):
        shutil.rmtree(desk.folder)
        shutil.copytree(base, desk.folder)
        after = chance.uniform(0.0, took)
        with desk.daemon() as daemon:
            desk.profile("graphs", EDITED)
            time.sleep(after)  # the moment is the point here
            os.killpg(daemon.pid, signal.SIGKILL)
        with desk.daemon():
            came = desk.happens(lambda: heard(desk.folder / "dagster_home") == wanted, within=_PATIENCE)
            came = desk.happens(_rest(desk), within=_PATIENCE) and came  # what a page says has no version there
        found = differences(twin, likeness(desk))
        if not came:
            found.insert(0, f"silent: not within {_PATIENCE:g} s; {desk.last_words()[-300:]!r}")
        tally.add(f"power cut {number + 1} after {after:.1f} s, seed {seed}", found)
    return tally.counts(
        part="daemon",
        unit="power cuts",
        figures=(f"an edit becomes a page within {took:.1f} s undisturbed",),
    )


def _rest(desk: Desk) -> Callable[[], bool]:
    """Return whether nothing is active or requested now and at the last `_AT_REST` ticks; called repeatedly.

    Counted from the first call: a daemon that has just started has not ticked yet.
    """
    since = [_looks(desk)]
    last: list[Any] = [None]

    def rests() -> bool:
        now = heard(desk.folder / "dagster_home")
        if now != last[0] or _asked_for(desk):
            last[0], since[0] = now, _looks(desk)
        return _looks(desk) - since[0] > _AT_REST

    return rests


def _looks(desk: Desk) -> int:
    """Return how many ticks the daemon has completed."""
    ticks = desk.folder / "dagster_home" / "schedules" / "schedules.db"
    if not ticks.exists() or not ticks.stat().st_size:  # no daemon has been there
        return 0
    with closing(sqlite3.connect(ticks)) as connection:
        counts = connection.execute(
            """
            select count(*) from job_ticks
            where status in ('SKIPPED', 'SUCCESS') and json_extract(tick_body, '$.job_name') = 'due'
            """
        ).fetchall()
    return int(counts[0][0])


def _asked_for(desk: Desk) -> int:
    """Return the runs and backfills that have not ended."""
    with closing(sqlite3.connect(desk.folder / "dagster_home" / "history" / "runs.db")) as connection:
        counts = connection.execute(
            """
            select (select count(*) from runs where status not in ('SUCCESS', 'FAILURE', 'CANCELED'))
                + (select count(*) from bulk_actions where status in ('REQUESTED', 'CANCELING'))
            """
        ).fetchall()
    return int(counts[0][0])


def _page(folder: Path) -> str:
    page = folder / "data" / "output" / "digests" / "graphs" / f"{DAYS[-1]}.html"
    return page.read_text("utf-8") if page.exists() else ""
