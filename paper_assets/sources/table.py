"""The table of sources, in the order in which they are asked and believed: of two records of a paper the first stays.

Adding a source is one file and one line: a file in this folder that ends in a `Source` (copy the shape of `arxiv.py`;
its ids begin with its `prefix`, so they collide with no other's; it asks through `Access.session`, behind a gate of its
own), and its line below. Its days are fetched once PAPER_ASSETS_SOURCES names it.
"""

from paper_assets.errors import InvalidArxivId, InvalidInput
from paper_assets.paper import Paper
from paper_assets.paper_id import split_paper_id
from paper_assets.settings import Settings
from paper_assets.sources.arxiv import ARXIV, at_mirror
from paper_assets.sources.biorxiv import BIORXIV, MEDRXIV
from paper_assets.sources.bulk_files import BULK_FILES
from paper_assets.sources.semantic_scholar import SEMANTIC_SCHOLAR
from paper_assets.sources.source import PaperText, Source

SOURCES: tuple[Source, ...] = (
    ARXIV,
    SEMANTIC_SCHOLAR,
    BIORXIV,
    MEDRXIV,
    BULK_FILES,
)


def source_of(paper_id: str) -> Source | None:
    """The source whose id this is; None for an id of no source in the table."""
    try:
        prefix = split_paper_id(paper_id)[0].source
    except InvalidArxivId:
        return None
    return next((source for source in SOURCES if source.prefix == prefix), None)


def page_of(paper_id: str) -> str | None:
    """Where a person reads about the paper, at its source."""
    source = source_of(paper_id)
    return source.page(split_paper_id(paper_id)[0]) if source and source.page else None


def html_of(paper_id: str) -> str | None:
    """The paper itself as a web page at its source, if there is one."""
    source = source_of(paper_id)
    return source.html(split_paper_id(paper_id)[0]) if source and source.html else None


def texts_of(paper: Paper, settings: Settings) -> tuple[PaperText, ...]:
    """Where the texts of the paper lie, the best to read first; none if no source says so."""
    source = source_of(paper.paper_id)
    if source and source.texts:
        return source.texts(paper, settings)
    return (PaperText(form="pdf", url=at_mirror(paper.pdf_url, settings)),) if paper.pdf_url else ()


def sources_of_days(settings: Settings) -> tuple[Source, ...]:
    """The sources whose days are fetched. Raises InvalidInput for a name that has none."""
    able = {source.name: source for source in SOURCES if source.open_days}
    for name in settings.sources:
        if name not in able:
            raise InvalidInput(f"PAPER_ASSETS_SOURCES: {name[:40]!r} is no source of days; use {', '.join(able)}")
    return tuple(source for name, source in able.items() if name in settings.sources)
