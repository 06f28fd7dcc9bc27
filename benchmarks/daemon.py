"""Measure the idle daemon, and how soon it ranks an edited profile (X2, X3).

    python -m benchmarks.daemon [--days 30] [--profiles 4] [--papers 60] [--edits 5] [--idle 120]

A home is filled, and two profiles of it are new. Then what `make dev` starts runs with the usual settings. Timed: until
both new profiles have their first lists; the processor time of the daemon and all its processes while nothing
happens; and, edit by edit, from a changed profile.json to the file of the new ranking. On a busy machine the seconds
of waiting are longer and the processor time is the same. Ends with 1 if a target is missed.
"""

import argparse
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks._figures import Figure, exit_status
from benchmarks.desk import CONTENT, DAY
from benchmarks.growth import grown
from tests.desk import PATIENCE, SPEECH, Desk

IDLE_SHARE = 0.05  # of a core
EDIT_SECONDS = 10.0
_LOOK = 0.2  # seconds
_TICKS = os.sysconf("SC_CLK_TCK")


def figures(
    folder: Path, *, days: int, profiles: int, papers: int, edits: int, idle: float
) -> tuple[list[Figure], str]:
    """The figures, and each edit's seconds."""
    desk = grown(folder, days=days, profiles=profiles, papers=papers)
    news = ("new-a", "new-b")
    for name in news:
        desk.profile(name, SPEECH)
    with as_make_dev(desk) as daemon:
        first = seconds_until(lambda: all(rankings_of(desk, name) for name in news))
        _quiet(daemon.pid)
        before, began = _processor_seconds(daemon.pid), time.monotonic()
        time.sleep(idle)
        used, passed = _processor_seconds(daemon.pid) - before, time.monotonic() - began
        taken = [edit(desk, number) for number in range(edits)]
    summary = "edit to ranking, each: " + ", ".join(f"{seconds:.1f} s" for seconds in taken)
    size = f"{days} days x {profiles} profiles"
    return [
        Figure(
            stage=f"idle daemon for {passed:.0f} s, {size}",
            baseline=f"{IDLE_SHARE:.0%} of a core",
            seconds=used,
            baseline_seconds=IDLE_SHARE * passed,
            target=1.0,
        ),
        Figure(
            stage="edit of a profile to its ranking",
            baseline="ten seconds",
            seconds=statistics.median(taken),
            baseline_seconds=EDIT_SECONDS,
            target=1.0,
        ),
        Figure(
            stage="daemon's start to two first lists",
            baseline="a minute",
            seconds=first,
            baseline_seconds=60.0,
            target=None,
        ),
    ], summary


@contextmanager
def as_make_dev(desk: Desk) -> Iterator["subprocess.Popen[bytes]"]:
    """The daemon, its code server and the page, in a new session."""
    with (desk.folder / "dev.log").open("ab") as log, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        started = subprocess.Popen(
            [sys.executable, "-m", "paper_assets.interfaces.supervisor", "-p", str(port)],
            cwd=desk.folder,
            env={**os.environ, **desk.environment},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield started
        finally:
            os.killpg(started.pid, signal.SIGINT)
            try:
                started.wait(timeout=120)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()


def edit(desk: Desk, number: int) -> float:
    """Return the seconds from an edit of the first profile to its new ranking's file."""
    kept = len(rankings_of(desk, "p0"))
    interests = {"primary": [*CONTENT["interests"]["primary"], f"speech recognition, part {number}"]}
    desk.profile("p0", {**CONTENT, "interests": interests})
    taken = seconds_until(lambda: len(rankings_of(desk, "p0")) > kept)
    time.sleep(20)  # what follows the ranking is made too
    return taken


def rankings_of(desk: Desk, profile: str) -> list[Path]:
    """The files of the profile's rankings; reading the folder blocks no process, as opening the warehouse would."""
    return list((desk.folder / "data" / "output" / "rankings" / profile).glob("*.json"))


def seconds_until(happened: Callable[[], bool]) -> float:
    began = time.monotonic()
    while not happened():
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError("the daemon did not do it")
        time.sleep(_LOOK)
    return time.monotonic() - began


def _quiet(daemon: int) -> None:
    """Wait until the daemon has started no run for half a minute."""
    still = 0
    while still < 30:
        runs = sum("spawn_main" in command for command in _commands(daemon))  # as the code server starts them
        still = 0 if runs else still + 1
        time.sleep(1)


def _processor_seconds(root: int) -> float:
    """Of a process and all below it, those that have ended too."""
    return sum(
        sum(int(field) for field in _stat(pid)[11:15]) / _TICKS  # utime, stime, cutime, cstime (proc(5))
        for pid in _tree(root)
    )


def _commands(root: int) -> list[str]:
    found = []
    for pid in _tree(root):
        try:
            found.append(Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace"))
        except OSError:  # ended meanwhile
            continue
    return found


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))):
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found, left = [], [root]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


def _stat(pid: int) -> list[str]:
    """The fields after the command's name; none where the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def main() -> int:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--profiles", type=int, default=4)
    parser.add_argument("--papers", type=int, default=60)
    parser.add_argument("--edits", type=int, default=5)
    parser.add_argument("--idle", type=float, default=120)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, summary = figures(
            Path(folder),
            days=asked.days,
            profiles=asked.profiles,
            papers=asked.papers,
            edits=asked.edits,
            idle=asked.idle,
        )
    print("\n".join([*map(str, found), summary, f"the last ranked day is {DAY}"]))
    return exit_status(found)


if __name__ == "__main__":
    sys.exit(main())
