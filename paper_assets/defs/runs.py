"""Materializing from a program instead of the UI: same assets, same instance, in this process.

Belongs here: what the command line asks of Dagster. Not here: printing, and what the assets do.
"""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg

from paper_assets.defs.archive import best_practice_archive
from paper_assets.defs.digests import reading_digests
from paper_assets.defs.embeddings import embedder_or_none, embedding_version, paper_embeddings
from paper_assets.defs.papers import arxiv_papers, day_reports
from paper_assets.defs.partitions import profile_day
from paper_assets.defs.profiles import research_profile
from paper_assets.defs.rankings import candidates_and_rankings
from paper_assets.defs.reports import ATTENDED, separately
from paper_assets.defs.retrievals import balanced_retrievals
from paper_assets.defs.rewrites import paper_rewrites
from paper_assets.digests.daily import is_current
from paper_assets.errors import PaperAssetsError, StoreUnwritable
from paper_assets.paper import Paper
from paper_assets.profile import Profile
from paper_assets.ranking.daily import stale_from
from paper_assets.retrieval.daily import inputs_of
from paper_assets.rewriting.daily import anything_to_do
from paper_assets.settings import Settings
from paper_assets.stores.papers import MergeReport, day_fingerprints, merge_papers, paper_counts
from paper_assets.stores.retrievals import retrieval_inputs
from paper_assets.stores.warehouse import Warehouse

Count = Callable[[int], None]

_DAYS_AT_ONCE = 31  # whose papers are in memory together when they are reported

ASSETS = [
    arxiv_papers,
    paper_embeddings,
    research_profile,
    candidates_and_rankings,
    balanced_retrievals,
    paper_rewrites,
    best_practice_archive,
    reading_digests,
]


def open_instance(dagster_home: Path) -> dg.DagsterInstance:
    """The instance whose runs and events the UI shows; made on first use, with telemetry off."""
    file = dagster_home / "dagster.yaml"
    try:
        dagster_home.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text("telemetry:\n  enabled: false\nnux:\n  enabled: false\n", encoding="utf-8")
    except OSError as fault:
        raise StoreUnwritable(f"{dagster_home} cannot be used: {fault.strerror}; set DAGSTER_HOME") from None
    os.environ["DAGSTER_HOME"] = str(dagster_home.absolute())
    return dg.DagsterInstance.get()


def import_papers(
    instance: dg.DagsterInstance, warehouse: Warehouse, papers: Iterable[Paper], *, settings: Settings, progress: Count
) -> tuple[MergeReport, int]:
    """Merge papers into the warehouse and tell Dagster which days changed, so that the rest follows.

    Returns what was merged, and how many of the changed days are partitions (the days from `first_day` on).
    """
    merged = merge_papers(warehouse, papers, progress=progress)
    known = instance.get_materialized_partitions(arxiv_papers.key)
    filled = paper_counts(warehouse)
    # Also the days of an import that was killed between the warehouse and Dagster.
    new = {day for day in filled if day in merged.days or day.isoformat() not in known}
    reported = [day for day in sorted(new) if day >= settings.first_day]
    for at in range(0, len(reported), _DAYS_AT_ONCE):
        told = dict.fromkeys(reported[at : at + _DAYS_AT_ONCE])
        for event in separately("arxiv_papers", day_reports(warehouse, told)):
            instance.report_runless_asset_event(event)
    return merged, len(reported)


def fetch_days(instance: dg.DagsterInstance, resources: Mapping[str, Any], first: date, last: date) -> None:
    """Fetch the days first..last from arXiv. Raises PaperAssetsError with the run's one line."""
    _materialize(instance, resources, ["arxiv_papers"], first.isoformat(), last.isoformat())


def embed_days(
    instance: dg.DagsterInstance, warehouse: Warehouse, resources: Mapping[str, Any], first: date, last: date
) -> int:
    """Embed the papers of first..last where Dagster does not know it done. Returns the number of days asked for."""
    model = embedder_or_none(resources["embedder"], logging.getLogger(__name__))
    stale = [
        day
        for day, papers in day_fingerprints(warehouse, first, last).items()
        if model is None or _known_version(instance, day) != embedding_version(papers, model.name)
    ]
    if stale:
        _materialize(instance, resources, ["paper_embeddings"], min(stale).isoformat(), max(stale).isoformat())
    return len(stale)


def rank_days(
    instance: dg.DagsterInstance,
    warehouse: Warehouse,
    resources: Mapping[str, Any],
    profile: Profile,
    walk: Sequence[date],
) -> list[date]:
    """Rank the ascending days of `walk` for a profile, from the first whose stored ranking is out of date.

    Returns the days asked for; none if all stand.
    """
    settings = resources["settings"]
    model = embedder_or_none(resources["embedder"], logging.getLogger(__name__))
    first_stale = stale_from(
        warehouse,
        profile,
        walk,
        model=model.name if model else None,
        llm=resources["look_twice"]().model,
        settings=settings,
    )
    if first_stale is None:
        return []
    asked = [day for day in walk if day >= first_stale]
    _materialize(
        instance,
        resources,
        ["filtered_candidates", "scored_rankings"],
        profile_day(asked[0], profile.name),
        profile_day(asked[-1], profile.name),
    )
    return asked


def rewrite_day(
    instance: dg.DagsterInstance, warehouse: Warehouse, resources: Mapping[str, Any], profile: Profile, day: date
) -> str | None:
    """Rewrite the day's best papers for the levels that the profile asks for; one line where no LLM can do it."""
    now, wanted = resources["clock"](), profile.content.rewriting
    if not anything_to_do(warehouse, profile, day, now=now, numbers=resources["settings"].rewriting):
        return None
    if wanted.target_levels and wanted.papers and resources["look_twice"]().model is None:
        levels = ", ".join(wanted.target_levels)
        return f"no rewrites for {levels}: no language model is set up; set LLM_PROVIDER and its key"
    key = profile_day(day, profile.name)
    _materialize(instance, resources, ["paper_rewrites"], key, key)
    return None


def digest_days(
    instance: dg.DagsterInstance,
    warehouse: Warehouse,
    resources: Mapping[str, Any],
    profile: Profile,
    ranked: Sequence[date],
    last: date,
) -> None:
    """Write the pages of the days that were just ranked (ascending), and the one of `last` if it says something old."""
    if ranked:
        days = profile_day(ranked[0], profile.name), profile_day(ranked[-1], profile.name)
        _materialize(instance, resources, ["reading_digests"], *days)
    if last not in ranked and not is_current(warehouse, profile.name, last, settings=resources["settings"]):
        key = profile_day(last, profile.name)
        _materialize(instance, resources, ["reading_digests"], key, key)


def retrieve_day(
    instance: dg.DagsterInstance, warehouse: Warehouse, resources: Mapping[str, Any], profile: Profile, day: date
) -> bool:
    """Answer a profile's questions of a day, if it has any; False if there is nothing to do or the answers stand."""
    settings, kept = resources["settings"], retrieval_inputs(warehouse, day, profile.name)
    if not profile.questions and kept is None:
        return False
    model = embedder_or_none(resources["embedder"], logging.getLogger(__name__))
    name, grader = model.name if model else None, settings.cross_encoder
    if kept == inputs_of(warehouse, profile, day, model=name, grader=grader, settings=settings):
        return False
    key = profile_day(day, profile.name)
    _materialize(instance, resources, ["balanced_retrievals"], key, key)
    return True


def _known_version(instance: dg.DagsterInstance, day: date) -> str | None:
    event = instance.get_latest_data_version_record(paper_embeddings.key, partition_key=day.isoformat())
    materialization = event.asset_materialization if event else None
    return (materialization.tags or {}).get("dagster/data_version") if materialization else None


def _materialize(
    instance: dg.DagsterInstance, resources: Mapping[str, Any], selection: Sequence[str], first: str, last: str
) -> None:
    span = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    tags = {ATTENDED: "yes"} if first == last else {ATTENDED: "yes", **span}
    outcome = dg.materialize(
        ASSETS,
        selection=list(selection),
        instance=instance,
        resources=dict(resources),
        partition_key=first if first == last else None,
        tags=tags,
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )
    if outcome.success:
        return
    failed = outcome.get_step_failure_events()
    error = failed[0].step_failure_data if failed else None
    if error and error.user_failure_data and error.user_failure_data.description:
        raise PaperAssetsError(error.user_failure_data.description)
    reason = error.error.message.strip() if error and error.error else "the run failed"
    raise PaperAssetsError(f"{', '.join(selection)}: {reason}; see run {outcome.run_id} in the Dagster UI")
