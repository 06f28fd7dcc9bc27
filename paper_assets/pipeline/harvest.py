"""Harvest months of papers from a source's list of changes, page by page, continuing after interruptions (Z4).

A harvest goes through its sets, and in each through windows of a month: if the source forgets a position in its list
(arXiv does overnight), one window is started again, not all of it. The last window is open: a paper that is revised
during the harvest moves there from a window that has not been read yet.
"""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from paper_assets.errors import IncompleteFeed, InvalidInput, SourceError
from paper_assets.pipeline.workspace import Workspace
from paper_assets.sources.source import ChangesPage, PageOfChanges, PlaceLost, Source
from paper_assets.stores.harvests import KeptPage, Place, keep_page, place_of

_LOST_TIMES = 3  # in one run: a source that forgets oftener would be asked for ever


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
    left_out: int = 0  # of days before the first that was asked for, and not stored
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


def least_requests(asked: Harvest, today: date) -> int:
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
    """Return the month that begins on `first`, or what is left of the period."""
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
