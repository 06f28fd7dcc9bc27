"""Test which days are asked for, against an arXiv that announces as the real one does, over a year of hours."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

import pytest

from paper_assets.announcements import (
    NEW_YORK,
    OPEN_DAYS,
    Announcement,
    AskedDay,
    announced_days,
    arxiv,
    closing,
    daily,
    days_to_fetch,
    deferred,
    in_words,
    merged_days,
    open_days,
)

HOUR = timedelta(hours=1)
PAPERS_A_DAY = 31


@dataclass
class SimulatedArxiv:
    """A paper every 47 minutes, visible from the announcement that really took place."""

    announcements: Sequence[Announcement]

    def __post_init__(self) -> None:
        self.untils = [each.until for each in self.announcements]
        self.days: dict[date, tuple[list[datetime], list[datetime]]] = {}

    def day(self, day: date, now: datetime) -> list[datetime]:
        """Return the submission times of the day's papers that are visible, ascending."""
        if day not in self.days:
            start = datetime.combine(day, time(), tzinfo=UTC)
            submitted = [start + timedelta(minutes=47 * number) for number in range(PAPERS_A_DAY)]
            visible = [self.announcements[bisect_left(self.untils, each)].at for each in submitted]
            self.days[day] = submitted, visible
        submitted, visible = self.days[day]
        return submitted[: bisect_right(visible, now)]


def hours(first: datetime, last: datetime, step: timedelta = HOUR) -> Iterator[datetime]:
    """Yield the moments from first to last."""
    while first <= last:
        yield first
        first += step


def merged(regular: Sequence[Announcement], skipped: Callable[[date], bool]) -> list[Announcement]:
    """Return the announcements without those of skipped evenings, whose papers come with the next one."""
    made: list[Announcement] = []
    after = regular[0].after
    for each in regular:
        if not skipped(each.at.astimezone(NEW_YORK).date()):
            made.append(Announcement(at=each.at, after=after, until=each.until))
            after = each.until
    return made


HOLIDAYS = {date(2026, 5, 25), date(2026, 11, 26), date(2026, 12, 24)}  # one of them in the table


def test_every_paper_is_fetched_at_the_first_question_after_its_announcement_in_a_year_of_hours() -> None:
    source = SimulatedArxiv(merged(arxiv(date(2026, 1, 1), date(2027, 1, 31)), HOLIDAYS.__contains__))
    asked: dict[date, AskedDay] = {}
    stored: dict[date, int] = {}
    first = date(2026, 1, 15)
    for now in hours(datetime(2026, 1, 15, 0, 20, tzinfo=UTC), datetime(2027, 1, 14, tzinfo=UTC)):
        asked = {day: answer for day, answer in asked.items() if now.date() - day < timedelta(days=20)}
        for due in days_to_fetch(now, asked):
            papers = source.day(due.day, now)
            asked[due.day] = AskedDay(asked_at=now, papers=len(papers), newest=papers[-1] if papers else None)
            stored[due.day] = len(papers)
        for back in range(OPEN_DAYS):
            day = now.date() - timedelta(days=back)
            if day >= first:
                assert stored.get(day, 0) == len(source.day(day, now)), f"{day} at {now}"
        for state in open_days(now, asked):
            if state.state == "complete" and state.day >= first:
                assert stored[state.day] == PAPERS_A_DAY, f"{state.day} called complete at {now}"


def test_a_morning_after_a_regular_announcement_asks_four_days_at_most() -> None:
    source = SimulatedArxiv(arxiv(date(2026, 1, 1), date(2026, 12, 31)))
    asked: dict[date, AskedDay] = {}
    requests: list[int] = []
    for now in hours(datetime(2026, 2, 2, 1, 30, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC), timedelta(days=1)):
        due = days_to_fetch(now, asked)
        requests.append(len(due))
        for each in due:
            papers = source.day(each.day, now)
            asked[each.day] = AskedDay(asked_at=now, papers=len(papers), newest=papers[-1] if papers else None)
    assert max(requests[7:]) == 4
    assert sum(requests[7:21]) == 2 * (2 + 2 + 2 + 2 + 4)  # none on Saturday and Sunday mornings


def test_fridays_papers_are_asked_for_on_sunday_evening_and_again_on_monday() -> None:
    friday = date(2026, 11, 20)
    before, after = (datetime(2026, 11, 23, hour, minute, tzinfo=UTC) for hour, minute in ((0, 59), (1, 1)))
    assert friday not in {each.day for each in days_to_fetch(before, {})}
    assert friday in {each.day for each in days_to_fetch(after, {})}
    assert closing(friday) == datetime(2026, 11, 24, 1, tzinfo=UTC)
    assert closing(date(2026, 7, 3)) == datetime(2026, 7, 7, 0, tzinfo=UTC)  # summer time in New York


def test_a_day_is_not_complete_when_its_last_announcement_came_late() -> None:
    monday, tuesday = date(2026, 11, 2), date(2026, 11, 3)
    at = datetime(2026, 11, 4, 1, 30, tzinfo=UTC)
    afternoon = datetime(2026, 11, 2, 18, 30, tzinfo=UTC)  # announced with Monday's evening
    asked = {monday: AskedDay(asked_at=at, papers=20, newest=afternoon), tuesday: AskedDay(asked_at=at, papers=0)}
    assert {each.day: each.state for each in open_days(at, asked)}[monday] == "arriving"
    again = [each.day for each in days_to_fetch(at + HOUR, asked)]
    assert again == [tuesday, monday] or again[:2] == [tuesday, monday]
    asked[tuesday] = AskedDay(asked_at=at + HOUR, papers=9, newest=datetime(2026, 11, 3, 12, tzinfo=UTC))
    assert monday in {each.day for each in days_to_fetch(at + HOUR, asked)}, "it was asked before the papers were there"
    asked[monday] = AskedDay(asked_at=at + HOUR, papers=31, newest=datetime(2026, 11, 2, 23, tzinfo=UTC))
    assert {each.day: each.state for each in open_days(at + HOUR, asked)}[monday] == "complete"


@pytest.mark.parametrize("zone_change", [date(2026, 3, 8), date(2026, 11, 1)])
def test_announcements_follow_new_york_through_its_clock_changes(zone_change: date) -> None:
    around = arxiv(zone_change - timedelta(days=4), zone_change + timedelta(days=4))
    assert {each.at.astimezone(NEW_YORK).hour for each in around} == {20}
    assert len({each.at.hour for each in around}) == 2
    assert all(one.until == other.after for one, other in pairwise(around))


def test_a_listed_holiday_explains_a_quiet_evening() -> None:
    assert deferred(date(2026, 11, 25))
    assert not deferred(date(2026, 11, 17))


def test_after_a_listed_holiday_a_day_is_asked_once_and_again_after_the_next_announcement() -> None:
    wednesday, friday = date(2026, 11, 25), datetime(2026, 11, 27, 1, 30, tzinfo=UTC)
    afternoon = datetime(2026, 11, 25, 18, 30, tzinfo=UTC)  # announced on Wednesday evening
    before = {wednesday: AskedDay(asked_at=friday - 24 * HOUR, papers=20, newest=afternoon)}
    assert wednesday in {each.day for each in days_to_fetch(friday, before)}, "the table may be wrong"
    asked = {wednesday: AskedDay(asked_at=friday, papers=20, newest=afternoon)}
    quiet = {each.day: each for each in open_days(friday + 60 * HOUR, asked)}[wednesday]
    assert (quiet.state, in_words(quiet)) == (
        "arriving",
        "Wed 25: 20 papers, a holiday at arXiv, more on Monday 01:00 UTC",
    )
    assert wednesday in {each.day for each in days_to_fetch(friday + 72 * HOUR, asked)}


def test_a_first_start_on_a_holiday_asks_for_the_days_that_were_announced() -> None:
    friday = datetime(2026, 11, 27, 14, tzinfo=UTC)  # on Thanksgiving's evening nothing was announced
    assert announced_days(friday, 2) == [date(2026, 11, 25), date(2026, 11, 24)]
    assert announced_days(friday - timedelta(days=7), 1) == [date(2026, 11, 19)]


def test_a_source_that_posts_daily_is_asked_for_each_day_once() -> None:
    asked: dict[date, AskedDay] = {}
    requests = []
    for now in hours(datetime(2026, 3, 1, 2, tzinfo=UTC), datetime(2026, 3, 20, 2, tzinfo=UTC), timedelta(days=1)):
        due = days_to_fetch(now, asked, daily)
        requests.append([each.day for each in due])
        for each in due:
            asked[each.day] = AskedDay(asked_at=now, papers=5, newest=datetime.combine(each.day, time(), tzinfo=UTC))
    days = [date(2026, 3, 1) + timedelta(days=number) for number in range(19)]
    assert requests[1:] == [[day] for day in days]


def test_the_strip_of_days_says_what_is_complete_what_arrives_when_and_what_is_missing() -> None:
    saturday = datetime(2026, 11, 28, 8, tzinfo=UTC)
    source = SimulatedArxiv(arxiv(date(2026, 11, 1), date(2026, 12, 31)))
    papers = {each: source.day(each, saturday) for each in (date(2026, 11, 22 + back) for back in range(6))}
    asked = {
        day: AskedDay(asked_at=saturday, papers=len(found), newest=found[-1] if found else None)
        for day, found in papers.items()
        if day != date(2026, 11, 23)
    }
    days = merged_days([open_days(saturday, asked)])
    assert [in_words(day) for day in days] == [
        "Sun 22: 31 papers, complete",
        "Mon 23: announced Wednesday 01:00 UTC, not fetched yet",
        "Tue 24: 31 papers, complete",
        "Wed 25: 31 papers, complete",
        "Thu 26: 25 papers, more on Monday 01:00 UTC",
        "Fri 27: announced Monday 01:00 UTC",
        "Sat 28: announced Tuesday 01:00 UTC",
    ]


def test_a_day_over_two_sources_is_as_far_as_the_slower_one_and_has_the_papers_of_both() -> None:
    now, day = datetime(2026, 11, 28, 8, tzinfo=UTC), date(2026, 11, 26)
    fast = {day: AskedDay(asked_at=now, papers=5, newest=datetime(2026, 11, 26, 9, tzinfo=UTC))}
    slow = {day: AskedDay(asked_at=now, papers=7, newest=datetime(2026, 11, 26, 9, tzinfo=UTC))}
    both = merged_days([open_days(now, fast, daily), open_days(now, slow)])
    (found,) = (each for each in both if each.day == day)
    assert (found.state, found.papers) == ("arriving", 12)
