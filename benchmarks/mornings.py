"""Run `paper-assets up` through a week against an arXiv that announces: what is in each first list of a morning?

    python -m benchmarks.mornings LIBFAKETIME.so [--papers papers.jsonl.gz] [--pictures FOLDER]

The program is not changed: libfaketime gives its processes a clock that is set forward from morning to morning of
Thanksgiving's week 2026, as it is for a machine that sleeps. arXiv is on loopback and shows a paper from its
announcement on. Each morning waits for the newest list and compares the papers that it considered with those that were
announced. Then a new home is started on each day of the week (`paper-assets start`). Ends with 1 if a paper is missing.
The library is the one in PyPI's package `libfaketime`: with Debian's 0.9.10 `time.sleep` fails (Errno 22).
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from benchmarks.punctuality import RECORDED, Period, made_announcements, recorded_days, submitted
from paper_assets.errors import NotComputed, StoreError
from paper_assets.paper import Paper
from paper_assets.stores.rankings import latest_ranking_day, ranking_inputs
from tests import loopback
from tests.desk import Desk, end
from tests.loopback import free_port
from tests.loopback_arxiv import LoopbackArxiv, Request

WEEK = Period(first=date(2026, 11, 12), last=date(2026, 11, 30))
_STARTED = datetime(2026, 11, 22, 22, tzinfo=UTC)  # a Sunday, three hours before its announcement
_MORNINGS = [datetime(2026, 11, 23 + day, 1, 29, 50, tzinfo=UTC) for day in range(8)]  # the hour of the fetch is 01:30
_MONDAY = _MORNINGS[-1]
_PATIENCE = 900  # seconds
_READER = {
    "interests": {"primary": ["multimodal large language models", "text to image generation"]},
    "feed": {"categories": ["cs.CL", "cs.CV", "cs.LG", "cs.MM"]},
}
_EVERY = 3  # recorded paper is used


@dataclass
class Announcing(LoopbackArxiv):
    """An arXiv that shows each paper from its announcement on, by the clock of the simulation."""

    announced: Sequence[tuple[datetime, Paper]] = ()
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def answer(self, request: Request) -> loopback.Answer:
        """Answer with what is announced by now."""
        self.papers = self.visible()
        return super().answer(request)

    def visible(self) -> list[Paper]:
        """Return the papers that are announced by now."""
        return [paper for at, paper in self.announced if at <= self.clock()]


@dataclass(frozen=True)
class Clock:
    """The clock of the processes, which libfaketime reads from a file."""

    library: Path
    file: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that give a process this clock; intervals are measured by the real one."""
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
            "TZ": "UTC",
        }

    def set(self, moment: datetime) -> None:
        """Set the clock."""
        self.file.write_text(f"{(moment - datetime.now(UTC)).total_seconds():+.0f}\n", encoding="utf-8")
        time.sleep(2)  # the processes read the file once a second

    def now(self) -> datetime:
        """Return the time of the processes."""
        return datetime.now(UTC) + timedelta(seconds=float(self.file.read_text(encoding="utf-8")))


@contextmanager
def announcing(papers: Sequence[Paper], clock: Clock) -> Iterator[Announcing]:
    """A running arXiv."""
    announcements = made_announcements(WEEK.first, WEEK.last)
    arxiv = Announcing(
        announced=[
            (next(each.at for each in announcements if paper.published and paper.published <= each.until), paper)
            for paper in papers
        ],
        clock=clock.now,
    )

    def answer(asked: loopback.Request) -> loopback.Answer:
        return arxiv.answer(Request(path=asked.path, query=asked.query, headers=asked.headers, at=time.time()))

    with loopback.serving(answer) as address:
        arxiv.url = f"{address}/api/query"
        yield arxiv


def considered(desk: Desk) -> tuple[date, str, set[str]] | None:
    """Return the day of the newest list, its fingerprint, and the papers of its window that it considered or that
    lists before it showed.
    """
    try:
        day = latest_ranking_day(desk.warehouse, "reader")
        inputs = ranking_inputs(desk.warehouse, day, "reader") if day else None
        if day is None or inputs is None:
            return None
        rows = desk.warehouse.rows(
            "select paper_id from candidates where profile = 'reader' and day = $day", {"day": day}
        )
    except (StoreError, NotComputed):
        return None
    return day, inputs, {paper_id for (paper_id,) in rows}


def missing(arxiv: Announcing, found: tuple[date, str, set[str]]) -> list[str]:
    """Return the announced papers of the list's window that it did not consider."""
    day, _, ids = found
    first = day - timedelta(days=6)
    return [
        paper.paper_id
        for paper in arxiv.visible()
        if paper.published and first <= paper.published.date() <= day and paper.paper_id not in ids
    ]


def live_through(desk: Desk, arxiv: Announcing, clock: Clock, pictures: Path | None) -> int:
    """Run `up` through the mornings, and print what each brought; return how many papers were not in the first list."""
    port, environ = free_port(), _environ(arxiv, clock)
    _start(desk, environ)
    print(f"started on {_STARTED:%A %H:%M}: {len(arxiv.requests)} requests, list of {considered(desk)[0]:%A}")  # type: ignore[index]
    up = desk.start_interpreter("up", "--port", str(port), "--graph-port", str(free_port()), **environ)
    absent, log = 0, desk.folder / "data" / "up.log"
    try:
        while not (log.exists() and "for sensor: daily_fetch" in log.read_text(encoding="utf-8")):
            time.sleep(1)
        for morning in _MORNINGS:
            if morning == _MONDAY and pictures:
                clock.set(morning - timedelta(minutes=40))
                _picture(port, pictures / "monday-1-before-the-announcement.png", "")
            before, asked = considered(desk), len(arxiv.requests)
            clock.set(morning)
            began = time.monotonic()
            if morning == _MONDAY and pictures:
                _picture(port, pictures / "monday-2-while-it-is-made.png", "[role=status]:has-text('updates itself')")
            newest = max(paper.published.date() for paper in arxiv.visible() if paper.published)
            grown = not before or bool(missing(arxiv, before)) or newest > before[0]
            while grown and time.monotonic() - began < _PATIENCE and considered(desk) == before:
                time.sleep(0.5)
            first = considered(desk) if grown else before
            seconds = time.monotonic() - began
            time.sleep(30 if grown else 100)  # what else is done; the sensor looks once a minute
            late = missing(arxiv, first) if first else ["all"]
            absent += len(late)
            print(
                f"{morning:%a %d}: {'announced' if grown else 'nothing announced'}; list of {first and first[0]:%a %d} "
                f"after {seconds:.0f} s, {len(first[2]) if first else 0} papers considered, {len(late)} missing, "
                f"{len(arxiv.requests) - asked} requests",
                flush=True,
            )
            if morning == _MONDAY and pictures:
                _picture(port, pictures / "monday-3-ready.png", "")
    finally:
        end(up)
    return absent


def start_anew(folder: Path, arxiv: Announcing, clock: Clock) -> int:
    """Start a new home on each day of the week; return how many announced papers its first list missed."""
    absent = 0
    for morning in _MORNINGS[:7]:
        clock.set(morning.replace(hour=14))
        desk, asked = Desk(folder / f"{morning:%A}"), len(arxiv.requests)
        desk.profile("reader", _READER)
        _start(desk, _environ(arxiv, clock))
        found = considered(desk)
        late = missing(arxiv, found) if found else ["all"]
        absent += len(late)
        print(
            f"started on {morning:%A} 14:00: list of {found and found[0]:%A}, {len(late)} of "
            f"{len(found[2]) if found else 0} missing, {len(arxiv.requests) - asked} requests",
            flush=True,
        )
    return absent


def _start(desk: Desk, environ: dict[str, str]) -> None:
    """Fetch the first papers in a new interpreter, which loads the library of the clock."""
    process = desk.start_interpreter("start", "--days", "7", **environ)
    _, said = process.communicate(timeout=_PATIENCE)
    if process.returncode:
        raise SystemExit(said)


def _environ(arxiv: Announcing, clock: Clock) -> dict[str, str]:
    return {"PAPER_ASSETS_ARXIV_URL": arxiv.url, "PAPER_ASSETS_REQUEST_INTERVAL": "0.1", **clock.environment}


def _picture(port: int, file: Path, awaited: str) -> None:
    """Take a picture of Today at 1280 and 390 px, as soon as it has the `awaited` element."""
    from playwright.sync_api import sync_playwright

    from tests.page.browser import chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 844})
        ends = time.monotonic() + _PATIENCE / 3
        while time.monotonic() < ends:
            page.goto(f"http://127.0.0.1:{port}/p/reader")
            if page.locator("h1").count() and (not awaited or page.locator(awaited).count()):
                break
            time.sleep(0.5)
        page.screenshot(path=file)
        page.set_viewport_size({"width": 390, "height": 844})
        page.screenshot(path=file.with_stem(f"{file.stem}-390"))
        print(f"{file.stem}: {page.locator('#arrivals').inner_text() if page.locator('#arrivals').count() else '-'}")
        browser.close()


def main() -> int:
    """Live through the week, and start on each of its days."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("library", type=Path)
    arguments.add_argument("--papers", type=Path, default=RECORDED if RECORDED.exists() else None)
    arguments.add_argument("--pictures", type=Path)
    given = arguments.parse_args()
    recorded = [day[::_EVERY] for day in recorded_days(given.papers)] if given.papers else []
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock(given.library.absolute(), Path(folder, "clock"))
        clock.set(_STARTED)
        with announcing(submitted(WEEK, recorded, per_day=24), clock) as arxiv:
            desk = Desk(Path(folder, "week"))
            desk.profile("reader", _READER)
            absent = live_through(desk, arxiv, clock, given.pictures)
        with announcing(submitted(replace(WEEK), [], per_day=24), clock) as arxiv:
            absent += start_anew(Path(folder), arxiv, clock)
    return int(absent > 0)


if __name__ == "__main__":
    sys.exit(main())
