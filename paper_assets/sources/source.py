"""Define what every source of papers offers to the rest of the program, and what it is asked with.

A source is a value of type `Source` in its own file, listed in `table`. What it cannot do is None, so that a caller can
check before asking. Its functions raise SourceError and RefusedKey; the message names the host that did not answer.
`Access` holds what a source is asked with: URLs and politeness from the settings, keys, and the time left (S2).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal

import requests

from paper_assets.errors import InvalidInput, NetworkError, SourceError
from paper_assets.paper import Paper
from paper_assets.paper_id import PaperId
from paper_assets.settings import Settings
from paper_assets.sources.known_hosts import KnownHosts, guarded_transport
from paper_assets.sources.polite_http import MOST_BYTES, polite_session

SecondsLeft = Callable[[], float]
_LONGEST_REQUEST = 300.0  # seconds for one request with its waits, where there is more time than that


def seconds_from_now(seconds: float | None, clock: Callable[[], float]) -> SecondsLeft:
    """How many of so many seconds are left, from now on; infinitely many of None."""
    ends = math.inf if seconds is None else clock() + seconds
    return lambda: ends - clock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """`environ` holds the keys, so it is in no repr; a source may also take its own options from there."""

    settings: Settings
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    left: SecondsLeft = lambda: math.inf

    @contextmanager
    def session(
        self,
        *,
        gate: str,
        interval: float,
        most_bytes: int = MOST_BYTES,
        hosts: KnownHosts | None = None,
    ) -> Iterator[requests.Session]:
        """A polite session, in its turn among all processes of the machine that name the same gate.

        interval: seconds between two requests. hosts: speak to machines of these only. Raises NetworkError if no time
        is left.
        """
        seconds = min(self.left(), _LONGEST_REQUEST)
        if seconds <= 0:
            raise NetworkError("the time for this call is over; ask again, what was found so far is kept")
        with polite_session(
            gate=self.settings.request_gate / gate,
            interval=interval,
            timeout=min(self.settings.request_timeout, seconds),
            contact=self.settings.contact,
            deadline=seconds,
            most_bytes=most_bytes,
            transport=None if hosts is None else guarded_transport(hosts),
        ) as session:
            yield session


class RefusedKey(InvalidInput):
    """The key of a source is none, or the source refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """A paper as one source knows it, and how often it is cited (None: unknown)."""

    paper: Paper
    citation_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody searches for: words ("quoted" for a phrase), an author, a category; the best `limit` papers."""

    words: str
    author: str | None = None
    category: str | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """The papers found, best first, and how many there are in all."""

    records: tuple[SourceRecord, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperText:
    """Where a text of a paper lies, and in what form."""

    form: Literal["pdf", "html", "latex"]
    url: str


class PlaceLost(SourceError):
    """The source no longer knows this place in its list of changes; the list is asked for from its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPage:
    """A page of what has changed at a source: its papers, the ids of those that are gone, and what was no paper."""

    papers: tuple[Paper, ...]
    gone: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    next_page: str | None = None  # the source's own word for the place; None: this was the last page


# (set, first day, last day or None: until now, place of the page or None: the first one)
PageOfChanges = Callable[[str, date, date | None, str | None], ChangesPage]
PapersOfDay = Callable[[date], list[Paper]]
ReadFile = Callable[[Path, Callable[[str], None] | None], Iterator[Paper]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a source is called and what it can do; what it cannot do is None. Addresses and days are as it has them."""

    name: str  # in settings and answers
    title: str  # for a person
    prefix: str | None = None  # `PaperId.source` of its ids; None: it has no ids of its own
    hosts: tuple[str, ...] = ()  # of its pages and texts, as known hosts beside those of the settings
    lacks: str | None = None  # what its records leave unknown, in words

    # The page where a person reads about a paper of its own.
    page: Callable[[PaperId], str] | None = None
    # The paper itself as a web page, where the source has made one.
    html: Callable[[PaperId], str | None] | None = None
    # The paper behind an address, in a version (None: the newest); None if the address is not the source's. Raises
    # InvalidInput for an address of the source's that is no paper.
    named_by: Callable[[str], tuple[PaperId, int | None] | None] | None = None
    # Where the texts of a paper of its own lie, the best to read first.
    texts: Callable[[Paper, Settings], tuple[PaperText, ...]] | None = None

    # The papers that it lists for a day (UTC), all of them or an error, each once, under ids of its own; as long as
    # the context lasts. Some may be of the day before or after, by the date of their first submission.
    open_days: Callable[[Access], AbstractContextManager[PapersOfDay]] | None = None
    # What has changed in a set of its between two days, page by page, as long as the context lasts. Raises PlaceLost.
    open_changes: Callable[[Access], AbstractContextManager[PageOfChanges]] | None = None
    # The sets that hold the papers of these categories. Raises InvalidInput.
    sets_of: Callable[[Sequence[str]], tuple[str, ...]] | None = None
    # A paper in a version (None: the newest); None if the source does not know it.
    find: Callable[[Access, PaperId, int | None], SourceRecord | None] | None = None
    # Papers of nearly this title, nearest first.
    titled: Callable[[Access, str], tuple[SourceRecord, ...]] | None = None
    search: Callable[[Access, Question], SearchPage] | None = None
    words_only: bool = False  # searches heed neither author nor category
    # Raises InvalidInput for a question that the source cannot be asked.
    check_question: Callable[[Question], None] | None = None
    # The papers of a file; each record that is none is told to the function, or raises InvalidInput without one.
    read_file: ReadFile | None = None
