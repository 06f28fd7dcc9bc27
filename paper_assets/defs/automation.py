"""Decide when assets are made: conditions, the daily fetch and the weekly repair (A2).

Belongs here: when. Not here: what is made (assets.py), and what a tick of the sensor does (sensors.py).
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg
from dagster import AutomationCondition

from paper_assets.defs import resources
from paper_assets.defs.sensors import ConditionsSensor
from paper_assets.pipeline.step import Trigger
from paper_assets.settings import Settings
from paper_assets.setup.fetch_hours import last_due, next_due
from paper_assets.stores.feedback import days_of_feedback
from paper_assets.stores.papers import paper_counts
from paper_assets.stores.warehouse import Warehouse

ANNOUNCED_AFTER = timedelta(days=2)  # a day's papers appear in the API when announced, up to two days later (S1)
REPAIRED_DAYS = 14  # S1
# How often, and for how long, a failed fetch is requested again, in addition to Dagster's own retries.
TRY_AGAIN = timedelta(minutes=30)
KEEP_TRYING = timedelta(hours=12)
_FETCH = "paper_assets/fetch"  # tag: the fetch that a run belongs to
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class LatestEmbeddedDay(AutomationCondition):
    """Select the grid partitions of the newest day that has embeddings.

    `in_latest_time_window` does not fit: the newest day with papers is days behind the clock (S1), or years if only
    bulk files were imported.
    """

    @property
    def name(self) -> str:
        return "latest_embedded_day"

    def evaluate(self, context: Any) -> dg.AutomationResult:  # Dagster's own signature is generic and private
        latest = _latest_embedded_day(context)
        keys = context.candidate_subset.expensively_compute_partition_keys()
        return _only(context, {key for key in keys if key.keys_by_dimension["day"] == latest})


class NotBeforeLatestEmbeddedDay(AutomationCondition):
    """Select the partitions of the newest day that has embeddings and of later ones, and those without a day."""

    @property
    def name(self) -> str:
        return "not_before_latest_embedded_day"

    def evaluate(self, context: Any) -> dg.AutomationResult:  # Dagster's own signature is generic and private
        if context.candidate_subset.is_empty:  # in most ticks; the newest day is a query of Dagster's history
            return dg.AutomationResult(context, context.candidate_subset)
        latest = _latest_embedded_day(context) or ""
        keys = context.candidate_subset.expensively_compute_partition_keys()
        chosen = {key for key in keys if (day := _day_of(key)) is None or day >= latest}
        return dg.AutomationResult(context, context.candidate_subset) if chosen == keys else _only(context, chosen)


class RatedDay(AutomationCondition):
    """Select the days of which a reader has rated or opened a paper.

    The formula judges the rated papers among the others of their days, so that a late paper of such a day changes a
    preference model. Those of other days change none.
    """

    @property
    def name(self) -> str:
        return "rated_day"

    def evaluate(self, context: Any) -> dg.AutomationResult:  # Dagster's own signature is generic and private
        keys = context.candidate_subset.expensively_compute_partition_keys()
        return _only(context, keys & days_with_ratings() if keys else set())


def _latest_embedded_day(context: Any) -> str | None:
    """Return the newest stored day that has embeddings; None if no day has any."""
    embedded = context.asset_graph_view.instance.get_materialized_partitions(dg.AssetKey("paper_embeddings"))
    return max(embedded & stored_days(embedded), default=None)


def _only(context: Any, keys: set[Any]) -> dg.AutomationResult:
    """Return the result of a condition that is true for these of its candidates."""
    subset = context.candidate_subset.compute_intersection_with_partition_keys(keys) if keys else None
    return dg.AutomationResult(context, context.get_empty_subset() if subset is None else subset)


def _day_of(key: Any) -> str | None:
    """Return the day of a partition's key; None if it has none."""
    text = key.keys_by_dimension["day"] if isinstance(key, dg.MultiPartitionKey) else f"{key}"
    return text if _DAY.fullmatch(text) else None


def stored_days(known: set[str]) -> set[str]:
    """Return the known days that have papers: Dagster still lists the days of a deleted store."""
    path = resources.settings.warehouse_path
    if not path.exists():
        return known
    return {f"{day}" for day in paper_counts(Warehouse(path, deadline=resources.settings.store_deadline))}


def days_with_ratings() -> set[str]:
    """Return the days of all papers that were ever rated or opened, in any profile."""
    path = resources.settings.warehouse_path
    if not path.exists():
        return set()
    return {f"{day}" for day in days_of_feedback(Warehouse(path, deadline=resources.settings.store_deadline))}


_something_new = (
    AutomationCondition.any_deps_match(AutomationCondition.data_version_changed())
    # Candidates and rankings are one step and due for the same reasons.
    .ignore(dg.AssetSelection.assets("filtered_candidates"))
    | AutomationCondition.missing().newly_true()
)
# A change counts as handled when a run is requested, unless it came in the same tick: a profile that is edited while
# its ranking is requested or made is ranked again.
_due = _something_new.since(AutomationCondition.newly_requested() & ~_something_new)
_quiet = ~AutomationCondition.any_deps_in_progress() & ~AutomationCondition.in_progress()
# A ranking reads the papers of a window of days. It does not wait while older ones are embedded, which can take hours.
_recent_quiet = ~AutomationCondition.in_progress() & ~AutomationCondition.any_deps_match(
    AutomationCondition.in_progress() & NotBeforeLatestEmbeddedDay()
)

# Nothing is made from an asset that fails a blocking check.
_sound = ~AutomationCondition.any_deps_match(
    AutomationCondition.any_checks_match(AutomationCondition.check_failed(), blocking_only=True)
)

on_new_papers = (_due & _sound & ~AutomationCondition.any_deps_missing() & _quiet).with_label("on_new_papers")
# Only for profiles with ratings: without them nothing is learned. A model does not wait while papers are embedded,
# which can take hours.
_embeddings = dg.AssetSelection.assets("paper_embeddings")
_ratings_changed = AutomationCondition.any_deps_match(AutomationCondition.data_version_changed()).ignore(
    _embeddings
) | AutomationCondition.any_deps_match(AutomationCondition.data_version_changed() & RatedDay()).allow(_embeddings)
on_new_ratings = (
    _ratings_changed.since(AutomationCondition.newly_requested() & ~_ratings_changed)
    & ~AutomationCondition.any_deps_missing().ignore(_embeddings)
    & ~AutomationCondition.any_deps_in_progress().ignore(_embeddings)
    & ~AutomationCondition.in_progress()
).with_label("on_new_ratings")
# The first evaluation has no earlier state to compare with. It requests the newest day of every profile, and the run
# leaves unchanged ones as they are.
_due_or_unknown = (_something_new | AutomationCondition.initial_evaluation()).since(
    AutomationCondition.newly_requested() & ~_something_new
)
# A changed profile, what was learned, and papers of the ranked day are ranked at once; a backlog of older papers is
# ranked when all of it is embedded, not again after each of its runs.
_recent_news = (
    AutomationCondition.any_deps_match(
        AutomationCondition.data_version_changed() & NotBeforeLatestEmbeddedDay()
    ).ignore(dg.AssetSelection.assets("filtered_candidates"))
    | AutomationCondition.missing().newly_true()
)
_due_at_once = (_recent_news | AutomationCondition.initial_evaluation()).since(
    AutomationCondition.newly_requested() & ~_recent_news
)
on_new_papers_or_profile = (
    LatestEmbeddedDay() & ((_due_at_once & _recent_quiet) | (_due_or_unknown & _quiet))
).with_label("on_new_papers_or_profile")
# Assets after a ranking wait until nothing upstream is about to be made again.
_settled = ~AutomationCondition.any_deps_missing() & ~AutomationCondition.any_deps_match(
    AutomationCondition.will_be_requested()
)
on_new_ranking = (LatestEmbeddedDay() & _due & _sound & _settled & _quiet).with_label("on_new_ranking")
# A digest waits until all its parts are made, except parts that are not requested. Any ranked day can be due, because
# a person may decide on a rewrite days later.
_ranked = ~AutomationCondition.any_deps_match(AutomationCondition.missing()).allow(
    dg.AssetSelection.assets("scored_rankings")
)
_page_due = _due & _ranked & ~AutomationCondition.any_deps_match(AutomationCondition.will_be_requested())
on_new_reading = (_page_due & _sound & _quiet).with_label("on_new_reading")

# Of any day, because a person may decide later; a run without anything to archive changes nothing.
on_new_rewrites = (
    _due & ~AutomationCondition.any_deps_match(AutomationCondition.will_be_requested()) & _quiet
).with_label("on_new_rewrites")

CONDITIONS: dict[Trigger, AutomationCondition | None] = {
    "nothing": None,
    "new_papers": on_new_papers,
    "new_papers_or_profile": on_new_papers_or_profile,
    "new_ratings": on_new_ratings,
    "new_ranking": on_new_ranking,
    "new_rewrites": on_new_rewrites,
    "new_reading": on_new_reading,
}

conditions = ConditionsSensor(
    "conditions",
    description="Reports new, changed and removed profiles and new ratings; an invalid profile.json changes nothing. "
    "Then requests everything after the papers whose inputs changed: embeddings, rankings, answers to questions, "
    "rewrites, best practices, digests.",
    target=dg.AssetSelection.all(),
    emit_backfills=False,  # the daemon checks backfills every 30 s only; requests are merged instead
    use_user_code_server=True,  # LatestEmbeddedDay is not one of Dagster's
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=resources.sensor_seconds(1),
)


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
            "dagster/asset_partition_range_start": days[0].isoformat(),
            "dagster/asset_partition_range_end": days[-1].isoformat(),
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
    runs all failed, because a machine that wakes has no network yet, is requested again every `TRY_AGAIN` for
    `KEEP_TRYING`. A new home waits for its first due moment. `tries` looks up the runs of a fetch by its key.
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
        if last and last.failed and now - last.at >= TRY_AGAIN:
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
