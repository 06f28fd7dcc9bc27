"""Run a small Semantic Scholar on 127.0.0.1: a real HTTP server with invented papers or scripted answers.

    with loopback_semantic_scholar([scholar_paper(1, arxiv="2601.00001")]) as scholar:
        environ = {"PAPER_ASSETS_SEMANTIC_SCHOLAR_URL": scholar.url}
        ...
        assert scholar.requests[0].headers["x-api-key"] == "..."

It knows search, search/match, one paper by id and the batch; a script is answered in order and then ends in a 500.
"""

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.loopback import Answer, Request, serving


@dataclass
class LoopbackScholar:
    papers: list[dict[str, Any]] = field(default_factory=list)
    script: list[Answer] | None = None
    lists: dict[str, object] = field(default_factory=dict)  # answers by the path behind the server's name
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            if self.script is not None:
                place = len(self.requests) - 1
                return self.script[place] if place < len(self.script) else Answer(status=500, body=b"script is over")
            return self._known(request)

    def _known(self, request: Request) -> Answer:
        if (listed := unquote(request.path)) in self.lists:
            return found_json(self.lists[listed])
        path = request.path.removeprefix("/graph/v1/paper")
        if path == "/search":
            found = self._about(request.query["query"])[: int(request.query["limit"])]
            return found_json({"total": len(self._about(request.query["query"])), "offset": 0, "data": found})
        if path == "/search/match":
            found = self._about(request.query["query"])
            return found_json({"data": found[:1]}) if found else missing("Title match not found")
        if path == "/batch":
            return found_json([self._by_id(each) for each in json.loads(request.body)["ids"]])
        paper = self._by_id(unquote(path.removeprefix("/")))
        return found_json(paper) if paper else missing("Paper not found")

    def _about(self, words: str) -> list[dict[str, Any]]:
        asked = set(words.casefold().split())

        def shared(paper: Mapping[str, Any]) -> int:
            text = " ".join([paper["title"], *(author["name"] for author in paper["authors"])])
            return len(asked & set(text.casefold().split()))

        return sorted((paper for paper in self.papers if shared(paper)), key=shared, reverse=True)

    def _by_id(self, identifier: str) -> dict[str, Any] | None:
        kind, _, value = identifier.rpartition(":")
        for paper in self.papers:
            if (kind and paper["externalIds"].get("ArXiv") == value) or paper["paperId"] == identifier:
                return paper
        return None


def scholar_paper(number: int, *, arxiv: str | None = None, title: str | None = None, **more: Any) -> dict[str, Any]:
    """Return paper `number` as the API writes it; `affiliations` are those of its first author."""
    affiliations = more.pop("affiliations", [])
    return {
        "paperId": f"{number:040x}",
        "externalIds": {"CorpusId": number, **({"ArXiv": arxiv} if arxiv else {})},
        "title": title or f"On invented matter {number}",
        "abstract": f"We look at the invented matter {number} once more.",
        "authors": [
            {"authorId": "1", "name": "A. Example", "affiliations": affiliations},
            {"authorId": "2", "name": "Ben Sample", "affiliations": []},
        ],
        "publicationDate": "2026-01-05",
        "journal": None,
        "citationCount": number,
        "url": "https://www.semanticscholar.org/paper/anything",
        "openAccessPdf": None,
        **more,
    }


def found_json(value: object) -> Answer:
    return Answer(body=json.dumps(value).encode(), headers={"Content-Type": "application/json"})


def missing(reason: str) -> Answer:
    return Answer(status=404, body=json.dumps({"error": reason}).encode())


@contextmanager
def loopback_semantic_scholar(
    papers: Iterable[dict[str, Any]] = (), *, script: Sequence[Answer] | None = None
) -> Iterator[LoopbackScholar]:
    """A running server; `url` is the address of its API."""
    scholar = LoopbackScholar(papers=list(papers), script=None if script is None else list(script))

    with serving(scholar.answer) as address:
        scholar.url = f"{address}/graph/v1"
        yield scholar
