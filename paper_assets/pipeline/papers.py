"""`arxiv_papers`: the metadata of every paper first submitted on a day, fetched and replaced as a whole (S1, S2).

A harvest fetches months of papers from a source's list of changes, page by page, and continues after interruptions
(Z4). It goes through its sets, and in each through windows of a month: if the source forgets a position in its list
(arXiv does overnight), one window is started again, not all of it. The last window is open: a paper that is revised
during the harvest moves there from a window that has not been read yet.
"""

from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from paper_assets.announcements import closing, deferred
from paper_assets.errors import DoubtfulDay, IncompleteFeed, InvalidInput, SourceError
from paper_assets.paper import Paper
from paper_assets.pipeline.profiles import followed_categories
from paper_assets.pipeline.staleness import PAPERS
from paper_assets.pipeline.step import (
    Check,
    Checked,
    Columns,
    Made,
    Partition,
    Product,
    Report,
    Step,
    Table,
    Value,
    bars,
    days_of,
    make_each,
)
from paper_assets.pipeline.workspace import Workspace
from paper_assets.sources.semantic_scholar import Enriched
from paper_assets.sources.source import ChangesPage, PageOfChanges, PlaceLost, Source
from paper_assets.sources.table import DayOfPapers, open_listings, sources_of_days
from paper_assets.stores.harvests import (
    KeptPage,
    Place,
    follow_days,
    keep_listing,
    keep_page,
    note_failure,
    place_of,
)
from paper_assets.stores.paper_merging import DayChange
from paper_assets.stores.papers import day_fingerprints, papers_between
from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDay:
    """The stored papers, what changed, and the failure if the day is not complete."""

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
    categories: Sequence[str] = (),
) -> KeptDay:
    """Replace the day of every source that returned its papers; the papers of a source that failed are kept.

    An answer that lacks many of the stored papers does not replace them, unless it has come twice or `accept_fewer`
    (A6). Raises StoreError.
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
            listing = keep_listing(
                warehouse,
                day,
                kept[-1].papers,
                source=source.prefix,
                now=now,
                believe=accept_fewer,
                categories=categories,
            )
            changes.append(listing.change)
            if listing.doubt is not None:
                remedy = f"`paper-assets fetch --day {day} --accept-fewer`"
                failure = failure or DoubtfulDay(f"{source.title}, {day}: {listing.doubt}, or now with {remedy}")
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


NAME = "arxiv_papers"
EMPTY = "empty"  # data version of a day without papers
_COLUMNS = Columns(
    [
        ("paper_id", "string", "arXiv id without version"),
        ("version", "int", "newest known version"),
        ("title", "string", "title in plain text"),
        ("abstract", "string", "abstract in one paragraph"),
        ("authors", "list<string>", "as printed, in order"),
        ("categories", "list<string>", "arXiv categories, cross-lists included"),
        ("published", "timestamp", "first submission, UTC: the partition"),
        ("github_url", "string", "code found in comment or abstract"),
        ("withdrawn", "bool", "kept, never a candidate"),
    ]
)
ACCEPT_FEWER = "accept_fewer"  # option of a run: an answer of fewer papers than are stored is right (A6)


@dataclass(frozen=True, slots=True)
class _Fetched:
    """What a run changed, and what Semantic Scholar added, by day."""

    changes: dict[date, DayChange] = field(default_factory=dict)
    scholar: dict[date, Enriched] = field(default_factory=dict)


def unanswered(made: Made) -> list[str]:
    """Return why Semantic Scholar added nothing to days that were fetched, each reason once."""
    return list(dict.fromkeys(each.warning for each in made.details.scholar.values() if each.warning))


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """Fetch each day from every source and replace it; a failed day does not affect the others."""
    fetched, sources = _Fetched(), sources_of_days(workspace.settings)
    for source in sources:
        if source.prefix:
            follow_days(workspace.warehouse, days_of(partitions), source=source.prefix)
    asked = workspace.settings.model_copy(update={"categories": followed_categories(workspace.settings)})
    with open_listings(sources, replace(workspace.access, settings=asked)) as papers_of_day:

        def fetch(partition: Partition) -> bool:
            day = partition.of_day
            found = papers_of_day(day)
            silent = any(enriched.warning for enriched in fetched.scholar.values())  # once is enough for a run
            enrich_papers = partial(workspace.enrich_papers, ask=not silent)
            kept = keep_day(
                workspace.warehouse,
                day,
                found,
                sources,
                enrich_papers,
                now=workspace.clock(),
                accept_fewer=bool(workspace.options.get(ACCEPT_FEWER)),
                categories=asked.categories,
            )
            fetched.scholar[day], fetched.changes[day] = kept.enriched, kept.change
            if found.failure:
                # As long as one source answers, the other days are tried too.
                raise SourceError(str(found.failure)) if found.papers else found.failure
            if kept.failure:
                raise kept.failure
            workspace.log.info(f"{day}: {len(kept.enriched.papers)} papers, {kept.change}")
            return True

        # The newest day proves that its announcement was made; the days asked after it are then complete.
        new, failures = make_each(partitions, fetch, newest_first=True)
    for partition, failure in failures.items():
        workspace.log.error(f"{partition}: {failure}")
    not_asked = [each for each in partitions if each not in new and each not in failures]
    last = next(reversed(failures.values()), None)
    if not_asked and isinstance(last, SourceError):
        reason = f"not requested, after {last}"
        for source in sources:
            if source.prefix:
                note_failure(workspace.warehouse, days_of(not_asked), reason, source=source.prefix)
    return Made(new=new, failures=failures, also_changed=_also_changed(workspace, fetched, new), details=fetched)


def _also_changed(workspace: Workspace, fetched: _Fetched, new: Collection[Partition]) -> list[Partition]:
    """Return days that changed without being made: of papers listed for another day, and of incomplete answers."""
    first, last = workspace.settings.first_day, workspace.clock().date()
    days = {other for change in fetched.changes.values() for other in change.other_days}
    days |= {day for day, change in fetched.changes.items() if change.added or change.updated or change.removed}
    return [Partition(day) for day in sorted(days) if first <= day <= last and Partition(day) not in new]


def day_reports(workspace: Workspace, days: Sequence[date]) -> dict[date, Report]:
    """Report stored days, ascending; their content is the data version."""
    if not days:
        return {}
    first, last = min(days), max(days)
    fingerprints = day_fingerprints(workspace.warehouse, first, last)
    by_day: dict[date, list[dict[str, Any]]] = {day: [] for day in sorted(days)}
    for row in papers_between(workspace.warehouse, first, last).to_pylist():
        if row["published"].date() in by_day:
            by_day[row["published"].date()].append(row)
    return {day: Report(fingerprints.get(day, EMPTY), _values(day, rows)) for day, rows in by_day.items()}


def _values(day: date, rows: Sequence[Mapping[str, Any]]) -> dict[str, Value]:
    categories = Counter(name for row in rows for name in row["categories"])
    return {
        "dagster/row_count": len(rows),
        "dagster/column_schema": _COLUMNS,
        "preview": Table(
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


def _report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    day, fetched = partition.of_day, made.details
    stored = day_reports(workspace, [day])[day]
    values = dict(stored.values)
    if day in fetched.changes:
        values |= asdict(fetched.changes[day])
        other_days = fetched.changes[day].other_days.items()
        values["other_days"] = ", ".join(f"{other}: {count}" for other, count in other_days) or "none"
    if workspace.settings.semantic_scholar and day in fetched.scholar:
        scholar = fetched.scholar[day]
        values["semantic_scholar"] = scholar.warning or f"{scholar.answered} of {len(scholar.papers)} papers known"
    return Report(stored.data_version, values)


def ids_are_unique(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """No paper has two rows."""
    days = days_of(partitions)
    ids = papers_between(workspace.warehouse, days[0], days[-1]).column("paper_id").to_pylist()
    repeated = [paper_id for paper_id, times in Counter(ids).items() if times > 1]
    return Checked(passed=not repeated, counted={"papers": len(ids), "repeated": repeated[:20]})


def no_weekday_without_papers(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """A weekday with no paper is a holiday at arXiv, or a day lost."""
    days = days_of(partitions)
    filled = day_fingerprints(workspace.warehouse, days[0], days[-1])
    now = workspace.clock()
    due = [day for day in days if day.weekday() < 5 and closing(day) <= now and not deferred(day)]
    empty = [day.isoformat() for day in due if day not in filled]
    return Checked(passed=not empty, counted={"days": len(days), "empty_weekdays": empty})


STEP = Step(
    tracked=PAPERS,
    products=(
        Product(
            name=NAME,
            description="Metadata of every paper first submitted on the day (UTC) in the followed categories.",
            kinds=frozenset({"arxiv", "duckdb"}),
            report=_report,
            checks=(
                Check(ids_are_unique, serious=True, blocking=True),
                Check(no_weekday_without_papers),
            ),
        ),
    ),
    group="papers",
    code_version="1",
    make=_make,
    partitions_per_run=31,
)


_LOST_TIMES = 3  # in one run: a source that forgets more often would be queried forever


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """What to fetch: what changed in these sets in first..last (None: until now)."""

    first: date
    last: date | None
    sets: tuple[str, ...]

    def key(self, address: str) -> str:
        """Return the key under which the position of this harvest is stored."""
        return f"{address} {self.first}..{self.last or ''} {','.join(self.sets)}"


@dataclass(slots=True)
class Harvested:
    """The result of a run of a harvest; `resumed`: pages read before it. `added` and so on count papers."""

    resumed: int = 0
    pages: int = 0
    read: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    left_out: int = 0  # of days before the first requested one, and not stored
    withdrawn: int = 0  # marked, because the source has deleted them
    begun_anew: int = 0  # windows, because the source had forgotten the place
    faults: list[str] = field(default_factory=list)


def harvest(
    workspace: Workspace,
    source: Source,
    asked: Harvest,
    *,
    progress: Callable[[int, str], None] = lambda read, window: None,
) -> Harvested:
    """Fetch and store all pages of the harvest, each with the position of the next; `progress` gets the papers read so
    far and the window that was read.

    After an interruption the same harvest continues after the last stored page. Raises SourceError, StoreError, and
    InvalidInput for a source without lists of changes.
    """
    if source.open_changes is None:
        raise InvalidInput(f"{source.title} has no list of changes to harvest")
    key, today = asked.key(workspace.settings.arxiv_oai_url), workspace.clock().date()
    before = place_of(workspace.warehouse, key)
    at: Place | None = before or _window(asked, 0, asked.first, today)
    done = Harvested(resumed=before.pages if before else 0)
    with source.open_changes(workspace.access) as page_of_changes:
        while at is not None:
            at, page = _page(page_of_changes, asked, at, done)
            after = _after(asked, at, page, today)
            kept = keep_page(
                workspace.warehouse,
                key,
                page.papers,
                removed=page.removed,
                not_before=asked.first,
                before=before,
                after=after,
            )
            _count(done, page, kept)
            progress(done.read, f"{asked.sets[at.sets_done]} {at.first_day:%Y-%m}")
            before = at = after
    return done


def minimum_requests(asked: Harvest, today: date) -> int:
    """Return how many requests the harvest needs at least: one for each month of each set."""
    last = asked.last or today
    return len(asked.sets) * (12 * (last.year - asked.first.year) + last.month - asked.first.month + 1)


def _page(page_of_changes: PageOfChanges, asked: Harvest, at: Place, done: Harvested) -> tuple[Place, ChangesPage]:
    """Fetch the page at this position, or the first one of its window if the source has forgotten the position."""
    name = asked.sets[at.sets_done]
    try:
        page = page_of_changes(name, at.first_day, at.last_day, at.next_page)
    except PlaceLost as lost:
        done.begun_anew += 1
        if at.next_page is None or done.begun_anew > _LOST_TIMES:
            raise SourceError(f"{lost}, {done.begun_anew} times in this run; try again later") from None
        at = replace(at, next_page=None)
        page = page_of_changes(name, at.first_day, at.last_day, None)
    if page.next_page is not None and page.next_page == at.next_page:
        raise IncompleteFeed(f"the list of {name} goes round in a circle; try again later")
    return at, page


def _after(asked: Harvest, at: Place, page: ChangesPage, today: date) -> Place | None:
    """Return the position after this page; None at the end."""
    if page.next_page is not None:
        return replace(at, next_page=page.next_page, pages=at.pages + 1)
    ended = at.last_day is None or at.last_day == asked.last
    sets_done = at.sets_done + ended
    if sets_done == len(asked.sets):
        return None
    first = asked.first if ended or at.last_day is None else at.last_day + timedelta(days=1)
    return replace(_window(asked, sets_done, first, today), pages=at.pages + 1)


def _window(asked: Harvest, sets_done: int, first: date, today: date) -> Place:
    """Return the month that begins on `first`, or the rest of the period."""
    end_of_month = first.replace(day=monthrange(first.year, first.month)[1])
    last = end_of_month if end_of_month < (asked.last or today) else asked.last
    return Place(sets_done=sets_done, first_day=first, last_day=last)


def _count(done: Harvested, page: ChangesPage, kept: KeptPage) -> None:
    done.pages += 1
    done.read += len(page.papers) + len(page.faults)
    done.added += kept.merged.added
    done.updated += kept.merged.updated
    done.unchanged += kept.merged.unchanged + kept.merged.repeated
    done.left_out += kept.left_out
    done.withdrawn += kept.withdrawn
    done.faults += page.faults
