"""`reading_digests`: one page to read for each day and profile, and a feed for each profile (SPEC 1)."""

from collections.abc import Iterator
from datetime import date
from typing import Any

import dagster as dg

from paper_assets.defs.automation import on_new_reading
from paper_assets.defs.partitions import by_day, profile_day, profile_days
from paper_assets.defs.reports import PartitionReport, materializations, plainly
from paper_assets.digests import daily
from paper_assets.settings import Settings
from paper_assets.stores.digest_files import FEED
from paper_assets.stores.warehouse import Warehouse

_DIGESTS = "reading_digests"
_PREVIEW = 6_000  # characters of the page in the event log; a list of five fits


@dg.asset(  # type: ignore[call-overload]  # Dagster's own Nothing is not what it declares
    name=_DIGESTS,
    deps=["scored_rankings", "balanced_retrievals", "paper_rewrites"],
    description="A page to read: the ranking with its reasons, what changed, contrast, evidence, rewrites.",
    dagster_type=dg.Nothing,
    partitions_def=profile_days,
    group_name="reading",
    kinds={"html", "markdown"},
    code_version=daily.CODE_VERSION,
    automation_condition=on_new_reading,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=100),
    retry_policy=dg.RetryPolicy(max_retries=2, delay=30, backoff=dg.Backoff.EXPONENTIAL),
    check_specs=[dg.AssetCheckSpec("every_paper_of_the_list_stands_in_its_page", asset=_DIGESTS)],
)
def reading_digests(
    context: dg.AssetExecutionContext,
    settings: dg.ResourceParam[Settings],
    warehouse: dg.ResourceParam[Warehouse],
) -> Iterator[Any]:
    """Write each day's page and the feed, ascending by day. What says the same does not touch its file."""
    walk = by_day(context.partition_keys)
    with plainly(context):
        told = []
        for day, name in walk:
            written = daily.write_digest(warehouse, name, day, settings=settings)
            context.log.info(f"{day} {name}: {'written' if written.new else 'unchanged'}")
            told.append(digest_report(name, day, written))
        yield from materializations(context, _DIGESTS, told, [_pages_check(warehouse, walk, settings)])


def digest_report(profile: str, day: date, written: daily.Written) -> PartitionReport:
    """Where the page lies, what it says and how much of each kind."""
    digest = written.digest
    versions = [version for entry in digest.entries for version in entry.versions]
    versions += [version for paper in digest.also_rewritten for version in paper.versions]
    preview = written.markdown
    if len(preview) > _PREVIEW:
        preview = preview[:_PREVIEW].rpartition("\n")[0] + "\n\n…"
    return PartitionReport(
        profile_day(day, profile),
        written.version,
        {
            "dagster/row_count": len(digest.entries),
            "page": dg.MetadataValue.path(written.page),
            "markdown": dg.MetadataValue.path(written.page.with_suffix(".md")),
            "feed": dg.MetadataValue.path(written.page.with_name(FEED)),
            "preview": dg.MetadataValue.md(preview),
            "questions": len(digest.evidence),
            "sides_with_a_gap": sum(bool(side.gap) for each in digest.evidence for side in each.sides),
            "rewrites": len(versions),
            "rewrites_without_text": sum(not version.paragraphs for version in versions),
            "warnings": len(digest.warnings),
        },
    )


def _pages_check(warehouse: Warehouse, walk: list[tuple[date, str]], settings: Settings) -> dg.AssetCheckResult:
    missing = [
        f"{day} {name} {paper_id}"
        for day, name in walk
        for paper_id in daily.missing_from_pages(warehouse, name, day, settings=settings)
    ]
    return dg.AssetCheckResult(
        asset_key=_DIGESTS,
        check_name="every_paper_of_the_list_stands_in_its_page",
        passed=not missing,
        metadata={"partitions": len(walk), "missing": missing[:20]},
    )
