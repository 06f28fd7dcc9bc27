"""Random invalid input at every entry point; only our errors may result, in one line and soon.

    python -m tests.faults.storm --part inputs --seed 7
    python -m tests.faults.storm.inputs 7 123        # repeat input 123 with its stack trace

Each input has a separate random generator, made from the seed and its number. Time and memory of each are bounded.
"""

import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from paper_assets.errors import PaperAssetsError
from tests.faults.storm.counts import Counts
from tests.faults.storm.entry_points import ENTRY_POINTS, Surroundings, chosen

SECONDS = 60.0  # for one input; most take milliseconds, and the machine may be busy
MEGABYTES = 800  # by which one input may raise the most memory the process ever had
LONGEST_LINE = 1_500


class TooLong(BaseException):
    """An input exceeded its time limit; not an Exception, so that no handler catches it."""


def run(seed: int, size: int, folder: Path, *, entry_points: tuple[str, ...] = tuple(ENTRY_POINTS)) -> Counts:
    """Try `size` inputs."""
    findings: list[str] = []
    taken, refused = 0, Counter[str]()
    with ExitStack() as stack:
        around = Surroundings(folder / "inputs", stack)
        for number in range(size):
            dice = random.Random(f"{seed}:{number}")
            entry_point = chosen(dice, entry_points)
            wrong = _tried(entry_point, dice, around, refused)
            taken += not wrong
            if wrong:
                again = f"python -m tests.faults.storm.inputs {seed} {number}"
                findings.append(f"{entry_point}: {wrong}; {again}")
    return Counts(
        part="inputs",
        unit="inputs",
        tried=size,
        whole=taken,
        silent=len(findings),
        findings=tuple(findings),
        figures=(
            f"{sum(refused.values())} refused in one line, {taken - sum(refused.values())} taken, "
            f"through {len(entry_points)} entry points",
        ),
    )


def _tried(entry_point: str, dice: random.Random, around: Surroundings, refused: Counter[str]) -> str | None:
    """Try one input at an entry point; return what is wrong with the outcome, or None."""
    shutil.rmtree(around.folder, ignore_errors=True)
    around.folder.mkdir(parents=True)
    before = _megabytes()
    try:
        with _at_most(SECONDS):
            ENTRY_POINTS[entry_point][0](dice, around)
    except PaperAssetsError as error:
        refused[entry_point] += 1
        if fault := _unclear(str(error)):
            return f"{type(error).__name__} {fault}"
    except TooLong:
        return f"no end after {SECONDS:g} s"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {place.filename.rpartition('/')[2]}:{place.lineno}: {str(error)[:200]!r}"
    grown = _megabytes() - before
    return f"took {grown} MB of memory" if grown > MEGABYTES else None


def _unclear(text: str) -> str | None:
    """Return why a message is not one clear line, or None if it is."""
    if not text.strip():
        return "says nothing"
    if "\n" in text or "\r" in text:
        return f"is not one line: {text[:200]!r}"
    if not text.isprintable():
        return f"holds characters that steer a terminal: {text[:300]!r}"
    return f"has {len(text)} characters: {text[:200]!r}" if len(text) > LONGEST_LINE else None


def _megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise TooLong in this thread after the given seconds; only the main thread can be interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _again(seed: int, number: int) -> None:
    """Repeat one input and raise what it raises."""
    dice = random.Random(f"{seed}:{number}")
    entry_point = chosen(dice, tuple(ENTRY_POINTS))
    print(f"entry point: {entry_point}")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        around = Surroundings(Path(folder) / "inputs", stack)
        around.folder.mkdir()
        ENTRY_POINTS[entry_point][0](dice, around)
    print("taken")


if __name__ == "__main__":
    _again(int(sys.argv[1]), int(sys.argv[2]))
