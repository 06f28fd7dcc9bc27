"""List the sources in their order of precedence, and read the papers of a day from all that have days.

Of two records of a paper the first in this order is kept. A source that fails on a day does not delay the others.

To add a source, write one file and one line: a file in this folder that ends in a `Source` (copy the shape of
`arxiv.py`; its ids begin with its `prefix`, so they cannot collide with another source's; it sends requests through
`Access.session`, behind a separate gate), and its line below. Its days are fetched once PAPER_ASSETS_SOURCES names it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date

from paper_assets.errors import InvalidArxivId, InvalidInput, RateLimited, SourceError
from paper_assets.paper import Paper
from paper_assets.paper_id import split_paper_id
from paper_assets.settings import Settings
from paper_assets.sources.arxiv import ARXIV, at_mirror
from paper_assets.sources.biorxiv import BIORXIV, MEDRXIV
from paper_assets.sources.semantic_scholar import SEMANTIC_SCHOLAR
from paper_assets.sources.source import Access, PapersOfDay, PaperText, Source

SOURCES: tuple[Source, ...] = (ARXIV, SEMANTIC_SCHOLAR, BIORXIV, MEDRXIV)


def source_of(paper_id: str) -> Source | None:
    """Return the source of this id; None for an id of no known source."""
    try:
        prefix = split_paper_id(paper_id)[0].source
    except InvalidArxivId:
        return None
    return next((source for source in SOURCES if source.prefix == prefix), None)


def page_of(paper_id: str) -> str | None:
    """Return the URL of the page about the paper, at its source."""
    source = source_of(paper_id)
    return source.page(split_paper_id(paper_id)[0]) if source and source.page else None


def html_of(paper_id: str) -> str | None:
    """Return the URL of the paper as a web page at its source, if there is one."""
    source = source_of(paper_id)
    return source.html(split_paper_id(paper_id)[0]) if source and source.html else None


def texts_of(paper: Paper, settings: Settings) -> tuple[PaperText, ...]:
    """Return the locations of the paper's texts, the best first; empty if no source knows any."""
    source = source_of(paper.paper_id)
    if source and source.texts:
        return source.texts(paper, settings)
    return (PaperText(form="pdf", url=at_mirror(paper.pdf_url, settings)),) if paper.pdf_url else ()


def sources_of_days(settings: Settings) -> tuple[Source, ...]:
    """Return the sources whose days are fetched. Raises InvalidInput for the name of one without days."""
    able = {source.name: source for source in SOURCES if source.open_days}
    for name in settings.sources:
        if name not in able:
            raise InvalidInput(f"PAPER_ASSETS_SOURCES: {name[:40]!r} is not a source of days; use {', '.join(able)}")
    return tuple(source for name, source in able.items() if name in settings.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfPapers:
    """The papers of a day by the name of their source, and why a source returned none."""

    papers: dict[str, list[Paper]] = field(default_factory=dict)
    failures: dict[str, SourceError] = field(default_factory=dict)

    @property
    def failure(self) -> SourceError | None:
        """Return the first failure: the day is incomplete and has to be fetched again."""
        return next(iter(self.failures.values()), None)


@contextmanager
def open_listings(sources: Sequence[Source], access: Access) -> Iterator[Callable[[date], DayOfPapers]]:
    """Return a function that fetches one day after another. After a source asks to slow down, no further day is
    requested from it.
    """
    slowed: dict[str, SourceError] = {}
    with ExitStack() as stack:
        listings: dict[str, PapersOfDay] = {
            source.name: stack.enter_context(source.open_days(access)) for source in sources if source.open_days
        }

        def fetch(day: date) -> DayOfPapers:
            """Fetch one day from every source."""
            found = DayOfPapers(failures=dict(slowed))
            for name, papers_of_day in listings.items():
                if name in slowed:
                    continue
                try:
                    found.papers[name] = papers_of_day(day)
                except SourceError as failure:
                    found.failures[name] = failure
                    if isinstance(failure, RateLimited):
                        slowed[name] = failure
            return found

        yield fetch
