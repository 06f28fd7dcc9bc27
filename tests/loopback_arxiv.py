"""Run a small arXiv on 127.0.0.1: a real HTTP server with scripted answers, or with invented papers by day.

    from tests.loopback_arxiv import ...

    with loopback_arxiv(papers=[invented_paper(1, day)]) as arxiv:
        fetch_day(day, categories=["cs.CL"], url=arxiv.url, session=...)
        assert len(arxiv.requests) == 1

    with loopback_arxiv(script=[Answer(status=429, headers={"Retry-After": "7"}), feed([...])]) as arxiv: ...

A script is answered in order; a request beyond its end gets a 500. `arxiv.papers` and `arxiv.pdfs` (answers by what
is served under `/pdf/`) may be changed while it serves. Without a script it knows days, categories, ids, and words in
title, abstract and authors.
"""

import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from xml.sax.saxutils import escape

from paper_assets.paper import Paper
from tests import loopback
from tests.loopback import Answer


@dataclass(frozen=True, kw_only=True)
class Request:
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    at: float  # seconds since 1970, before the answer is sent


@dataclass
class LoopbackArxiv:
    papers: list[Paper] = field(default_factory=list)
    script: list[Answer] | None = None
    pdfs: dict[str, Answer] = field(default_factory=dict)
    texts: dict[str, Answer] = field(default_factory=dict)  # by `html/…` and `src/…`
    most_per_page: int = 1000
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    pdf_url: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            if self.script is None:
                if request.path.startswith("/pdf/"):
                    return self.pdfs.get(request.path.removeprefix("/pdf/"), Answer(status=404))
                if request.path.startswith(("/html/", "/src/")):
                    return self.texts.get(request.path.removeprefix("/"), Answer(status=404))
                return self._by_id(request.query) if request.query.get("id_list") else self._by_day(request.query)
            place = len(self.requests) - 1
            return self.script[place] if place < len(self.script) else Answer(status=500, body=b"the script is over")

    def _by_id(self, query: dict[str, str]) -> Answer:
        wanted = query["id_list"].split(",")
        return feed([p for p in self.papers if {p.paper_id, f"{p.paper_id}v{p.version}"} & set(wanted)])

    def _by_day(self, query: dict[str, str]) -> Answer:
        asked = query.get("search_query", "")
        span = re.search(r"submittedDate:\[(\d{12}) TO (\d{12})\]", asked)
        first, last = span.groups() if span else ("0", "9")
        wanted = set(re.findall(r"cat:([\w.-]+)", asked))
        found = [
            paper
            for paper in self.papers
            if first <= f"{paper.published:%Y%m%d%H%M}" <= last
            and (not wanted or wanted & set(paper.categories))
            and _holds(paper, asked)
        ]
        found.sort(key=lambda paper: paper.published or datetime.min.replace(tzinfo=UTC))
        start, size = int(query.get("start", 0)), min(int(query.get("max_results", 10)), self.most_per_page)
        return feed(found[start : start + size], total=len(found))


@contextmanager
def loopback_arxiv(
    papers: Iterable[Paper] = (), *, script: Sequence[Answer] | None = None, most_per_page: int = 1000
) -> Iterator[LoopbackArxiv]:
    """A running server; `url` is the address of its API."""
    arxiv = LoopbackArxiv(
        papers=list(papers), script=None if script is None else list(script), most_per_page=most_per_page
    )

    def answer(asked: loopback.Request) -> Answer:
        return arxiv.answer(Request(path=asked.path, query=asked.query, headers=asked.headers, at=time.time()))

    with loopback.serving(answer) as address:
        arxiv.url, arxiv.pdf_url = f"{address}/api/query", f"{address}/pdf"
        yield arxiv


def _holds(paper: Paper, asked: str) -> bool:
    """Return whether the paper has every quoted phrase of the query in the named field."""
    places = {"ti": paper.title, "au": " ".join(paper.authors)}
    anywhere = f"{paper.title} {paper.abstract} {places['au']}"
    return all(
        phrase.casefold() in " ".join(re.findall(r"\w+", places.get(where, anywhere))).casefold()
        for where, phrase in re.findall(r'(ti|au|all):"([^"]*)"', asked)
    )


def feed(papers: Sequence[Paper], *, total: int | None = None) -> Answer:
    """Return a page of the API in today's layout; `total` defaults to the papers given."""
    return Answer(body=feed_xml(papers, total=total), headers={"Content-Type": "application/atom+xml"})


def feed_xml(papers: Sequence[Paper], *, total: int | None = None) -> bytes:
    count = len(papers) if total is None else total
    return (
        "<?xml version='1.0' encoding='UTF-8'?>\n"
        '<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom"'
        ' xmlns="http://www.w3.org/2005/Atom">\n<title>invented</title>'
        f"<opensearch:totalResults>{count}</opensearch:totalResults>\n{''.join(map(entry_xml, papers))}</feed>\n"
    ).encode()


def entry_xml(paper: Paper) -> str:
    optional = {"comment": paper.comment, "doi": paper.doi, "journal_ref": paper.journal_ref}
    authors = "".join(f"<author><name>{escape(name)}</name></author>" for name in paper.authors)
    return (
        f"<entry><id>http://arxiv.org/abs/{paper.paper_id}v{paper.version}</id><title>{escape(paper.title)}</title>"
        f"<updated>{paper.updated or paper.published:%Y-%m-%dT%H:%M:%SZ}</updated>"
        f"<published>{paper.published:%Y-%m-%dT%H:%M:%SZ}</published><summary>{escape(paper.abstract)}</summary>"
        + authors
        + "".join(f'<category term="{name}"/>' for name in paper.categories)
        + f'<arxiv:primary_category term="{paper.primary_category}"/>'
        + "".join(f"<arxiv:{name}>{escape(text)}</arxiv:{name}>" for name, text in optional.items() if text)
        + "</entry>\n"
    )


def error_xml(reason: str) -> bytes:
    """Return the answer to a query that the API cannot read: a feed with one entry titled Error."""
    return (
        "<?xml version='1.0' encoding='UTF-8'?>\n"
        '<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns="http://www.w3.org/2005/Atom">'
        "<opensearch:totalResults>1</opensearch:totalResults><entry><id>https://arxiv.org/api/errors#invented</id>"
        f"<title>Error</title><updated>2026-01-01T00:00:00Z</updated><summary>{escape(reason)}</summary></entry></feed>"
    ).encode()


def invented_paper(number: int, day: date, **changes: object) -> Paper:
    """Return paper `number` (from 0) of a day, one per minute; fields can be given."""
    published = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=number)
    values: dict[str, object] = {
        "paper_id": f"{day:%y%m}.{day.day * 1000 + number:05d}",
        "title": f"On invented matter {number}",
        "abstract": f"We invent the matter number {number} of {day} and look at it from two sides.",
        "authors": ("Ada Example", "Ben Sample"),
        "published": published,
        "updated": published,
        "categories": ("cs.CL",),
        "primary_category": "cs.CL",
    }
    return Paper(**{**values, **changes})  # type: ignore[arg-type]
