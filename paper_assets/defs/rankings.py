"""`filtered_candidates` and `scored_rankings`: the gatekeeper for each day and profile (SPEC 2).

One step makes both, day by day in ascending order: a day's candidates lack what the days before have shown
(ALREADY_SHOWN), so that the candidates of all days cannot be made before the first ranking.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import Any

import dagster as dg
import numpy as np

from paper_assets.defs.automation import on_new_papers_or_profile
from paper_assets.defs.embeddings import embedder_or_none
from paper_assets.defs.partitions import any_day, by_day, profile_day, profile_days
from paper_assets.defs.profiles import usable_profile
from paper_assets.defs.reports import (
    PartitionReport,
    bars,
    columns,
    markdown_table,
    materializations,
    plainly,
    stacked_bars,
)
from paper_assets.defs.resources import Clock, LoadEmbedder, LookTwice
from paper_assets.errors import NotComputed
from paper_assets.ranking import daily
from paper_assets.ranking.changes import ADDED, sentences
from paper_assets.ranking.explain import recompute
from paper_assets.settings import DIMENSIONS, Settings
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.profiles import keep_profile
from paper_assets.stores.rankings import Ranking, candidates, candidates_inputs, ranking
from paper_assets.stores.warehouse import Warehouse

_CANDIDATES, _RANKINGS = "filtered_candidates", "scored_rankings"
_RECOMPUTED_WITHIN = 1e-9  # stored as doubles; anything more is another formula

_upstream = [dg.AssetDep("paper_embeddings", partition_mapping=any_day), dg.AssetDep("research_profile")]
_shared: dict[str, Any] = {
    "partitions_def": profile_days,
    "group_name": "ranking",
    "code_version": daily.CODE_VERSION,
    "automation_condition": on_new_papers_or_profile,
    "skippable": True,
}


@dg.multi_asset(
    name="gatekeeper",
    specs=[
        dg.AssetSpec(
            _CANDIDATES,
            deps=_upstream,
            description="Every paper of the window ending on the day: passed, or removed with its reason.",
            kinds={"duckdb"},
            **_shared,
        ),
        dg.AssetSpec(
            _RANKINGS,
            deps=[_CANDIDATES, *_upstream],
            description="The profile's candidates of the day in order of worth, every score explained.",
            kinds={"duckdb", "json"},
            **_shared,
        ),
    ],
    can_subset=True,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=100),
    retry_policy=dg.RetryPolicy(max_retries=2, delay=30, backoff=dg.Backoff.EXPONENTIAL),
    check_specs=[
        dg.AssetCheckSpec("every_removed_paper_has_a_reason", asset=_CANDIDATES),
        dg.AssetCheckSpec("scores_are_in_range_and_recomputable", asset=_RANKINGS),
    ],
)
def candidates_and_rankings(
    context: dg.AssetExecutionContext,
    settings: dg.ResourceParam[Settings],
    warehouse: dg.ResourceParam[Warehouse],
    embedder: dg.ResourceParam[LoadEmbedder],
    look_twice: dg.ResourceParam[LookTwice],
    clock: dg.ResourceParam[Clock],
) -> Iterator[Any]:
    """For each day and profile: filter, score, keep, tell the UI. What has not changed is not computed again."""
    wanted = {key.to_user_string() for key in context.selected_asset_keys}
    walk = by_day(context.partition_keys)
    with plainly(context):
        model, llm = embedder_or_none(embedder, context.log) if _RANKINGS in wanted else None, look_twice()
        profiles = {name: usable_profile(settings, warehouse, name, context.log) for name in {name for _, name in walk}}
        for profile in profiles.values():
            keep_profile(warehouse, profile)
        for day, name in walk:
            if _CANDIDATES in wanted:
                inputs = daily.profile_day(warehouse, profiles[name], day, settings=settings)
                daily.keep_candidates(warehouse, inputs, settings=settings)
            if _RANKINGS in wanted:
                new = daily.keep_ranking(
                    warehouse,
                    profiles[name],
                    day,
                    embedder=model,
                    second_look=llm,
                    settings=settings,
                    now=clock(),
                )
                context.log.info(f"{day} {name}: {'ranked' if new else 'unchanged'}")
        if _CANDIDATES in wanted:
            told = [candidate_report(warehouse, day, name) for day, name in walk]
            checks = [_reasons_check(warehouse, walk)]
            yield from materializations(context, _CANDIDATES, told, checks)
        if _RANKINGS in wanted:
            stored = [ranking(warehouse, day, name) for day, name in walk]
            told = [ranking_report(warehouse, kept) for kept in stored]
            yield from materializations(context, _RANKINGS, told, [_scores_check(stored, settings)])


def candidate_report(warehouse: Warehouse, day: date, profile: str) -> PartitionReport:
    """How many papers passed, how many were removed and why."""
    rows = candidates(warehouse, day, profile).to_pylist()
    reasons = Counter(str(row["reason"]).split(":")[0] for row in rows if not row["passed"])
    outcome = {"passed": sum(row["passed"] for row in rows), **dict(reasons.most_common())}
    removed = [row for row in rows if not row["passed"]][:10]
    return PartitionReport(
        profile_day(day, profile),
        candidates_inputs(warehouse, day, profile) or "",
        {
            "dagster/row_count": len(rows),
            "dagster/column_schema": columns(
                ("paper_id", "string", "arXiv id without version"),
                ("title", "string", "title"),
                ("passed", "bool", "became a candidate"),
                ("reason", "string", "first filter that removed it"),
                ("phase", "int", "filter phase (G15)"),
            ),
            "passed": outcome["passed"],
            "removed": markdown_table(
                ["id", "title", "reason"], [(row["paper_id"], row["title"], row["reason"]) for row in removed]
            ),
            "outcome": bars(outcome, title=f"Papers in the window of {profile}, {day}"),
        },
    )


def ranking_report(warehouse: Warehouse, stored: Ranking) -> PartitionReport:
    """The top papers with their scores, and what each dimension brought them."""
    header, shown = stored.header, stored.rows.filter(stored.rows.column("shown"))
    top = shown.slice(0, 10).to_pylist()
    titles = {
        row["paper_id"]: row["title"] for row in papers_by_id(warehouse, [row["paper_id"] for row in top]).to_pylist()
    }
    weights = header["weights"]
    parts = {name: [weights[name] * row[name] for row in top] for name in DIMENSIONS}
    parts |= {name: [row[name] for row in top] for name in ADDED if any(row[name] for row in top)}
    return PartitionReport(
        profile_day(stored.day, stored.profile),
        stored.inputs,
        {
            "dagster/row_count": stored.rows.num_rows,
            "dagster/column_schema": columns(
                ("rank", "int", "place, from 1"),
                ("shown", "bool", "in the top K"),
                ("paper_id", "string", "arXiv id without version"),
                ("final", "double", "final score (G10)"),
                *((name, "double", "dimension, 0..1 (G7)") for name in DIMENSIONS),
                ("bonus", "double", "ranking mode (G9)"),
                ("soft_penalty", "double", "soft keywords (G9)"),
                ("diversity_penalty", "double", "likeness to a chosen paper (G11)"),
                ("penalty_keywords", "list<string>", "soft keywords found"),
                ("evaluation_method", "string", "what judged the relevance (G5)"),
                ("tags", "list<string>", "tags (G13)"),
            ),
            "top_papers": markdown_table(
                ["rank", "paper", "score", "relevance", "recency", "tags"],
                [
                    (
                        row["rank"],
                        f"{row['paper_id']} {titles.get(row['paper_id'], '')}",
                        row["final"],
                        row["semantic_relevance"],
                        row["recency"],
                        ", ".join(row["tags"]),
                    )
                    for row in top
                ],
            ),
            "score_breakdown": stacked_bars(
                [f"{row['rank']}. {titles.get(row['paper_id'], row['paper_id'])}" for row in top],
                parts,
                title=f"What each dimension brought, {stored.profile}, {stored.day}",
            ),
            "changed": dg.MetadataValue.md(_changes_since_the_day_before(warehouse, stored)),
            "purpose": header["purpose"],
            "ranking_mode": header["ranking_mode"],
            "evaluation_method": header["evaluation_method"],
            "interest_mode": header["interest_mode"],
            "llm_model": header["llm_model"] or "none",
            "llm_calls": header["llm_calls_made"],
            "llm_tokens": header["llm_input_tokens"] + header["llm_output_tokens"],
            "llm_verdicts_kept_from_before": header["llm_cached"],
            "llm_note": header["llm_note"] or "",
            "profile_hash": header["profile_hash"],
            "model": header["model"] or "none",
            "warnings": dg.MetadataValue.md("\n".join(f"- {line}" for line in header["warnings"]) or "none"),
            "file": dg.MetadataValue.path(header["output_path"]),
        },
    )


def _changes_since_the_day_before(warehouse: Warehouse, stored: Ranking) -> str:
    try:
        changes = daily.changes_of(warehouse, stored.profile, stored.day)
    except NotComputed:
        return "the first ranking of this profile"
    return f"{len(changes.entered)} entered, {len(changes.left)} left, {len(changes.moved)} moved\n" + "\n".join(
        f"- {line}" for line in sentences(changes, {})
    )


def _reasons_check(warehouse: Warehouse, walk: list[tuple[date, str]]) -> dg.AssetCheckResult:
    unexplained = [
        f"{day} {name} {row['paper_id']}"
        for day, name in walk
        for row in candidates(warehouse, day, name).to_pylist()
        if row["passed"] == bool(row["reason"])
    ]
    return dg.AssetCheckResult(
        asset_key=_CANDIDATES,
        check_name="every_removed_paper_has_a_reason",
        passed=not unexplained,
        metadata={"partitions": len(walk), "unexplained": unexplained[:20]},
    )


def _scores_check(stored: list[Ranking], settings: Settings) -> dg.AssetCheckResult:
    scoring = settings.scoring
    worst, out_of_range = 0.0, 0
    for kept in stored:
        final = kept.rows.column("final").to_numpy()
        again = recompute(kept.rows, kept.header["weights"], scoring)
        worst = max(worst, float(np.max(np.abs(final - again), initial=0.0)))
        inside = (final >= scoring.final_floor) & (final <= scoring.final_ceiling)
        parts = np.column_stack([kept.rows.column(name).to_numpy() for name in DIMENSIONS])
        out_of_range += int((~inside).sum() + ((parts < 0) | (parts > 1)).sum())
    return dg.AssetCheckResult(
        asset_key=_RANKINGS,
        check_name="scores_are_in_range_and_recomputable",
        passed=worst <= _RECOMPUTED_WITHIN and out_of_range == 0,
        metadata={"partitions": len(stored), "largest_difference": worst, "out_of_range": out_of_range},
    )
