"""What runs by itself: conditions, the daily fetch and the weekly repair (A2).

Belongs here: when. Not here: what (the assets), and what one look at the conditions does (looks.py).
"""

import re
from datetime import date, timedelta
from typing import Any

import dagster as dg
from dagster import AutomationCondition

from paper_assets.defs import environment
from paper_assets.defs.looks import Looks
from paper_assets.pipeline.step import Trigger
from paper_assets.stores.papers import paper_counts
from paper_assets.stores.warehouse import Warehouse

ANNOUNCED_AFTER = timedelta(days=2)  # a day's papers appear in the API when announced, up to two days later (S1)
REPAIRED_DAYS = 14  # S1
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class LatestEmbeddedDay(AutomationCondition):
    """Grid partitions of the newest day that has embeddings.

    Not `in_latest_time_window`: the newest day with papers is days behind the clock (S1), or years, where only
    bulk files were imported.
    """

    @property
    def name(self) -> str:
        return "latest_embedded_day"

    def evaluate(self, context: Any) -> dg.AutomationResult:  # Dagster's own signature is generic and private
        embedded = context.asset_graph_view.instance.get_materialized_partitions(dg.AssetKey("paper_embeddings"))
        latest = max(embedded & stored_days(embedded), default=None)
        wanted = {
            key
            for key in context.candidate_subset.expensively_compute_partition_keys()
            if key.keys_by_dimension["day"] == latest
        }
        chosen = (
            context.candidate_subset.compute_intersection_with_partition_keys(wanted)
            if wanted
            else context.get_empty_subset()
        )
        return dg.AutomationResult(context, chosen)


class NotBeforeLatestEmbeddedDay(AutomationCondition):
    """Partitions of the newest day that has embeddings and of later ones, and partitions without a day."""

    @property
    def name(self) -> str:
        return "not_before_latest_embedded_day"

    def evaluate(self, context: Any) -> dg.AutomationResult:  # Dagster's own signature is generic and private
        embedded = context.asset_graph_view.instance.get_materialized_partitions(dg.AssetKey("paper_embeddings"))
        latest = max(embedded & stored_days(embedded), default="")
        keys = context.candidate_subset.expensively_compute_partition_keys()
        chosen = {key for key in keys if (day := _day_of(key)) is None or day >= latest}
        subset = context.candidate_subset
        if chosen != keys:
            subset = subset.compute_intersection_with_partition_keys(chosen) if chosen else context.get_empty_subset()
        return dg.AutomationResult(context, subset)


def _day_of(key: Any) -> str | None:
    """Return the day of a partition's key; None if it has none."""
    text = key.keys_by_dimension["day"] if isinstance(key, dg.MultiPartitionKey) else f"{key}"
    return text if _DAY.fullmatch(text) else None


def stored_days(known: set[str]) -> set[str]:
    """Those of the days known to Dagster that hold papers: a store that was deleted leaves its days to Dagster."""
    path = environment.settings.warehouse_path
    if not path.exists():
        return known
    return {f"{day}" for day in paper_counts(Warehouse(path, deadline=environment.settings.store_deadline))}


_something_new = (
    AutomationCondition.any_deps_match(AutomationCondition.data_version_changed())
    # Candidates and rankings are one step and due for the same reasons; its own candidates are no news to a ranking.
    .ignore(dg.AssetSelection.assets("filtered_candidates"))
    | AutomationCondition.missing().newly_true()
)
# Handled means requested, not updated, and news of the same tick outlives the request: a profile edited while
# its ranking is being asked for or made is ranked again.
_due = _something_new.since(AutomationCondition.newly_requested() & ~_something_new)
_quiet = ~AutomationCondition.any_deps_in_progress() & ~AutomationCondition.in_progress()
# A ranking reads the papers of a window of days. It does not wait while older ones are embedded, which can take hours.
_recent_quiet = ~AutomationCondition.in_progress() & ~AutomationCondition.any_deps_match(
    AutomationCondition.in_progress() & NotBeforeLatestEmbeddedDay()
)

# Nothing rests on what its own check has found to be wrong.
_sound = ~AutomationCondition.any_deps_match(
    AutomationCondition.any_checks_match(AutomationCondition.check_failed(), blocking_only=True)
)

on_new_papers = (_due & _sound & ~AutomationCondition.any_deps_missing() & _quiet).with_label("on_new_papers")
# Of profiles that somebody has rated for: without ratings nothing is learned.
on_new_ratings = (
    AutomationCondition.any_deps_match(AutomationCondition.data_version_changed()).since(
        AutomationCondition.newly_requested()
    )
    & ~AutomationCondition.any_deps_missing()
    & _quiet
).with_label("on_new_ratings")
# Who looks for the first time knows no earlier state to compare with: a profile edited before that is found by asking
# for the newest day once, which finds all others unchanged.
_due_or_unknown = (_something_new | AutomationCondition.initial_evaluation()).since(
    AutomationCondition.newly_requested() & ~_something_new
)
on_new_papers_or_profile = (LatestEmbeddedDay() & _due_or_unknown & _recent_quiet).with_label(
    "on_new_papers_or_profile"
)
# What follows a ranking waits until nothing above it is about to be made again.
_settled = ~AutomationCondition.any_deps_missing() & ~AutomationCondition.any_deps_match(
    AutomationCondition.will_be_requested()
)
on_new_ranking = (LatestEmbeddedDay() & _due & _sound & _settled & _quiet).with_label("on_new_ranking")
# A page to read waits until all that stands in it is made, and not for what nobody makes; of any ranked day, for a
# person may decide on a rewrite days later.
_ranked = ~AutomationCondition.any_deps_match(AutomationCondition.missing()).allow(
    dg.AssetSelection.assets("scored_rankings")
)
_page_due = _due & _ranked & ~AutomationCondition.any_deps_match(AutomationCondition.will_be_requested())
on_new_reading = (_page_due & _sound & _quiet).with_label("on_new_reading")

# Of any day, for a person may decide later; what has archived nothing finds nothing to do.
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

conditions = Looks(
    "conditions",
    description="Looks at profiles/ and at ratings: adds and removes partitions, reports new content; a broken file "
    "changes nothing. Everything after the papers follows when data really changed: embeddings, rankings, answers to "
    "questions, rewrites, their archive, digests.",
    target=dg.AssetSelection.all(),
    emit_backfills=False,  # a backfill waits for the daemon's next look; what belongs together is one run all the same
    use_user_code_server=True,  # LatestEmbeddedDay is ours
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=environment.seconds_between(1),
)


def fetched_day(scheduled: date) -> date:
    """The day whose papers are fetched on `scheduled`."""
    return scheduled - ANNOUNCED_AFTER


def repaired_days(scheduled: date) -> list[date]:
    """The days fetched again on `scheduled`, ascending: the last 14 that the daily fetch has done."""
    last = fetched_day(scheduled)
    return [last - timedelta(days=back) for back in range(REPAIRED_DAYS - 1, -1, -1)]


def _fetch(days: list[date], name: str) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=f"{name}-{days[-1]}",
        tags={
            "dagster/asset_partition_range_start": days[0].isoformat(),
            "dagster/asset_partition_range_end": days[-1].isoformat(),
        },
    )


@dg.schedule(
    description="Fetches day D on D+2; everything else follows by condition.",
    cron_schedule="30 6 * * *",
    target=dg.AssetSelection.assets("arxiv_papers"),
    default_status=dg.DefaultScheduleStatus.RUNNING,
    execution_timezone="UTC",
)
def daily_fetch(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    return _fetch([fetched_day(context.scheduled_execution_time.date())], "daily")


@dg.schedule(
    description="Fetches the last 14 days again on Sundays; unchanged days trigger nothing.",
    cron_schedule="0 8 * * 0",
    target=dg.AssetSelection.assets("arxiv_papers"),
    default_status=dg.DefaultScheduleStatus.RUNNING,
    execution_timezone="UTC",
)
def weekly_repair(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    return _fetch(repaired_days(context.scheduled_execution_time.date()), "weekly")
