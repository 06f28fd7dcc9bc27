"""Measure the first paint of Today with a year of days of twenty profiles stored.

    python -m benchmarks.desk [--days 400] [--profiles 20] [--papers 300]

An invented home is filled (one day is ranked, its rows are copied to all days and profiles), the page is served by a
separate process, and Chromium opens Today: the first visit, then warm ones. Beside it, what the same content takes
without the page: gathering it from the store. Printed, not asserted: the seconds are those of this machine.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from paper_assets.models.embedder import Embedder
from paper_assets.paper import paper_from_mapping
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.digest_pages import gather
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.profile import load_profile
from paper_assets.settings import Settings, load_settings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse
from tests.desk import TOPICS, Desk, paper
from tests.mcp.ranked_desk import NOBODY
from tests.page.invented_desk import served
from tests.rewriting.scripted import NOW

DAY = date(2026, 3, 4)
CONTENT: dict[str, Any] = {
    "interests": {"primary": ["traffic forecasting on road networks"]},
    "ranking": {"top_k": 5, "threshold": 0},
}
TABLES = ("rankings", "ranking_sets", "candidates", "candidate_sets")
VISITS = 9
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def filled(folder: Path, *, days: int, profiles: int, papers: int) -> Desk:
    """Fill a home in which every profile has a ranking of `papers` papers on each day."""
    desk = Desk(folder)
    settings, warehouse = load_settings(desk.environment, folder), desk.warehouse
    records = [paper(number, f"{DAY}", TOPICS[number % len(TOPICS)]) for number in range(papers)]
    merge_papers(warehouse, [paper_from_mapping(record) for record in records])
    for number in range(profiles):
        desk.profile(f"p{number}", CONTENT)
    rank_all_days(warehouse, settings, days=days, profiles=profiles, embedder=None)
    return desk


def rank_all_days(
    warehouse: Warehouse, settings: Settings, *, days: int, profiles: int, embedder: Embedder | None
) -> None:
    """Rank the papers of `DAY` for p0 and copy the ranking to all days and profiles."""
    profile = load_profile(settings.profiles_dir / "p0")
    keep_candidates(warehouse, profile_day(warehouse, profile, DAY, settings=settings), settings=settings)
    keep_ranking(warehouse, profile, DAY, embedder=embedder, verifier=NOBODY, settings=settings, now=NOW)
    copy_to_all_days(warehouse, days=days, profiles=profiles)


def copy_to_all_days(warehouse: Warehouse, *, days: int, profiles: int) -> None:
    """Copy the ranking of p0 on `DAY` to the days before it and to the other profiles."""
    for table in TABLES:
        warehouse.run(
            f"""
            insert into {table} by name
            select * exclude (back, other) replace (day - back::integer as day, 'p' || other as profile)
            from {table}, range($days) as earlier(back), range($profiles) as others(other)
            where back + other > 0
            """,
            {"days": days, "profiles": profiles},
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=400)
    parser.add_argument("--profiles", type=int, default=20)
    parser.add_argument("--papers", type=int, default=300)
    asked = parser.parse_args()
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder:
        desk = filled(Path(folder), days=asked.days, profiles=asked.profiles, papers=asked.papers)
        size = desk.warehouse.path.stat().st_size / 1e6
        settings = load_settings(desk.environment, desk.folder)
        began = time.perf_counter()
        gather(desk.warehouse, "p0", DAY, settings=settings)
        gathered = time.perf_counter() - began
        with served(desk) as page, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            opened = browser.new_page()
            painted = []
            for _ in range(1 + VISITS):
                opened.goto(f"{page.url}/p/p0")
                while (seen := opened.evaluate(PAINTED)) is None:  # not wait_for_function: the page forbids eval
                    opened.wait_for_timeout(10)
                painted.append(seen / 1000)
            browser.close()
    first, *warm = painted
    print(f"{asked.days} days x {asked.profiles} profiles, {asked.papers} papers a ranking, {size:.0f} MB")
    print(f"first paint of Today: first visit {first:.2f} s, warm {statistics.median(warm):.2f} s (of {VISITS})")
    print(f"gathering the same without the page, each query in a separate opening: {gathered:.2f} s")


if __name__ == "__main__":
    main()
