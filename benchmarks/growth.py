"""Measure a home with a year of days of many profiles beside one that started yesterday (X3).

    python -m benchmarks.growth [--days 400] [--profiles 20] [--papers 100] [--rounds 3]

Two homes with the same profiles and papers: in one each profile has a ranking, a file and pages for every day, in the
other for the day before only. Then the same new day comes to both: imported, then `run` for all profiles, in separate
processes, also by processor time, which a busy machine does not lengthen much. Beside it `status` and Today on
the page, which are to answer within a second, each also beside the small home. Then what a `run` over many days of a
few profiles adds: processor time, bytes and files of Dagster's folder for each day and profile; and Dagster's history
of all days before and after it is pruned. Ends with 1 if a target is missed.
"""

import argparse
import json
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from urllib.request import urlopen

from benchmarks._figures import Figure, exit_status, seconds
from benchmarks.desk import CONTENT, DAY, filled
from paper_assets.defs.history_files import INDEX, RUNS, prune_history
from paper_assets.pipeline.digests import write_digest
from paper_assets.settings import load_settings
from paper_assets.stores.digest_files import digest_path
from tests.desk import TOPICS, Desk, paper
from tests.page.invented_desk import served

NEW_DAY = DAY + timedelta(days=1)
LONGER_AT_MOST = 1.2
MULTIPLES = 8  # of `import dagster`


def grown(folder: Path, *, days: int, profiles: int, papers: int) -> Desk:
    """A home with `days` days of `profiles` profiles until DAY: rankings, their files and pages."""
    desk = filled(folder, days=days, profiles=profiles, papers=papers)
    settings = load_settings(desk.environment, folder)
    write_digest(desk.warehouse, "p0", DAY, settings=settings)
    digests = settings.digests_dir
    for number in range(profiles):
        for back in range(days):
            for ending in ("html", "md"):
                page = digest_path(digests, f"p{number}", DAY - timedelta(days=back), ending)
                page.parent.mkdir(exist_ok=True)
                if not page.exists():
                    os.link(digest_path(digests, "p0", DAY, ending), page)
    desk.run("run", "--as-of", f"{DAY}")  # Dagster hears of it, and what the copies lack is made
    return desk


def new_day(desk: Desk, papers: int) -> tuple[float, float]:
    """Seconds, and those of the processor, of the import of NEW_DAY and of the run that makes all profiles' lists."""
    records = [paper(50_000 + at, f"{NEW_DAY}", TOPICS[at % len(TOPICS)]) for at in range(papers)]
    file = desk.papers("new.jsonl", records)
    waited = list[float]()
    used = processor_seconds(lambda: waited.append(seconds(lambda: (desk.run("import", str(file)), desk.run("run")))))
    return waited[0], used


def processor_seconds(work: Callable[[], object]) -> float:
    """Of the processes that the work starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def importing_dagster() -> float:
    """Seconds of the processor that importing Dagster takes."""
    return processor_seconds(lambda: subprocess.run([sys.executable, "-c", "import dagster"], check=True))


def megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def figures(folder: Path, *, days: int, profiles: int, papers: int, rounds: int) -> tuple[list[Figure], str]:
    """The figures, and how large the larger home is."""
    size = f"{days} days x {profiles} profiles"
    homes = [
        grown(folder / name, days=of, profiles=profiles, papers=papers) for name, of in (("new", 1), ("old", days))
    ]
    (begun, begun_cpu), (old, old_cpu) = (new_day(desk, papers) for desk in homes)
    desk = homes[1]
    (begun_today, begun_status), (today, status) = (_answers(each, rounds) for each in homes)
    rankings = sum(json.loads(desk.run("status", "--json"))["rankings"].values())
    summary = (
        f"{rankings} rankings; dagster_home {megabytes(desk.folder / 'dagster_home'):.1f} MB "
        f"(begun home: {megabytes(homes[0].folder / 'dagster_home'):.1f} MB), "
        f"warehouse {desk.warehouse.path.stat().st_size / 1e6:.0f} MB"
    )
    return [
        *(
            Figure(
                stage=f"{what}, {size}",
                baseline="the same in a begun home",
                seconds=taken,
                baseline_seconds=beside,
                target=target,
            )
            for what, taken, beside, target in (
                ("a new day", old, begun, 1 / LONGER_AT_MOST),
                ("a new day, processor", old_cpu, begun_cpu, 1 / LONGER_AT_MOST),
                ("Today on the page", today, begun_today, None),
                ("status", status, begun_status, None),
            )
        ),
        Figure(
            stage=f"a new day, processor, {profiles} profiles",
            baseline="import dagster",
            seconds=begun_cpu,
            baseline_seconds=importing_dagster(),
            target=1 / MULTIPLES,
        ),
        *(
            Figure(stage=f"{what}, {size}", baseline="a second", seconds=taken, baseline_seconds=1.0, target=1.0)
            for what, taken in (("Today on the page", today), ("status", status))
        ),
    ], summary


def _answers(desk: Desk, rounds: int) -> tuple[float, float]:
    """Median seconds of Today on the page and of `status`."""
    with served(desk) as page:
        today = statistics.median(seconds(lambda: urlopen(f"{page.url}/p/p0").read()) for _ in range(1 + rounds))
    return today, statistics.median(seconds(lambda: desk.run("status", "--json")) for _ in range(rounds))


def many_days(folder: Path, *, days: int = 20, profiles: int = 4, papers: int = 30) -> tuple[list[Figure], str]:
    """What one `run` over `days` of `profiles` costs for each day and profile, beside importing Dagster once."""
    desk = Desk(folder)
    first = DAY - timedelta(days=days - 1)
    records = [
        paper(60_000 + papers * at + number, f"{first + timedelta(days=at)}", TOPICS[number % len(TOPICS)])
        for at in range(days)
        for number in range(papers)
    ]
    for number in range(profiles):
        desk.profile(f"p{number}", CONTENT)
    desk.run("import", str(desk.papers("many.jsonl", records)))
    home = desk.folder / "dagster_home"
    bytes_before, files_before = megabytes(home), _files(home)
    used = processor_seconds(lambda: desk.run("run", "--since", f"{first}", "--as-of", f"{DAY}"))
    importing = importing_dagster()
    each = days * profiles
    summary = (
        f"one run over {days} days x {profiles} profiles: {used:.1f} s of the processor; for each day and profile "
        f"{used / each:.2f} s, {1000 * (megabytes(home) - bytes_before) / each:.0f} kB and "
        f"{(_files(home) - files_before) / each:.2f} files of dagster_home"
    )
    return [
        Figure(
            stage="run, processor time a day and profile",
            baseline="import dagster",
            seconds=used / each,
            baseline_seconds=importing,
            target=None,
        )
    ], summary


def history(folder: Path, *, days: int, profiles: int) -> str:
    """Say how large Dagster's history of one run a day is, for all profiles, before and after it is pruned.

    The history of one real run is copied to all days.
    """
    desk = Desk(folder)
    for number in range(profiles):
        desk.profile(f"p{number}", CONTENT)
    records = [paper(70_000 + number, f"{DAY}", TOPICS[number % len(TOPICS)]) for number in range(30)]
    desk.run("import", str(desk.papers("day.jsonl", records)))
    desk.run("run", "--as-of", f"{DAY}")
    home = desk.folder / "dagster_home"
    for file, tables in (
        (INDEX, {"event_logs": "id", "asset_event_tags": "event_id", "asset_check_executions": "id"}),
        (RUNS, {"runs": "id", "run_tags": "id"}),
    ):
        with closing(sqlite3.connect(home / file)) as connection, connection:
            for table, key in tables.items():
                _repeat(connection, table, key, days)
    for log in list((home / INDEX.parent).glob("*.db")):
        if log.name != INDEX.name:
            for day in range(1, days):
                shutil.copy(log, log.with_stem(f"{log.stem}-{day}"))
                if (printed := home / "storage" / log.stem).is_dir():
                    shutil.copytree(printed, printed.with_name(f"{printed.name}-{day}"))
    before, files = megabytes(home), _files(home)
    began = time.perf_counter()
    prune_history(home)
    return (
        f"history of {days} days x {profiles} profiles, a run a day: {before:.0f} MB in {files} files; pruned in "
        f"{time.perf_counter() - began:.1f} s to {megabytes(home):.0f} MB in {_files(home)} files"
    )


def _repeat(connection: sqlite3.Connection, table: str, key: str, days: int) -> None:
    """Copy the rows of a table for each further day, with other numbers and names of runs."""
    columns = [row[1] for row in connection.execute(f"pragma table_info({table})") if row[1] != "id" or key == "id"]
    [(span,)] = connection.execute(f"select coalesce(max({key}), 0) from {table}")
    values = [
        f"{name} + day * {span}" if name == key else f"{name} || '-' || day" if name == "run_id" else name
        for name in columns
    ]
    connection.execute(
        f"with recursive days(day) as (select 1 union all select day + 1 from days where day < {days - 1}) "
        f"insert into {table} ({', '.join(columns)}) select {', '.join(values)} from {table}, days"
    )


def _files(folder: Path) -> int:
    return sum(file.is_file() for file in folder.rglob("*"))


def main() -> int:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=400)
    parser.add_argument("--profiles", type=int, default=20)
    parser.add_argument("--papers", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    os.environ["PYTHONHASHSEED"] = "0"  # so that commands are not forked, whose time would not be counted here
    with tempfile.TemporaryDirectory() as folder:
        found, summary = figures(
            Path(folder), days=asked.days, profiles=asked.profiles, papers=asked.papers, rounds=asked.rounds
        )
    with tempfile.TemporaryDirectory() as folder:
        more, more_lines = many_days(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        pruned = history(Path(folder), days=asked.days, profiles=asked.profiles)
    found += more
    print("\n".join([*map(str, found), summary, more_lines, pruned]))
    return exit_status(found)


if __name__ == "__main__":
    sys.exit(main())
