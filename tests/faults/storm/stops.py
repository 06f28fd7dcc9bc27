"""Stop `run` at random moments by Ctrl-C and SIGTERM: it must end at once, and the next one must finish the work.

`size` is the number of stops, spread over the whole length of a run. Of each the time from the signal to the end is
measured; one that takes longer than A3 allows is counted as silent, so this part wants a machine that has time.
"""

import os
import random
import shutil
import signal
import time
from pathlib import Path

from tests.desk import PATIENCE, Desk, imported_desk
from tests.faults.storm.counts import Counts, Tally
from tests.faults.storm.likeness import differences, likeness

DAYS = ("2026-03-02", "2026-03-03", "2026-03-04")
COMMAND = ("run", "--since", DAYS[0])
ALLOWED = 2.0  # seconds (A3)


def run(seed: int, size: int, folder: Path) -> Counts:
    """Stop `run` `size` times, by Ctrl-C and SIGTERM in turn, repeat it, and compare with the undisturbed home."""
    chance = random.Random(seed)
    desk, base = imported_desk(folder / "desk", DAYS, each=20), folder / "base"
    shutil.copytree(desk.folder, base)
    began = time.monotonic()
    desk.run(*COMMAND)
    took = time.monotonic() - began
    twin = likeness(desk)
    print(f"stops: undisturbed {took:.1f} s", flush=True)

    tally, early = Tally(), 0
    endings: list[float] = []
    for number in range(size):
        shutil.rmtree(desk.folder)
        shutil.copytree(base, desk.folder)
        after = chance.uniform(took * number / size, took * (number + 1) / size)
        sent = (signal.SIGINT, signal.SIGTERM)[number % 2]
        found, ending = _stopped(desk, after, sent)
        endings += [ending] if ending is not None else []
        early += ending is None
        desk.run(*COMMAND)
        found += differences(twin, likeness(desk))
        tally.add(f"{sent.name} after {after:.2f} s, seed {seed}", found)
    over = f", {early} were over before" if early else ""
    return tally.counts(
        part="stops",
        unit="Ctrl-C and SIGTERM",
        figures=(f"ended after {max(endings, default=0.0):.2f} s at the most, of a run of {took:.1f} s{over}",),
    )


def _stopped(desk: Desk, after: float, sent: signal.Signals) -> tuple[list[str], float | None]:
    """What is wrong with how the command ended, and the seconds it took from the signal (None: it was over before)."""
    process = desk.start(*COMMAND)
    time.sleep(after)  # the moment is the point here
    if process.poll() is not None:
        process.communicate()
        return [], None
    signalled = time.monotonic()
    os.kill(process.pid, sent)
    process.wait(timeout=PATIENCE)
    ending = time.monotonic() - signalled
    _, err = process.communicate(timeout=PATIENCE)
    found = [f"silent: {ending:.1f} s until it ended"] if ending > ALLOWED else []
    if process.returncode not in (0, 128 + sent) or "Traceback" in err:
        found.append(f"silent: exit code {process.returncode}: {err[-300:]!r}")
    return found, ending
