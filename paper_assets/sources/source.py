"""Define the interface of a source of papers, and the access that its functions receive.

A source is a value of type `Source` in its own file, listed in `table`. The function for what it cannot do is None, so
that a caller can check before asking. Its functions raise SourceError and RefusedKey; the message names the host that
did not answer.
`Access` holds what a request needs: URLs and intervals from the settings, keys, and the time left (S2).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Literal

from paper_assets.announcements import Calendar, daily
from paper_assets.errors import InvalidInput, NetworkError, SourceError
from paper_assets.paper import Paper
from paper_assets.paper_id import PaperId
from paper_assets.settings import Settings

if TYPE_CHECKING:
    import requests

    from paper_assets.sources.known_hosts import KnownHosts

SecondsLeft = Callable[[], float]
_LONGEST_REQUEST = 300.0  # seconds for one request with its waits, where there is more time than that


def seconds_from_now(seconds: float | None, clock: Callable[[], float]) -> SecondsLeft:
    """Return a function that returns how many of `seconds` are left; infinity for None."""
    ends = math.inf if seconds is None else clock() + seconds
    return lambda: ends - clock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Hold what requests to a source need. `environ` holds the keys, so it is excluded from repr; a source may read
    options from it. `patient`: try again where no connection can be made; not where a person or an assistant waits.
    """

    settings: Settings
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    left: SecondsLeft = lambda: math.inf
    patient: bool = True

    @contextmanager
    def session(
        self,
        *,
        gate: str,
        interval: float,
        most_bytes: int | None = None,
        hosts: "KnownHosts | None" = None,
    ) -> Iterator["requests.Session"]:
        """Open a polite session that shares its gate with all processes of the machine that name the same one.

        interval: seconds between two requests. most_bytes: of an answer; None: polite_http's default. hosts: reach
        machines of these only. Raises NetworkError if no time is left.
        """
        from paper_assets.sources.known_hosts import guarded_transport  # imports requests
        from paper_assets.sources.polite_http import MOST_BYTES, RequestGate, polite_session

        seconds = min(self.left(), _LONGEST_REQUEST)
        if seconds <= 0:
            raise NetworkError("the time for this call is over; ask again, the results so far are kept")
        with polite_session(
            RequestGate(self.settings.request_gate / gate, interval=interval),
            timeout=min(self.settings.request_timeout, seconds),
            contact=self.settings.contact,
            deadline=seconds,
            most_bytes=MOST_BYTES if most_bytes is None else most_bytes,
            patient=self.patient,
            transport=None if hosts is None else guarded_transport(hosts),
        ) as session:
            yield session


class RefusedKey(InvalidInput):
    """Report a key that is invalid or that the source refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """Represent a paper as one source knows it, with its number of citations (None: unknown)."""

    paper: Paper
    citation_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Define a search: words ("quoted" for a phrase), an author, a category; the best `limit` papers."""

    words: str
    author: str | None = None
    category: str | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """The papers of an answer, best first, and the total."""

    records: tuple[SourceRecord, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperText:
    """Locate a text of a paper, with its format."""

    form: Literal["pdf", "html", "latex"]
    url: str


class PlaceLost(SourceError):
    """Report that the source no longer knows this position in its list of changes; restart the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPage:
    """A page of changes at a source: papers, removed ids, and records that are not papers."""

    papers: tuple[Paper, ...]
    removed: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    next_page: str | None = None  # the source's token for the position; None: this was the last page


# (set, first day, last day or None: until now, place of the page or None: the first one)
PageOfChanges = Callable[[str, date, date | None, str | None], ChangesPage]
PapersOfDay = Callable[[date], list[Paper]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Describe a source: its name and what it can do; what it cannot do is None. URLs and days are in its form."""

    name: str  # in settings and answers
    title: str  # for display
    prefix: str | None = None  # `PaperId.source` of its ids; None: it has no ids
    hosts: tuple[str, ...] = ()  # of its pages and texts: known hosts in addition to those of the settings
    lacks: str | None = None  # which fields its records lack, in words

    # The page about one of its papers.
    page: Callable[[PaperId], str] | None = None
    # The paper as a web page, where the source provides one.
    html: Callable[[PaperId], str | None] | None = None
    # The paper behind a URL, in a version (None: the newest); None for a URL of another site. Raises
    # InvalidInput for a URL of the source that is not a paper.
    named_by: Callable[[str], tuple[PaperId, int | None] | None] | None = None
    # The locations of the texts of one of its papers, the best first.
    texts: Callable[[Paper, Settings], tuple[PaperText, ...]] | None = None

    # The papers that it lists for a day (UTC), all of them or an error, each once, under its ids; as long as
    # the context is open. Some may be of the day before or after, by the date of their first submission.
    open_days: Callable[[Access], AbstractContextManager[PapersOfDay]] | None = None
    # When it makes papers public; the days to fetch follow from it (S7).
    announces: Calendar = daily
    # The changes in one of its sets between two days, page by page, while the context is open. Raises PlaceLost.
    open_changes: Callable[[Access], AbstractContextManager[PageOfChanges]] | None = None
    # The sets with the papers of these categories. Raises InvalidInput.
    sets_of: Callable[[Sequence[str]], tuple[str, ...]] | None = None
    # A paper in a version (None: the newest); None if the source does not know it.
    find: Callable[[Access, PaperId, int | None], SourceRecord | None] | None = None
    # Papers with a similar title, closest first.
    titled: Callable[[Access, str], tuple[SourceRecord, ...]] | None = None
    search: Callable[[Access, Question], SearchPage] | None = None
    words_only: bool = False  # searches ignore author and category
    # Raises InvalidInput for a question that the source does not support.
    check_question: Callable[[Question], None] | None = None
