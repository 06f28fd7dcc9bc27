"""Simulate mornings against an arXiv that announces as the real one does: how long a paper waits for its first list.

    python -m benchmarks.punctuality [--papers papers.jsonl.gz] [--short]

Six weeks: 2 to 15 March (New York's clock changes on the 8th) and 31 October to 30 November 2026 (the clocks change on
1 November, no announcement on Thanksgiving's evening), with a day on which arXiv does not answer and a laptop that
sleeps for two days. A loopback arXiv shows a paper from its announcement on; the daemon's own decision (`daily_tick`)
fetches into a real store at simulated times; after each fetch the list of the newest day is made, of all candidates by
window and "already shown". The rule before this one is simulated beside it: each day asked for once, at 06:30 UTC on
the second day after it, and the last fourteen days again on Sundays.

Papers are recorded ones (`--papers`: lines of JSON with title, abstract, authors, categories and a date) with their
dates shifted, spread evenly over their day; without a file they are invented. Ends with 1 if a paper is later than the
first list after its announcement, lost, or in two lists.
"""

import argparse
import gzip
import json
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import cycle
from pathlib import Path

from paper_assets.announcements import Announcement, arxiv, without_deferred
from paper_assets.defs.due import PASSING, Tried
from paper_assets.defs.fetching import daily_tick
from paper_assets.paper import Paper
from paper_assets.pipeline import papers as papers_step
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.open_days import due_days
from paper_assets.pipeline.rankings import judged_papers
from paper_assets.pipeline.step import Partition, failure_of
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.profile import Profile, profile_content
from paper_assets.settings import load_settings
from paper_assets.stores.papers import latest_day
from tests.loopback_arxiv import LoopbackArxiv, invented_paper, loopback_arxiv

TICK = timedelta(minutes=10)
RECORDED = Path(__file__).parents[2] / "shared" / "data" / "arxiv_papers" / "papers.jsonl.gz"  # beside the checkout
_COMPLETE, _OF_WEEKEND = 170, 3  # papers of a recorded day that is used; a day of the weekend has a third
_CATEGORIES = ("cs.CL", "cs.CV", "cs.LG", "cs.MM")
_READER = Profile(
    name="reader",
    content=profile_content(
        {"interests": {"primary": ["learning"]}, "feed": {"categories": [*_CATEGORIES]}}, source="reader"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The days first..last, and the spans (from, to) in which arXiv fails and the machine sleeps."""

    first: date
    last: date
    outages: tuple[tuple[datetime, datetime], ...] = ()
    asleep: tuple[tuple[datetime, datetime], ...] = ()


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


PERIODS = (
    Period(first=date(2026, 3, 2), last=date(2026, 3, 15)),
    Period(
        first=date(2026, 10, 31),
        last=date(2026, 11, 30),
        outages=((_at("2026-11-18 00:00"), _at("2026-11-19 00:00")),),
        asleep=((_at("2026-11-10 20:00"), _at("2026-11-12 20:00")),),
    ),
)


@dataclass(slots=True)
class Outcome:
    """What became of the papers of a period: hours until the first list, and how many were not in it in time."""

    hours: list[float] = field(default_factory=list)
    later: int = 0  # than the first list that was made after the announcement
    lost: int = 0
    twice: int = 0
    requests: list[int] = field(default_factory=list)  # of each day with a question

    def add(self, other: "Outcome") -> None:
        """Add the papers of another period."""
        self.hours += other.hours
        self.later, self.lost, self.twice = self.later + other.later, self.lost + other.lost, self.twice + other.twice
        self.requests += other.requests


def made_announcements(first: date, last: date) -> list[Announcement]:
    """Return the announcements that arXiv makes: on a deferred evening none, its papers come with the next."""
    return without_deferred(arxiv(first - timedelta(days=5), last + timedelta(days=5)))


def submitted(period: Period, recorded: Sequence[Sequence[Paper]], per_day: int) -> list[Paper]:
    """Return the papers of the period's days: recorded days in turn, or `per_day` invented papers."""
    found: list[Paper] = []
    turns = cycle(recorded) if recorded else None
    for number in range((period.last - period.first).days + 1):
        day = period.first + timedelta(days=number)
        own = [invented_paper(at, day) for at in range(per_day)] if turns is None else list(next(turns))
        own = own[:: _OF_WEEKEND if day.weekday() >= 5 else 1]
        start = datetime.combine(day, time(), tzinfo=UTC)
        found += [
            replace(
                paper,
                paper_id=f"{day:%y%m}.{day.day * 1000 + at:05d}",
                version=1,
                published=(moment := start + timedelta(days=1) * ((at + 0.5) / len(own))),
                updated=moment,
            )
            for at, paper in enumerate(own)
        ]
    return found


def recorded_days(file: Path) -> list[list[Paper]]:
    """Return the papers of the recorded days that are nearly complete."""
    days: dict[str, list[Paper]] = {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            categories = tuple(record["categories"])
            if not {*categories} & {*_CATEGORIES}:
                continue
            paper = replace(
                invented_paper(0, date.fromisoformat(record["published"][:10])),
                title=record["title"],
                abstract=record["abstract"],
                authors=tuple(record["authors"]),
                categories=categories,
                primary_category=categories[0],
            )
            days.setdefault(record["published"][:10], []).append(paper)
    return [papers for _, papers in sorted(days.items()) if len(papers) >= _COMPLETE]


Rule = Callable[[Workspace, datetime, Callable[[list[date]], bool]], None]


def by_announcements() -> Rule:
    """Return the present rule: the daemon's decision at each tick."""
    cursor, tried = None, defaultdict[str, list[Tried]](list)

    def tick(workspace: Workspace, now: datetime, fetch: Callable[[list[date]], bool]) -> None:
        nonlocal cursor
        due: list[date] = []

        def ask() -> list[date]:
            due[:] = [each.day for each in due_days(workspace.warehouse, workspace.settings, now)]
            return due

        result = daily_tick(cursor, now, workspace.settings, due=ask, tried=tried.__getitem__)
        cursor = result.cursor
        for request in result.run_requests or ():
            name = request.tags["paper_assets/fetch"]
            tried[name].insert(0, Tried({}, None if fetch(sorted(due)) else PASSING, now))

    return tick


def once_after_two_days(first: date) -> Rule:
    """Return the rule before: it requests a day once, at 06:30 UTC two days after it; Sundays repair two weeks."""
    hour, asked, repaired = time(6, 30), {first - timedelta(days=1)}, set[date]()

    def tick(workspace: Workspace, now: datetime, fetch: Callable[[list[date]], bool]) -> None:
        today = now.date() if now.time() >= hour else now.date() - timedelta(days=1)
        newest = max(asked)
        due = [newest + timedelta(days=number) for number in range(1, (today - timedelta(days=2) - newest).days + 1)]
        if due and fetch(due):
            asked.update(due)
        if now.weekday() == 6 and now.hour >= 8 and now.date() not in repaired:
            repaired.add(now.date())
            fetch([day for back in range(14, 0, -1) if (day := now.date() - timedelta(days=back)) >= first])

    return tick


def simulate(period: Period, papers: Sequence[Paper], rule: Rule, folder: Path) -> Outcome:
    """Live through the period by a rule; return what became of the papers that were announced in it."""
    announcements = made_announcements(period.first, period.last)
    visible = {
        paper.paper_id: next(each.at for each in announcements if paper.published <= each.until)
        for paper in papers
        if paper.published
    }
    outcome, made_at, first_list = Outcome(), list[datetime](), dict[str, datetime]()
    lists: dict[date, frozenset[str]] = {}
    requests: Counter[date] = Counter()
    with loopback_arxiv() as server:
        workspace = _workspace(folder, server)
        now, ends = _start(period.first), _start(period.last) + timedelta(days=1)

        def fetch(days: list[date]) -> bool:
            partitions, before = [Partition(day) for day in days], len(server.requests)
            made = papers_step.STEP.make(replace(workspace, clock=lambda: now), partitions, frozenset())
            requests[now.date()] += len(server.requests) - before
            if made.new:
                made_at.append(now)
                listed = _make_list(workspace, lists)
                first_list.update(dict.fromkeys(listed - first_list.keys(), now))
            return failure_of(made, partitions) is None

        while now < ends:
            if not _within(now, period.asleep):
                server.papers = [paper for paper in papers if visible[paper.paper_id] <= now]
                server.script = [] if _within(now, period.outages) else None  # each request gets a 500
                rule(workspace, now, fetch)
            now += TICK
    times = Counter(paper_id for listed in lists.values() for paper_id in listed)
    outcome.requests = [count for count in requests.values() if count]
    for paper_id, announced in visible.items():
        possible = next((moment for moment in made_at if moment >= announced), None)
        if possible is None:
            continue  # announced after the last list
        if paper_id not in times:
            outcome.lost += 1
            continue
        outcome.twice += times[paper_id] > 1
        outcome.later += first_list[paper_id] > possible
        outcome.hours.append((first_list[paper_id] - announced) / timedelta(hours=1))
    return outcome


def _workspace(folder: Path, server: LoopbackArxiv) -> Workspace:
    environ = {
        "PAPER_ASSETS_HOME": str(folder / "home"),
        "PAPER_ASSETS_ARXIV_URL": server.url,
        "PAPER_ASSETS_REQUEST_GATE": str(folder / "gate"),
        "PAPER_ASSETS_REQUEST_INTERVAL": "0",
        "PAPER_ASSETS_CATEGORIES": ",".join(_CATEGORIES),
    }
    return open_workspace(load_settings(environ, folder), {}, clock=lambda: datetime.now(UTC))


def _make_list(workspace: Workspace, lists: dict[date, frozenset[str]]) -> frozenset[str]:
    """Make the list of the newest day, of every paper of its window that no earlier list of the window has."""
    newest, warehouse, settings = latest_day(workspace.warehouse), workspace.warehouse, workspace.settings
    if newest is None:
        return frozenset()
    inputs = profile_day(warehouse, _READER, newest, settings=settings)
    shown = frozenset[str]().union(*(ids for day, ids in lists.items() if inputs.first <= day < newest))
    judged = judged_papers(warehouse, replace(inputs, shown=shown), settings=settings)
    lists[newest] = frozenset(judged.filter(judged.column("passed")).column("paper_id").to_pylist())
    return lists[newest]


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _within(now: datetime, spans: Sequence[tuple[datetime, datetime]]) -> bool:
    return any(start <= now < end for start, end in spans)


def main() -> int:
    """Print what became of the papers by both rules."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--papers", type=Path, default=RECORDED if RECORDED.exists() else None)
    arguments.add_argument("--short", action="store_true", help="Only the two weeks of March.")
    given = arguments.parse_args()
    recorded = recorded_days(given.papers) if given.papers else []
    code = 0
    for name in ("before", "now"):
        whole = Outcome()
        for period in PERIODS[:1] if given.short else PERIODS:
            papers = submitted(period, recorded, per_day=24)
            rule = by_announcements() if name == "now" else once_after_two_days(period.first)
            with tempfile.TemporaryDirectory() as folder:
                whole.add(simulate(period, papers, rule, Path(folder)))
        print(
            f"{name}: {len(whole.hours) + whole.lost} papers; hours to the first list: median "
            f"{statistics.median(whole.hours):.1f}, worst {max(whole.hours):.1f}; later than the first list "
            f"{whole.later}, lost {whole.lost}, twice {whole.twice}; requests on a day with one: median "
            f"{statistics.median(whole.requests):.0f}, most {max(whole.requests)}",
            flush=True,
        )
        code = int(bool(whole.later or whole.lost or whole.twice))
    return code


if __name__ == "__main__":
    sys.exit(main())
