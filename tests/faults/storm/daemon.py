"""Power cuts under the daemon: it and its runs killed at a random moment after an edit; the next daemon does the rest.

`size` is the number of power cuts. The home is compared with that of a daemon that nobody disturbed.
"""

import os
import random
import shutil
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.desk import GRAPHS, SPEECH, Desk, week
from tests.faults.storm.counts import Counts
from tests.faults.storm.likeness import differences, heard, likeness

DAYS = ("2026-03-02", "2026-03-03")
_PATIENCE = 600.0  # seconds for what takes some 20 undisturbed; runs without process are looked for every 30
EDITED = {**GRAPHS, "interests": {"primary": ["calibration of tree ensembles"]}}


def run(seed: int, size: int, folder: Path) -> Counts:
    """Cut the power `size` times, start the daemon again, compare what it comes to with the undisturbed home."""
    chance = random.Random(seed)
    desk, base = Desk(folder / "desk"), folder / "base"
    desk.folder.mkdir(parents=True)
    for name, profile in (("graphs", GRAPHS), ("speech", SPEECH)):
        desk.profile(name, profile)
    desk.run("import", str(desk.papers("papers.jsonl", week(DAYS))))
    desk.run("run")
    with desk.daemon():  # it looks once at what is there
        assert desk.happens(lambda: _quiet(desk) and _seen(desk), within=_PATIENCE), desk.last_words()
    shutil.copytree(desk.folder, base)

    before, began = heard(desk.folder / "dagster_home"), time.monotonic()
    with desk.daemon():
        desk.profile("graphs", EDITED)
        assert desk.happens(lambda: _settled(desk, before), within=_PATIENCE), desk.last_words()
        took = time.monotonic() - began
    twin, wanted = _likeness(desk), heard(desk.folder / "dagster_home")
    print(f"daemon: undisturbed {took:.1f} s", flush=True)

    findings: list[str] = []
    whole = lost = doubled = silent = 0
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
        found = differences(twin, _likeness(desk))
        if not came:
            found.insert(0, f"silent: not within {_PATIENCE:g} s; {desk.last_words()[-300:]!r}")
        whole += not found
        lost += any(line.startswith("lost") for line in found)
        doubled += any(line.startswith("more") for line in found)
        silent += not came
        findings += [f"power cut {number + 1} after {after:.1f} s, seed {seed}: {line}" for line in found[:4]]
    return Counts(
        part="daemon",
        unit="power cuts",
        tried=size,
        whole=whole,
        lost=lost,
        doubled=doubled,
        silent=silent,
        findings=tuple(findings),
        figures=(f"an edit becomes a page within {took:.1f} s where nobody disturbs",),
    )


def _settled(desk: Desk, before: dict[str, list[str]]) -> bool:
    """Ranking and page of the edited profile are made anew, and nothing is under way."""
    now = heard(desk.folder / "dagster_home")
    changed = "".join(sorted(set(now["heard by Dagster"]) - set(before["heard by Dagster"])))
    pages = (desk.folder / "data" / "output" / "digests" / "graphs").glob(f"{DAYS[-1]}.html")
    return "scored_rankings" in changed and _quiet(desk) and any("calibration" in each.read_text() for each in pages)


def _seen(desk: Desk) -> bool:
    """The daemon has evaluated its sensors and conditions once."""
    return "profile" in desk.last_words() or "sensor" in desk.last_words().lower()


def _quiet(desk: Desk) -> bool:
    return heard(desk.folder / "dagster_home")["runs under way"] == ["[(0,)]"]


def _likeness(desk: Desk) -> dict[str, Any]:
    return likeness(desk.folder / "data", desk.folder / "dagster_home", today=f"{datetime.now(UTC):%Y-%m-%d}")
