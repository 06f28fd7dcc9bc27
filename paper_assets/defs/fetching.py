"""Fetch papers: daily at the hours of the settings, and the last two weeks again on Sundays (S1).

A fetch that fails ends: it holds no place among the runs, and the sensor requests it again later. Belongs here: when
papers are fetched. Not here: how (pipeline/papers.py), and what follows (due.py).
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import dagster as dg

from paper_assets.defs import resources
from paper_assets.defs.due import RANGE_END, RANGE_START
from paper_assets.settings import Settings
from paper_assets.setup.fetch_hours import last_due, next_due

ANNOUNCED_AFTER = timedelta(days=2)  # a day's papers appear in the API when announced, up to two days later (S1)
REPAIRED_DAYS = 14  # S1
# A failed fetch is requested again after pauses that grow from the first to the longest one, for half a day.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=2), timedelta(minutes=30)
KEEP_TRYING = timedelta(hours=12)
_FETCH = "paper_assets/fetch"  # tag: the fetch that a run belongs to
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def fetched_day(scheduled: date) -> date:
    """Return the day whose papers are fetched on `scheduled`."""
    return scheduled - ANNOUNCED_AFTER


def repaired_days(scheduled: date) -> list[date]:
    """Return the days fetched again on `scheduled`, ascending: the last 14 of the daily fetch."""
    last = fetched_day(scheduled)
    return [last - timedelta(days=back) for back in range(REPAIRED_DAYS - 1, -1, -1)]


def _fetch(days: list[date], name: str, *, attempt: int = 1) -> dg.RunRequest:
    key = f"{name}-{days[-1]}"
    return dg.RunRequest(
        run_key=key if attempt == 1 else f"{key}-{attempt}",
        tags={
            _FETCH: key,
            RANGE_START: days[0].isoformat(),
            RANGE_END: days[-1].isoformat(),
            "dagster/max_retries": "0",  # the sensor requests it again
            "dagster/priority": "20000",
        },
    )


def due_days(due: datetime, fetched: Collection[str]) -> list[date]:
    """Return the days to fetch at a due moment, ascending: the newest announced one and those missed before it.

    `fetched`: days that were fetched at any time. On the first fetch of a home nothing was missed; later it is all days
    since the last one that was fetched, at most `REPAIRED_DAYS`, whatever the reason: a weekend without a fetch, or a
    machine that was off or asleep.
    """
    newest = fetched_day(due.astimezone(UTC).date())
    known = [day for text in fetched if _DAY.fullmatch(text) and (day := date.fromisoformat(text)) < newest]
    first = max(known) + timedelta(days=1) if known else newest
    days = (newest - first).days
    return [newest - timedelta(days=back) for back in range(min(days, REPAIRED_DAYS - 1), -1, -1)]


@dataclass(frozen=True, slots=True)
class Tries:
    """How often a fetch was tried, whether the last try failed, and when its state last changed."""

    number: int
    failed: bool
    at: datetime


def daily_tick(
    cursor: str | None,
    now: datetime,
    settings: Settings,
    *,
    fetched: Callable[[], Collection[str]],
    tries: Callable[[str], Tries | None] = lambda key: None,
) -> dg.SensorResult:
    """Request the fetch once for each due moment; the cursor is the last moment that was handled.

    A machine that slept or was off through several moments catches up with one request when it is back. A fetch whose
    runs all failed, because a machine that wakes has no network yet, is requested again for `KEEP_TRYING`. A new home
    waits for its first due moment. `tries` looks up the runs of a fetch by its key.
    """
    upcoming = f"The next fetch is due on {next_due(settings, now):%A, %Y-%m-%d %H:%M} UTC"
    handled = datetime.fromisoformat(cursor) if cursor else None
    if handled is None or handled > now:  # new, or the clock was set back
        return dg.SensorResult(skip_reason=f"{upcoming}.", cursor=now.isoformat())
    due = last_due(settings, now)
    if due > handled:
        return dg.SensorResult(run_requests=[_fetch(due_days(due, fetched()), "daily")], cursor=due.isoformat())
    if now - due < KEEP_TRYING:
        last = tries(f"daily-{fetched_day(due.astimezone(UTC).date())}")
        if last and last.failed and now - last.at >= min(FIRST_PAUSE * 3 ** (last.number - 1), LONGEST_PAUSE):
            again = _fetch(due_days(due, fetched()), "daily", attempt=last.number + 1)
            return dg.SensorResult(run_requests=[again], cursor=cursor)
    return dg.SensorResult(skip_reason=f"{upcoming}.", cursor=cursor)


def _tries(instance: dg.DagsterInstance, key: str) -> Tries | None:
    records = instance.get_run_records(dg.RunsFilter(tags={_FETCH: key}), limit=20)
    if not records:
        return None
    newest = max(records, key=lambda record: record.update_timestamp)
    changed = newest.update_timestamp
    at = changed if changed.tzinfo else changed.replace(tzinfo=UTC)
    return Tries(len(records), newest.dagster_run.status is dg.DagsterRunStatus.FAILURE, at)


# A sensor and not a schedule: its hours are a setting that a reader changes on the page while the daemon runs, and
# Dagster's schedules catch up only with the last moment that was missed. See docs/decisions.md.
@dg.sensor(
    description="Fetches the papers of day D on D+2, when arXiv has announced them, at the hours of the settings, and "
    "the days that were missed before; all later steps follow.",
    target=dg.AssetSelection.assets("arxiv_papers"),
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=resources.sensor_seconds(12),
)
def daily_fetch(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    """Request the fetch of today and of missed days, if it is due; the cursor has what was requested."""
    return daily_tick(
        context.cursor,
        datetime.now(UTC),
        resources.current_settings(),
        fetched=lambda: context.instance.get_materialized_partitions(dg.AssetKey("arxiv_papers")),
        tries=lambda key: _tries(context.instance, key),
    )


@dg.schedule(
    description="Fetches the last 14 days again on Sundays; unchanged days start no other step.",
    cron_schedule="0 8 * * 0",
    target=dg.AssetSelection.assets("arxiv_papers"),
    default_status=dg.DefaultScheduleStatus.RUNNING,
    execution_timezone="UTC",
)
def weekly_repair(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """Request one run that fetches the last 14 days again."""
    return _fetch(repaired_days(context.scheduled_execution_time.date()), "weekly")
