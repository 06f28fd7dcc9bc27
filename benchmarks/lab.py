"""Measure one day of a lab: many profiles, one `run`, then `status` and Today on the page.

    python -m benchmarks.lab [--profiles 1000] [--papers 500] [--dask]

Papers and profiles are invented, no two profiles alike (tests/scale/invented.py). Printed, not asserted: seconds, those
of the processor, the peak of the memory of the largest process, and what is on the disk afterwards. `--dask`: the first
run again in another home, with a scheduler and two workers of one thread each on this machine.
"""

import argparse
import resource
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.request import urlopen

from benchmarks._figures import seconds
from benchmarks.growth import megabytes, processor_seconds
from tests.desk import Desk, paper
from tests.page.invented_desk import served
from tests.scale import invented
from tests.scale.servers import dask_servers

DAY = invented.FIRST


def lines(folder: Path, *, profiles: int, papers: int) -> list[str]:
    """Fill a home, rank its only day, and return a line for each thing that a person waits for."""
    desk = _filled(folder, profiles=profiles, papers=papers)
    found = [_line(what, partial(desk.run, *asked)) for what, asked in _COMMANDS]
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000  # kilobytes on Linux
    with served(desk) as page:
        views = [seconds(lambda: urlopen(f"{page.url}/p/p00").read()) for _ in range(2)]
    return [
        *found,
        f"Today on the page: {views[0]:.2f} s, then {views[1]:.2f} s",
        f"largest process {memory:.0f} MB; dagster_home {megabytes(folder / 'dagster_home'):.1f} MB, "
        f"data {megabytes(folder / 'data'):.1f} MB",
    ]


def line_with_dask(folder: Path, *, profiles: int, papers: int) -> str:
    """Fill a home and return a line for its first run with two workers, whose processor time is not in it."""
    desk = _filled(folder, profiles=profiles, papers=papers)
    with dask_servers(folder) as servers:
        return _line("first run with Dask", lambda: desk.run("run", PAPER_ASSETS_DASK=servers.address))


def _filled(folder: Path, *, profiles: int, papers: int) -> Desk:
    desk = Desk(folder)
    invented.written(folder / "profiles", profiles)
    records = [paper(number, f"{DAY}", text) for number, text in enumerate(invented.texts(papers))]
    desk.run("import", str(desk.papers("day.jsonl", records)))
    return desk


_COMMANDS = (
    ("first run", ("run",)),
    ("first status", ("status", "--json")),
    ("next status", ("status", "--json")),
    ("run with nothing changed", ("run", "--json")),
)


def _line(what: str, work: Callable[[], object]) -> str:
    waited = list[float]()
    used = processor_seconds(lambda: waited.append(seconds(work)))
    return f"{what}: {waited[0]:.1f} s, of the processor {used:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", type=int, default=1_000)
    parser.add_argument("--papers", type=int, default=500)
    parser.add_argument("--dask", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(lines(Path(folder), profiles=asked.profiles, papers=asked.papers)), flush=True)
    if asked.dask:
        with tempfile.TemporaryDirectory() as folder:
            print(line_with_dask(Path(folder), profiles=asked.profiles, papers=asked.papers))


if __name__ == "__main__":
    main()
