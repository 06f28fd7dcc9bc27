"""Fetch papers: what is due at the hours of the settings (S7), and the last two weeks again on Sundays (S1).

A fetch that fails ends, so that it occupies no slot, and the sensor requests it again later. Belongs here: when
papers are fetched. Not here: how (pipeline/papers.py), and what follows (due.py).
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta

import dagster as dg

from paper_assets.defs import resources
from paper_assets.defs.due import RANGE_END, RANGE_START, Tried, next_try, tried_runs
from paper_assets.errors import StoreError
from paper_assets.pipeline.open_days import due_days, has_fetched
from paper_assets.settings import Settings
from paper_assets.setup.fetch_hours import last_due, next_due

REPAIRED_DAYS = 14  # papers that moderators held back are announced late (S1)
ONCE_MORE = timedelta(hours=1)  # after the hour of the settings, where nothing was announced by then
# A failed fetch is requested again after growing pauses, for half a day.
LONGEST_PAUSE, KEEP_TRYING = timedelta(minutes=30), timedelta(hours=12)
_FETCH = "paper_assets/fetch"  # tag: the fetch that a run belongs to


def _fetch(days: Sequence[date], name: str, *, attempt: int = 1) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=name if attempt == 1 else f"{name}-{attempt}",
        tags={
            _FETCH: name,
            RANGE_START: min(days).isoformat(),
            RANGE_END: max(days).isoformat(),
            "dagster/max_retries": "0",  # the sensor requests it again
            "dagster/priority": "20000",
        },
    )


def daily_tick(
    cursor: str | None,
    now: datetime,
    settings: Settings,
    *,
    due: Callable[[], Sequence[date]],
    tried: Callable[[str], Sequence[Tried]] = lambda key: (),
    has_fetched: Callable[[], bool] = lambda: False,
) -> dg.SensorResult:
    """Request the days that are due once for each hour of the settings, and `ONCE_MORE` for a late announcement.

    The cursor is the last hour that was handled: a machine that slept or was off through several catches up with one
    request when it is back. A fetch whose runs all failed, because a machine that wakes has no network yet, is
    requested again for `KEEP_TRYING`. A new home waits for its first hour; one that `start` has filled (`has_fetched`)
    has missed its last hour while nothing ran. `due` returns the days in any order, `tried` the finished runs of a
    fetch by its key, newest first.
    """
    skip = f"The next fetch is on {next_due(settings, now):%A, %Y-%m-%d %H:%M} UTC."
    handled = datetime.fromisoformat(cursor) if cursor else None
    hour = last_due(settings, now)
    hour = max(each for each in (hour, hour + ONCE_MORE) if each <= now)
    name = f"daily-{hour:%Y-%m-%dT%H%M}"
    failed: Sequence[Tried] = ()
    if handled is None or handled > now:  # new, or the clock was set back
        asks, handled = has_fetched(), now
    elif hour > handled:
        asks, handled = True, hour
    else:
        failed = tried(name) if now - hour < KEEP_TRYING else ()
        again = next_try(failed, longest=LONGEST_PAUSE) or now
        asks = bool(failed and failed[0].failure) and again <= now
    days = due() if asks else []
    requests = [_fetch(days, name, attempt=len(failed) + 1)] if days else []
    return dg.SensorResult(run_requests=requests, skip_reason=None if requests else skip, cursor=handled.isoformat())


# A sensor and not a schedule: its hours are a setting that a reader changes on the page while the daemon runs, and
# Dagster's schedules catch up only with the last moment that was missed. See docs/decisions.md.
@dg.sensor(
    description="Fetches the recent days that may have grown since they were last asked for, at the hours of the "
    "settings, after arXiv's announcement; all later steps follow.",
    target=dg.AssetSelection.assets("arxiv_papers"),
    required_resource_keys={"workspace"},
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=resources.sensor_seconds(12),
)
def daily_fetch(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    """Request the fetch of the days that are due, if it is time; the cursor has what was requested."""
    now, workspace = resources.now(), context.resources.workspace
    try:
        return daily_tick(
            context.cursor,
            now,
            resources.current_settings(),
            due=lambda: [each.day for each in due_days(workspace.warehouse, workspace.settings, now)],
            tried=lambda key: tried_runs(context.instance, {_FETCH: key}),
            has_fetched=lambda: has_fetched(workspace.warehouse, workspace.settings),
        )
    except StoreError as busy:  # the next tick tries again
        return dg.SensorResult(skip_reason=f"{busy}", cursor=context.cursor)


@dg.schedule(
    description="Fetches the last 14 days again on Sundays; unchanged days start no other step.",
    cron_schedule="0 8 * * 0",
    target=dg.AssetSelection.assets("arxiv_papers"),
    default_status=dg.DefaultScheduleStatus.RUNNING,
    execution_timezone="UTC",
)
def weekly_repair(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """Request one run that fetches the last 14 days again."""
    scheduled = context.scheduled_execution_time.date()
    return _fetch([scheduled - timedelta(days=back) for back in (REPAIRED_DAYS, 1)], f"weekly-{scheduled}")
