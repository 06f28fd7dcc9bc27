"""The queue of runs: rankings first, the embedding of old papers one run at a time (A2).

`dagster.yaml` names `PrioritizedRunCoordinator` and limits the runs of each queue by the tag that it adds. Runs of the
command line do not pass through a queue and have no such tag, so they take no place from the daemon's runs. To add a
queue, add it to `queue_tags` and its limit to dagster.yaml.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta

import dagster as dg

QUEUE = "paper_assets/queue"  # tag: which limit of dagster.yaml counts the run
RANKING, DAILY, BACKLOG = "ranking", "daily", "backlog"
_PRIORITY = "dagster/priority"  # tag: higher ones leave the queue first
_RECENT = timedelta(days=31)  # older papers are a backlog that no list of today needs
_RANKING_ASSETS = frozenset({"preference_model", "filtered_candidates", "scored_rankings"})
_PRIORITIES = {
    "preference_model": 90_000,
    "filtered_candidates": 90_000,
    "scored_rankings": 90_000,
    "arxiv_papers": 80_000,
    "paper_embeddings": 70_000,
    "reading_digests": 60_000,
}  # all others: 50,000; below them the backlog, by day
_OTHERS = 50_000


class PrioritizedRunCoordinator(dg.QueuedRunCoordinator):
    """Dagster's queue, with a queue name and a priority for every run that has none."""

    def submit_run(self, context: dg.SubmitRunContext) -> dg.DagsterRun:
        """Tag the run and add it to the queue."""
        run = context.dagster_run
        assets = {key.to_user_string() for key in run.asset_selection or ()}
        tags = queue_tags(assets, run.tags, today=datetime.now(UTC).date())
        if missing := {name: value for name, value in tags.items() if name not in run.tags}:
            self._instance.add_run_tags(run.run_id, missing)
        return super().submit_run(context)


def queue_tags(assets: Collection[str], tags: Mapping[str, str], *, today: date) -> dict[str, str]:
    """Return queue and priority of a run; of a backlog the newest days come first, because lists read those."""
    last = _last_day(tags)
    if {*assets} == {"paper_embeddings"} and last is not None and last < today - _RECENT:
        return {QUEUE: BACKLOG, _PRIORITY: f"{_OTHERS - (today - last).days}"}
    queue = DAILY if _RANKING_ASSETS.isdisjoint(assets) else RANKING
    return {QUEUE: queue, _PRIORITY: f"{max((_PRIORITIES.get(each, _OTHERS) for each in assets), default=_OTHERS)}"}


def _last_day(tags: Mapping[str, str]) -> date | None:
    """Return the last day of the run's partitions; None for other partitions."""
    try:
        return date.fromisoformat(tags.get("dagster/asset_partition_range_end") or tags.get("dagster/partition") or "")
    except ValueError:
        return None
