"""Which paper is meant: an id, an address, or words, as people and programs give them (SPEC I2, I8). Pure."""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from paper_assets.arxiv_ids import split_arxiv_id
from paper_assets.errors import InvalidInput
from paper_assets.paper_id import PaperId, split_paper_id
from paper_assets.sources.known_hosts import KnownHosts
from paper_assets.sources.table import SOURCES, page_of, source_of

LONGEST_TITLE = 500  # characters; longer ones are no titles


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A paper by the id of a source in the table, in a version (None: the newest)."""

    paper_id: PaperId
    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LonePdf:
    """A PDF of which nothing else is known."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Title:
    """The title of a paper, as somebody remembers it."""

    text: str


Identified = Work | LonePdf | Title


def identified(
    *, arxiv_id: str | None, url: str | None, pdf_url: str | None, title: str | None, hosts: KnownHosts
) -> Identified:
    """The first identifier given counts, in this order.

    Raises InvalidArxivId, RefusedAddress, InvalidInput: it is not what it should be, or none is given.
    """
    if arxiv_id is not None:
        if source_of(arxiv_id) is None:
            split_arxiv_id(arxiv_id)  # says what an id looks like
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
    """Whether two titles are one: the same letters and digits, whatever lies between them."""
    return _letters(one) == _letters(other) != ""


def _letters(text: str) -> str:
    return "".join(re.findall(r"[^\W_]+", text.casefold()))


def _named(url: str) -> Work | None:
    """The paper whose id an address holds: nothing is asked there, so any scheme and host that names one will do."""
    for source in SOURCES:
        if source.named_by and (found := source.named_by(url)):
            return Work(paper_id=found[0], version=found[1])
    return None


def _pdf_at(url: str) -> LonePdf | None:
    path = unquote(urlsplit(url).path).lower()
    return LonePdf(url=url) if path.endswith(".pdf") or path == "/pdf" else None
