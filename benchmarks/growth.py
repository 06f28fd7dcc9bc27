"""What a home with a year of days of many profiles costs, beside one that was begun yesterday (SPEC X3).

    python -m benchmarks.growth [--days 400] [--profiles 20] [--papers 100] [--rounds 3]

Two homes with the same profiles and papers: in one each profile has a ranking, a file and pages for every day, in the
other for the day before only. Then the same new day comes to both: imported, then `run` for all profiles, in processes
of their own. Beside it `status` and Today on the page, which are to answer within a second, and how large Dagster's
history has become by the new day. Ends with 1 if a target is missed.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from urllib.request import urlopen

from benchmarks._figures import Figure, exit_status
from benchmarks.desk import DAY, filled
from paper_assets.pipeline.digests import digests_folder, write_digest
from paper_assets.settings import load_settings
from paper_assets.stores.digest_files import digest_path
from tests.desk import TOPICS, Desk, paper
from tests.page.invented_desk import served

NEW_DAY = DAY + timedelta(days=1)
LONGER_AT_MOST = 1.2


def grown(folder: Path, *, days: int, profiles: int, papers: int) -> Desk:
    """A home with `days` days of `profiles` profiles until DAY: rankings, their files and pages."""
    desk = filled(folder, days=days, profiles=profiles, papers=papers)
    settings = load_settings(desk.environment, folder)
    write_digest(desk.warehouse, "p0", DAY, settings=settings)
    digests = digests_folder(settings)
    for number in range(profiles):
        for back in range(days):
            for ending in ("html", "md"):
                page = digest_path(digests, f"p{number}", DAY - timedelta(days=back), ending)
                page.parent.mkdir(exist_ok=True)
                if not page.exists():
                    os.link(digest_path(digests, "p0", DAY, ending), page)
    desk.run("run", "--as-of", f"{DAY}")  # Dagster hears of it, and what the copies lack is made
    return desk


def new_day(desk: Desk, papers: int) -> float:
    """Seconds of the import of NEW_DAY and of the run that makes all profiles' lists of it."""
    records = [paper(50_000 + at, f"{NEW_DAY}", TOPICS[at % len(TOPICS)]) for at in range(papers)]
    file = desk.papers("new.jsonl", records)
    return seconds(lambda: (desk.run("import", str(file)), desk.run("run")))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def figures(folder: Path, *, days: int, profiles: int, papers: int, rounds: int) -> tuple[list[Figure], str]:
    """The figures, and how large the larger home is."""
    size = f"{days} days x {profiles} profiles"
    homes = [
        grown(folder / name, days=of, profiles=profiles, papers=papers) for name, of in (("new", 1), ("old", days))
    ]
    begun, old = (new_day(desk, papers) for desk in homes)
    desk = homes[1]
    with served(desk) as page:
        today = statistics.median(seconds(lambda: urlopen(f"{page.url}/p/p0").read()) for _ in range(1 + rounds))
    status = statistics.median(seconds(lambda: desk.run("status", "--json")) for _ in range(rounds))
    rankings = sum(json.loads(desk.run("status", "--json"))["rankings"].values())
    told = (
        f"{rankings} rankings; dagster_home {megabytes(desk.folder / 'dagster_home'):.1f} MB "
        f"(begun home: {megabytes(homes[0].folder / 'dagster_home'):.1f} MB), "
        f"warehouse {desk.warehouse.path.stat().st_size / 1e6:.0f} MB"
    )
    return [
        Figure(
            stage=f"a new day, {size}",
            baseline="the same in a begun home",
            seconds=old,
            baseline_seconds=begun,
            target=1 / LONGER_AT_MOST,
        ),
        *(
            Figure(stage=f"{what}, {size}", baseline="a second", seconds=taken, baseline_seconds=1.0, target=1.0)
            for what, taken in (("Today on the page", today), ("status", status))
        ),
    ], told


def main() -> int:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=400)
    parser.add_argument("--profiles", type=int, default=20)
    parser.add_argument("--papers", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, told = figures(
            Path(folder), days=asked.days, profiles=asked.profiles, papers=asked.papers, rounds=asked.rounds
        )
    print("\n".join([*map(str, found), told]))
    return exit_status(found)


if __name__ == "__main__":
    sys.exit(main())
