"""Look up a paper and its text: first in the warehouse, then in the sources (SPEC I2, R1, I7, I9).

A paper is identified by id, URL or title. Of its text the best form is used: arXiv's HTML, then LaTeX, then PDF. A text
from the warehouse equals the text from the source, so that a language model gets the same prompt (I5). Only public
texts are stored, never a person's own PDF (M3).
"""

import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal
from urllib.parse import unquote, urlsplit

from paper_assets.errors import InvalidInput, PaperNotFound, PdfFetchFailed, SourceError, StoreBusy, StoreError
from paper_assets.interpreting.clients import Clients
from paper_assets.interpreting.fulltexts import PASSAGE, keep_fulltext
from paper_assets.paper import Paper, papers_from_table
from paper_assets.paper_id import PaperId, is_text_of, names_version, pdf_address, split_arxiv_id, split_paper_id
from paper_assets.sources.arxiv import ARXIV
from paper_assets.sources.arxiv_full_text import written_text
from paper_assets.sources.known_hosts import KnownHosts, RefusedAddress
from paper_assets.sources.pdf_files import download_pdf, download_text
from paper_assets.sources.pdf_text import pdf_text
from paper_assets.sources.semantic_scholar import SEMANTIC_SCHOLAR
from paper_assets.sources.source import PaperText, RefusedKey, SecondsLeft, Source, SourceRecord
from paper_assets.sources.table import SOURCES, page_of, source_of, texts_of
from paper_assets.stores.documents import PARTED_BY, Fulltext, public_fulltext
from paper_assets.stores.papers import find_paper, paper_titled, papers_by_id, papers_with_words
from paper_assets.stores.scholar_records import records_of
from paper_assets.text.chunks import chunks_of

LONGEST_TITLE = 500  # characters; longer texts are not titles
_MOST_TITLES = 200  # stored titles compared word by word


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPaper:
    """A paper by the id of a source in the table, in a version (None: the newest)."""

    paper_id: PaperId
    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfUrl:
    """The URL of a PDF without any identifier."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Title:
    """The title of a paper as a person remembers it."""

    text: str


Identified = NamedPaper | PdfUrl | Title


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
        return NamedPaper(paper_id=paper_id, version=version)
    if url is not None:
        paper = _named(url) or _pdf_at(hosts.check(url))
        if paper is None:
            raise InvalidInput(
                f"no paper can be recognised in this url; give one like {page_of('2501.12345')}, "
                "a paper's page at www.semanticscholar.org, or the address of a PDF"
            )
        return paper
    if pdf_url is not None:
        named = _named(pdf_url)
        keeps_texts = named and (source := source_of(str(named.paper_id))) and source.texts
        return named if named and keeps_texts else PdfUrl(url=hosts.check(pdf_url))
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


def _named(url: str) -> NamedPaper | None:
    """Return the paper whose id a URL contains; no request is made, so any scheme and host will do."""
    for source in SOURCES:
        if source.named_by and (identity := source.named_by(url)):
            return NamedPaper(paper_id=identity[0], version=identity[1])
    return None


def _pdf_at(url: str) -> PdfUrl | None:
    path = unquote(urlsplit(url).path).lower()
    return PdfUrl(url=url) if path.endswith(".pdf") or path == "/pdf" else None


ContentSource = Literal["warehouse", "html", "latex", "pdf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPaper:
    """A paper and, if requested and available, its whole text (passages separated by blank lines).

    `warnings` name the sources that failed, and say why a text was not stored.
    """

    paper: Paper
    content: str | None = None
    content_source: ContentSource | None = None
    url: str | None
    citation_count: int | None = None
    warnings: tuple[str, ...] = ()


def find(clients: Clients, named: NamedPaper | Title, left: SecondsLeft) -> FetchedPaper:
    """Look up a paper. Raises PaperNotFound, SourceError, RefusedKey, InvalidInput, StoreError."""
    if isinstance(named, Title):
        return _by_title(clients, named.text, left)
    if named.paper_id.source == SEMANTIC_SCHOLAR.prefix:
        return _by_scholar_id(clients, named.paper_id, left)
    return _by_id(clients, named, left)


def _by_id(clients: Clients, named: NamedPaper, left: SecondsLeft) -> FetchedPaper:
    warnings: tuple[str, ...] = ()
    try:
        stored = find_paper(clients.warehouse, str(named.paper_id))
        if stored is not None and named.version in (None, stored.version):
            return _stored(clients, stored)
    except StoreBusy as error:
        warnings = (f"the warehouse was not asked: {error}",)
    name = f"{named.paper_id}" + (f"v{named.version}" if named.version else "")
    source = source_of(str(named.paper_id))
    if source is None or source.find is None:
        raise PaperNotFound(
            f"paper {name} is not stored, and no source can be asked for it", details={"arxiv_id": str(named.paper_id)}
        )
    try:
        record = source.find(clients.access(left, others_follow=True), named.paper_id, named.version)
    except SourceError as failure:
        instead = _from_another(clients, source, named, failure, left)
        return replace(instead, warnings=(*warnings, f"{source.title}: {failure}", *instead.warnings))
    if record is None:
        searched = {"arxiv_id": str(named.paper_id), "searched_sources": ["desk", source.name]}
        raise PaperNotFound(f"{source.title} has no paper {name}; check the id", details=searched)
    return _record(source, record, warnings)


def _from_another(
    clients: Clients, silent: Source, named: NamedPaper, failure: SourceError, left: SecondsLeft
) -> FetchedPaper:
    """Ask another source about a paper whose own source failed; raises `failure` if it knows nothing."""
    for source in SOURCES:
        if source is silent or source.find is None:
            continue
        try:
            other = source.find(clients.access(left), named.paper_id, named.version)
        except (SourceError, RefusedKey):
            continue
        if other is not None:
            record, asked = _record(source, other), named.version
            if asked is None:
                return record
            address = pdf_address(record.paper.paper_id, asked)
            return replace(record, paper=replace(record.paper, version=asked, pdf_url=address))
    raise failure


def _by_scholar_id(clients: Clients, paper_id: PaperId, left: SecondsLeft) -> FetchedPaper:
    answer = SEMANTIC_SCHOLAR.find(clients.access(left), paper_id, None) if SEMANTIC_SCHOLAR.find else None
    if answer is None:
        raise PaperNotFound(
            f"Semantic Scholar has no paper {paper_id.value}; check the url",
            details={"searched_sources": ["desk", SEMANTIC_SCHOLAR.name]},
        )
    known_as, _ = split_paper_id(answer.paper.paper_id)
    record = _record(SEMANTIC_SCHOLAR, answer)
    if known_as.source == SEMANTIC_SCHOLAR.prefix:
        return record
    try:
        of_its_own = _by_id(clients, NamedPaper(paper_id=known_as, version=None), left)
    except SourceError as failure:
        return replace(record, warnings=(f"{ARXIV.title}: {failure}", *record.warnings))
    return replace(of_its_own, citation_count=answer.citation_count)


def _by_title(clients: Clients, title: str, left: SecondsLeft) -> FetchedPaper:
    """Find the paper with this title, ignoring punctuation, else the only one whose title has all of its words.

    Raises PaperNotFound with those that have all of them in its details, and the source's error if none could be found
    and a source failed.
    """
    warnings: list[str] = []
    in_part: dict[str, FetchedPaper] = {}
    failures: list[SourceError | RefusedKey] = []
    try:
        stored = paper_titled(clients.warehouse, title)
        if stored is not None:
            return _stored(clients, stored)
        near = papers_with_words(clients.warehouse, _title_words(title), most=_MOST_TITLES)
        matching = [paper_id for paper_id, other in near if _has_words(other, title)]
        for paper in papers_from_table(papers_by_id(clients.warehouse, matching)):
            in_part[paper.paper_id] = _stored(clients, paper)
    except StoreBusy as error:
        warnings.append(f"the warehouse was not asked: {error}")
    asked = [(source, source.titled) for source in SOURCES if source.titled]
    for place, (source, titled) in enumerate(asked, 1):
        try:
            records = titled(clients.access(left, others_follow=place < len(asked)), title)
        except (SourceError, RefusedKey) as error:
            failures.append(error)
            warnings.append(f"{source.title}: {error}")
            continue
        for record in records:
            if same_title(record.paper.title, title):
                return _record(source, record, tuple(warnings))
            if _has_words(record.paper.title, title):
                in_part.setdefault(record.paper.paper_id, _record(source, record))
    if len(in_part) == 1:
        [found] = in_part.values()
        return replace(found, warnings=(*warnings, *found.warnings))
    if failures and not in_part:  # the failed source may have known it
        raise failures[0]
    candidates = [{"arxiv_id": paper_id, "title": each.paper.title} for paper_id, each in in_part.items()]
    hint = "; ".join(f"{each['title']!r} ({each['arxiv_id']})" for each in candidates[:3])
    raise PaperNotFound(
        f"no source has a paper titled {title[:100]!r}; "
        + (f"{len(candidates)} titles have its words, such as {hint}" if hint else "check it, or search for its words"),
        details={"searched_sources": ["desk", *(source.name for source, _ in asked)], "candidates": candidates[:20]},
    )


def _title_words(title: str) -> list[str]:
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", title) if not unicodedata.combining(sign))
    return re.findall(r"[^\W_]+", plain.casefold())


def _has_words(title: str, asked: str) -> bool:
    return set(_title_words(asked)) <= set(_title_words(title))


def _stored(clients: Clients, paper: Paper) -> FetchedPaper:
    record = records_of(clients.warehouse, [paper.paper_id]).get(paper.paper_id)
    return FetchedPaper(
        paper=paper, url=page_of(paper.paper_id), citation_count=record.citation_count if record else None
    )


def _record(source: Source, record: SourceRecord, warnings: tuple[str, ...] = ()) -> FetchedPaper:
    lacking = (f"this is {source.title}'s record: {source.lacks} are unknown",) if source.lacks else ()
    return FetchedPaper(
        paper=record.paper,
        url=page_of(record.paper.paper_id),
        citation_count=record.citation_count,
        warnings=(*warnings, *lacking),
    )


_FORMS = {"html": "HTML", "latex": "LaTeX source", "pdf": "PDF"}


def with_content(clients: Clients, fetched: FetchedPaper, left: SecondsLeft) -> FetchedPaper:
    """Add the text to a paper. Raises PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable."""
    paper = fetched.paper
    stored: Fulltext | None = None
    with suppress(StoreError):  # a busy warehouse must not delay a PDF
        stored = public_fulltext(clients.warehouse, paper.paper_id)
    if stored is not None and stored.version == paper.version:
        return replace(fetched, content=stored.text, content_source="warehouse")
    address, form, pages = _read(clients, paper, left)
    newest = stored is None or stored.version < paper.version
    warning = _keep(clients, paper, pages) if newest and is_text_of(address, paper.paper_id, paper.version) else None
    warnings = (*fetched.warnings, warning) if warning else fetched.warnings
    return replace(fetched, content=join_pages(pages), content_source=form, warnings=warnings)


def _read(
    clients: Clients, paper: Paper, left: SecondsLeft
) -> tuple[str, Literal["html", "latex", "pdf"], tuple[str, ...]]:
    """Return the first readable text of those that the source offers, with its address and form. Raises PdfFetchFailed
    with what was wrong with each form.
    """
    failures: dict[str, str] = {}
    for text in texts_of(paper, clients.settings):
        try:
            if text.form == "pdf":
                return text.url, "pdf", pdf_pages(clients, text.url, named=f"the PDF of {paper.paper_id}", left=left)
            return text.url, text.form, (_written(clients, text, paper, left),)
        except RefusedAddress as error:
            failures[text.form] = f"the PDF of {paper.paper_id} is not fetched: {error}"
        except PdfFetchFailed as error:  # try the next form
            failures[text.form] = str(error)
    if not failures:
        raise PdfFetchFailed(f"no source says where the PDF of {paper.paper_id} is; retry without its content")
    if len(failures) == 1:
        raise PdfFetchFailed(*failures.values())
    each = "; ".join(f"{_FORMS[form]}: {reason}" for form, reason in failures.items())
    raise PdfFetchFailed(f"no form of {paper.paper_id} gave its text; retry without its content. Tried {each}")


def _written(clients: Clients, text: PaperText, paper: Paper, left: SecondsLeft) -> str:
    """Return the text of an HTML page or a LaTeX source."""
    clients.hosts.check(text.url)
    with clients.texts(text.url, left) as session:
        content = download_text(text.url, session=session, hosts=clients.hosts, form=_FORMS[text.form])
    return written_text(text.form, content, name=f"the {_FORMS[text.form]} of {paper.paper_id}")


def pdf_pages(clients: Clients, url: str, *, named: str, left: SecondsLeft) -> tuple[str, ...]:
    """Return the text of each page of the PDF at an address; the PDF is stored in the folder `pdfs`.

    Raises RefusedAddress, PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable.
    """
    url = clients.hosts.check(url)  # a source's answer may not be a valid URL
    file = clients.settings.home / "pdfs" / f"{digest(url)}.pdf"
    with clients.texts(url, left) as session:
        # Without a version, arXiv may serve another PDF at this address tomorrow.
        again = url.startswith(clients.settings.arxiv_pdf_url) and not names_version(url)
        download_pdf(url, to=file, session=session, hosts=clients.hosts, again=again)
    try:
        return pdf_text(file, name=named, most_bytes=int(clients.settings.pdf_megabytes * 1_000_000))
    except PdfFetchFailed:
        file.unlink(missing_ok=True)  # the next download may be complete
        raise


def join_pages(pages: tuple[str, ...]) -> str:
    """Join the pages as the passages are joined that they are stored as."""
    return PARTED_BY.join(chunks_of("\n".join(pages), size=PASSAGE, overlap=0))


def digest(url: str) -> str:
    """Return 32 hex digits that identify an address."""
    return sha256(url.encode()).hexdigest()[:32]


def _keep(clients: Clients, paper: Paper, pages: tuple[str, ...]) -> str | None:
    """Store the text for retrieval; return the reason if that is not possible now. The next retrieval embeds it."""
    try:
        keep_fulltext(clients.warehouse, None, paper, pages)
    except (StoreError, InvalidInput) as error:
        return f"the text was not kept: {error}"
    return None
