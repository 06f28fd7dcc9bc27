"""Run a faulty arXiv of a year on loopback: what it lists, and every way in which its answers fail.

Adding a fault: a function `(request of a page) -> Answer` and its line in `FAULTS`.
"""

import gzip
import random
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from paper_assets.paper import Paper
from tests import loopback
from tests.loopback import Answer, Request
from tests.loopback_arxiv import error_xml, feed, feed_xml, invented_paper

PER_PAGE = 4


@dataclass
class BadYear:
    """What arXiv lists for each day (papers may be dated the day before), and what it answers instead.

    `faults` are used up one request of the day after the other; a day in `broken` never gets another answer.
    """

    days: list[date]
    dice: random.Random
    listed: dict[date, list[Paper]] = field(default_factory=dict)
    faults: dict[date, list[str]] = field(default_factory=lambda: defaultdict(list))
    broken: set[date] = field(default_factory=set)
    lied: set[date] = field(default_factory=set)  # days with a false answer
    gained: set[date] = field(default_factory=set)  # days that got papers in the last weeks
    served: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # answers of each kind
    url: str = ""
    private: str = ""  # a machine of the private network, to which no redirect may lead
    trespasses: int = 0  # requests that reached it
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def truth(self) -> dict[date, dict[str, tuple[int, str, bool]]]:
        """Return for each day its papers by their own date: version, title, withdrawn."""
        found: dict[date, dict[str, tuple[int, str, bool]]] = {day: {} for day in self.days}
        for papers in self.listed.values():
            for paper in papers:
                assert paper.day is not None
                if paper.day in found:
                    found[paper.day][paper.paper_id] = (paper.version, paper.title, bool(paper.comment))
        return found

    def answer(self, request: Request) -> Answer:
        with self._lock:
            asked = re.search(r"submittedDate:\[(\d{8})0000", request.query.get("search_query", ""))
            day = datetime.strptime(asked[1], "%Y%m%d").replace(tzinfo=UTC).date() if asked else None
            if day is None:
                return Answer(status=400)
            page = Page(self, day, int(request.query.get("start", 0)))
            if self.faults[day]:
                fault = self.faults[day].pop(0)
            else:
                fault = self.dice.choice(sorted(set(FAULTS) - LIES)) if day in self.broken else ""
            self.served[fault or "whole"] += 1
        return FAULTS[fault](page) if fault else page.whole()


@dataclass(frozen=True)
class Page:
    """The request of a client: the papers of a day from `start` on."""

    year: BadYear
    day: date
    start: int

    @property
    def papers(self) -> list[Paper]:
        listed = self.year.listed.get(self.day, [])
        return sorted(listed, key=lambda paper: (paper.published, paper.paper_id))  # type: ignore[return-value]

    @property
    def own(self) -> list[Paper]:
        return self.papers[self.start : self.start + PER_PAGE]

    def whole(self) -> Answer:
        return feed(self.own, total=len(self.papers))

    def body(self) -> bytes:
        return feed_xml(self.own, total=len(self.papers))


def _packed(page: Page, damage: Callable[[bytes], bytes]) -> Answer:
    return Answer(body=damage(gzip.compress(page.body())), headers={"Content-Encoding": "gzip"})


def _sent_on(page: Page) -> Answer:
    places = (f"{page.year.private}/latest/meta-data", "file:///etc/passwd", "gopher://127.0.0.1/", "http://[::1]:9/")
    return Answer(status=302, headers={"Location": places[(page.day.toordinal() + page.start) % len(places)]})


def _repeated(page: Page) -> Answer:
    """The page begins with the last paper of the previous page, or contains its first paper twice."""
    first = page.papers[page.start - 1 : page.start] if page.start else page.own[:1]
    return feed([*first, *page.own], total=len(page.papers))


FAULTS: dict[str, Callable[[Page], Answer]] = {
    "429": lambda page: Answer(status=429, headers={"Retry-After": "0"}),
    "429, come back in two hours": lambda page: Answer(status=429, headers={"Retry-After": "7200"}),
    "503": lambda page: Answer(status=503),
    "500": lambda page: Answer(status=500, body=b"<html>oops</html>"),
    "a web page with 200": lambda page: Answer(body=b"<!DOCTYPE html><html><p>maintenance</html>"),
    "Rate exceeded": lambda page: Answer(body=b"Rate exceeded."),
    "nothing": lambda page: Answer(body=b""),
    "an error feed": lambda page: Answer(body=error_xml("the index is being rebuilt")),
    "cut XML": lambda page: Answer(body=page.body()[: -max(20, len(page.body()) // 3)]),
    "fewer bytes than promised": lambda page: Answer(body=page.body()[:-9], missing=9),
    "damaged XML": lambda page: Answer(body=page.body().replace(b"</", b"<", 1)),
    "a control character": lambda page: Answer(body=page.body().replace(b"invented", b"inv\x01ented", 1)),
    "entities": lambda page: Answer(
        body=b'<!DOCTYPE feed [<!ENTITY a "a">]>' + page.body().split(b"?>", 1)[1].replace(b"invented", b"&a;", 1)
    ),
    "a total of 5,000 digits": lambda page: Answer(
        body=re.sub(rb"(totalResults>)\d+", rb"\g<1>" + b"7" * 5_000, page.body(), count=1)
    ),
    "another total": lambda page: feed(page.own, total=len(page.papers) + 1),
    "an empty page": lambda page: feed([], total=len(page.papers) or 3),
    "a repeated paper": _repeated,
    "a paper of another year": lambda page: feed(
        [invented_paper(77, page.day - timedelta(days=400)), *page.own], total=len(page.papers) + 1
    ),
    "a slow drip": lambda page: Answer(body=page.body(), drip=0.5),
    "a reset": lambda page: Answer(body=page.body(), reset=True),
    "damaged gzip": lambda page: _packed(page, lambda packed: packed[:40] + b"\xff" * 8 + packed[48:]),
    "cut gzip": lambda page: _packed(page, lambda packed: packed[: len(packed) // 2]),
    "sent to a private address": _sent_on,
    # Complete, well-formed and wrong: visible only in comparison with what is stored.
    "far fewer": lambda page: feed(page.papers[: len(page.papers) // 2], total=len(page.papers) // 2),
    "none at all": lambda page: feed([], total=0),
}
LIES = frozenset({"far fewer", "none at all"})


@contextmanager
def serving(year: BadYear) -> Iterator[None]:
    """Run the year as a server, and the private machine beside it."""

    def trespass(request: Request) -> Answer:
        year.trespasses += 1
        return feed([], total=0)

    with loopback.serving(year.answer) as address, loopback.serving(trespass) as private:
        year.url, year.private = f"{address}/api/query", private
        yield


def new_year(seed: int, size: int) -> BadYear:
    """Create a year of `size` days with papers, with faults before many good answers and some that stay broken."""
    dice = random.Random(seed)
    days = [date(2025, 3, 3) + timedelta(days=at) for at in range(size)]
    year = BadYear(days=days, dice=dice)
    for day in days:
        count = dice.randint(3, 14) if day.weekday() < 5 else dice.choice((0, 1, 3))
        year.listed[day] = [invented_paper(number, day) for number in range(count)]
    filled = [day for day in days if year.listed[day]]
    year.broken = set(dice.sample(filled, max(1, len(days) // 30)))
    for day in dice.sample(days, len(days) // 12):
        _list_late(year, day)
    give_faults(year, lies=False)
    return year


def give_faults(year: BadYear, *, lies: bool) -> None:
    """Set faults for the next answers of half of the days.

    A false answer about papers never seen on the day cannot be detected, nor a repeated one: each day gets one false
    answer, and not when papers were added to it.
    """
    year.faults.clear()
    slow = {"a slow drip": 0.15}
    names = sorted(set(FAULTS) - LIES)
    for day in year.days:
        if year.dice.random() < 0.5:
            count = year.dice.choice((1, 1, 2, 3, 5, 8))
            year.faults[day] = year.dice.choices(names, [slow.get(name, 1.0) for name in names], k=count)
        if lies and day not in year.lied | year.gained and year.dice.random() < 0.3:
            year.lied.add(day)
            year.faults[day].insert(year.dice.choice((0, 0, 3)), year.dice.choice(sorted(LIES)))


def change(year: BadYear) -> None:
    """Change papers as in some weeks: new versions, withdrawals, removals, other dates, other listings."""
    dice = year.dice
    year.gained.clear()
    for day in dice.sample(year.days, len(year.days) // 2):
        papers = year.listed[day]
        if not papers:
            continue
        at = dice.randrange(len(papers))
        newer = replace(papers[at], version=papers[at].version + 1)
        match dice.choice(("version", "withdrawn", "gone", "several gone", "moved", "late")):
            case "version":
                papers[at] = replace(newer, title=f"{papers[at].title}, corrected")
            case "withdrawn":
                papers[at] = replace(newer, comment="This paper has been withdrawn by the authors.")
            case "gone":
                papers.pop(at)
            case "several gone":
                del papers[: len(papers) // 2]
            case "moved":
                _move(year, papers.pop(at), newer)
            case "late":
                _list_late(year, day)


def _move(year: BadYear, paper: Paper, newer: Paper) -> None:
    """Give the paper another date of first submission, under which it is listed."""
    to = year.dice.choice(year.days)
    assert newer.published is not None
    moved = replace(newer, published=newer.published.replace(year=to.year, month=to.month, day=to.day))
    year.listed[to].append(moved)
    year.gained.add(to)


def _list_late(year: BadYear, day: date) -> None:
    """List the last paper of the day on the next day, never two days late."""
    following = day + timedelta(days=1)
    own = bool(year.listed[day]) and year.listed[day][-1].day == day
    if own and following in year.listed and not {day, following} & year.broken:
        year.listed[following].append(year.listed[day].pop())
        year.gained.add(following)
