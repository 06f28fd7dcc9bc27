"""A day of papers, as the sources gave it, into the warehouse."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from paper_assets.errors import DoubtfulDay, SourceError
from paper_assets.paper import Paper
from paper_assets.sources.days import DayOfPapers
from paper_assets.sources.enrichment import Enriched
from paper_assets.sources.source import Source
from paper_assets.stores.day_listings import keep_listing, note_failure
from paper_assets.stores.day_replacement import DayChange
from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDay:
    """The papers as they are kept, what changed, and why the day is not whole, if it is not."""

    enriched: Enriched
    change: DayChange
    failure: SourceError | None = None


def keep_day(
    warehouse: Warehouse,
    day: date,
    found: DayOfPapers,
    sources: Sequence[Source],
    enrich_papers: Callable[[Sequence[Paper]], Enriched],
    *,
    now: datetime,
    accept_fewer: bool = False,
) -> KeptDay:
    """Replace the day of every source that gave its papers; one that failed keeps the papers it had.

    An answer that lacks many of the stored papers leaves them, unless it has come twice or `accept_fewer` (A6).
    Raises StoreError.
    """
    kept: list[Enriched] = []
    changes: list[DayChange] = []
    failure = found.failure
    for source in sources:
        if not source.prefix:
            continue
        if source.name in found.failures:
            note_failure(warehouse, [day], str(found.failures[source.name]), source=source.prefix)
        if source.name in found.papers:
            kept.append(enrich_papers(found.papers[source.name]))
            listing = keep_listing(warehouse, day, kept[-1].papers, source=source.prefix, now=now, believe=accept_fewer)
            changes.append(listing.change)
            if listing.doubt is not None:
                mend = f"`paper-assets fetch --day {day} --accept-fewer`"
                failure = failure or DoubtfulDay(f"{source.title}, {day}: {listing.doubt}, or now with {mend}")
    return KeptDay(
        enriched=Enriched(
            papers=[paper for each in kept for paper in each.papers],
            answered=sum(each.answered for each in kept),
            warning=next((each.warning for each in kept if each.warning), None),
        ),
        change=_sum(changes),
        failure=failure,
    )


def _sum(changes: Sequence[DayChange]) -> DayChange:
    other_days: Counter[date] = Counter()
    for change in changes:
        other_days.update(change.other_days)
    return DayChange(
        added=sum(change.added for change in changes),
        updated=sum(change.updated for change in changes),
        removed=sum(change.removed for change in changes),
        unchanged=sum(change.unchanged for change in changes),
        other_days=dict(sorted(other_days.items())),
    )
