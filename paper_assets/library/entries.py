"""Entries of reference managers as values, and the names by which a paper is known there (SPEC Z1, Z2)."""

import re
from dataclasses import dataclass
from hashlib import sha256

from paper_assets.errors import InvalidArxivId
from paper_assets.paper_id import split_paper_id
from paper_assets.text.cleaning import one_line

_ARXIV_DOI = re.compile(r"10\.48550/arxiv\.(.+)", re.IGNORECASE)
_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
_ARXIV_WORDS = re.compile(r"arxiv(?:\.org/(?:abs|pdf|html)/|[:.\s]\s*)(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One work of a library; `where` says where it stands, for messages. What is not known is empty."""

    where: str
    title: str = ""
    abstract: str = ""
    authors: tuple[str, ...] = ()
    year: str = ""
    doi: str = ""
    arxiv: str = ""  # an id or an address, as it is written
    url: str = ""


def known_as(entry: Entry) -> str | None:
    """The id under which a paper of the library is rated: arXiv's, else `doi:…`, else `title:…`; None without any."""
    for text in (entry.arxiv, entry.doi, entry.url):
        if found := _arxiv_id(text):
            return found
    if found_doi := _DOI.search(entry.doi or entry.url):
        return f"doi:{found_doi[1].rstrip('.').lower()}"
    letters = re.sub(r"\W|_", "", entry.title.casefold())
    return f"title:{sha256(letters.encode()).hexdigest()[:16]}" if letters else None


def cleaned(text: object) -> str:
    """Other people's text as one line without control characters and the braces that keep capitals."""
    return one_line(re.sub(r"[{}]", "", str(text or "")))


def _arxiv_id(text: str) -> str | None:
    doi, words = _ARXIV_DOI.search(text), _ARXIV_WORDS.search(text)
    for candidate in (text, doi[1] if doi else "", words[1] if words else ""):
        try:
            found, _ = split_paper_id(candidate.strip().rstrip(".,;)]"))
        except InvalidArxivId:
            continue
        if found.source == "arxiv":
            return str(found)
    return None
