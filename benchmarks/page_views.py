"""Measure every view of the page with 400 days of twenty profiles and 8,267 papers stored.

    python -m benchmarks.page_views [--days 400] [--profiles 20] [--papers 8267] [--rounds 7]

Invented papers with clustered vectors under the real model's name; one day of 300 papers is ranked and its rows are
copied to all days and profiles. A separate process serves the page. Each view is opened once to warm up and then
`rounds` times; the time is that to the first byte of the answer, which is made as a whole. Printed beside it: the first
opening, and the processor time of the server while three tabs have Today open.
"""

import argparse
import http.client
import os
import re
import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
from playwright.sync_api import sync_playwright

from benchmarks._figures import Figure, exit_status
from benchmarks.desk import CONTENT, DAY, rank_all_days
from benchmarks.search import papers as invented_papers
from benchmarks.search import unit
from paper_assets.models.embedder import load_embedder
from paper_assets.settings import load_settings
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rankings import ranking
from tests.desk import Desk
from tests.page.invented_desk import Page, served

MEDIAN, WORST = 0.3, 1.0  # seconds to the first byte, the limits of a view
A_DAY = 300  # papers
TABS, IDLE = 3, 30  # open tabs, and the seconds for which they are watched


def filled(folder: Path, *, days: int, profiles: int, papers: int) -> Desk:
    """Fill a home with papers, their vectors, and a ranking of `A_DAY` papers on each day of each profile."""
    desk = Desk(folder)
    settings, warehouse = load_settings(desk.environment, folder), desk.warehouse
    newest = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
    stored = [
        replace(each, published=newest - timedelta(days=at // A_DAY)) for at, each in enumerate(invented_papers(papers))
    ]
    merge_papers(warehouse, stored)
    embedder = load_embedder(settings.embedding_model)
    hashes = [each for (each,) in warehouse.rows("select distinct text_hash from papers order by all")]
    chance = np.random.default_rng(2)
    centres = unit(chance.normal(size=(200, embedder.dimension)))
    noise = chance.standard_normal(size=(len(hashes), embedder.dimension), dtype=np.float32)
    vectors = unit(centres[chance.integers(0, 200, len(hashes))] + 0.05 * noise)
    keep_vectors(warehouse, hashes, vectors, model=embedder.name)
    words = stored[0].title.split()
    content = CONTENT | {"interests": {"primary": [" ".join(words[:4])], "secondary": [" ".join(words[4:])]}}
    content |= {"ranking": {"top_k": 15}}
    for number in range(profiles):
        desk.profile(f"p{number}", content)
    rank_all_days(warehouse, settings, days=days, profiles=profiles, embedder=embedder)
    return desk


def views(desk: Desk) -> dict[str, str]:
    """Return the address of each view."""
    rows = ranking(desk.warehouse, DAY, "p0").rows
    first, last = rows.column("paper_id")[0].as_py(), rows.column("paper_id")[-1].as_py()
    [(title,)] = desk.warehouse.rows("select title from papers where paper_id = ?", [first])
    words = " ".join(title.split()[:3])
    return {
        "profiles": "/?all=1",
        "today": "/p/p0",
        "an earlier day": f"/p/p0/{DAY - timedelta(days=2)}",
        "all days": "/p/p0/days",
        "changes": f"/p/p0/{DAY}/changes",
        "why": f"/p/p0/{DAY}/why?{urlencode({'paper': last})}",
        "search": f"/p/p0/search?{urlencode({'q': words})}",
        "similar": f"/p/p0/search?{urlencode({'like': first})}",
        "ask": f"/p/p0/search?{urlencode({'q': f'{words}?'})}",
        "ask, two sides": f"/p/p0/search?{urlencode({'q': f'{words}?', 'sides': '1'})}",
        "paper": f"/p/p0/paper/{first}",
        "shelf": "/p/p0/shelf",
        "evidence": f"/p/p0/evidence?{urlencode({'question': f'{words}?'})}",
        "rewrites": "/p/p0/rewrites",
        "practices": "/p/p0/practices",
        "map": "/p/p0/map",
        "map of a month": "/p/p0/map?span=month",
        "learned": "/p/p0/learned",
        "teach": "/p/p0/teach",
        "profile": "/p/p0/profile",
        "health": "/health",
        "state for the script": f"/p/p0/{DAY}/state",
    }


def first_byte(url: str, path: str, *, form: dict[str, str] | None = None) -> tuple[float, bytes]:
    """Return the seconds until the answer begins, and its body. Fails unless it succeeds."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    started = time.perf_counter()
    if form is None:
        connection.request("GET", path)
    else:
        headers = {"Origin": url, "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", path, urlencode(form), headers)
    answer = connection.getresponse()
    took = time.perf_counter() - started
    body = answer.read()
    connection.close()
    assert answer.status == 200, f"{path}: {answer.status}"
    return took, body


def preview_form(page: Page) -> dict[str, str]:
    """Return the fields of the profile's form with one more keyword."""
    html = first_byte(page.url, "/p/p0/profile")[1].decode()
    token, version = (re.search(rf'name="{name}" value="([^"]*)"', html) for name in ("token", "version"))
    assert token and version
    fields = dict(re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>\n?([^<]*)</textarea>', html))
    fields |= dict(
        re.findall(r'<input (?!type="(?:hidden|checkbox|radio))[^>]*name="([^"]+)"[^>]* value="([^"]*)"', html)
    )
    return fields | {"token": token[1], "version": version[1], "keywords.must_include": "ta"}


def watched(page: Page) -> float:
    """Return the share of a core that the server uses while three tabs have Today open."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for _ in range(TABS):
            browser.new_page().goto(f"{page.url}/p/p0")
        time.sleep(5)
        before = _processor_seconds(page.process)
        time.sleep(IDLE)
        used = _processor_seconds(page.process) - before
        browser.close()
    return used / IDLE


def _processor_seconds(process: int) -> float:
    """Return the processor time of a process so far, of user and system."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def figures(folder: Path, *, days: int, profiles: int, papers: int, rounds: int) -> tuple[list[Figure], str]:
    """Fill a home, open every view of its page, and return the figures and what was measured in words."""
    started = time.perf_counter()
    desk = filled(folder, days=days, profiles=profiles, papers=papers)
    filling, size = time.perf_counter() - started, desk.warehouse.path.stat().st_size / 1e6
    addresses, found, cold = views(desk), dict[str, list[float]](), dict[str, float]()
    with served(desk) as page:
        form = preview_form(page)
        for name, path in [*addresses.items(), ("preview", "/p/p0/profile/preview")]:
            posted = form if name == "preview" else None
            cold[name] = first_byte(page.url, path, form=posted)[0]
            found[name] = [first_byte(page.url, path, form=posted)[0] for _ in range(rounds)]
        idle = watched(page)
    summary = [
        f"page, {days} days x {profiles} profiles, {papers:,} papers, {size:.0f} MB, filled in {filling:.0f} s; ms:"
    ]
    summary += [
        f"  {name:22} median {1000 * statistics.median(times):6.0f}  worst {1000 * max(times):6.0f}  "
        f"first {1000 * cold[name]:6.0f}"
        for name, times in found.items()
    ]
    summary.append(f"  {TABS} tabs with Today open: {100 * idle:.2f} % of a core")
    slowest = max(found, key=lambda name: statistics.median(found[name]))
    worst = max(found, key=lambda name: max(found[name]))
    return [
        Figure(
            stage=f"page, slowest view: {slowest}",
            baseline="the limit of 300 ms",
            seconds=statistics.median(found[slowest]),
            baseline_seconds=MEDIAN,
            target=1.0,
        ),
        Figure(
            stage=f"page, slowest answer: {worst}",
            baseline="the limit of 1 s",
            seconds=max(found[worst]),
            baseline_seconds=WORST,
            target=1.0,
        ),
        Figure(
            stage=f"page, a second of {TABS} open tabs",
            baseline="1 % of a core",
            seconds=max(idle, 1e-6),
            baseline_seconds=0.01,
            target=1.0,
        ),
    ], "\n".join(summary)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=400)
    parser.add_argument("--profiles", type=int, default=20)
    parser.add_argument("--papers", type=int, default=8_267)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, summary = figures(
            Path(folder), days=given.days, profiles=given.profiles, papers=given.papers, rounds=given.rounds
        )
    print(summary, *found, sep="\n")
    return exit_status(found)


if __name__ == "__main__":
    raise SystemExit(main())
