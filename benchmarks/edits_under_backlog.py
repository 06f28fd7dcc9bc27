"""Measure how soon an edited profile is ranked while a backlog of papers is embedded.

    python -m benchmarks.edits_under_backlog [--papers 8000] [--edits 10] [--commands 2] [--profiles 4] [--folder F]

A home with a ranked day gets a backlog of older papers. Then what `make dev` starts runs with the usual settings, two
commands `paper-assets run` embed the same backlog, and profile after profile is edited. Timed: from the changed
profile.json to the file of the new ranking. Each row has the load average of the machine and the time of the edit,
which the log of the services (`dev.log`, kept with --folder) explains. Ends with 1 if the median is over the target.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks._figures import Figure, exit_status
from benchmarks.daemon import as_make_dev, rankings_of, seconds_until
from benchmarks.desk import CONTENT, DAY
from benchmarks.growth import grown
from paper_assets.settings import Settings
from paper_assets.stores.embeddings import unembedded_count
from tests.desk import TOPICS, Desk, end, paper

EDIT_SECONDS = 15.0
_BACKLOG_DAYS = 56


def figures(folder: Path, *, papers: int, edits: int, commands: int, profiles: int) -> tuple[list[Figure], str]:
    """Return the median of the edits beside its target, and a table of all edits."""
    desk = grown(folder, days=1, profiles=profiles, papers=60)
    desk.run("import", str(desk.papers("backlog.jsonl", _backlog(papers))))
    rows: list[str] = []
    taken: list[float] = []
    with as_make_dev(desk):
        seconds_until(lambda: _waiting(desk) < papers)  # the daemon has begun
        running = [desk.start("run", PAPER_ASSETS_STORE_DEADLINE="600") for _ in range(commands)]
        try:
            for number in range(edits):
                left = _waiting(desk)
                alive = sum(process.poll() is None for process in running)
                began, load = time.strftime("%H:%M:%S"), os.getloadavg()[0]
                taken.append(_edited(desk, number, profiles))
                rows.append(
                    f"edit {number + 1:>2}  {began}  ranked after {taken[-1]:6.1f} s   without vector {left:>5}   "
                    f"commands running {alive}   load {load:.1f}"
                )
                print(rows[-1], file=sys.stderr, flush=True)
                time.sleep(5)
        finally:
            for process in running:
                end(process)
    median = Figure(
        stage=f"edit beside a backlog of {papers} papers",
        baseline="fifteen seconds",
        seconds=statistics.median(taken),
        baseline_seconds=EDIT_SECONDS,
        target=1.0,
    )
    return [median], "\n".join(rows)


def _backlog(papers: int) -> list[dict[str, object]]:
    days = [DAY - timedelta(days=back) for back in range(7, 7 + _BACKLOG_DAYS)]
    return [
        paper(10_000 + number, f"{days[number % len(days)]}", f"{TOPICS[number % len(TOPICS)]} in case {number}")
        for number in range(papers)
    ]


def _waiting(desk: Desk) -> int:
    """Return the number of papers without a vector."""
    return unembedded_count(desk.warehouse, DAY - timedelta(days=90), DAY, model=Settings().embedding_model)


def _edited(desk: Desk, number: int, profiles: int) -> float:
    """Edit one of the profiles; return the seconds until its ranking is stored."""
    name = f"p{number % profiles}"
    before = len(rankings_of(desk, name))
    interests = {"primary": [*CONTENT["interests"]["primary"], f"speech recognition, part {number}"]}
    desk.profile(name, {**CONTENT, "interests": interests})
    return seconds_until(lambda: len(rankings_of(desk, name)) > before)


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def main() -> int:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--papers", type=int, default=8_000)
    parser.add_argument("--edits", type=int, default=10)
    parser.add_argument("--commands", type=int, default=2)
    parser.add_argument("--profiles", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="an empty folder that is kept; default: a temporary one")
    asked = parser.parse_args()
    with _folder(asked.folder) as folder:
        found, table = figures(
            folder,
            papers=asked.papers,
            edits=asked.edits,
            commands=asked.commands,
            profiles=asked.profiles,
        )
    print("\n".join([*map(str, found), table]))
    return exit_status(found)


if __name__ == "__main__":
    sys.exit(main())
