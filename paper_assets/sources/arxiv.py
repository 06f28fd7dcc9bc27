"""Describe arXiv as a source: its days, changes, papers, search and PDFs (SPEC S1, S2, I2, Z4).

Requests and parsing are in `arxiv_api` and `arxiv_oai`; the form of its ids and URLs is in `paper_assets.paper_id`.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import date

import requests

from paper_assets import announcements
from paper_assets import paper_id as arxiv_ids
from paper_assets.paper import Paper
from paper_assets.paper_id import ARXIV as ID_SOURCE
from paper_assets.paper_id import PaperId
from paper_assets.settings import Settings
from paper_assets.sources import arxiv_api, arxiv_oai
from paper_assets.sources.known_hosts import known_hosts
from paper_assets.sources.source import (
    Access,
    ChangesPage,
    PageOfChanges,
    PapersOfDay,
    PaperText,
    Question,
    SearchPage,
    Source,
    SourceRecord,
)

_TITLES = 5  # papers with a similar title that are compared


def at_mirror(url: str, settings: Settings) -> str:
    """Rewrite a URL of arXiv's PDFs to the configured mirror; return any other URL unchanged."""
    name = arxiv_ids.pdf_name(url)
    return url if name is None else f"{settings.arxiv_pdf_url}/{name}"


@contextmanager
def _days(access: Access) -> Iterator[PapersOfDay]:
    settings = access.settings
    with _session(access) as session:

        def papers_of_day(day: date) -> list[Paper]:
            """Fetch the papers of a day."""
            return arxiv_api.fetch_day(day, categories=settings.categories, url=settings.arxiv_url, session=session)

        yield papers_of_day


@contextmanager
def _changes(access: Access) -> Iterator[PageOfChanges]:
    with _session(access, access.settings.arxiv_oai_url) as session:

        def page_of_changes(name: str, first: date, last: date | None, place: str | None) -> ChangesPage:
            """Fetch one page of changes."""
            url = access.settings.arxiv_oai_url
            return arxiv_oai.page_of_changes(name, first, last, place, url=url, session=session)

        yield page_of_changes


def _find(access: Access, paper_id: PaperId, version: int | None) -> SourceRecord | None:
    with _session(access) as session:
        paper = arxiv_api.paper_by_id(paper_id.value, version=version, url=access.settings.arxiv_url, session=session)
    return SourceRecord(paper=paper) if paper else None


def _titled(access: Access, title: str) -> tuple[SourceRecord, ...]:
    with _session(access) as session:
        feed = arxiv_api.titled(title, limit=_TITLES, url=access.settings.arxiv_url, session=session)
    return tuple(SourceRecord(paper=paper) for paper in feed.papers)


def _search(access: Access, question: Question) -> SearchPage:
    with _session(access) as session:
        feed = arxiv_api.search(
            question.words,
            author=question.author,
            category=question.category,
            limit=question.limit,
            url=access.settings.arxiv_url,
            session=session,
        )
    return SearchPage(records=tuple(SourceRecord(paper=paper) for paper in feed.papers), total=feed.total)


def _check(question: Question) -> None:
    arxiv_api.search_query(question.words, author=question.author, category=question.category)


def _texts(paper: Paper, settings: Settings) -> tuple[PaperText, ...]:
    given = paper.pdf_url or ""
    address = given if arxiv_ids.pdf_name(given) else arxiv_ids.pdf_address(paper.paper_id, paper.version)
    pdf, name = PaperText(form="pdf", url=at_mirror(address, settings)), arxiv_ids.pdf_name(address)
    beside = arxiv_ids.beside_pdfs(settings.arxiv_pdf_url)
    if beside is None:  # a mirror of the PDFs only
        return (pdf,)
    html = PaperText(form="html", url=f"{beside}/html/{name}")
    source = PaperText(form="latex", url=f"{beside}/src/{name}")
    return (html, source, pdf) if arxiv_ids.html_address(paper.paper_id) else (source, pdf)


def _named_by(url: str) -> tuple[PaperId, int | None] | None:
    found = arxiv_ids.split_arxiv_address(url)
    return None if found is None else (PaperId(ID_SOURCE, found[0]), found[1])


def _session(access: Access, url: str | None = None) -> AbstractContextManager[requests.Session]:
    # A redirect may lead to any public machine, and to a private one only where that is the address in the settings.
    hosts = known_hosts((url or access.settings.arxiv_url,))
    return access.session(gate="", interval=access.settings.request_interval, hosts=hosts)


ARXIV = Source(
    name="arxiv",
    title="arXiv",
    prefix=ID_SOURCE,
    page=lambda paper_id: arxiv_ids.abs_address(paper_id.value),
    html=lambda paper_id: arxiv_ids.html_address(paper_id.value),
    named_by=_named_by,
    texts=_texts,
    open_days=_days,
    announces=announcements.arxiv,
    open_changes=_changes,
    sets_of=arxiv_oai.sets_of,
    find=_find,
    titled=_titled,
    search=_search,
    check_question=_check,
)
