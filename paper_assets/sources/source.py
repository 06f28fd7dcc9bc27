"""Source: what every source of papers tells the rest of the house about itself, whatever stands behind it.

A source is a value of this type in a file of its own, listed in `table`. What it cannot do stays None, so that a caller
sees it before asking. Whatever asks raises SourceError and RefusedKey; the text says which host did not answer.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from paper_assets.errors import InvalidInput, SourceError
from paper_assets.paper import Paper
from paper_assets.paper_id import PaperId
from paper_assets.settings import Settings
from paper_assets.sources.access import Access


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
