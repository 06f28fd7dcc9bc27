"""Fetch a year from a faulty arXiv, fix it as `status` suggests, and compare it with the truth.

    python -m tests.faults.storm --part year --seed 7

At first the days are fetched by the month. Then, three times, weeks pass: papers get new versions, are withdrawn, move
or go, and all days are fetched again by the fortnight as the weekly repair does. After each round the days that
`status` names are fetched by the command that it names, a few times, and no other day may lack a paper. In the end each
day must equal what arXiv lists, or be named.
"""

import logging
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from paper_assets.paper import papers_from_table
from paper_assets.paper_id import ARXIV
from paper_assets.pipeline import papers
from paper_assets.pipeline.step import Partition
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.settings import load_settings
from paper_assets.stores.harvests import MissingDays, day_troubles, missing_days
from paper_assets.stores.papers import papers_between
from tests.faults.storm.bad_year import BadYear, change, give_faults, new_year, serving
from tests.faults.storm.counts import Counts

_MENDS = 6  # rounds of fixing what status names, before weeks pass
_ROUNDS = 3  # of changes and repairs


def run(seed: int, size: int, folder: Path) -> Counts:
    """Fetch a year of `size` days. Every fault comes from the seed; which requests finish in time depends on the
    machine too.
    """
    year = new_year(seed, size)
    lost: dict[date, str] = {}
    with serving(year):
        desk = _Desk(folder, year)
        desk.fetch(year.days, at_once=31)
        desk.repair()
        for number in range(_ROUNDS):
            before = _ids(desk)
            change(year)
            give_faults(year, lies=True)
            desk.later()
            desk.fetch(year.days, at_once=14)
            desk.repair()
            lost |= {day: f"after round {number + 1}: {text}" for day, text in _lost(year, desk, before).items()}
        year.faults.clear()
        for _ in range(2):  # two quiet weeks
            desk.later()
            desk.fetch(year.days, at_once=14)
            desk.repair()
    return _judged(year, desk, lost, again=f"python -m tests.faults.storm --part year --seed {seed} --size {size}")


class _Desk:
    """A reading desk that asks the bad year, with a clock that is moved on."""

    def __init__(self, folder: Path, year: BadYear) -> None:
        environment = {
            "PAPER_ASSETS_HOME": str(folder / "home"),
            "PAPER_ASSETS_ARXIV_URL": year.url,
            "PAPER_ASSETS_REQUEST_GATE": str(folder / "gate"),
            "PAPER_ASSETS_REQUEST_INTERVAL": "0",  # the real one is three seconds
            "PAPER_ASSETS_REQUEST_TIMEOUT": "2",
        }
        self.now = datetime(2026, 7, 1, 8, tzinfo=UTC)
        self.gate = folder / "gate"
        quiet = logging.getLogger("tests.faults.storm.year")
        quiet.setLevel(logging.CRITICAL)
        opened = open_workspace(load_settings(environment, folder), {}, clock=lambda: self.now)
        self.workspace: Workspace = replace(opened, log=quiet)
        self.traces: list[str] = []

    def later(self) -> None:
        self.now += timedelta(days=7)

    def fetch(self, days: Sequence[date], *, at_once: int = 31, accept_fewer: bool = False) -> None:
        workspace = replace(self.workspace, options={papers.ACCEPT_FEWER: accept_fewer})
        for at in range(0, len(days), at_once):
            try:
                papers.STEP.make(
                    workspace, [Partition(day) for day in days[at : at + at_once]], frozenset({papers.NAME})
                )
            except Exception as error:
                self.traces.append(f"fetching {days[at]}: {type(error).__name__}: {error}")
            shutil.rmtree(self.gate, ignore_errors=True)  # hours pass: no Retry-After is pending any more

    def repair(self) -> None:
        """Fetch again what status names, hours apart; accept fewer papers only when seen twice."""
        for _ in range(_MENDS):
            spans = [span for span in self.troubles() if span.kind != "empty"]
            if not spans:
                return
            self.now += timedelta(hours=3)
            for span in spans:
                self.fetch([span.first + timedelta(days=at) for at in range((span.last - span.first).days + 1)])

    def troubles(self) -> list[MissingDays]:
        return missing_days(day_troubles(self.workspace.warehouse, sources=[ARXIV]))

    def named(self) -> dict[date, str]:
        return {each.day: each.kind for each in day_troubles(self.workspace.warehouse, sources=[ARXIV])}


Papers = dict[str, tuple[int, str, bool]]  # by id: version, title, withdrawn


def _stored(desk: _Desk) -> dict[date, Papers]:
    found: dict[date, Papers] = defaultdict(dict)
    for paper in papers_from_table(papers_between(desk.workspace.warehouse, None, None)):
        assert paper.day is not None
        found[paper.day][paper.paper_id] = (paper.version, paper.title, paper.withdrawn)
    return found


def _ids(desk: _Desk) -> set[str]:
    return {paper_id for papers in _stored(desk).values() for paper_id in papers}


def _lost(year: BadYear, desk: _Desk, before: set[str]) -> dict[date, str]:
    """Days that lack papers which were stored `before`, and are not named, in the middle of the year.

    The next day may be the one that lists a day's last paper. What is new or too many may wait for the next repair.
    """
    truth, named, now = year.truth(), desk.named(), _ids(desk)
    lacks = {day: (truth[day].keys() & before) - now for day in year.days}
    return {
        day: f"{day} lacks {sorted(lacks[day])}"
        for day in year.days
        if lacks[day] and not {day, day + timedelta(days=1)} & named.keys()
    }


def _judged(year: BadYear, desk: _Desk, lost: Mapping[date, str], *, again: str) -> Counts:
    truth, named, stored = year.truth(), desk.named(), _stored(desk)
    whole = [day for day in year.days if stored[day] == truth[day]]
    missing = [day for day in year.days if stored[day] != truth[day] and day in named]
    silent = [day for day in year.days if stored[day] != truth[day] and day not in named]
    findings = [f"{text}; {again}" for text in (*desk.traces, *lost.values())]
    findings += [f"{_difference(day, truth[day], stored[day])}; {again}" for day in silent]
    if year.trespasses:
        findings.append(f"{year.trespasses} requests followed a redirect to a private machine; {again}")
    needless = [day for day in whole if named.get(day) not in (None, "empty") and day not in year.broken]
    answers = sum(year.served.values())
    ids = papers_between(desk.workspace.warehouse, None, None).column("paper_id").to_pylist()
    return Counts(
        part="year",
        unit="days",
        tried=len(year.days),
        whole=len(whole),
        missing=len(missing),
        lost=len(lost),
        doubled=len(ids) - len(set(ids)),
        silent=len(silent) + len(desk.traces) + year.trespasses,
        findings=tuple(findings),
        figures=(
            f"{answers} answers of which {answers - year.served['whole']} were bad, in {len(year.served) - 1} ways",
            f"{len(year.broken)} days never got a good one; {sum(map(len, truth.values()))} papers in truth",
            f"{len(needless)} whole days are named as well",
        ),
    )


def _difference(day: date, truth: Papers, stored: Papers) -> str:
    lacks, extra = sorted(truth.keys() - stored.keys()), sorted(stored.keys() - truth.keys())
    other = sorted(paper for paper in truth.keys() & stored.keys() if truth[paper] != stored[paper])
    return f"{day} is silently wrong: lacks {lacks}, has {extra} too many, {other} differ"
