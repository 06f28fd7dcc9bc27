"""Which paper stands behind an identifier: asked of the warehouse, then arXiv, then Semantic Scholar (SPEC I2)."""

from dataclasses import dataclass, replace

from paper_assets.errors import InvalidInput, PaperNotFound, SourceError, StoreBusy
from paper_assets.interpreting.identifiers import ArxivPaper, ScholarPage, Title, same_title
from paper_assets.interpreting.reach import Reach, SecondsLeft
from paper_assets.interpreting.searching import page_of
from paper_assets.paper import Paper
from paper_assets.sources import arxiv_search, semantic_scholar
from paper_assets.sources.arxiv_api import pdf_address
from paper_assets.sources.semantic_scholar import ScholarPaper
from paper_assets.stores.papers import find_paper, paper_titled
from paper_assets.stores.scholar_records import records_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A paper without its text; `warnings` says in lines which source could not be asked."""

    paper: Paper
    url: str | None
    citation_count: int | None = None
    warnings: tuple[str, ...] = ()


def find(reach: Reach, wanted: ArxivPaper | ScholarPage | Title, left: SecondsLeft) -> Record:
    """Raises PaperNotFound, RateLimited, NetworkError, IncompleteFeed, InvalidInput (the key is none), StoreError."""
    if isinstance(wanted, Title):
        return _by_title(reach, wanted.text, left)
    if isinstance(wanted, ScholarPage):
        return _by_scholar_id(reach, wanted.scholar_id, left)
    return _by_arxiv_id(reach, wanted, left)


def _by_arxiv_id(reach: Reach, wanted: ArxivPaper, left: SecondsLeft) -> Record:
    warnings: tuple[str, ...] = ()
    try:
        stored = find_paper(reach.warehouse, wanted.paper_id)
        if stored is not None and wanted.version in (None, stored.version):
            return _stored(reach, stored)
    except StoreBusy as error:
        warnings = (f"the warehouse was not asked: {error}",)
    try:
        with reach.arxiv(left) as session:
            paper = arxiv_search.paper_by_id(
                wanted.paper_id, version=wanted.version, url=reach.settings.arxiv_url, session=session
            )
    except SourceError as failure:
        instead = _scholar_instead(reach, wanted, failure, left)
        return replace(instead, warnings=(*warnings, f"arXiv: {failure}", *instead.warnings))
    if paper is None:
        named = wanted.paper_id + (f"v{wanted.version}" if wanted.version else "")
        raise PaperNotFound(f"arXiv has no paper {named}; check the id")
    return Record(paper=paper, url=page_of(paper), warnings=warnings)


def _scholar_instead(reach: Reach, wanted: ArxivPaper, failure: SourceError, left: SecondsLeft) -> Record:
    """What Semantic Scholar knows of a paper that arXiv could not be asked about; raises arXiv's error if nothing."""
    try:
        with reach.scholar(left) as scholar:
            found = semantic_scholar.find(scholar, wanted.paper_id)
    except (SourceError, InvalidInput):
        found = None
    if found is None:
        raise failure
    record = _of_scholar(found)
    if wanted.version is None:
        return record
    address = pdf_address(wanted.paper_id, wanted.version)
    return replace(record, paper=replace(record.paper, version=wanted.version, pdf_url=address))


def _by_scholar_id(reach: Reach, scholar_id: str, left: SecondsLeft) -> Record:
    with reach.scholar(left) as scholar:
        found = semantic_scholar.find(scholar, scholar_id)
    if found is None:
        raise PaperNotFound(f"Semantic Scholar has no paper {scholar_id}; check the url")
    if found.arxiv_id is None:
        return _of_scholar(found)
    try:
        record = _by_arxiv_id(reach, ArxivPaper(paper_id=found.arxiv_id, version=None), left)
    except SourceError as failure:
        record = _of_scholar(found)
        return replace(record, warnings=(f"arXiv: {failure}", *record.warnings))
    return replace(record, citation_count=found.citation_count)


def _by_title(reach: Reach, title: str, left: SecondsLeft) -> Record:
    """The paper of this very title, whatever its punctuation. Raises PaperNotFound naming the nearest."""
    warnings: list[str] = []
    nearest: list[str] = []
    failures: list[SourceError | InvalidInput] = []
    try:
        stored = paper_titled(reach.warehouse, title)
        if stored is not None:
            return _stored(reach, stored)
    except StoreBusy as error:
        warnings.append(f"the warehouse was not asked: {error}")
    try:
        with reach.arxiv(left) as session:
            papers = arxiv_search.titled(title, limit=5, url=reach.settings.arxiv_url, session=session).papers
        for paper in papers:
            if same_title(paper.title, title):
                return Record(paper=paper, url=page_of(paper), warnings=tuple(warnings))
        nearest += [f"{paper.title!r} ({paper.paper_id})" for paper in papers[:1]]
    except SourceError as error:
        failures.append(error)
        warnings.append(f"arXiv: {error}")
    try:
        with reach.scholar(left) as scholar:
            found = semantic_scholar.match_title(scholar, title)
        if found is not None and same_title(found.title, title):
            record = _of_scholar(found)
            return replace(record, warnings=(*warnings, *record.warnings))
        nearest += [f"{found.title!r} ({found.as_paper().paper_id})"] if found else []
    except (SourceError, InvalidInput) as error:
        failures.append(error)
    if failures and not nearest:  # who knows what the silent one would have said
        raise failures[0]
    hint = f"the nearest is {nearest[0]}" if nearest else "check it, or search for its words"
    raise PaperNotFound(f"no source has a paper titled {title[:100]!r}; {hint}")


def _stored(reach: Reach, paper: Paper) -> Record:
    known = records_of(reach.warehouse, [paper.paper_id]).get(paper.paper_id)
    return Record(paper=paper, url=page_of(paper), citation_count=known.citation_count if known else None)


def _of_scholar(found: ScholarPaper) -> Record:
    paper = found.as_paper()
    return Record(
        paper=paper,
        url=page_of(paper, found),
        citation_count=found.citation_count,
        warnings=("this is Semantic Scholar's record: categories, version and some dates are unknown",),
    )
