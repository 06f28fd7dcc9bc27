"""`best_practice_archive`: rewrites worth imitating, with the Chroma collection that follows the table (B1).

Best practices are kept where rewrites end (rewriting/best_practices.py); here their index is brought up to date, and a
person sees whether the archive is worth learning from.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any

import dagster as dg

from paper_assets.defs.automation import on_new_rewrites
from paper_assets.defs.embeddings import embedder_or_none
from paper_assets.defs.reports import (
    PartitionReport,
    bars,
    columns,
    markdown_table,
    materializations,
    plainly,
    stacked_bars,
)
from paper_assets.defs.resources import LoadEmbedder, Progress
from paper_assets.rewriting.archiving import offer_again
from paper_assets.rewriting.best_practices import Archive, archive_of, sync_archive
from paper_assets.rewriting.pii import find_pii
from paper_assets.rewriting.policy import LEVELS
from paper_assets.settings import Settings
from paper_assets.stores.best_practices import BestPractice, best_practices, with_vectors
from paper_assets.stores.vectors import VectorIndex, distrust, self_check
from paper_assets.stores.warehouse import Warehouse

_ASSET = "best_practice_archive"
_SAMPLE = 64  # vectors that must find themselves
_SPREAD_FROM = 10  # fewer best practices say nothing about their spread
_MOST_SHARE = 0.8  # of one level or one category; more, and the others learn from strangers


@dg.asset(  # type: ignore[call-overload]  # Dagster's own Nothing is not what it declares
    description="Rewrites that scored 95 or more, masked and each unlike the others, as examples for later ones.",
    deps=["paper_rewrites"],
    dagster_type=dg.Nothing,
    group_name="rewriting",
    kinds={"duckdb", "chroma"},
    code_version="1",
    automation_condition=on_new_rewrites,
    retry_policy=dg.RetryPolicy(max_retries=2, delay=30, backoff=dg.Backoff.EXPONENTIAL),
    check_specs=[
        dg.AssetCheckSpec(
            "archive_is_spread_over_levels_and_categories",
            asset=_ASSET,
            description="Every level has best practices, and no level or category nearly all of them.",
        ),
        dg.AssetCheckSpec(
            "no_unmasked_pii",
            asset=_ASSET,
            description="No phone number and no mail address stands in a text or a keyword.",
        ),
        dg.AssetCheckSpec(
            "vectors_find_themselves", asset=_ASSET, description="A sample of originals is found by its own vectors."
        ),
    ],
)
def best_practice_archive(
    context: dg.AssetExecutionContext,
    settings: dg.ResourceParam[Settings],
    warehouse: dg.ResourceParam[Warehouse],
    vector_index: dg.ResourceParam[VectorIndex],
    embedder: dg.ResourceParam[LoadEmbedder],
    progress: dg.ResourceParam[Progress],
) -> Iterator[Any]:
    """Take in what waited for the model, bring the collection up to date, check it, and tell the UI what is in it."""
    with plainly(context):
        archive = archive_of(settings, warehouse, vector_index, embedder_or_none(embedder, context.log))
        if archive.embedder is not None:
            if again := offer_again(archive):
                context.log.info(f"{again} rewrites offered again that no embedding model could judge")
            context.log.info(f"index: {sync_archive(archive, progress=progress)}")
        kept = best_practices(warehouse, archive.collection)
        checks = [_spread_check(kept), _masked_check(kept), _vectors_check(archive, kept)]
        yield from materializations(context, _ASSET, [archive_report(archive, kept)], checks)


def archive_report(archive: Archive, kept: Sequence[BestPractice]) -> PartitionReport:
    """How many of which level, category and score, and the newest; its version changes with what is kept."""
    model = archive.embedder.name if archive.embedder else "none"
    levels = [level for level in LEVELS if any(each.target_level == level for each in kept)]
    categories = Counter(each.category or "unknown" for each in kept).most_common()
    by_level = {
        level: Counter(each.category or "unknown" for each in kept if each.target_level == level) for level in levels
    }
    metadata: dict[str, Any] = {
        "dagster/row_count": len(kept),
        "dagster/column_schema": columns(
            ("id", "string", "UUIDv4, kept by migrations"),
            ("text", "string", "the rewrite, masked"),
            ("original_text", "string", "what it was made from, masked; what is embedded"),
            ("score", "int", "the critic's, 0 to 100"),
            ("target_level", "string", "public, student or expert"),
            ("keywords", "list<string>", "keywords of the paper"),
            ("made_at", "timestamp", "when the rewrite was written, UTC"),
            ("model_version", "string", "model that wrote it"),
            ("paper_id", "string", "arXiv id without version"),
            ("category", "string", "primary category"),
        ),
        "collection": archive.collection,
        "model": model,
        "levels": bars({level: by_level[level].total() for level in levels}, title="Best practices by level"),
        "categories": bars(dict(categories[:12]), title="Best practices by category"),
        "scores": bars(
            {f"{score}": count for score, count in sorted(Counter(each.score for each in kept).items(), reverse=True)},
            title="Best practices by score",
        ),
        "newest": markdown_table(
            ["id", "paper", "level", "score", "keywords", "rewrite"],
            [
                (each.id, each.paper_id, each.target_level, each.score, ", ".join(each.keywords), each.text)
                for each in kept[:10]
            ],
        ),
    }
    if kept:
        shown = [name for name, _ in categories[:6]]
        metadata["spread"] = stacked_bars(
            levels,
            {name: [by_level[level][name] for level in levels] for name in shown},
            title="Best practices by level and category",
        )
    ids = "\n".join(sorted(each.id for each in kept))
    version = sha256(f"{archive.collection} {model}\n{ids}".encode()).hexdigest()[:32]
    return PartitionReport("", version, metadata)


def _spread_check(kept: Sequence[BestPractice]) -> dg.AssetCheckResult:
    levels = Counter(each.target_level for each in kept)
    categories = Counter(each.category or "unknown" for each in kept)
    lopsided = [
        f"{name}: {count} of {len(kept)}"
        for counted in (levels, categories)
        for name, count in counted.items()
        if count > _MOST_SHARE * len(kept)
    ]
    missing = [level for level in LEVELS if not levels[level]]
    return _check(
        "archive_is_spread_over_levels_and_categories",
        len(kept) < _SPREAD_FROM or not (lopsided or missing),
        best_practices=len(kept),
        levels_without=missing,
        lopsided=lopsided,
    )


def _masked_check(kept: Sequence[BestPractice]) -> dg.AssetCheckResult:
    unmasked = {each.id: kinds for each in kept if (kinds := _pii_in(each))}
    return _check("no_unmasked_pii", not unmasked, best_practices=len(kept), unmasked=dict(list(unmasked.items())[:20]))


def _pii_in(practice: BestPractice) -> str:
    """The kinds of what should be masked, never the thing itself."""
    found = [pii.kind for text in (practice.text, practice.original_text, *practice.keywords) for pii in find_pii(text)]
    return ", ".join(kind for kind, _ in groupby(sorted(found)))


def _vectors_check(archive: Archive, kept: Sequence[BestPractice]) -> dg.AssetCheckResult:
    name = "vectors_find_themselves"
    if archive.embedder is None:
        return _check(name, False, reason="the embedding model cannot be loaded")
    ids = sorted(each.id for each in kept)
    sample = ids[:: max(1, len(ids) // _SAMPLE)][:_SAMPLE]
    practices, vectors = with_vectors(archive.warehouse, archive.collection, sample, model=archive.embedder.name)
    lost = self_check(archive.index, archive.collection, [each.id for each in practices], vectors)
    # An approximate index may miss one for good; losing more means that it is damaged.
    if len(lost) > 0.05 * len(sample):
        distrust(archive.index, archive.collection)
    return _check(name, not lost, asked=len(sample), lost=lost[:20])


def _check(name: str, passed: bool, **metadata: Any) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=_ASSET,
        check_name=name,
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=metadata,
    )
