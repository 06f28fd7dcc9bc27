"""Identify a paper by id, URL or title, and look it up in the warehouse, then in the sources (SPEC I2)."""

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from paper_assets.arxiv_ids import pdf_address, split_arxiv_id
from paper_assets.errors import InvalidInput, PaperNotFound, SourceError, StoreBusy
from paper_assets.interpreting.clients import Clients
from paper_assets.paper import Paper
from paper_assets.paper_id import PaperId, split_paper_id
from paper_assets.sources.arxiv import ARXIV
from paper_assets.sources.known_hosts import KnownHosts
from paper_assets.sources.semantic_scholar import SEMANTIC_SCHOLAR
from paper_assets.sources.source import RefusedKey, SecondsLeft, Source, SourceRecord
from paper_assets.sources.table import SOURCES, page_of, source_of
from paper_assets.stores.papers import find_paper, paper_titled
from paper_assets.stores.scholar_records import records_of

LONGEST_TITLE = 500  # characters; longer texts are not titles


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A paper by the id of a source in the table, in a version (None: the newest)."""

    paper_id: PaperId
    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LonePdf:
    """The URL of a PDF without any identifier."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Title:
    """The title of a paper as a person remembers it."""

    text: str


Identified = Work | LonePdf | Title


def identified(
    *, arxiv_id: str | None, url: str | None, pdf_url: str | None, title: str | None, hosts: KnownHosts
) -> Identified:
    """Parse the first identifier given, in this order.

    Raises InvalidArxivId, RefusedAddress, InvalidInput: invalid, or none given.
    """
    if arxiv_id is not None:
        if source_of(arxiv_id) is None:
            split_arxiv_id(arxiv_id)  # raises with the form of an id
        paper_id, version = split_paper_id(arxiv_id)
        return Work(paper_id=paper_id, version=version)
    if url is not None:
        found = _named(url) or _pdf_at(hosts.check(url))
        if found is None:
            raise InvalidInput(
                f"no paper can be recognised in this url; give one like {page_of('2501.12345')}, "
                "a paper's page at www.semanticscholar.org, or the address of a PDF"
            )
        return found
    if pdf_url is not None:
        named = _named(pdf_url)
        keeps_texts = named and (source := source_of(str(named.paper_id))) and source.texts
        return named if named and keeps_texts else LonePdf(url=hosts.check(pdf_url))
    if title is not None:
        words = " ".join(title.split())
        if not words or len(words) > LONGEST_TITLE:
            raise InvalidInput(f"title must have 1 to {LONGEST_TITLE} characters, got {len(words)}")
        return Title(text=words)
    raise InvalidInput("no paper is named; give arxiv_id, url, pdf_url or title")


def same_title(one: str, other: str) -> bool:
    """Compare two titles by letters and digits only."""
    return _letters(one) == _letters(other) != ""


def _letters(text: str) -> str:
    return "".join(re.findall(r"[^\W_]+", text.casefold()))


def _named(url: str) -> Work | None:
    """Return the paper whose id a URL contains; no request is made, so any scheme and host will do."""
    for source in SOURCES:
        if source.named_by and (found := source.named_by(url)):
            return Work(paper_id=found[0], version=found[1])
    return None


def _pdf_at(url: str) -> LonePdf | None:
    path = unquote(urlsplit(url).path).lower()
    return LonePdf(url=url) if path.endswith(".pdf") or path == "/pdf" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A paper without its text; `warnings` name the sources that failed."""

    paper: Paper
    url: str | None
    citation_count: int | None = None
    warnings: tuple[str, ...] = ()


def find(clients: Clients, wanted: Work | Title, left: SecondsLeft) -> Record:
    """Look up a paper. Raises PaperNotFound, RateLimited, NetworkError, IncompleteFeed, RefusedKey, InvalidInput,
    StoreError.
    """
    if isinstance(wanted, Title):
        return _by_title(clients, wanted.text, left)
    if wanted.paper_id.source == SEMANTIC_SCHOLAR.prefix:
        return _by_scholar_id(clients, wanted.paper_id, left)
    return _by_id(clients, wanted, left)


def _by_id(clients: Clients, wanted: Work, left: SecondsLeft) -> Record:
    warnings: tuple[str, ...] = ()
    try:
        stored = find_paper(clients.warehouse, str(wanted.paper_id))
        if stored is not None and wanted.version in (None, stored.version):
            return _stored(clients, stored)
    except StoreBusy as error:
        warnings = (f"the warehouse was not asked: {error}",)
    named = f"{wanted.paper_id}" + (f"v{wanted.version}" if wanted.version else "")
    source = source_of(str(wanted.paper_id))
    if source is None or source.find is None:
        raise PaperNotFound(f"paper {named} is not stored, and no source can be asked for it")
    try:
        found = source.find(clients.access(left, others_follow=True), wanted.paper_id, wanted.version)
    except SourceError as failure:
        instead = _from_another(clients, source, wanted, failure, left)
        return replace(instead, warnings=(*warnings, f"{source.title}: {failure}", *instead.warnings))
    if found is None:
        raise PaperNotFound(f"{source.title} has no paper {named}; check the id")
    return _record(source, found, warnings)


def _from_another(clients: Clients, silent: Source, wanted: Work, failure: SourceError, left: SecondsLeft) -> Record:
    """Ask another source about a paper whose own source failed; raises `failure` if it knows nothing."""
    for source in SOURCES:
        if source is silent or source.find is None:
            continue
        try:
            found = source.find(clients.access(left), wanted.paper_id, wanted.version)
        except (SourceError, RefusedKey):
            continue
        if found is not None:
            record = _record(source, found)
            return (
                record if wanted.version is None else replace(record, paper=_in_version(record.paper, wanted.version))
            )
    raise failure


def _in_version(paper: Paper, version: int) -> Paper:
    """Set the requested version on an arXiv paper that another source knows."""
    return replace(paper, version=version, pdf_url=pdf_address(paper.paper_id, version))


def _by_scholar_id(clients: Clients, paper_id: PaperId, left: SecondsLeft) -> Record:
    found = SEMANTIC_SCHOLAR.find(clients.access(left), paper_id, None) if SEMANTIC_SCHOLAR.find else None
    if found is None:
        raise PaperNotFound(f"Semantic Scholar has no paper {paper_id.value}; check the url")
    known_as, _ = split_paper_id(found.paper.paper_id)
    record = _record(SEMANTIC_SCHOLAR, found)
    if known_as.source == SEMANTIC_SCHOLAR.prefix:
        return record
    try:
        of_its_own = _by_id(clients, Work(paper_id=known_as, version=None), left)
    except SourceError as failure:
        return replace(record, warnings=(f"{ARXIV.title}: {failure}", *record.warnings))
    return replace(of_its_own, citation_count=found.citation_count)


def _by_title(clients: Clients, title: str, left: SecondsLeft) -> Record:
    """Find the paper with this title, ignoring punctuation. Raises PaperNotFound naming the nearest."""
    warnings: list[str] = []
    nearest: list[str] = []
    failures: list[SourceError | RefusedKey] = []
    try:
        stored = paper_titled(clients.warehouse, title)
        if stored is not None:
            return _stored(clients, stored)
    except StoreBusy as error:
        warnings.append(f"the warehouse was not asked: {error}")
    asked = [(source, source.titled) for source in SOURCES if source.titled]
    for place, (source, titled) in enumerate(asked, 1):
        try:
            found = titled(clients.access(left, others_follow=place < len(asked)), title)
        except (SourceError, RefusedKey) as error:
            failures.append(error)
            warnings.append(f"{source.title}: {error}")
            continue
        for record in found:
            if same_title(record.paper.title, title):
                return _record(source, record, tuple(warnings))
        nearest += [f"{record.paper.title!r} ({record.paper.paper_id})" for record in found[:1]]
    if failures and not nearest:  # the failed source may have known it
        raise failures[0]
    hint = f"the nearest is {nearest[0]}" if nearest else "check it, or search for its words"
    raise PaperNotFound(f"no source has a paper titled {title[:100]!r}; {hint}")


def _stored(clients: Clients, paper: Paper) -> Record:
    known = records_of(clients.warehouse, [paper.paper_id]).get(paper.paper_id)
    return Record(paper=paper, url=page_of(paper.paper_id), citation_count=known.citation_count if known else None)


def _record(source: Source, found: SourceRecord, warnings: tuple[str, ...] = ()) -> Record:
    lacking = (f"this is {source.title}'s record: {source.lacks} are unknown",) if source.lacks else ()
    return Record(
        paper=found.paper,
        url=page_of(found.paper.paper_id),
        citation_count=found.citation_count,
        warnings=(*warnings, *lacking),
    )
