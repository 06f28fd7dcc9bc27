"""Harvest arXiv by OAI-PMH: what changed in one of its sets between two days, page by page (SPEC Z4).

The format requested is `arXivRaw`, the only one with the time of every version: the first version assigns a paper to
the same day as the API does. The content of an answer decides how it is read: records in the older format `arXiv`
(recorded pages, mirrors) are accepted too. They have the days of the first and the last version and single authors with
affiliations, but neither times nor the number of versions.

OAI's dates are those of the last change of a record, never of its submission: a paper that was revised in June is not
found between the days of May in which it was submitted. To get complete days, ask from the first day until now. Records
of all categories of a set are returned, including cross-listed ones.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import requests
from lxml import etree

from paper_assets.errors import IncompleteFeed, InvalidArxivId, InvalidInput, InvalidPaper, NetworkError
from paper_assets.paper import Paper, cut_to_limits
from paper_assets.paper_id import pdf_address, split_arxiv_id
from paper_assets.sources.arxiv_api import STRICT_XML, check_category
from paper_assets.sources.bulk_files import paper_from_record
from paper_assets.sources.polite_http import ask
from paper_assets.sources.source import ChangesPage, PlaceLost

OAI = "{http://www.openarchives.org/OAI/2.0/}"
_PHYSICS = {  # archives grouped under one name
    *("astro-ph", "cond-mat", "gr-qc", "hep-ex", "hep-lat", "hep-ph", "hep-th", "math-ph"),
    *("nlin", "nucl-ex", "nucl-th", "physics", "quant-ph"),
}
_TEXTS = ("id", "title", "abstract", "categories", "comments", "doi", "journal-ref")
# arXiv stores a withdrawal as an empty last version (observed, not documented); the comment mentions it too.
_NOTHING = re.compile(r"0\s*kb", re.IGNORECASE), "I"
_LONGEST_PLACE = 2_000  # characters of a resumption token


def sets_of(categories: Sequence[str]) -> tuple[str, ...]:
    """Return the sets that contain these categories: `cs:cs:CL` for cs.CL, `physics:hep-th` for hep-th.

    Raises InvalidInput for an invalid category.
    """
    names = []
    for category in categories:
        check_category(category)
        archive, _, part = category.partition(".")
        names.append(
            f"{'physics' if archive in _PHYSICS else archive}:{archive}" + (f":{part}" if part.strip("*") else "")
        )
    return tuple(dict.fromkeys(names))


def page_of_changes(
    name: str, first: date, last: date | None, place: str | None, *, url: str, session: requests.Session
) -> ChangesPage:
    """Fetch a page of the records of set `name` that changed in first..last (None: until now).

    `place` is a resumption token. A damaged page is fetched again once. Raises RateLimited, NetworkError,
    IncompleteFeed; PlaceLost for an expired token; InvalidInput if arXiv does not accept the set or the days.
    """
    query = {"verb": "ListRecords"}
    if place is not None:
        query["resumptionToken"] = place
    else:
        query |= {"metadataPrefix": "arXivRaw", "set": name, "from": f"{first}"} | (
            {"until": f"{last}"} if last else {}
        )
    try:
        return _request(query, url=url, session=session)
    except IncompleteFeed:
        return _request(query, url=url, session=session)


def parse_changes(content: bytes, *, resumed: bool = False) -> ChangesPage:
    """Parse an answer to ListRecords; `resumed`: requested by a token. Raises the errors of `page_of_changes`."""
    root = _root(content)
    error = root.find(f"{OAI}error")
    if error is not None:
        return _error(error, resumed=resumed)
    records = root.find(f"{OAI}ListRecords")
    if records is None:
        raise IncompleteFeed("arXiv's answer holds neither records nor an error; try again later")
    papers: list[Paper] = []
    removed: list[str] = []
    faults: list[str] = []
    for record in records.iterfind(f"{OAI}record"):
        named = (record.findtext(f"{OAI}header/{OAI}identifier") or "a record without identifier").strip()
        try:
            if record.find(f"{OAI}header").get("status") == "deleted":
                removed.append(split_arxiv_id(named)[0])
            else:
                papers.append(_paper(record))
        except (InvalidPaper, InvalidArxivId, AttributeError) as fault:
            faults.append(f"{named[:80]}: {fault if isinstance(fault, InvalidInput) else 'it has no header'}")
    if faults and not papers and not removed:
        raise IncompleteFeed(f"none of arXiv's {len(faults)} records is a paper: {faults[0]}")
    place = (records.findtext(f"{OAI}resumptionToken") or "").strip() or None
    if place is not None and len(place) > _LONGEST_PLACE:
        raise IncompleteFeed("arXiv's answer does not say where the list continues; try again later")
    return ChangesPage(papers=tuple(papers), removed=tuple(removed), faults=tuple(faults), next_page=place)


def _request(query: dict[str, str], *, url: str, session: requests.Session) -> ChangesPage:
    response = ask(session, "GET", url, params=query)
    try:
        return parse_changes(response.content, resumed="resumptionToken" in query)
    except IncompleteFeed:
        if response.status_code == 200:
            raise
        raise NetworkError(f"arXiv refused the harvest (HTTP {response.status_code}); try again later") from None


def _root(content: bytes) -> Any:
    try:
        root = etree.fromstring(content, parser=etree.XMLParser(**STRICT_XML))
    except (etree.XMLSyntaxError, ValueError):
        raise IncompleteFeed("arXiv's answer is not whole, well-formed XML; try again later") from None
    if root.tag != f"{OAI}OAI-PMH" or root.getroottree().docinfo.doctype:  # entities would truncate texts
        raise IncompleteFeed("arXiv's answer is not OAI-PMH; try again later")
    return root


def _error(error: Any, *, resumed: bool) -> ChangesPage:
    code, text = error.get("code") or "", " ".join((error.text or "no reason given").split())[:200]
    if code == "noRecordsMatch":
        return ChangesPage(papers=())
    if code == "badResumptionToken" or (resumed and code == "badArgument"):
        raise PlaceLost(f"arXiv no longer knows this position in its list ({text})")
    raise InvalidInput(f"arXiv does not understand the harvest: {text} ({code}); check the days and --set")


def _paper(record: Any) -> Paper:
    """Read the paper of an OAI record (an lxml element). Raises InvalidPaper."""
    for described in record.iterfind(f"{OAI}metadata/*"):
        space, _, name = described.tag.rpartition("}")
        if name in _FORMATS:
            space = f"{space}}}" if space else ""
            texts = {each: text for each in _TEXTS if (text := described.findtext(space + each)) is not None}
            return cut_to_limits(_FORMATS[name](described, space, {**texts, "id": texts.get("id", "").strip()}))
    raise InvalidPaper("the record is in neither of the formats arXivRaw and arXiv")


def _from_raw(raw: Any, space: str, texts: Mapping[str, str]) -> Paper:
    """Read the paper of an `arXivRaw` element, whose children are in the namespace `space`."""
    versions = {
        int(number): version
        for version in raw.iterfind(f"{space}version")
        if re.fullmatch(r"[1-9]\d{0,3}", number := (version.get("version") or "").removeprefix("v"), re.ASCII)
    }
    if 1 not in versions:
        raise InvalidPaper("the record does not say when the paper was first submitted")
    newest = versions[max(versions)]
    paper = paper_from_record(
        {
            **texts,
            "authors": raw.findtext(f"{space}authors"),
            "versions": [
                {"version": f"v{number}", "created": (versions[number].findtext(f"{space}date") or "").strip()}
                for number in sorted(versions)
            ],
        }
    )
    size, kind = (newest.findtext(f"{space}{name}") or "" for name in ("size", "source_type"))
    empty = _NOTHING[0].fullmatch(size.strip()) and _NOTHING[1] in kind
    return replace(paper, withdrawn=True) if empty else paper


def _from_older(described: Any, space: str, texts: Mapping[str, str]) -> Paper:
    """Read the paper of an `arXiv` element. A revised one counts as version 2: it is that or a later one.

    It therefore replaces a first version but never a newer known one; its PDF is that of the newest version.
    """
    created, updated = ((described.findtext(f"{space}{name}") or "").strip() for name in ("created", "updated"))
    if not created:
        raise InvalidPaper("the record does not say when the paper was first submitted")
    authors = [
        [_texts(author, f"{space}{name}") for name in ("keyname", "forenames", "suffix")]
        + [place.text or "" for place in author.iterfind(f"{space}affiliation")]
        for author in described.iterfind(f"{space}authors/{space}author")
    ]
    revised = bool(updated) and updated != created
    dates = {"published": created, "updated": updated or created, "version": "v2" if revised else "v1"}
    paper = paper_from_record({**texts, "authors_parsed": authors, **dates})
    return replace(paper, pdf_url=pdf_address(paper.paper_id)) if revised else paper


def _texts(element: Any, name: str) -> str:
    """Join the texts of all children of a name: some records split an author's name in two."""
    return " ".join(" ".join((each.text or "").split()) for each in element.iterfind(name))


_FORMATS = {"arXivRaw": _from_raw, "arXiv": _from_older}
