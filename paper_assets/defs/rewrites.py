"""`paper_rewrites`: the day's best papers rewritten for the levels that each profile asks for (SPEC 4).

A run goes as far as it can: until each rewrite is done or waits for a person, who blocks nothing. Whatever the
language model does, the run ends green; what it left undone is a warning.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Any

import dagster as dg

from paper_assets.defs.automation import on_new_ranking
from paper_assets.defs.embeddings import embedder_or_none
from paper_assets.defs.partitions import by_day, profile_day, profile_days
from paper_assets.defs.profiles import usable_profile
from paper_assets.defs.reports import PartitionReport, bars, columns, markdown_table, materializations, plainly
from paper_assets.defs.resources import Clock, LoadEmbedder, OpenWriter
from paper_assets.errors import InvalidInput, StoreBusy, StoreError
from paper_assets.models.llm_budget import Usage
from paper_assets.rewriting.daily import (
    CODE_VERSION,
    Advanced,
    advance_all,
    ask_for_rewrites,
    decided_lately,
    version_of,
    waiting_too_long,
)
from paper_assets.rewriting.publishing import embed_published
from paper_assets.rewriting.state import standing, state_of
from paper_assets.rewriting.writing import Writer
from paper_assets.settings import Rewriting, Settings
from paper_assets.stores.document_index import sync_documents
from paper_assets.stores.rewrites import RewriteItem, rewrites_of, unfinished_items
from paper_assets.stores.vectors import VectorIndex
from paper_assets.stores.warehouse import Warehouse

_ASSET = "paper_rewrites"


@dg.asset(  # type: ignore[call-overload]  # Dagster's own Nothing is not what it declares
    description="The day's best papers rewritten for the profile's levels by an actor and a critic, attempts kept.",
    partitions_def=profile_days,
    deps=["scored_rankings"],
    dagster_type=dg.Nothing,
    group_name="rewriting",
    kinds={"duckdb", "chroma", "llm"},
    code_version=CODE_VERSION,
    pool="llm",
    automation_condition=on_new_ranking,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=100),
    retry_policy=dg.RetryPolicy(max_retries=2, delay=30, backoff=dg.Backoff.EXPONENTIAL),
    check_specs=[
        dg.AssetCheckSpec(
            "nothing_waits_for_the_model",
            asset=_ASSET,
            description="Every rewrite is done or waits for a person; else the model is unreachable or not set up.",
        ),
        dg.AssetCheckSpec(
            "nothing_waits_too_long", asset=_ASSET, description="Nobody has decided on a rewrite for days."
        ),
        dg.AssetCheckSpec(
            "attempts_are_whole", asset=_ASSET, description="Attempts count up from 1; scores are 0 to 100."
        ),
    ],
)
def paper_rewrites(
    context: dg.AssetExecutionContext,
    settings: dg.ResourceParam[Settings],
    warehouse: dg.ResourceParam[Warehouse],
    embedder: dg.ResourceParam[LoadEmbedder],
    open_writer: dg.ResourceParam[OpenWriter],
    clock: dg.ResourceParam[Clock],
    vector_index: dg.ResourceParam[VectorIndex],
) -> Iterator[Any]:
    """For each day and profile: say what is asked for, advance it, publish what is done, tell the UI."""
    walk = by_day(context.partition_keys)
    with plainly(context):
        asked: list[str] = []
        for day, name in walk:
            profile = usable_profile(settings, warehouse, name, context.log)
            asked += ask_for_rewrites(warehouse, profile, day, now=clock())
        asked += decided_lately(warehouse, now=clock())
        done, writer = Advanced(unfinished=(), reason=None), None
        if asked:
            writer = open_writer(clock)
            done = advance_all(warehouse, writer, asked, log=context.log.info)
            model = embedder_or_none(embedder, context.log)
            if model is not None:
                embed_published(warehouse, model)
                _index(warehouse, vector_index, model.name, context.log.warning)
        if done.warning:
            context.log.warning(done.warning)
        stored = {(day, name): rewrites_of(warehouse, profile=name, day=day) for day, name in walk}
        told = [
            rewrites_report(day, name, items, writer=writer, done=done, numbers=settings.rewriting)
            for (day, name), items in stored.items()
        ]
        everything = list({item.item: item for items in stored.values() for item in items}.values())
        overdue = waiting_too_long(unfinished_items(warehouse), as_of=clock(), numbers=settings.rewriting)
        yield from materializations(context, _ASSET, told, _checks(everything, overdue, done, settings.rewriting))


def _index(warehouse: Warehouse, index: VectorIndex, model: str, warn: Callable[[str], None]) -> None:
    """Bring the index up to date; the rewrites are done without it, and the next run tries again."""
    try:
        sync_documents(warehouse, index, "rewrite", model=model)
    except StoreBusy:
        raise
    except (StoreError, InvalidInput) as fault:
        warn(f"the rewrites are stored but not in the vector index: {fault}")


def rewrites_report(
    day: date,
    profile: str,
    items: Sequence[RewriteItem],
    *,
    writer: Writer | None,
    done: Advanced,
    numbers: Rewriting,
) -> PartitionReport:
    """Where each rewrite stands, and what all of it took since it was opened."""
    attempts = [attempt for item in items for attempt in item.attempts]
    used = Usage(
        calls=2 * len(attempts),
        input_tokens=sum(attempt.input_tokens for attempt in attempts),
        output_tokens=sum(attempt.output_tokens for attempt in attempts),
    )
    cost = writer.price(used) if writer else None
    metadata: dict[str, Any] = {
        "dagster/row_count": len(items),
        "dagster/column_schema": columns(
            ("item", "string", "hash of paper, version, text, level and prompt"),
            ("paper_id", "string", "arXiv id without version"),
            ("target_level", "string", "public, student or expert"),
            ("attempt", "int", "from 1, without gaps"),
            ("text", "string", "the rewrite"),
            ("score", "int", "the critic's, 0 to 100"),
            ("critique", "string", "the critic's"),
            ("unsupported", "list<string>", "numbers and names that the original lacks"),
            ("examples", "list<string>", "best practices that were shown"),
            ("outcome", "string", "passed, accepted, best, best_with_warning or cancelled"),
        ),
        "rewrites": markdown_table(
            ["paper", "level", "status", "score", "attempts", "doubtful", "examples", "archive"],
            [_row(item, numbers) for item in items],
        ),
        "standing": bars(
            dict(Counter(standing(item, numbers=numbers) for item in items)), title=f"Rewrites of {profile}, {day}"
        ),
        "attempts": len(attempts),
        "scores": ", ".join(f"{attempt.score}" for attempt in attempts) or "none",
        "examples_used": sum(len(attempt.examples) for attempt in attempts),
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "model": ", ".join(sorted({attempt.model for attempt in attempts})) or "none",
        "warnings": done.warning or "none" if {item.item for item in items} & set(done.unfinished) else "none",
    }
    if cost is not None:
        metadata["cost"] = round(cost, 6)
    return PartitionReport(profile_day(day, profile), version_of(items), metadata)


def _row(item: RewriteItem, numbers: Rewriting) -> tuple[object, ...]:
    state = state_of(item, numbers=numbers)
    shown = item.attempts[state.attempt - 1] if state else None
    return (
        f"{item.paper_id} {item.title}",
        item.target_level,
        standing(item, numbers=numbers),
        shown.score if shown else "–",
        len(item.attempts),
        ", ".join(shown.unsupported) if shown else "",
        len(shown.examples) if shown else 0,
        item.note or "",
    )


def _checks(
    items: Sequence[RewriteItem], overdue: Sequence[RewriteItem], done: Advanced, numbers: Rewriting
) -> list[dg.AssetCheckResult]:
    torn = [
        item.item
        for item in items
        if [attempt.attempt for attempt in item.attempts] != list(range(1, len(item.attempts) + 1))
        or not all(0 <= attempt.score <= 100 for attempt in item.attempts)
    ]
    return [
        dg.AssetCheckResult(
            asset_key=_ASSET,
            check_name="nothing_waits_for_the_model",
            passed=not done.unfinished,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"rewrites": len(items), "unfinished": len(done.unfinished), "reason": done.reason or ""},
        ),
        dg.AssetCheckResult(
            asset_key=_ASSET,
            check_name="nothing_waits_too_long",
            passed=not overdue,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={
                "days": numbers.waiting_days,
                "waiting": [f"{item.paper_id} for {item.target_level}" for item in overdue][:20],
            },
        ),
        dg.AssetCheckResult(
            asset_key=_ASSET,
            check_name="attempts_are_whole",
            passed=not torn,
            metadata={"rewrites": len(items), "torn": torn[:20]},
        ),
    ]
