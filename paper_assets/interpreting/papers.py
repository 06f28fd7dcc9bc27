"""Find a paper and get its text: from the warehouse where it is there, else from arXiv, then Semantic Scholar (I2)."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from paper_assets.errors import InvalidInput, InvalidPaper, SourceError, StoreBusy
from paper_assets.interpreting.contents import content_of, digest, pdf_pages, put_together
from paper_assets.interpreting.finding import find
from paper_assets.interpreting.identifiers import LonePdf, identified
from paper_assets.interpreting.reach import Reach, SecondsLeft
from paper_assets.interpreting.searching import FoundPaper, merged, wrote
from paper_assets.paper import Paper, paper_from_mapping, paper_to_mapping
from paper_assets.sources import arxiv_search, semantic_scholar
from paper_assets.sources.arxiv_api import Feed
from paper_assets.sources.semantic_scholar import ScholarPaper
from paper_assets.stores.papers import papers_by_id

MOST_RESULTS = 100
LONGEST_QUERY = 2_000  # characters
SEARCH_KEPT = 600.0  # seconds for which a search whose sources all answered is not asked again
_MOST_KEPT = 50  # searches
SCHOLAR_PATIENCE = 20.0  # seconds; without a key it often asks for more, and arXiv's papers should not wait for that


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Papers best first; how many the query has in all (as far as a source says so); what did not work, in lines."""

    papers: tuple[FoundPaper, ...]
    total_count: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPaper:
    """A paper and, where asked for and to be had, its whole text (passages parted by blank lines)."""

    paper: Paper
    content: str | None
    content_source: Literal["warehouse", "pdf"] | None
    url: str | None
    citation_count: int | None = None
    warnings: tuple[str, ...] = ()


def search_papers(
    reach: Reach, query: str, *, author: str | None = None, category: str | None = None, max_results: int = 10
) -> SearchResult:
    """Papers about `query` from arXiv and Semantic Scholar, merged by arXiv id.

    Semantic Scholar knows neither arXiv's categories nor a search by author: of what it finds only papers that fit as
    far as they are known are taken. Raises InvalidInput; the error of arXiv if both sources fail. One failing source is
    a warning. What all sources have answered is kept for SEARCH_KEPT seconds with the reach.
    """
    if not 1 <= max_results <= MOST_RESULTS:
        raise InvalidInput(f"max_results must be from 1 to {MOST_RESULTS}, got {max_results}")
    if max(len(text or "") for text in (query, author, category)) > LONGEST_QUERY:
        raise InvalidInput(f"query, author and category may have {LONGEST_QUERY:,} characters each")
    arxiv_search.search_query(query, author=author, category=category)  # what is wrong with it is said before asking
    question = (query, author, category, max_results)
    until, known = reach.searches.get(question, (0.0, None))
    if known is not None and reach.clock() < until:
        reach.progress(2, 2, "done")
        return cast(SearchResult, known)
    left = reach.started()
    reach.progress(0, 2, "asking arXiv and Semantic Scholar")
    with ThreadPoolExecutor(max_workers=1) as beside:
        words, patience = f"{query} {author or ''}".strip(), replace(reach, deadline=min(left(), SCHOLAR_PATIENCE))
        asked = beside.submit(_search_scholar, reach, words, max_results, patience.started())
        feed = _search_arxiv(reach, query, author, category, max_results, left)
        scholar = asked.result()
    reach.progress(1, 2, "merging")
    warnings = [f"{name}: {got}" for name, got in (("arXiv", feed), ("Semantic Scholar", scholar)) if _failed(got)]
    whole = not any(isinstance(got, SourceError) for got in (feed, scholar))
    if isinstance(feed, SourceError):
        if not isinstance(scholar, tuple):
            raise feed
        feed, total = Feed(papers=(), total=0), scholar[1]
    else:
        total = feed.total
    others = scholar[0] if isinstance(scholar, tuple) else []
    fitting = _fitting(reach, others, known=feed.papers, author=author, category=category)
    if len(fitting) < len(others) and not feed.papers:
        warnings.append(f"Semantic Scholar: {len(others) - len(fitting)} papers of unknown category or other authors")
    papers = merged(feed.papers, fitting, limit=max_results, fusion_constant=reach.settings.retrieving.fusion_constant)
    reach.progress(2, 2, "done")
    result = SearchResult(papers=tuple(papers), total_count=max(total, len(papers)), warnings=tuple(warnings))
    if whole:
        if len(reach.searches) >= _MOST_KEPT:
            reach.searches.clear()
        reach.searches[question] = (reach.clock() + SEARCH_KEPT, result)
    return result


def fetch_paper(
    reach: Reach,
    *,
    arxiv_id: str | None = None,
    url: str | None = None,
    pdf_url: str | None = None,
    title: str | None = None,
    include_pdf_content: bool = True,
) -> FetchedPaper:
    """One paper by the first identifier given, in this order (I2).

    Raises InvalidArxivId, InvalidInput, PaperNotFound, PdfFetchFailed, RateLimited, NetworkError, StoreError.
    """
    wanted = identified(arxiv_id=arxiv_id, url=url, pdf_url=pdf_url, title=title, hosts=reach.hosts)
    reach, left = reach.of_one_call(), reach.started()
    steps = 2 if include_pdf_content else 1
    reach.progress(0, steps, "finding the paper")
    if isinstance(wanted, LonePdf):
        fetched = _lone_pdf(reach, wanted.url, left)
    else:
        record = find(reach, wanted, left)
        fetched = FetchedPaper(
            paper=record.paper,
            content=None,
            content_source=None,
            url=record.url,
            citation_count=record.citation_count,
            warnings=record.warnings,
        )
        if include_pdf_content:
            reach.progress(1, steps, "reading its PDF")
            fetched = with_content(reach, fetched, left)
    reach.progress(steps, steps, "done")
    return fetched


def with_content(reach: Reach, fetched: FetchedPaper, left: SecondsLeft) -> FetchedPaper:
    """The paper with its text. Raises PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable."""
    found = content_of(reach, fetched.paper, left)
    warnings = (*fetched.warnings, found.warning) if found.warning else fetched.warnings
    return replace(fetched, content=found.text, content_source=found.source, warnings=warnings)


def _search_arxiv(
    reach: Reach, query: str, author: str | None, category: str | None, limit: int, left: SecondsLeft
) -> Feed | SourceError:
    try:
        with reach.arxiv(left) as session:
            return arxiv_search.search(
                query, author=author, category=category, limit=limit, url=reach.settings.arxiv_url, session=session
            )
    except SourceError as error:
        return error


def _search_scholar(
    reach: Reach, words: str, limit: int, left: SecondsLeft
) -> tuple[list[ScholarPaper], int] | SourceError | InvalidInput:
    if not words:
        return InvalidInput("it cannot search by category alone")
    try:
        with reach.scholar(left) as scholar:
            return semantic_scholar.search(scholar, words, limit=limit)
    except (SourceError, InvalidInput) as error:  # a key that is none must not spoil what arXiv says
        return error


def _failed(got: object) -> bool:
    return isinstance(got, Exception)


def _fitting(
    reach: Reach, found: list[ScholarPaper], *, known: tuple[Paper, ...], author: str | None, category: str | None
) -> list[ScholarPaper]:
    """Those by the author and in the category, as far as that is known."""
    if author and author.strip():
        found = [paper for paper in found if wrote(author, paper.authors)]
    if not category or not category.strip():
        return found
    at_hand = {paper.paper_id for paper in known}
    others = [paper.arxiv_id for paper in found if paper.arxiv_id and paper.arxiv_id not in at_hand]
    if others:
        try:
            stored = papers_by_id(reach.warehouse, others).to_pylist()
        except StoreBusy:
            stored = []
        at_hand |= {row["paper_id"] for row in stored if category.strip() in row["categories"]}
    return [paper for paper in found if paper.arxiv_id in at_hand]


def _lone_pdf(reach: Reach, url: str, left: SecondsLeft) -> FetchedPaper:
    """A PDF by itself: its first line is taken for its title."""
    pages = pdf_pages(reach, url, named="the PDF", left=left)
    first = next(line for page in pages for line in page.splitlines() if any(map(str.isalnum, line)))
    paper = Paper(paper_id=f"PDF:{digest(url)}", title=first[:200], abstract="", authors=(), pdf_url=url)
    return FetchedPaper(
        paper=paper,
        content=put_together(pages),
        content_source="pdf",
        url=url,
        warnings=("nothing but the PDF is known; its first line stands for its title",),
    )


def search_to_mapping(result: SearchResult) -> dict[str, Any]:
    """`{papers[], total_count, warnings[]}`, JSON-ready (I1)."""
    papers = [
        {
            **paper_to_mapping(found.paper),
            "url": found.url,
            "sources": list(found.sources),
            "citation_count": found.citation_count,
        }
        for found in result.papers
    ]
    return {"papers": papers, "total_count": result.total_count, "warnings": list(result.warnings)}


def fetched_to_mapping(fetched: FetchedPaper) -> dict[str, Any]:
    """The paper with `content` (whole), `url`, `citation_count`, `warnings`, JSON-ready.

    Nothing that differs between the first time and the next (I5): where the text came from is not in it.
    """
    return {
        **paper_to_mapping(fetched.paper),
        "content": fetched.content,
        "url": fetched.url,
        "citation_count": fetched.citation_count,
        "warnings": list(fetched.warnings),
    }


def fetched_from_mapping(record: Mapping[str, Any]) -> FetchedPaper:
    """A paper given as JSON, as `fetched_to_mapping` writes it; `title` and something to read are required.

    Raises InvalidPaper.
    """
    if not isinstance(record, Mapping):
        raise InvalidPaper("paper must be an object as fetch_paper answers it, with title and content or abstract")
    content = record.get("content")
    if content is not None and not isinstance(content, str):
        raise InvalidPaper("paper: content must be a text")
    if content and record.get("content_is_part"):
        raise InvalidPaper("paper: content is a part of the text only; give all of it, or none and the abstract")
    defaults = {"paper_id": "given", "abstract": "", "authors": []}
    given = {name: value for name, value in record.items() if value is not None}
    return FetchedPaper(
        paper=paper_from_mapping({**defaults, **given}),
        content=content,
        content_source=None,
        url=record.get("url") if isinstance(record.get("url"), str) else None,
    )
