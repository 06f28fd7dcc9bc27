"""Decide which submission days to ask a source for, from when it announces papers (S7).

arXiv announces on the evenings of Sunday to Thursday what was submitted until 14:00 of the last working day, New York
time, and its API shows a paper only once it is announced. A day of submission (UTC) therefore grows for up to three
days: Friday's papers are announced on Sunday and, those of the late afternoon, on Monday.

A day is complete once it was asked after the announcement that closes it. An announcement can be late or left out
(holidays), so the calendar alone proves nothing: it counts as made when a paper that only it can contain was seen.
`deferred_announcements.json` has the evenings on which arXiv announces nothing. After such an evening a day is still
asked for once, so an outdated table loses nothing.

A source with another rhythm gets its own function `(first, last) -> announcements`, such as `daily`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from paper_assets.text.numbers import count_of

NEW_YORK = ZoneInfo("America/New_York")
_CUTOFF, _ANNOUNCED = time(14), time(20)  # New York
_EVENINGS = frozenset({6, 0, 1, 2, 3})  # Sunday to Thursday
OPEN_DAYS = 7  # a day older than this is not asked again automatically
_ASK_AGAIN = timedelta(minutes=30)  # where nothing was announced yet: repeated commands do not repeat the requests
_DAY = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """Describe an announcement `at` a time of what was submitted after `after` and until `until`; all in UTC."""

    at: datetime
    after: datetime
    until: datetime


# Announcements between two days of announcement, ascending.
Calendar = Callable[[date, date], Sequence[Announcement]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedDay:
    """Describe the last complete answer about a day: its time, the number of papers, the newest submission time
    (UTC; None without papers).
    """

    asked_at: datetime
    papers: int
    newest: datetime | None = None


State = Literal["due", "awaited", "arriving", "complete"]
_STATES = get_args(State)  # the furthest from complete first


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDay:
    """Describe a recent day: complete; arriving (asked, and more papers follow); due (ask for it now); awaited (nothing
    is announced yet). `reason` is a clause for display, `announced` the last announcement that was to be made.
    """

    day: date
    state: State
    reason: str
    papers: int | None = None
    announced: datetime | None = None


def arxiv(first: date, last: date) -> list[Announcement]:
    """Return arXiv's regular announcements on the evenings of `first` to `last` (New York), holidays included."""
    evenings = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return [_arxiv_announcement(evening) for evening in evenings if evening.weekday() in _EVENINGS]


@lru_cache(maxsize=64)
def _arxiv_announcement(evening: date) -> Announcement:
    return Announcement(
        at=_utc(evening, _ANNOUNCED),
        after=_utc(_cutoff_day(_evening_before(evening)), _CUTOFF),
        until=_utc(_cutoff_day(evening), _CUTOFF),
    )


def daily(first: date, last: date) -> list[Announcement]:
    """Return the announcements of a source that posts every day: each covers the day (UTC) that ended before it."""
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    starts = [datetime.combine(day, time(), tzinfo=UTC) for day in days]
    return [
        Announcement(at=start + timedelta(hours=1), after=start - _DAY - _INSTANT, until=start - _INSTANT)
        for start in starts
    ]


def days_to_fetch(now: datetime, asked: Mapping[date, AskedDay], calendar: Calendar = arxiv) -> list[OpenDay]:
    """Return the days to ask the source for at `now` (aware), newest first.

    The newest comes first because its papers prove that the announcement was made: days that are asked after it are
    then complete.
    """
    return [day for day in reversed(open_days(now, asked, calendar)) if day.state == "due"]


def open_days(now: datetime, asked: Mapping[date, AskedDay], calendar: Calendar = arxiv) -> list[OpenDay]:
    """Return the state of the last seven days (UTC) and of today, ascending."""
    now = now.astimezone(UTC)
    today = now.date()
    announcements = calendar(today - timedelta(days=OPEN_DAYS + 1), today + timedelta(days=6))
    days = [today - timedelta(days=back) for back in range(OPEN_DAYS, -1, -1)]
    return [_state(day, now, asked, announcements) for day in days]


def merged_days(by_source: Sequence[Sequence[OpenDay]]) -> list[OpenDay]:
    """Return the last seven days, today included, over all sources: each day in the state of the source that is
    furthest from complete, with the papers of all.
    """
    together = [sorted(of_day, key=lambda each: _STATES.index(each.state)) for of_day in zip(*by_source, strict=True)]
    counts = [[each.papers for each in of_day if each.papers is not None] for of_day in together]
    return [
        replace(of_day[0], papers=sum(known) if known else None) for of_day, known in zip(together, counts, strict=True)
    ][-OPEN_DAYS:]


def in_words(day: OpenDay) -> str:
    """Describe a day for readers: Fri 27: 180 papers, more on Tuesday 01:00 UTC."""
    papers = "" if day.papers is None else f"{count_of(day.papers, 'paper')}, "
    state = f"announced {_clock(day.announced)}, not fetched yet" if day.announced else day.reason
    return f"{day.day:%a} {day.day.day}: {papers}{'more ' if day.announced and day.papers else ''}{state}"


def announced_days(now: datetime, count: int, calendar: Calendar = arxiv) -> list[date]:
    """Return the newest `count` days (UTC) of which papers are announced at `now` according to the calendar and the
    table of holidays, newest first.
    """
    states = open_days(now, {}, lambda first, last: without_deferred(calendar(first, last)))
    newest = next(day.day for day in reversed(states) if day.state != "awaited")
    return [newest - timedelta(days=back) for back in range(count)]


def closing(day: date, calendar: Calendar = arxiv) -> datetime:
    """Return when the last papers of a day (UTC) are announced according to the calendar."""
    return _covering(day, calendar(day - _DAY, day + timedelta(days=6)))[-1].at


def deferred(day: date) -> bool:
    """Return whether arXiv said that it announces nothing on one of the evenings on which papers of the day appear."""
    return any(map(deferred_evening, _covering(day, arxiv(day - _DAY, day + 6 * _DAY))))


def without_deferred(announcements: Sequence[Announcement]) -> list[Announcement]:
    """Return the announcements that are made: the papers of a deferred one come with the next."""
    made, after = list[Announcement](), None
    for each in announcements:
        after = after or each.after
        if not deferred_evening(each):
            made.append(replace(each, after=after))
            after = None
    return made


def deferred_evening(announcement: Announcement) -> bool:
    """Return whether arXiv said that it does not make this announcement; its papers come with the next one."""
    return announcement.at.astimezone(NEW_YORK).date().isoformat() in _deferred_evenings()


def _state(day: date, now: datetime, asked: Mapping[date, AskedDay], announcements: Sequence[Announcement]) -> OpenDay:
    covering = _covering(day, announcements)
    made = [each for each in covering if each.at <= now]
    upcoming = next((each.at for each in covering if each.at > now), None)
    last = asked.get(day)
    papers = None if last is None else last.papers
    following = next((each.at for each in announcements if each.at > made[-1].at), None) if made else None
    if not made:
        return OpenDay(day=day, state="awaited", reason=f"announced {_clock(covering[0].at)}")
    if last is None:
        reason = "never asked for"
    elif last.asked_at < made[-1].at:
        reason = f"asked before the announcement of {_clock(made[-1].at)}"
    elif not _seen(made[-1], last.asked_at, asked):
        if following and now < following and _left_out(made, last.asked_at, asked):
            reason = f"a holiday at arXiv, more on {_clock(following)}"
            return OpenDay(day=day, state="arriving", reason=reason, papers=papers)
        if now - last.asked_at < _ASK_AGAIN:
            return OpenDay(day=day, state="arriving", reason="nothing announced yet", papers=papers)
        reason = f"nothing was announced by {_clock(last.asked_at)}"
    elif upcoming is not None:
        return OpenDay(day=day, state="arriving", reason=f"more on {_clock(upcoming)}", papers=papers)
    else:
        return OpenDay(day=day, state="complete", reason="complete", papers=papers)
    return OpenDay(day=day, state="due", reason=reason, papers=papers, announced=made[-1].at)


def _seen(announcement: Announcement, by: datetime, asked: Mapping[date, AskedDay]) -> bool:
    """Return whether an answer until `by` had a paper that this announcement or a later one brought."""
    return any(
        each.newest is not None and each.newest > announcement.after and announcement.at <= each.asked_at <= by
        for each in asked.values()
    )


def _left_out(made: Sequence[Announcement], by: datetime, asked: Mapping[date, AskedDay]) -> bool:
    """Return whether arXiv said that it leaves out the last of these announcements, and what came before was seen."""
    return deferred_evening(made[-1]) and all(_seen(each, by, asked) for each in made[-2:-1])


def _covering(day: date, announcements: Sequence[Announcement]) -> list[Announcement]:
    """Return the announcements that can contain a paper of the day."""
    start = datetime.combine(day, time(), tzinfo=UTC)
    return [each for each in announcements if each.until >= start and each.after + _INSTANT < start + _DAY]


def _evening_before(evening: date) -> date:
    before = evening - _DAY
    while before.weekday() not in _EVENINGS:
        before -= _DAY
    return before


def _cutoff_day(evening: date) -> date:
    """Return the day whose 14:00 ends what the evening announces: Friday for Sunday, else the same day."""
    return evening - 2 * _DAY if evening.weekday() == 6 else evening


def _utc(day: date, at: time) -> datetime:
    return datetime.combine(day, at, tzinfo=NEW_YORK).astimezone(UTC)


def _clock(moment: datetime) -> str:
    return f"{moment:%A %H:%M} UTC"


@cache
def _deferred_evenings() -> frozenset[str]:
    table = json.loads(files("paper_assets").joinpath("deferred_announcements.json").read_text(encoding="utf-8"))
    return frozenset(table["evenings"])
