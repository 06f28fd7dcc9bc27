"""Which paper is meant: an arXiv id, an address, or words, as people and programs give them (SPEC I2, I8). Pure."""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from paper_assets.errors import InvalidArxivId, InvalidInput
from paper_assets.paper import split_arxiv_id
from paper_assets.sources.known_hosts import KnownHosts

LONGEST_TITLE = 500  # characters; longer ones are no titles

_ARXIV_HOSTS = frozenset(("arxiv.org", "www.arxiv.org", "export.arxiv.org"))
_ARXIV_PATH = re.compile(r"/(?:abs|pdf|html)/(?P<id>.+?)(?:\.pdf)?/?")
_SCHOLAR_HOSTS = frozenset(("www.semanticscholar.org", "semanticscholar.org"))
_SCHOLAR_PATH = re.compile(r"/(?:paper|reader)/(?:[^/]+/)?(?P<id>[0-9a-f]{40})/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArxivPaper:
    """A work at arXiv, in a version (None: the newest)."""

    paper_id: str
    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScholarPage:
    """A paper by Semantic Scholar's own id."""

    scholar_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LonePdf:
    """A PDF of which nothing else is known."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Title:
    """The title of a paper, as somebody remembers it."""

    text: str


Identified = ArxivPaper | ScholarPage | LonePdf | Title


def identified(
    *, arxiv_id: str | None, url: str | None, pdf_url: str | None, title: str | None, hosts: KnownHosts
) -> Identified:
    """The first identifier given counts, in this order.

    Raises InvalidArxivId, RefusedAddress, InvalidInput: it is not what it should be, or none is given.
    """
    if arxiv_id is not None:
        paper_id, version = split_arxiv_id(arxiv_id)
        return ArxivPaper(paper_id=paper_id, version=version)
    if url is not None:
        found = _by_address(hosts.check(url))
        if found is None:
            raise InvalidInput(
                "no paper can be told from this url; give one like https://arxiv.org/abs/2501.12345, "
                "a paper's page at www.semanticscholar.org, or the address of a PDF"
            )
        return found
    if pdf_url is not None:
        address = hosts.check(pdf_url)
        found = _by_address(address)
        return found if isinstance(found, ArxivPaper) else LonePdf(url=address)
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


def _by_address(url: str) -> Identified | None:
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.hostname in _ARXIV_HOSTS:
        found = _ARXIV_PATH.fullmatch(path)
        if found is None:
            raise InvalidArxivId("the url is no page of a paper; expected the form https://arxiv.org/abs/2501.12345")
        paper_id, version = split_arxiv_id(found["id"])
        return ArxivPaper(paper_id=paper_id, version=version)
    if parts.hostname in _SCHOLAR_HOSTS:
        found = _SCHOLAR_PATH.fullmatch(path)
        return ScholarPage(scholar_id=found["id"]) if found else None
    return LonePdf(url=url) if path.lower().endswith(".pdf") or path.lower() == "/pdf" else None
