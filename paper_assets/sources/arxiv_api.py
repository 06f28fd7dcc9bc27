"""Query the arXiv API: all papers first submitted on one day, search, and papers by id (SPEC S1, S2, I2).

The `arxiv` package builds the query and reads the entries. Transport, paging and completeness are handled here, because
the package takes an error page, a truncated feed or an empty first page for "no papers". Its entry reader is private
(`arxiv._feed`), which is why it is pinned below version 5; `read_entry` is the only caller.
"""

import logging
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import requests
from arxiv import Search, SortCriterion, SortOrder, _feed
from lxml import etree

from paper_assets.errors import IncompleteFeed, InvalidArxivId, InvalidInput, InvalidPaper, NetworkError
from paper_assets.paper import Paper, cut_to_limits
from paper_assets.paper_id import pdf_address, split_arxiv_id
from paper_assets.sources.paper_fields import code_url, is_withdrawn
from paper_assets.sources.polite_http import ask
from paper_assets.text.cleaning import one_line

_log = logging.getLogger(__name__)
ATOM = "{http://www.w3.org/2005/Atom}"
# No entities and no network, for safety; no comments, because a text is read only up to the first one.
STRICT_XML = {"resolve_entities": False, "no_network": True, "remove_comments": True, "remove_pis": True}
_TOTAL = "{http://a9.com/-/spec/opensearch/1.1/}totalResults"
_CATEGORY = re.compile(r"[a-z]+(?:-[a-z]+)*(?:\.(?:\*|[A-Za-z]+(?:-[A-Za-z]+)*))?")
_PAGE = 1000  # S1
_MOST_DIGITS = 12  # of totalResults; arXiv has some three million papers
_MOST_PAPERS = 30_000  # far beyond any real day: an answer that announces more has ignored the query


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Hold one page of the API: its papers in order, and the total of the query. `faults`: by the id of each entry that
    is not a whole paper.
    """

    papers: tuple[Paper, ...]
    total: int
    faults: Mapping[str, str] = field(default_factory=dict)


def fetch_day(day: date, *, categories: Sequence[str], url: str, session: requests.Session) -> list[Paper]:
    """Fetch every paper that arXiv lists for `day` (UTC) in one of the categories, oldest first, each once.

    The number of unique papers received must equal the number announced on every page; otherwise the day is fetched
    once more. A paper of the day before or after is included (arXiv splits days by its index, not by `published`),
    since it may be listed for no other day; one further away means that the query was ignored. Raises RateLimited,
    NetworkError, IncompleteFeed; InvalidInput for an invalid category.
    """
    query = _day_query(day, categories)
    try:
        papers = _fetch_all(query, url=url, session=session)
    except IncompleteFeed:
        papers = _fetch_all(query, url=url, session=session)
    return _near_day(papers, day)


def parse_feed(content: bytes) -> Feed:
    """Parse one answer of the API. Raises IncompleteFeed for anything but a complete, well-formed feed of papers."""
    try:
        root = etree.fromstring(content, parser=etree.XMLParser(**STRICT_XML))
    except (etree.XMLSyntaxError, ValueError):
        raise IncompleteFeed(f"arXiv's answer is {_looks_like(content)}, not a whole feed; try again later") from None
    if not is_atom(root):
        raise IncompleteFeed(f"arXiv's answer is {_looks_like(content)}, not a feed; try again later")
    total = (root.findtext(_TOTAL) or "").strip()
    if not (total.isascii() and total.isdecimal() and len(total) <= _MOST_DIGITS):
        raise IncompleteFeed("arXiv's answer does not say how many papers there are; try again later")
    papers, faults = list[Paper](), dict[str, str]()
    for entry in root.iterfind(f"{ATOM}entry"):
        try:
            papers.append(cut_to_limits(read_entry(entry)))
        except InvalidPaper as error:
            if "arxiv_id" not in error.details:
                raise IncompleteFeed(f"arXiv's answer is faulty: {error}") from None
            faults[error.details["arxiv_id"]] = str(error)
    return Feed(papers=tuple(papers), total=int(total), faults=faults)


def is_atom(root: Any) -> bool:
    """Check for the outermost element of an Atom feed. A DOCTYPE is refused: its entities would truncate texts."""
    return bool(root.tag == f"{ATOM}feed" and not root.getroottree().docinfo.doctype)


def read_entry(entry: Any) -> Paper:
    """Read a paper from an Atom `<entry>` (lxml element). Raises InvalidPaper: error entry, bad id, missing field."""
    entry_id = " ".join((entry.findtext(f"{ATOM}id") or "").split())
    title = one_line(entry.findtext(f"{ATOM}title") or "")
    if "/api/errors" in entry_id or (title == "Error" and not _is_paper(entry_id)):
        raise InvalidPaper(f"error entry: {' '.join((entry.findtext(f'{ATOM}summary') or 'no reason').split())[:200]}")
    try:
        paper_id, version = split_arxiv_id(entry_id)
        result = _feed._build_result(entry)
    except InvalidArxivId as error:
        raise InvalidPaper(f"entry id {error}") from None
    except (ValueError, OverflowError):
        raise InvalidPaper(f"entry {paper_id}: a date cannot be read") from None
    if not title:
        raise InvalidPaper(f"entry {paper_id} has no title", details={"arxiv_id": paper_id})
    if result is None:
        raise InvalidPaper(f"entry {paper_id}: published or updated is missing")
    comment, abstract = _one_line(result.comment), _one_line(result.summary) or ""
    authors = [name for author in result.authors if (name := _one_line(author.name))]
    affiliations = [place for author in result.authors for text in author.affiliation if (place := _one_line(text))]
    categories = tuple(dict.fromkeys(result.categories))
    return Paper(
        paper_id=paper_id,
        version=version or 1,
        title=title,
        abstract=abstract,
        authors=tuple(authors),
        published=result.published,
        updated=result.updated,
        categories=categories,
        primary_category=result.primary_category or next(iter(categories), None),
        comment=comment,
        doi=_one_line(result.doi),
        journal_ref=_one_line(result.journal_ref),
        pdf_url=pdf_address(paper_id, version or 1),
        github_url=code_url(comment, abstract),
        affiliations=tuple(dict.fromkeys(affiliations)),
        withdrawn=is_withdrawn(comment, abstract),
    )


def check_category(category: str) -> None:
    """Raise InvalidInput for anything that cannot be a category or an archive."""
    if not _CATEGORY.fullmatch(category):
        raise InvalidInput(f"{category[:60]!r} is not an arXiv category; expected the form cs.CL or hep-th")


def _day_query(day: date, categories: Sequence[str]) -> dict[str, str]:
    """Return the query of a day (S1) as the API's parameters, without the page."""
    if not categories:
        raise InvalidInput("no category to fetch; set PAPER_ASSETS_CATEGORIES, for example to cs.CL,cs.LG")
    for category in categories:
        check_category(category)
    any_of = " OR ".join(f"cat:{category}" for category in categories)
    search = Search(
        query=f"({any_of}) AND submittedDate:[{day:%Y%m%d}0000 TO {day:%Y%m%d}2359]",
        sort_by=SortCriterion.SubmittedDate,
        sort_order=SortOrder.Ascending,
    )
    return dict(search._url_args())


def _fetch_all(query: dict[str, str], *, url: str, session: requests.Session) -> list[Paper]:
    """Fetch all pages of a query, each paper once in its newest version. Raises IncompleteFeed if any is missing.

    An entry that is not a whole paper is left out, and the log names it.
    """
    papers: dict[str, Paper] = {}
    faults: dict[str, str] = {}
    totals: set[int] = set()
    received = pages = 0
    while True:
        feed = feed_page(query, start=received, size=_PAGE, url=url, session=session)
        totals.add(feed.total)
        pages += 1
        received += len(feed.papers) + len(feed.faults)
        faults |= feed.faults
        for paper in feed.papers:
            known = papers.get(paper.paper_id)
            if known is None or paper.version > known.version:
                papers[paper.paper_id] = paper
        if feed.total > _MOST_PAPERS:
            raise IncompleteFeed(f"arXiv announced {feed.total} papers for one day; it has ignored the query")
        # Short pages are continued where they end, but only up to a limit.
        if not (feed.papers or feed.faults) or received >= feed.total or pages > 3 + 2 * feed.total // _PAGE:
            break
    if totals != {len(papers.keys() | faults.keys())}:
        announced = " then ".join(map(str, sorted(totals)))
        raise IncompleteFeed(f"arXiv announced {announced} papers and gave {len(papers)}; fetch the day again later")
    for fault in faults.values():
        _log.warning("left out: %s", fault)
    return list(papers.values())


def feed_page(query: Mapping[str, str], *, start: int, size: int, url: str, session: requests.Session) -> Feed:
    """Fetch one page of a query's answer. Raises RateLimited, NetworkError, IncompleteFeed."""
    parameters = {**query, "start": str(start), "max_results": str(size)}
    response = ask(session, "GET", url, params=parameters)
    if response.status_code == 200:
        return parse_feed(response.content)
    try:
        reason = "no reason given" if parse_feed(response.content) else ""
    except IncompleteFeed as error:
        reason = str(error)
    raise NetworkError(f"arXiv refused the query (HTTP {response.status_code}): {reason}")


def _near_day(papers: Sequence[Paper], day: date) -> list[Paper]:
    for paper in papers:
        if paper.day is None or abs((paper.day - day).days) > 1:
            raise IncompleteFeed(f"arXiv answered {paper.paper_id} of {paper.day} to the query for {day}")
    return list(papers)


def _is_paper(entry_id: str) -> bool:
    try:
        split_arxiv_id(entry_id)
    except InvalidArxivId:
        return False
    return True


def _one_line(text: str | None) -> str | None:
    return one_line(text) or None if text else None


def _looks_like(content: bytes) -> str:
    start = content[:1000].lstrip().lower()
    if not start:
        return "empty"
    if start.startswith((b"<!doctype html", b"<html")):
        return "a web page"
    return "damaged or cut off" if start.startswith(b"<") else "plain text"


_MOST_WORDS = 40  # words of one query; a longer one is an abstract, on which arXiv's server times out
_PIECE = re.compile(r'"([^"]*)"|(\S+)')
# Not `text/words.py`: what is sent to arXiv keeps the case and the accents in which it was typed.
_PART_OF_A_WORD = re.compile(r"[^\W_]+")


def search(
    query: str,
    *,
    author: str | None = None,
    category: str | None = None,
    limit: int,
    url: str,
    session: requests.Session,
) -> Feed:
    """Return the best `limit` papers by arXiv's relevance, and the total.

    Raises InvalidInput (no word to search for, no category), RateLimited, NetworkError, IncompleteFeed.
    """
    parameters = {
        "search_query": search_query(query, author=author, category=category),
        "sortBy": "relevance",
        "sortOrder": "descending",
    }
    return feed_page(parameters, start=0, size=limit, url=url, session=session)


def titled(title: str, *, limit: int, url: str, session: requests.Session) -> Feed:
    """Return papers whose title contains the words of `title`, best first. Raises what `search` raises."""
    parameters = {"search_query": _all_of("ti", title), "sortBy": "relevance", "sortOrder": "descending"}
    return feed_page(parameters, start=0, size=limit, url=url, session=session)


def paper_by_id(paper_id: str, *, version: int | None, url: str, session: requests.Session) -> Paper | None:
    """Return the paper in the given version (None: the newest), None if arXiv has none.

    Raises RateLimited, NetworkError, IncompleteFeed.
    """
    identifier = f"{paper_id}v{version}" if version else paper_id
    feed = feed_page({"id_list": identifier}, start=0, size=1, url=url, session=session)
    return next((paper for paper in feed.papers if paper.paper_id == paper_id), None)


def search_query(query: str, *, author: str | None = None, category: str | None = None) -> str:
    """Build the API's query for a user's words: all of them, quoted ones as a phrase.

    Nothing that the API could read as its grammar is passed on: only letters and digits, and those in quotes. Raises
    InvalidInput.
    """
    clauses = [_all_of("all", query)] if query.strip() else []
    if author is not None and author.strip():
        clauses.append(f"au:{_phrase(author, 'author')}")
    if category is not None and category.strip():
        check_category(category.strip())
        clauses.append(f"cat:{category.strip()}")
    if not clauses:
        raise InvalidInput("query is empty; give words to search for, an author or a category")
    return " AND ".join(clauses)


def _all_of(field: str, text: str) -> str:
    pieces = [quoted or word for quoted, word in _PIECE.findall(text.replace("\u201c", '"').replace("\u201d", '"'))]
    phrases = [phrase for piece in pieces if (phrase := _words(piece))]
    if not phrases:
        raise InvalidInput(f"{text[:60]!r} has no word to search for")
    if len(phrases) > _MOST_WORDS:
        raise InvalidInput(f"the query has {len(phrases)} words; give at most {_MOST_WORDS}")
    return " AND ".join(f'{field}:"{phrase}"' for phrase in phrases)


def _phrase(text: str, name: str) -> str:
    words = _words(text)
    if not words:
        raise InvalidInput(f"{name} {text[:60]!r} has no letter")
    return f'"{words}"'


def _words(text: str) -> str:
    """Return the words of a text, separated by one space. A hyphen separates, as in arXiv's index."""
    return " ".join(_PART_OF_A_WORD.findall(unicodedata.normalize("NFC", text)))
