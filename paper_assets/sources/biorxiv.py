"""Describe bioRxiv and medRxiv as sources: days, papers and PDFs (SPEC Z5). Off unless PAPER_ASSETS_SOURCES names them.

Both share one API. Its list of a day holds every version posted that day; a paper's day is that of its first version,
so a list is reduced to the papers that are new on it, and a revision is seen when the paper is fetched by id. The API
has no times: a paper is dated midnight UTC of its day. It has no search.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from functools import partial
from html import unescape
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import requests

from paper_assets.errors import IncompleteFeed, InvalidPaper, NetworkError
from paper_assets.paper import Paper, cut_to_limits, paper_from_mapping
from paper_assets.paper_id import PaperId
from paper_assets.settings import Settings
from paper_assets.sources.known_hosts import known_hosts
from paper_assets.sources.paper_fields import code_url, is_withdrawn
from paper_assets.sources.polite_http import ask
from paper_assets.sources.source import Access, PapersOfDay, PaperText, Source, SourceRecord

INTERVAL = 1.0  # seconds between two requests; the API documents no limit
_DOI = re.compile(r"10\.\d{4,9}/[A-Za-z0-9._;()/-]{1,150}", re.ASCII)
_PATH = re.compile(
    r"/content/(?:early/[\d/]+/)?(?P<doi>10\.\d{4,9}/[^/]+?)(?:v(?P<version>[1-9]\d{0,3}))?(?:\.[a-z.-]+)?/?"
)
_TAG = re.compile(
    r"</?(?:jats:)?(?:p|i|b|em|strong|italic|bold|sub|sup|sc|sec|title|u)(?:\s[^<>]{0,80})?/?>", re.IGNORECASE
)
_MOST_PAPERS = 30_000  # far beyond any real day
_MOST_PAGES = 1_000
_NOTHING = "no posts found"


def papers_of_day(day: date, *, server: str, url: str, session: requests.Session) -> list[Paper]:
    """Fetch every paper that `server` first posted on `day`, each once in its newest version of that day.

    The number of versions received must equal the number announced. Raises RateLimited, NetworkError, IncompleteFeed.
    """
    seen: dict[tuple[str, int], Mapping[str, Any]] = {}
    received = total = pages = 0
    while True:
        message, records = _answer(f"{url}/details/{server}/{day}/{day}/{received}", session)
        if message is None:
            break
        total, pages = _total(message), pages + 1
        received += len(records)
        seen |= {(record["doi"], int(record["version"])): record for record in records}
        if not records or received >= total or pages >= _MOST_PAGES:
            break
    if len(seen) != total:
        raise IncompleteFeed(f"{server} announced {total} versions for {day} and gave {len(seen)}; fetch the day again")
    if wrong := next((record for record in seen.values() if record["date"] != f"{day}"), None):
        raise IncompleteFeed(f"{server} answered {wrong['doi']} of {wrong['date'][:20]} to the query for {day}")
    new = {doi for doi, version in seen if version == 1}
    newest = {doi: version for doi, version in sorted(seen) if doi in new}
    return [_paper(server, [seen[doi, 1], seen[doi, version]]) for doi, version in newest.items()]


def paper_by_doi(doi: str, version: int | None, *, server: str, url: str, session: requests.Session) -> Paper | None:
    """Fetch the paper in a version (None: the newest); None if the server has none. Raises as `papers_of_day`."""
    if not _DOI.fullmatch(doi):
        return None
    message, records = _answer(f"{url}/details/{server}/{quote(doi, safe='/')}", session)
    versions = {int(record["version"]): record for record in records if record["doi"].lower() == doi.lower()}
    newest = version or max(versions, default=0)
    if message is None or newest not in versions:
        return None
    return _paper(server, [versions[min(versions)], versions[newest]])


def _answer(url: str, session: requests.Session) -> tuple[Mapping[str, Any] | None, list[Mapping[str, Any]]]:
    """Return the message and the records of an answer; None and an empty list where there are no papers."""
    response = ask(session, "GET", url)
    if response.status_code != 200:
        raise NetworkError(f"bioRxiv's API refused the query (HTTP {response.status_code}); try again later")
    try:
        answer = json.loads(response.content)
        [message] = answer["messages"]
        status = message["status"]
        if status != "ok":
            if str(status).lower().startswith(_NOTHING):
                return None, []
            raise IncompleteFeed(f"bioRxiv's API says {str(status)[:100]!r}; try again later")
        records = answer["collection"]
        if not all(re.fullmatch(r"[1-9]\d{0,3}", str(each["version"]), re.ASCII) and each["doi"] for each in records):
            raise ValueError
        return message, [{**each, "date": str(each["date"]), "doi": str(each["doi"])} for each in records]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise IncompleteFeed("bioRxiv's answer is truncated or not a list of papers; try again later") from None


def _total(message: Mapping[str, Any]) -> int:
    text = str(message.get("total", ""))
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) > _MOST_PAPERS:
        raise IncompleteFeed("bioRxiv's API does not say how many papers there are, or too many; try again later")
    return int(text)


def _paper(server: str, versions: list[Mapping[str, Any]]) -> Paper:
    """Build the paper from its first and its newest record."""
    first, newest = versions[0], versions[-1]
    doi, version = newest["doi"], int(newest["version"])
    title, abstract = (_plain(newest.get(name)) for name in ("title", "abstract"))
    category = _plain(newest.get("category")).lower()
    journal = _plain(newest.get("published"))
    place = _plain(newest.get("author_corresponding_institution"))
    try:
        if not _DOI.fullmatch(doi):
            raise InvalidPaper("its DOI is invalid")
        paper = paper_from_mapping(
            {
                "paper_id": str(PaperId(server, doi)),
                "version": version,
                "title": title,
                "abstract": abstract,
                "authors": _authors(newest.get("authors")),
                "published": first["date"],
                "updated": newest["date"],
                "categories": [category] if category else [],
                "primary_category": category or None,
                "doi": doi,
                "journal_ref": f"doi:{journal}" if journal and journal.upper() != "NA" else None,
                "pdf_url": _pdf(server, doi, version),
                "github_url": code_url(None, abstract),
                "affiliations": [place] if place and place.upper() != "NA" else [],
                "withdrawn": title.startswith("WITHDRAWN") or is_withdrawn(None, abstract),
            }
        )
        return cut_to_limits(paper)
    except InvalidPaper as fault:
        raise IncompleteFeed(f"{server}'s answer is faulty: {doi[:80]}: {fault}") from None


def _authors(value: object) -> list[str]:
    """Parse `Moreau, A.; Sample, B.` as `A. Moreau`, `B. Sample`."""
    names = []
    for part in str(value or "").split(";"):
        last, comma, first = _plain(part).partition(",")
        names.append(f"{first.strip()} {last.strip()}".strip() if comma else last.strip())
    return [name for name in names if name]


def _plain(value: object) -> str:
    """Return a text of the API on one line, without the tags that some abstracts contain."""
    text = value if isinstance(value, str) else ""
    return " ".join(_TAG.sub(" ", unescape(text)).split()) if "<" in text or "&" in text else " ".join(text.split())


def _pdf(server: str, doi: str, version: int) -> str:
    return f"https://www.{server}.org/content/{doi}v{version}.full.pdf"


def _session(access: Access) -> AbstractContextManager[requests.Session]:
    interval = min(access.settings.request_interval, INTERVAL)
    return access.session(gate="biorxiv", interval=interval, hosts=known_hosts((access.settings.biorxiv_url,)))


@contextmanager
def _days(server: str, access: Access) -> Iterator[PapersOfDay]:
    with _session(access) as session:
        yield lambda day: papers_of_day(day, server=server, url=access.settings.biorxiv_url, session=session)


def _find(server: str, access: Access, paper_id: PaperId, version: int | None) -> SourceRecord | None:
    if paper_id.source != server:
        return None
    with _session(access) as session:
        url = access.settings.biorxiv_url
        paper = paper_by_doi(paper_id.value, version, server=server, url=url, session=session)
    return SourceRecord(paper=paper) if paper else None


def _named_by(server: str, url: str) -> tuple[PaperId, int | None] | None:
    try:
        parts = urlsplit(url.strip())
    except ValueError:  # not a URL
        return None
    ours = parts.hostname in (f"{server}.org", f"www.{server}.org") and parts.scheme in ("http", "https")
    match = _PATH.fullmatch(unquote(parts.path)) if ours else None
    if match is None or not _DOI.fullmatch(match["doi"]):
        return None
    return PaperId(server, match["doi"]), int(match["version"]) if match["version"] else None


def _texts(server: str, paper: Paper, settings: Settings) -> tuple[PaperText, ...]:
    doi = paper.paper_id.partition(":")[2]
    return (PaperText(form="pdf", url=_pdf(server, doi, paper.version)),)


def _page(server: str, paper_id: PaperId) -> str:
    return f"https://www.{server}.org/content/{paper_id.value}"


def _source(server: str, title: str) -> Source:
    return Source(
        name=server,
        title=title,
        prefix=server,
        hosts=(f"www.{server}.org",),
        page=partial(_page, server),
        named_by=partial(_named_by, server),
        texts=partial(_texts, server),
        open_days=partial(_days, server),
        find=partial(_find, server),
    )


BIORXIV, MEDRXIV = _source("biorxiv", "bioRxiv"), _source("medrxiv", "medRxiv")
