"""Entries of reference managers: the id of each work, and their import as papers that a profile likes.

A work is matched by arXiv id or DOI, else by its title. Importing the same library again changes nothing; a work with
neither id nor title is reported, and a rating given elsewhere is kept.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from paper_assets.errors import InvalidArxivId
from paper_assets.learning.ratings import check_profile
from paper_assets.paper_id import split_paper_id
from paper_assets.stores.feedback import NewRating, append_ratings, rating_history
from paper_assets.stores.papers import papers_by_id, papers_with_titles
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.cleaning import one_line

_ARXIV_DOI = re.compile(r"10\.48550/arxiv\.(.+)", re.IGNORECASE)
_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
_ARXIV_WORDS = re.compile(r"arxiv(?:\.org/(?:abs|pdf|html)/|[:.\s]\s*)(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One work of a library; `where` locates it in messages. Unknown fields are empty."""

    where: str
    title: str = ""
    abstract: str = ""
    doi: str = ""
    arxiv: str = ""  # an id or an address, as written
    url: str = ""
    fault: str = ""  # why nothing else is known


def library_id(entry: Entry) -> str | None:
    """Return the id under which a work is rated: its arXiv id, else `doi:…`, else `title:…`, else None."""
    for text in (entry.arxiv, entry.doi, entry.url):
        if found := _arxiv_id(text):
            return found
    if found_doi := _DOI.search(entry.doi or entry.url):
        return f"doi:{found_doi[1].rstrip('.').lower()}"
    letters = re.sub(r"\W|_", "", entry.title.casefold())
    return f"title:{sha256(letters.encode()).hexdigest()[:16]}" if letters else None


def clean_field(text: object) -> str:
    """Return untrusted text as one line, without control characters and without braces that protect capitals."""
    return one_line(re.sub(r"[{}]", "", str(text or "")))


def arxiv_named(*texts: object) -> str:
    """Return the first text with an arXiv id, "" without one. An id alone counts where another of the texts names
    arXiv, as in `journal = {CoRR}, volume = {abs/2501.12345}`.
    """
    fields = [clean_field(text) for text in texts]
    if not any(re.search(r"arxiv|\bcorr\b", text, re.IGNORECASE) for text in fields):
        return ""
    return next((text for text in fields if _arxiv_id(text)), "")


def _arxiv_id(text: str) -> str | None:
    text = text.removeprefix("abs/")
    doi = _ARXIV_DOI.search(text)
    words = (found[1] for found in _ARXIV_WORDS.finditer(text))  # all: "arXiv preprint arXiv:2501.12345"
    for candidate in (text, doi[1] if doi else "", *words):
        try:
            found, _ = split_paper_id(candidate.strip().rstrip(".,;)]"))
        except InvalidArxivId:
            continue
        if found.source == "arxiv":
            return str(found)
    return None


_LONGEST_TITLE, _LONGEST_ABSTRACT = 1_000, 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result of an import: works read, ids newly liked, how many works are stored papers, and works left out."""

    read: int
    new: tuple[str, ...]
    stored: int
    left_out: tuple[str, ...]


def import_library(
    warehouse: Warehouse, profile: str, entries: Sequence[Entry], *, now: datetime, profiles_dir: Path
) -> Imported:
    """Rate every identifiable work "worth reading". Raises InvalidProfile, StoreBusy."""
    check_profile(warehouse, profile, profiles_dir)
    found: dict[str, Entry] = {}
    left_out = []
    titled = papers_with_titles(warehouse, list({entry.title for entry in entries if entry.title}))
    for entry in entries:
        paper_id = library_id(entry)
        if entry.fault:
            left_out.append(f"{entry.where}: {entry.fault}")
            continue
        if paper_id is None:
            left_out.append(f"{entry.where}: no arXiv id, DOI or title")
            continue
        if paper_id.startswith(("title:", "doi:")):
            paper_id = titled.get(entry.title, paper_id)
        found.setdefault(paper_id, entry)
    known = set(papers_by_id(warehouse, list(found)).column("paper_id").to_pylist())
    unknown = {each for each, entry in found.items() if each not in known and not entry.title}
    left_out += [f"{found[each].where}: {each} is not stored, and the entry has no title" for each in sorted(unknown)]
    rated = {each.paper_id for each in rating_history(warehouse, profile)}
    liked = [
        NewRating(
            paper_id=paper_id,
            rating="worth",
            title=None if paper_id in known else entry.title[:_LONGEST_TITLE],
            abstract=None if paper_id in known else entry.abstract[:_LONGEST_ABSTRACT],
        )
        for paper_id, entry in found.items()
        if paper_id not in rated and paper_id not in unknown
    ]
    new = append_ratings(warehouse, profile, liked, given_in="import", now=now)
    return Imported(
        read=sum(not entry.fault for entry in entries), new=tuple(new), stored=len(known), left_out=tuple(left_out)
    )
