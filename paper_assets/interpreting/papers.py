"""Search papers, fetch one with its text, and list related ones, from the warehouse and the sources (I2, I9, M1)."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, cast

from paper_assets.errors import InvalidInput, InvalidPaper, PaperNotFound, SourceError, StoreBusy
from paper_assets.interpreting.clients import Clients
from paper_assets.interpreting.lookup import (
    FetchedPaper,
    NamedPaper,
    PdfUrl,
    digest,
    find,
    identified,
    join_pages,
    pdf_pages,
    same_title,
    with_content,
)
from paper_assets.paper import Paper, paper_from_mapping, paper_to_mapping
from paper_assets.paper_id import is_arxiv_id
from paper_assets.retrieval.merge import Candidate, Policy, Rules, merge
from paper_assets.sources.semantic_scholar import (
    MOST_RELATED,
    RELATIONS,
    SEMANTIC_SCHOLAR,
    Relation,
    knows_ids_of,
    opened,
    related_papers,
)
from paper_assets.sources.source import Access, Question, SearchPage, SecondsLeft, Source, SourceRecord
from paper_assets.sources.table import SOURCES, page_of
from paper_assets.stores.papers import papers_by_id
from paper_assets.text.names import maybe_same_person, name_form, name_forms


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePaper:
    """A search result: the paper, which sources returned it, and its citation count (None: unknown)."""

    paper: Paper
    sources: tuple[str, ...]  # by name: "arxiv", "semantic_scholar"
    url: str | None
    citation_count: int | None


def merged(
    lists: Sequence[tuple[Source, Sequence[SourceRecord]]], *, limit: int, fusion_constant: int
) -> list[SourcePaper]:
    """Merge the sources' lists to the best `limit`, fused by rank; the first record of a paper is kept.

    A paper without an arXiv id is matched by title with the earlier lists.
    """
    papers: dict[str, Paper] = {}
    lists_by_id: list[dict[str, SourceRecord]] = []
    for _, records in lists:
        earlier = list(papers.values())
        by_id: dict[str, SourceRecord] = {}
        for record in records:
            same = (each for each in earlier if same_title(each.title, record.paper.title))
            twin = None if is_arxiv_id(record.paper.paper_id) else next(same, None)
            by_id.setdefault((twin or record.paper).paper_id, record)
        papers = {paper_id: record.paper for paper_id, record in by_id.items()} | papers
        lists_by_id.append(by_id)
    candidates = [[_candidate(papers[paper_id], place) for place, paper_id in enumerate(ids, 1)] for ids in lists_by_id]
    best = merge(candidates, Rules(policy=Policy(), fusion_constant=fusion_constant, limit=limit)).candidates
    return [_found(papers[each.doc_id], lists, lists_by_id) for each in best]


def _found(
    paper: Paper,
    lists: Sequence[tuple[Source, Sequence[SourceRecord]]],
    lists_by_id: Sequence[Mapping[str, SourceRecord]],
) -> SourcePaper:
    counts = (by_id[paper.paper_id].citation_count for by_id in lists_by_id if paper.paper_id in by_id)
    return SourcePaper(
        paper=paper,
        sources=tuple(
            source.name for (source, _), by_id in zip(lists, lists_by_id, strict=True) if paper.paper_id in by_id
        ),
        url=page_of(paper.paper_id),
        citation_count=next((count for count in counts if count is not None), None),
    )


def wrote(author: str, authors: Sequence[str]) -> bool:
    """Return whether one of the authors may have the name; a single word is a family name."""
    if " " not in (asked := name_form(author)):
        return any(form.endswith(f" {asked}") or form == asked for form in name_forms(authors))
    return bool(maybe_same_person(authors, [author]).any())


def _candidate(paper: Paper, place: int) -> Candidate:
    return Candidate(
        doc_id=paper.paper_id,
        content=f"{paper.title}\n\n{paper.abstract}",
        metadata={**paper_to_mapping(paper), "version": None, "access_level": "public"},
        score=1 / place,
        score_type="similarity",
        source_id=paper.paper_id,
    )


MOST_RESULTS = 100
LONGEST_QUERY = 2_000  # characters
SEARCH_KEPT = 600.0  # seconds for which a search that all sources answered is cached
_MOST_KEPT = 50  # searches
OTHERS_PATIENCE = 20.0  # seconds; Semantic Scholar without a key often demands more, and arXiv should not wait for it

Search = Callable[[Access, Question], SearchPage]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Papers best first; the total number of results if a source reports it; warnings."""

    papers: tuple[SourcePaper, ...]
    total_count: int
    warnings: tuple[str, ...] = ()


def search_papers(
    clients: Clients, query: str, *, author: str | None = None, category: str | None = None, max_results: int = 10
) -> SearchResult:
    """Search papers about `query` in every source that can search, merged by id.

    Semantic Scholar supports neither arXiv's categories nor a search by author: its results are kept only if they fit
    as far as is known. If one source fails, there is a warning. Results that all sources answered are cached for
    SEARCH_KEPT seconds. Raises InvalidInput; the error of the first source if all fail.
    """
    if not 1 <= max_results <= MOST_RESULTS:
        raise InvalidInput(f"max_results must be from 1 to {MOST_RESULTS}, got {max_results}")
    if max(len(text or "") for text in (query, author, category)) > LONGEST_QUERY:
        raise InvalidInput(f"query, author and category may have {LONGEST_QUERY:,} characters each")
    question = Question(words=query, author=author, category=category, limit=max_results)
    asked = [(source, source.search) for source in SOURCES if source.search]
    for source, _ in asked:
        if source.check_question:  # validate before asking any source
            source.check_question(question)
    until, cached = clients.searches.get(question, (0.0, None))
    if cached is not None and clients.clock() < until:
        clients.progress(2, 2, "done")
        return cast(SearchResult, cached)
    left = clients.started()
    clients.progress(0, 2, f"asking {' and '.join(source.title for source, _ in asked)}")
    pages = _ask_all(clients, asked, question, left)
    clients.progress(1, 2, "merging")
    warnings = [f"{source.title}: {page}" for source, page in pages if isinstance(page, Exception)]
    whole = not any(isinstance(page, SourceError) for _, page in pages)
    answered = [(source, page) for source, page in pages if isinstance(page, SearchPage)]
    if not answered:
        raise next(page for _, page in pages if isinstance(page, Exception))
    lists: list[tuple[Source, Sequence[SourceRecord]]] = []
    for source, page in answered:
        fitting = _fitting(clients, page.records, lists, question) if source.words_only else page.records
        if len(fitting) < len(page.records) and not any(records for _, records in lists):
            left_out = len(page.records) - len(fitting)
            warnings.append(f"{source.title}: {left_out} papers of unknown category or other authors")
        lists.append((source, fitting))
    papers = merged(lists, limit=max_results, fusion_constant=clients.settings.retrieval.fusion_constant)
    clients.progress(2, 2, "done")
    total = max(answered[0][1].total, len(papers))
    result = SearchResult(papers=tuple(papers), total_count=total, warnings=tuple(warnings))
    if whole:
        if len(clients.searches) >= _MOST_KEPT:
            clients.searches.clear()
        clients.searches[question] = (clients.clock() + SEARCH_KEPT, result)
    return result


def fetch_paper(
    clients: Clients,
    *,
    arxiv_id: str | None = None,
    url: str | None = None,
    pdf_url: str | None = None,
    title: str | None = None,
    include_pdf_content: bool = True,
    found: Callable[[FetchedPaper], None] = lambda _: None,
) -> FetchedPaper:
    """Fetch a paper by the first identifier given, in this order (I2). `found` is called before its text is fetched.

    Raises InvalidArxivId, InvalidInput, PaperNotFound, PdfFetchFailed, RateLimited, NetworkError, StoreError.
    """
    named = identified(arxiv_id=arxiv_id, url=url, pdf_url=pdf_url, title=title, hosts=clients.hosts)
    clients, left = clients.of_one_call(), clients.started()
    steps = 2 if include_pdf_content else 1
    clients.progress(0, steps, "finding the paper")
    if isinstance(named, PdfUrl):
        fetched = _lone_pdf(clients, named.url, left)
    else:
        fetched = find(clients, named, left)
        found(fetched)
        if include_pdf_content:
            clients.progress(1, steps, "reading its text")
            fetched = with_content(clients, fetched, left)
    clients.progress(steps, steps, "done")
    return fetched


def _ask_all(
    clients: Clients, asked: Sequence[tuple[Source, Search]], question: Question, left: SecondsLeft
) -> list[tuple[Source, SearchPage | SourceError | InvalidInput]]:
    """Ask all sources at once; the first one matters most and may use the whole time."""
    patience = replace(clients, deadline=min(left(), OTHERS_PATIENCE)).started()
    (first, search), *others = asked
    with ThreadPoolExecutor(max_workers=max(len(others), 1)) as beside:
        waiting = [beside.submit(_ask, ask, clients.access(patience), question) for _, ask in others]
        answer = _ask(search, clients.access(left, others_follow=True), question)
        return [(first, answer), *((source, each.result()) for (source, _), each in zip(others, waiting, strict=True))]


def _ask(search: Search, access: Access, question: Question) -> SearchPage | SourceError | InvalidInput:
    try:
        return search(access, question)
    except (SourceError, InvalidInput) as error:  # an invalid key must not discard the other answers
        return error


def _fitting(
    clients: Clients,
    records_of_source: Sequence[SourceRecord],
    lists: Sequence[tuple[Source, Sequence[SourceRecord]]],
    question: Question,
) -> list[SourceRecord]:
    """Keep papers of the author and category as far as these are known: from earlier lists, or the warehouse."""
    author, category = (question.author or "").strip(), (question.category or "").strip()
    if author:
        records_of_source = [record for record in records_of_source if wrote(author, record.paper.authors)]
    if not category:
        return list(records_of_source)
    at_hand = {record.paper.paper_id for _, records in lists for record in records}
    others = [record.paper.paper_id for record in records_of_source if record.paper.paper_id not in at_hand]
    if others:
        try:
            stored = papers_by_id(clients.warehouse, others).to_pylist()
        except StoreBusy:
            stored = []
        at_hand |= {row["paper_id"] for row in stored if category in row["categories"]}
    return [record for record in records_of_source if record.paper.paper_id in at_hand]


def _lone_pdf(clients: Clients, url: str, left: SecondsLeft) -> FetchedPaper:
    """Fetch a PDF without identifier; its first line becomes its title."""
    pages = pdf_pages(clients, url, named="the PDF", left=left)
    first = next(line for page in pages for line in page.splitlines() if any(map(str.isalnum, line)))
    paper = Paper(paper_id=f"PDF:{digest(url)}", title=first[:200], abstract="", authors=(), pdf_url=url)
    return FetchedPaper(
        paper=paper,
        content=join_pages(pages),
        content_source="pdf",
        url=url,
        warnings=("nothing but the PDF is known; its first line stands for its title",),
    )


def search_to_mapping(result: SearchResult) -> dict[str, Any]:
    """Return `{papers[], total_count, warnings[]}`, JSON-ready (I1)."""
    papers = [
        {
            **_record_of(each.paper),
            "url": each.url,
            "sources": list(each.sources),
            "citation_count": each.citation_count,
        }
        for each in result.papers
    ]
    return {"papers": papers, "total_count": result.total_count, "warnings": list(result.warnings)}


def _record_of(paper: Paper) -> dict[str, Any]:
    """Return the paper as JSON values, its id and date also under the names of the original document."""
    arxiv_id = paper.paper_id if is_arxiv_id(paper.paper_id) else None
    return {"arxiv_id": arxiv_id, "published_date": paper.day and f"{paper.day}", **paper_to_mapping(paper)}


def fetched_to_mapping(fetched: FetchedPaper) -> dict[str, Any]:
    """Return the paper with `content` (whole), `url`, `citation_count`, `warnings`, JSON-ready.

    Where the text came from is left out: repeated calls return the same answer (I5).
    """
    return {
        **_record_of(fetched.paper),
        "content": fetched.content,
        "url": fetched.url,
        "citation_count": fetched.citation_count,
        "warnings": list(fetched.warnings),
    }


def fetched_from_mapping(record: object) -> FetchedPaper:
    """Parse a paper written by `fetched_to_mapping`; `title` and something to read are required.

    Raises InvalidPaper.
    """
    if not isinstance(record, Mapping):
        raise InvalidPaper("paper must be an object as fetch_paper answers it, with title and content or abstract")
    content = record.get("content")
    if content is not None and not isinstance(content, str):
        raise InvalidPaper("paper: content must be a text")
    if content and record.get("content_is_part"):
        raise InvalidPaper("paper: content is a part of the text only; give all of it, or none and the abstract")
    values = {name: value for name, value in record.items() if value is not None}
    defaults = {"paper_id": values.get("arxiv_id", "given"), "abstract": "", "authors": []}
    return FetchedPaper(
        paper=paper_from_mapping({**defaults, **values}),
        content=content,
        url=record.get("url") if isinstance(record.get("url"), str) else None,
    )


def related(
    clients: Clients,
    *,
    paper_id: str | None = None,
    url: str | None = None,
    relation: str = "similar",
    max_results: int = 10,
) -> SearchResult:
    """Return up to `max_results` papers in this relation to the paper with the id or URL, in the source's order.

    Raises InvalidInput, InvalidArxivId, PaperNotFound, RateLimited, NetworkError, RefusedKey.
    """
    kind: Relation | None = next((each for each in RELATIONS if each == relation), None)
    if kind is None:
        raise InvalidInput(f"relation must be one of {', '.join(RELATIONS)}, got {relation[:40]!r}")
    if not 1 <= max_results <= MOST_RELATED:
        raise InvalidInput(f"max_results must be from 1 to {MOST_RELATED}, got {max_results}")
    named = identified(arxiv_id=paper_id, url=url, pdf_url=None, title=None, hosts=clients.hosts)
    if not isinstance(named, NamedPaper) or not knows_ids_of(named.paper_id):
        raise InvalidInput("Semantic Scholar cannot be asked about this paper; give an arXiv id, or its page there")
    left = clients.started()
    with opened(clients.access(left)) as scholar:
        answers = related_papers(scholar, named.paper_id, kind, limit=max_results)
    if answers is None:
        raise PaperNotFound(f"Semantic Scholar does not know {named.paper_id}; a new paper takes it some days")
    papers = []
    for each in answers:
        paper = each.as_paper()
        papers.append(
            SourcePaper(
                paper=paper,
                sources=(SEMANTIC_SCHOLAR.name,),
                url=page_of(paper.paper_id),
                citation_count=each.citation_count,
            )
        )
    return SearchResult(papers=tuple(papers), total_count=len(papers))
