"""`arxiv_papers`: every paper first submitted on a day in the followed categories (S1, S2, S6)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from typing import Any

import dagster as dg

from paper_assets.defs.partitions import days
from paper_assets.defs.reports import (
    PartitionReport,
    bars,
    columns,
    markdown_table,
    materializations,
    plainly,
    separately,
)
from paper_assets.defs.resources import EnrichPapers
from paper_assets.errors import RateLimited, SourceError
from paper_assets.interpreting.enrichment import Enriched
from paper_assets.settings import Settings
from paper_assets.sources.arxiv_api import fetch_day
from paper_assets.sources.polite_http import polite_session
from paper_assets.stores.papers import DayChange, day_fingerprints, papers_between, replace_day
from paper_assets.stores.warehouse import Warehouse

SCHEMA = columns(
    ("paper_id", "string", "arXiv id without version"),
    ("version", "int", "newest known version"),
    ("title", "string", "title in plain text"),
    ("abstract", "string", "abstract in one paragraph"),
    ("authors", "list<string>", "as printed, in order"),
    ("categories", "list<string>", "arXiv categories, cross-lists included"),
    ("published", "timestamp", "first submission, UTC: the partition"),
    ("github_url", "string", "code found in comment or abstract (S5)"),
    ("withdrawn", "bool", "kept, never a candidate (S6)"),
)


@dg.asset(  # type: ignore[call-overload]  # Dagster's own Nothing is not what it declares
    description="Metadata of every paper first submitted on the day (UTC) in the followed categories.",
    partitions_def=days,
    dagster_type=dg.Nothing,
    group_name="papers",
    kinds={"arxiv", "duckdb"},
    code_version="1",
    pool="arxiv",
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=31),
    retry_policy=dg.RetryPolicy(max_retries=3, delay=120, backoff=dg.Backoff.EXPONENTIAL),
    check_specs=[
        dg.AssetCheckSpec("ids_are_unique", asset="arxiv_papers", description="No paper stands in two rows."),
        dg.AssetCheckSpec(
            "no_weekday_without_papers",
            asset="arxiv_papers",
            description="A weekday with no paper is a holiday at arXiv, or a day lost.",
        ),
    ],
)
def arxiv_papers(
    context: dg.AssetExecutionContext,
    settings: dg.ResourceParam[Settings],
    warehouse: dg.ResourceParam[Warehouse],
    enrich_papers: dg.ResourceParam[EnrichPapers],
) -> Iterator[Any]:
    """Fetch each day, replace it, report it; a day that fails leaves the others done."""
    changes: dict[date, DayChange] = {}
    scholar: dict[date, Enriched] = {}
    failures: dict[date, SourceError] = {}
    with (
        plainly(context),
        polite_session(
            gate=settings.request_gate,
            interval=settings.request_interval,
            timeout=settings.request_timeout,
            contact=settings.contact,
        ) as session,
    ):
        for day in sorted(map(date.fromisoformat, context.partition_keys)):
            try:
                papers = fetch_day(day, categories=settings.categories, url=settings.arxiv_url, session=session)
            except SourceError as failure:
                failures[day] = failure
                context.log.error(f"{day}: {failure}")
                if isinstance(failure, RateLimited):
                    break
                continue
            silent = any(enriched.warning for enriched in scholar.values())  # once is enough for a run
            scholar[day] = enrich_papers(papers, not silent)
            changes[day] = replace_day(warehouse, day, scholar[day].papers)
            context.log.info(f"{day}: {len(papers)} papers, {changes[day]}")
        reports = _with_scholar(day_reports(warehouse, changes), scholar, asked=settings.semantic_scholar)
        if failures:
            yield from separately("arxiv_papers", reports)
            missing, asked = len(context.partition_keys) - len(changes), len(context.partition_keys)
            failed, reason = next(iter(failures.items()))
            raise type(reason)(f"{missing} of {asked} days not fetched; {failed}: {reason}")
        yield from materializations(context, "arxiv_papers", reports, day_checks(warehouse, sorted(changes)))


def day_reports(warehouse: Warehouse, changes: Mapping[date, DayChange | None]) -> list[PartitionReport]:
    """What the UI shows of the stored days (all keys of `changes`), ascending; their content as data version."""
    if not changes:
        return []
    first, last = min(changes), max(changes)
    fingerprints = day_fingerprints(warehouse, first, last)
    by_day: dict[date, list[dict[str, Any]]] = {day: [] for day in sorted(changes)}
    for row in papers_between(warehouse, first, last).to_pylist():
        if row["published"].date() in by_day:
            by_day[row["published"].date()].append(row)
    return [
        PartitionReport(day.isoformat(), fingerprints.get(day, "empty"), _day_metadata(day, rows, changes[day]))
        for day, rows in by_day.items()
    ]


def _with_scholar(
    reports: Sequence[PartitionReport], scholar: Mapping[date, Enriched], *, asked: bool
) -> list[PartitionReport]:
    """The reports with what Semantic Scholar added, or why it added nothing (S4)."""
    if not asked:
        return list(reports)
    told = []
    for report in reports:
        enriched = scholar[date.fromisoformat(report.partition)]
        about = {"semantic_scholar": enriched.warning or f"{enriched.answered} of {len(enriched.papers)} papers known"}
        told.append(replace(report, metadata={**report.metadata, **about}))
    return told


def _day_metadata(day: date, rows: Sequence[Mapping[str, Any]], change: DayChange | None) -> dict[str, Any]:
    categories = Counter(name for row in rows for name in row["categories"])
    metadata: dict[str, Any] = {
        "dagster/row_count": len(rows),
        "dagster/column_schema": SCHEMA,
        "preview": markdown_table(
            ["id", "title", "authors", "categories", "code"],
            [
                (
                    row["paper_id"],
                    row["title"],
                    ", ".join(row["authors"][:3]),
                    " ".join(row["categories"]),
                    "yes" if row["github_url"] else "",
                )
                for row in rows[:10]
            ],
        ),
        "withdrawn": sum(row["withdrawn"] for row in rows),
        "with_code": sum(row["github_url"] is not None for row in rows),
        "categories": bars(dict(categories.most_common(8)), title=f"Papers by category, {day}"),
    }
    return metadata if change is None else metadata | asdict(change)


def day_checks(warehouse: Warehouse, checked: Sequence[date]) -> list[dg.AssetCheckResult]:
    """Unique ids, and no weekday without papers (a warning, never silence: S2)."""
    ids = papers_between(warehouse, checked[0], checked[-1]).column("paper_id").to_pylist()
    repeated = [paper_id for paper_id, times in Counter(ids).items() if times > 1]
    filled = day_fingerprints(warehouse, checked[0], checked[-1])
    empty = [day.isoformat() for day in checked if day.weekday() < 5 and day not in filled]
    return [
        dg.AssetCheckResult(
            asset_key="arxiv_papers",
            check_name="ids_are_unique",
            passed=not repeated,
            metadata={"papers": len(ids), "repeated": repeated[:20]},
        ),
        dg.AssetCheckResult(
            asset_key="arxiv_papers",
            check_name="no_weekday_without_papers",
            passed=not empty,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"days": len(checked), "empty_weekdays": empty},
        ),
    ]
