"""Query Semantic Scholar's Graph API: search, batches of ids, related papers, enrichment of a day (SPEC S4, I2, I9).

What it does not know stays unknown. An answer is read field by field: whatever is missing or of the wrong type becomes
None or empty, and only an answer of another shape altogether is an error. Enrichment never delays or fails the day
itself. Related papers are those cited by a paper, citing it, or similar to it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from urllib.parse import quote, unquote, urlsplit

import requests

from paper_assets.errors import InvalidArxivId, InvalidInput, NetworkError, SourceError
from paper_assets.paper import Paper, cut_to_limits
from paper_assets.paper_id import ARXIV, PaperId, is_arxiv_id, pdf_address, split_arxiv_id
from paper_assets.sources.paper_fields import code_url
from paper_assets.sources.polite_http import ask
from paper_assets.sources.source import Access, Question, RefusedKey, SearchPage, Source, SourceRecord
from paper_assets.text.cleaning import one_line

KEY_VARIABLE = "SEMANTIC_SCHOLAR_API_KEY"
MOST_IDS = 500  # the batch endpoint's own limit
INTERVAL = 1.0  # seconds between two requests; the limit with a key, and polite without one
PAPER_FIELDS = "title,abstract,authors,externalIds,publicationDate,journal,citationCount,url,openAccessPdf"
_BATCH_FIELDS = "title,abstract,externalIds,authors.name,authors.affiliations,citationCount"
ID_SOURCE = "S2"  # its ids are stored as `S2:` and 40 hex digits
_SCHOLAR_ID = re.compile(r"[0-9a-f]{40}")
_HOSTS = frozenset(("www.semanticscholar.org", "semanticscholar.org"))
_PATH = re.compile(r"/(?:paper|reader)/(?:[^/]+/)?(?P<id>[0-9a-f]{40})/?")
_MOST_CITATIONS = 2**31  # anything larger is not a count


@dataclass(frozen=True, slots=True, kw_only=True)
class Scholar:
    """A polite session, the API's URL, and the key, if any."""

    session: requests.Session
    url: str
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScholarPaper:
    """Represent what Semantic Scholar knows of one paper; None and empty are unknown."""

    scholar_id: str
    arxiv_id: str | None
    title: str
    abstract: str | None = None
    authors: tuple[str, ...] = ()
    affiliations: tuple[str, ...] = ()
    published: datetime | None = None
    doi: str | None = None
    journal: str | None = None
    citation_count: int | None = None
    pdf_url: str | None = None

    @property
    def code(self) -> str | None:
        """Return the repository that its abstract names; the abstract on arXiv may differ."""
        return code_url(None, self.abstract)

    def as_paper(self) -> Paper:
        """Convert to a paper: under its arXiv id, else under `S2:` and its id here."""
        paper = Paper(
            paper_id=self.arxiv_id or str(PaperId(ID_SOURCE, self.scholar_id)),
            title=self.title,
            abstract=self.abstract or "",
            authors=self.authors,
            published=self.published,
            doi=self.doi,
            journal_ref=self.journal,
            pdf_url=pdf_address(self.arxiv_id) if self.arxiv_id else self.pdf_url,
            github_url=self.code,
            affiliations=self.affiliations,
        )
        return cut_to_limits(paper)


@contextmanager
def opened(access: Access) -> Iterator[Scholar]:
    """Open a session behind a separate gate. Raises RefusedKey for an invalid key, NetworkError."""
    settings, key = access.settings, api_key(access.environ)
    with access.session(gate="semantic_scholar", interval=min(settings.request_interval, INTERVAL)) as session:
        yield Scholar(session=session, url=settings.semantic_scholar_url, key=key)


def api_key(environ: Mapping[str, str]) -> str | None:
    """Return the key, if there is one. Raises RefusedKey, without showing it, if it is not valid in a header."""
    key = environ.get(KEY_VARIABLE, "").strip()
    if key and not re.fullmatch(r"[!-~]+", key):
        raise RefusedKey(f"{KEY_VARIABLE} contains a space, a line break or a letter that no key has")
    return key or None


def search(scholar: Scholar, query: str, *, limit: int) -> tuple[list[ScholarPaper], int]:
    """Return the best `limit` papers for the words of `query`, and the total.

    Raises RateLimited, NetworkError, RefusedKey, as the other functions do.
    """
    # A word with a hyphen has no matches here; its parts do.
    words = " ".join(re.sub(r"[-\u2010-\u2015]", " ", query).split())
    params = {"query": words, "fields": PAPER_FIELDS, "limit": limit}
    answer = request_json(scholar, "GET", "/paper/search", params=params)
    if not isinstance(answer, dict) or not isinstance(answer.get("total"), int):
        raise NetworkError("Semantic Scholar's answer to a search is invalid; try again later")
    found = [paper for record in _list(answer.get("data")) if (paper := read_paper(record))]
    return found, max(answer["total"], len(found))


def find(scholar: Scholar, identifier: str) -> ScholarPaper | None:
    """Return one paper by an arXiv id or Semantic Scholar's id (40 hex digits); None if it is unknown.

    Raises InvalidInput for anything else.
    """
    if not _SCHOLAR_ID.fullmatch(identifier):
        identifier = f"ARXIV:{split_arxiv_id(identifier)[0]}"
    answer = request_json(scholar, "GET", f"/paper/{quote(identifier, safe=':/')}", params={"fields": PAPER_FIELDS})
    return read_paper(answer)


def match_title(scholar: Scholar, title: str) -> ScholarPaper | None:
    """Return the paper with the closest title; the caller decides whether it is close enough."""
    answer = request_json(scholar, "GET", "/paper/search/match", params={"query": title, "fields": PAPER_FIELDS})
    records = _list(answer.get("data")) if isinstance(answer, dict) else []
    return read_paper(records[0]) if records else None


def details(scholar: Scholar, arxiv_ids: Sequence[str]) -> dict[str, ScholarPaper]:
    """Return the records of these papers, by the given id; unknown ones are omitted. One request per 500 ids."""
    known: dict[str, ScholarPaper] = {}
    for start in range(0, len(arxiv_ids), MOST_IDS):
        ids = list(arxiv_ids[start : start + MOST_IDS])
        body = {"ids": [f"ARXIV:{arxiv_id}" for arxiv_id in ids]}
        answer = request_json(scholar, "POST", "/paper/batch", params={"fields": _BATCH_FIELDS}, json=body)
        if answer is None:  # 404: none of them is known
            continue
        # Matched by position, as the API promises, unless the paper states another id.
        if not isinstance(answer, list) or len(answer) != len(ids):
            raise NetworkError(f"Semantic Scholar answered {_size(answer)} papers for {len(ids)}; try again later")
        for arxiv_id, record in zip(ids, answer, strict=True):
            paper = read_paper(record)
            if paper is not None and paper.arxiv_id in (None, arxiv_id):
                known[arxiv_id] = paper
    return known


def read_paper(record: object) -> ScholarPaper | None:
    """Read a paper object of the API; None for null and for anything that does not name a paper."""
    if not isinstance(record, Mapping):
        return None
    scholar_id, title = _text(record.get("paperId")), _text(record.get("title"))
    if scholar_id is None or not _SCHOLAR_ID.fullmatch(scholar_id) or title is None:
        return None
    external, journal = _mapping(record.get("externalIds")), _mapping(record.get("journal"))
    authors = [author for author in _list(record.get("authors")) if isinstance(author, Mapping)]
    affiliations = [text for author in authors for text in map(_text, _list(author.get("affiliations"))) if text]
    citations = record.get("citationCount")
    counted = isinstance(citations, int) and not isinstance(citations, bool) and 0 <= citations < _MOST_CITATIONS
    return ScholarPaper(
        scholar_id=scholar_id,
        arxiv_id=_arxiv_id(external.get("ArXiv")),
        title=title,
        abstract=_text(record.get("abstract")),
        authors=tuple(name for author in authors if (name := _text(author.get("name")))),
        affiliations=tuple(sorted(set(affiliations))),  # sorted: the API's order varies
        published=_day(record.get("publicationDate")),
        doi=_text(external.get("DOI")),
        journal=_text(journal.get("name")),
        citation_count=citations if counted else None,
        pdf_url=_text(_mapping(record.get("openAccessPdf")).get("url")),
    )


def request_json(scholar: Scholar, method: str, path: str, **options: Any) -> Any:
    """Request JSON; None for 404. Redirects are not followed: they could carry the key to another host."""
    headers = {"x-api-key": scholar.key} if scholar.key else {}
    response = ask(scholar.session, method, scholar.url + path, headers=headers, allow_redirects=False, **options)
    status = response.status_code
    if status == 404:
        return None
    if status in (401, 403):
        if scholar.key:
            raise RefusedKey(f"Semantic Scholar refused the key (HTTP {status}); check {KEY_VARIABLE}")
        raise NetworkError(f"Semantic Scholar asks for a key (HTTP {status}); set {KEY_VARIABLE}")
    if status != 200:
        raise NetworkError(f"Semantic Scholar did not take the question (HTTP {status}); try again later")
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        raise NetworkError("Semantic Scholar's answer is not JSON; try again later") from None


def _arxiv_id(value: object) -> str | None:
    try:
        return split_arxiv_id(value)[0] if isinstance(value, str) else None
    except InvalidArxivId:
        return None


def _text(value: object) -> str | None:
    """Return one line that can be stored and displayed in a terminal."""
    if not isinstance(value, str):
        return None
    return one_line(value) or None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _size(answer: object) -> int | str:
    return len(answer) if isinstance(answer, list) else "something else than"


def _day(value: object) -> datetime | None:
    try:
        return datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC) if isinstance(value, str) else None
    except ValueError:
        return None


def _record(paper: ScholarPaper | None) -> SourceRecord | None:
    return SourceRecord(paper=paper.as_paper(), citation_count=paper.citation_count) if paper else None


def _find(access: Access, paper_id: PaperId, version: int | None) -> SourceRecord | None:
    """Find a paper by Semantic Scholar's id or arXiv's. There are no versions."""
    if paper_id.source not in (ID_SOURCE, ARXIV):
        return None
    with opened(access) as scholar:
        return _record(find(scholar, paper_id.value))


def _titled(access: Access, title: str) -> tuple[SourceRecord, ...]:
    with opened(access) as scholar:
        found = _record(match_title(scholar, title))
    return (found,) if found else ()


def _search(access: Access, question: Question) -> SearchPage:
    words = f"{question.words} {question.author or ''}".strip()
    if not words:
        raise InvalidInput("it cannot search by category alone")
    with opened(access) as scholar:
        found, total = search(scholar, words, limit=question.limit)
    return SearchPage(records=tuple(record for paper in found if (record := _record(paper))), total=total)


def _named_by(url: str) -> tuple[PaperId, int | None] | None:
    try:
        parts = urlsplit(url.strip())
    except ValueError:  # not a URL
        return None
    match = _PATH.fullmatch(unquote(parts.path)) if parts.hostname in _HOSTS else None
    return (PaperId(ID_SOURCE, match["id"]), None) if match else None


SEMANTIC_SCHOLAR = Source(
    name="semantic_scholar",
    title="Semantic Scholar",
    prefix=ID_SOURCE,
    page=lambda paper_id: f"https://www.semanticscholar.org/paper/{paper_id.value}",
    named_by=_named_by,
    find=_find,
    titled=_titled,
    search=_search,
    words_only=True,
    lacks="categories, version and some dates",
)
Relation = Literal["similar", "cites", "cited_by"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
MOST_RELATED = 100
_LISTS = {"cites": ("references", "citedPaper"), "cited_by": ("citations", "citingPaper")}


def related_papers(
    scholar: Scholar, paper_id: PaperId, relation: Relation, *, limit: int
) -> tuple[ScholarPaper, ...] | None:
    """Return up to `limit` (at most MOST_RELATED) papers, in the order of the API; each once.

    None if the paper is unknown. Entries without an id (only their titles are known) are omitted. Raises RateLimited,
    NetworkError, RefusedKey.
    """
    named = quote(_named(paper_id), safe=":/")
    options: dict[str, Any] = {"fields": PAPER_FIELDS, "limit": limit}
    if relation == "similar":
        beside = replace(scholar, url=f"{scholar.url.removesuffix('/graph/v1')}/recommendations/v1")
        answer = request_json(beside, "GET", f"/papers/forpaper/{named}", params={**options, "from": "all-cs"})
        records = answer.get("recommendedPapers") if isinstance(answer, dict) else None
    else:
        path, inside = _LISTS[relation]
        answer = request_json(scholar, "GET", f"/paper/{named}/{path}", params=options)
        # Publishers can withhold references: data is null then.
        records = (answer.get("data") or []) if isinstance(answer, dict) and "data" in answer else None
        if isinstance(records, list):
            records = [each.get(inside) for each in records if isinstance(each, dict)]
    if answer is None:
        return None
    if not isinstance(records, list):
        raise NetworkError("Semantic Scholar's answer contains no list of papers; try again later")
    papers = {paper.scholar_id: paper for record in records if (paper := read_paper(record))}
    return tuple(papers.values())[:limit]


def knows_ids_of(paper_id: PaperId) -> bool:
    """Check whether the API knows papers under such ids: arXiv's, its own, and DOIs."""
    return paper_id.source in {ARXIV, ID_SOURCE} or _is_doi(paper_id)


def _named(paper_id: PaperId) -> str:
    if paper_id.source == ID_SOURCE:
        return paper_id.value
    return f"{'DOI' if _is_doi(paper_id) else 'ARXIV'}:{paper_id.value}"


def _is_doi(paper_id: PaperId) -> bool:
    return paper_id.value.startswith("10.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Enriched:
    """Report the papers, filled in where their source has no value; how many Semantic Scholar answered for; why it
    failed.
    """

    papers: list[Paper]
    answered: int = 0
    warning: str | None = None


def enrich(
    papers: Sequence[Paper],
    *,
    access: Access | None,
    keep: Callable[[Mapping[str, ScholarPaper]], None],
    fill: Callable[[Sequence[Paper]], list[Paper]],
) -> Enriched:
    """Ask about the papers, unless `access` is None, and fill them from all stored records.

    `keep` stores what an answer contains, by paper id; `fill` returns the papers with all stored values. Stored values
    count even if Semantic Scholar does not answer today: a day fetched again gives the same papers. Raises only what
    `keep` and `fill` raise.
    """
    if not papers:
        return Enriched(papers=[])
    ids = [paper.paper_id for paper in papers if is_arxiv_id(paper.paper_id)]
    answered, warning = 0, None
    if access is not None and ids:
        try:
            with opened(access) as scholar:
                for start in range(0, len(ids), MOST_IDS):  # results of a request are kept if the next one fails
                    found = details(scholar, ids[start : start + MOST_IDS])
                    keep(found)
                    answered += len(found)
        except (SourceError, RefusedKey) as failure:
            warning = f"Semantic Scholar did not answer: {failure}"
    return Enriched(papers=fill(papers), answered=answered, warning=warning)
