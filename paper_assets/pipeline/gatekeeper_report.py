"""What a person is shown of a day's candidates and ranking, and what is checked of them (SPEC 2)."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paper_assets.errors import NotComputed
from paper_assets.pipeline.changes import changes_of
from paper_assets.pipeline.partition import Partition
from paper_assets.pipeline.report import Bars, Columns, Markdown, Report, StackedBars, Table
from paper_assets.pipeline.step import Checked, Made
from paper_assets.pipeline.workspace import Workspace
from paper_assets.ranking.changes import ADDED, sentences
from paper_assets.ranking.explain import recompute
from paper_assets.ranking.final_list import learned_of
from paper_assets.stores.candidates import candidates, candidates_inputs
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import StoredRanking, ranking
from paper_assets.stores.warehouse import Warehouse
from paper_assets.weights import DIMENSIONS

_RECOMPUTED_WITHIN = 1e-9  # stored as doubles; anything more is another formula


def candidate_report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """How many papers passed, how many were removed and why."""
    day, profile = partition.of_day, partition.of_profile
    rows = candidates(workspace.warehouse, day, profile).to_pylist()
    reasons = Counter(str(row["reason"]).split(":")[0] for row in rows if not row["passed"])
    outcome = {"passed": sum(row["passed"] for row in rows), **dict(reasons.most_common())}
    removed = [row for row in rows if not row["passed"]][:10]
    return Report(
        candidates_inputs(workspace.warehouse, day, profile) or "",
        {
            "dagster/row_count": len(rows),
            "dagster/column_schema": Columns(
                [
                    ("paper_id", "string", "arXiv id without version"),
                    ("title", "string", "title"),
                    ("passed", "bool", "became a candidate"),
                    ("reason", "string", "first filter that removed it"),
                    ("phase", "int", "filter phase"),
                ]
            ),
            "passed": outcome["passed"],
            "removed": Table(
                ["id", "title", "reason"], [(row["paper_id"], row["title"], row["reason"]) for row in removed]
            ),
            "outcome": Bars(outcome, title=f"Papers in the window of {profile}, {day}"),
        },
    )


def ranking_report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """The top papers with their scores, and what each dimension brought them."""
    with workspace.warehouse.read_together() as warehouse:
        stored = ranking(warehouse, partition.of_day, partition.of_profile)
        header, shown = stored.header, stored.rows.filter(stored.rows.column("shown"))
        top = shown.slice(0, 10).to_pylist()
        known = papers_by_id(warehouse, [row["paper_id"] for row in top]).to_pylist()
        changed = _changes_since_the_day_before(warehouse, stored)
    titles = {row["paper_id"]: row["title"] for row in known}
    weights = header["weights"]
    parts = {name: [weights[name] * row[name] for row in top] for name in DIMENSIONS}
    if any(row["learned"] for row in top):
        parts["learned"] = [weights["semantic_relevance"] * learned_of(row) for row in top]
    parts |= {name: [row[name] for row in top] for name in ADDED if any(row[name] for row in top)}
    return Report(
        stored.inputs,
        {
            "dagster/row_count": stored.rows.num_rows,
            "dagster/column_schema": Columns(
                [
                    ("rank", "int", "place, from 1"),
                    ("shown", "bool", "in the top K"),
                    ("paper_id", "string", "arXiv id without version"),
                    ("final", "double", "final score"),
                    *((name, "double", "dimension, 0..1") for name in DIMENSIONS),
                    ("bonus", "double", "ranking mode"),
                    ("soft_penalty", "double", "soft keywords"),
                    ("diversity_penalty", "double", "likeness to a chosen paper"),
                    ("penalty_keywords", "list<string>", "soft keywords found"),
                    ("evaluation_method", "string", "what judged the relevance"),
                    ("tags", "list<string>", "tags"),
                    ("lane", "string", "the interest, else the liked paper, that it matches best"),
                    ("below_line", "bool", "under the line, not shown"),
                    ("meaning", "double", "relevance: likeness by meaning to that interest"),
                    ("words", "double", "relevance: share of that interest's words"),
                    ("library", "double", "relevance: probability by the liked papers"),
                    ("lane_probability", "double", "relevance: probability by that interest alone"),
                    ("version", "int", "of the paper, as it was judged"),
                    ("learned", "double", "by how much your ratings moved relevance"),
                    ("learned_words", "list<string>", "words that did it"),
                    ("learned_near", "list<string>", "rated papers that did it"),
                ]
            ),
            "top_papers": Table(
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
            "score_breakdown": StackedBars(
                [f"{row['rank']}. {titles.get(row['paper_id'], row['paper_id'])}" for row in top],
                parts,
                title=f"What each dimension brought, {stored.profile}, {stored.day}",
            ),
            "changed": Markdown(changed),
            "purpose": header["purpose"],
            "ranking_mode": header["ranking_mode"],
            "evaluation_method": header["evaluation_method"],
            "interest_mode": header["interest_mode"],
            "line": header.get("line") or 0.0,
            "above_line": header.get("above_line") or 0,
            "quiet_day": "yes" if header.get("quiet") else "no",
            "llm_model": header["llm_model"] or "none",
            "llm_calls": header["llm_calls_made"],
            "llm_tokens": header["llm_input_tokens"] + header["llm_output_tokens"],
            "llm_verdicts_kept_from_before": header["llm_cached"],
            "llm_note": header["llm_note"] or "",
            "learning": header.get("learning") or "no ratings",
            "profile_hash": header["profile_hash"],
            "model": header["model"] or "none",
            "warnings": Markdown("\n".join(f"- {line}" for line in header["warnings"]) or "none"),
            "file": Path(header["output_path"]),
        },
    )


def _changes_since_the_day_before(warehouse: Warehouse, stored: StoredRanking) -> str:
    try:
        changes = changes_of(warehouse, stored.profile, stored.day)
    except NotComputed:
        return "the first ranking of this profile"
    return f"{len(changes.entered)} entered, {len(changes.left)} left, {len(changes.moved)} moved\n" + "\n".join(
        f"- {line}" for line in sentences(changes, {})
    )


def every_removed_paper_has_a_reason(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """It has passed, or names the filter that removed it; never both, never neither."""
    unexplained = [
        f"{each} {row['paper_id']}"
        for each in partitions
        for row in candidates(workspace.warehouse, each.of_day, each.of_profile).to_pylist()
        if row["passed"] == bool(row["reason"])
    ]
    return Checked(passed=not unexplained, counted={"partitions": len(partitions), "unexplained": unexplained[:20]})


def scores_are_recomputable(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Every score comes out again from what is stored beside it, and lies in its range."""
    scoring = workspace.settings.scoring
    worst, out_of_range = 0.0, 0
    for each in partitions:
        kept = ranking(workspace.warehouse, each.of_day, each.of_profile)
        final = kept.rows.column("final").to_numpy()
        again = recompute(kept.rows, kept.header["weights"], scoring)
        worst = max(worst, float(np.max(np.abs(final - again), initial=0.0)))
        inside = (final >= scoring.final_floor) & (final <= scoring.final_ceiling)
        parts = np.column_stack([kept.rows.column(name).to_numpy() for name in DIMENSIONS])
        out_of_range += int((~inside).sum() + ((parts < 0) | (parts > 1)).sum())
    return Checked(
        passed=worst <= _RECOMPUTED_WITHIN and out_of_range == 0,
        counted={"partitions": len(partitions), "largest_difference": worst, "out_of_range": out_of_range},
    )
