"""Test that days of bioRxiv and medRxiv are complete, with separate ids, and ranked beside arXiv's."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from paper_assets.errors import IncompleteFeed, InvalidInput, NetworkError
from paper_assets.interpreting.clients import Clients, open_clients
from paper_assets.interpreting.papers import fetch_paper
from paper_assets.paper import paper_to_mapping, papers_from_table
from paper_assets.paper_id import PaperId
from paper_assets.pipeline.papers import keep_day
from paper_assets.settings import load_settings
from paper_assets.sources.biorxiv import BIORXIV, MEDRXIV
from paper_assets.sources.id_prefixes import prefixes_of_fetched_sources
from paper_assets.sources.semantic_scholar import Enriched
from paper_assets.sources.source import Access
from paper_assets.sources.table import DayOfPapers, open_listings, page_of, sources_of_days, texts_of
from paper_assets.stores.papers import find_paper, papers_between
from tests.loopback import Answer, Request, serving
from tests.loopback_arxiv import invented_paper, loopback_arxiv
from tests.ranking.calling import called

DAY = date(2026, 11, 20)
DOI = "10.1101/2026.11.17.712345"
NOW = datetime(2026, 11, 22, 7, 30, tzinfo=UTC)


def record(
    doi: str = DOI, *, version: int = 1, day: date = DAY, server: str = "bioRxiv", **changes: Any
) -> dict[str, Any]:
    """A record in the API's own shape, of November 2026."""
    return {
        "title": "Sleep consolidates the songs of young finches",
        "authors": "Moreau, A.; Sample, B. C.; The Finch Consortium",
        "author_corresponding": "Ada  Moreau",
        "author_corresponding_institution": "Example Institute",
        "doi": doi,
        "date": f"{day}",
        "version": f"{version}",
        "type": "new results",
        "license": "cc_by",
        "category": "neuroscience",
        "jatsxml": f"https://www.biorxiv.org/content/biorxiv/early/{doi}.source.xml",
        "abstract": "<p>We record finches &amp; their sleep.</p> Code: https://github.com/finch/sleep.",
        "funder": "NA",
        "published": "NA",
        "server": server,
        **changes,
    }


@dataclass
class LoopbackBiorxiv:
    """The API over records of both servers: days in pages, papers by their DOI."""

    records: list[dict[str, Any]] = field(default_factory=list)
    each: int = 30
    first_answers: list[Answer] = field(default_factory=list)  # answers before all others
    paths: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, request: Request) -> Answer:
        self.paths.append(request.path)
        if self.first_answers:
            return self.first_answers.pop(0)
        _, _, server, rest = request.path.split("/", 3)
        found = [each for each in self.records if each["server"].lower() == server]
        if rest.startswith("10."):
            return listed([each for each in found if each["doi"] == rest])
        first, last, cursor = rest.split("/")
        found = [each for each in found if first <= each["date"] <= last]
        return listed(found[int(cursor) : int(cursor) + self.each], total=len(found), cursor=int(cursor))


def listed(records: list[dict[str, Any]], *, total: int | None = None, cursor: int = 0) -> Answer:
    message: dict[str, Any] = {"status": "ok", "interval": f"{DAY}:{DAY}", "cursor": cursor}
    message |= {"count": len(records), "total": f"{len(records) if total is None else total}"}
    if not records:
        message = {"status": "no posts found"}
    return Answer(body=json.dumps({"messages": [message], "collection": records}).encode())


@contextmanager
def server(*records: dict[str, Any], each: int = 30) -> Iterator[LoopbackBiorxiv]:
    api = LoopbackBiorxiv(records=list(records), each=each)
    with serving(api.answer) as api.url:
        yield api


def access(folder: Path, api: LoopbackBiorxiv, **more: str) -> Clients:
    environ = {
        "PAPER_ASSETS_HOME": str(folder / "data"),
        "PAPER_ASSETS_SOURCES": "arxiv,biorxiv,medrxiv",
        "PAPER_ASSETS_BIORXIV_URL": api.url,
        "PAPER_ASSETS_REQUEST_GATE": str(folder / "gate"),
        "PAPER_ASSETS_REQUEST_INTERVAL": "0",
        **more,
    }
    return open_clients(load_settings(environ, folder), environ)


def day_of(clients: Clients, source: Any = BIORXIV) -> Any:
    with open_listings([source], Access(settings=clients.settings)) as fetch:
        found = fetch(DAY)
    return found.failure or found.papers[source.name]


def test_a_record_becomes_a_paper_under_a_biorxiv_id(tmp_path: Path) -> None:
    with server(record(published="10.1038/s41586-026-1")) as api:
        [paper] = day_of(access(tmp_path, api))
    assert (paper.paper_id, paper.version, paper.day) == (f"biorxiv:{DOI}", 1, DAY)
    assert paper.authors == ("A. Moreau", "B. C. Sample", "The Finch Consortium")
    assert paper.abstract == "We record finches & their sleep. Code: https://github.com/finch/sleep."
    assert (paper.categories, paper.affiliations) == (("neuroscience",), ("Example Institute",))
    assert (paper.doi, paper.journal_ref) == (DOI, "doi:10.1038/s41586-026-1")
    assert paper.github_url == "https://github.com/finch/sleep"
    assert page_of(paper.paper_id) == f"https://www.biorxiv.org/content/{DOI}"
    [text] = texts_of(paper, load_settings({}, tmp_path))
    assert (text.form, text.url) == ("pdf", f"https://www.biorxiv.org/content/{DOI}v1.full.pdf")


def test_a_day_comes_whole_page_by_page_without_the_revisions_of_earlier_papers(tmp_path: Path) -> None:
    new = [record(f"10.1101/2026.11.18.{700000 + number}") for number in range(70)]
    revised = [record(f"10.64898/2026.01.02.{700000 + number}", version=2) for number in range(5)]
    twice = record(new[3]["doi"], version=2, title="Better songs")
    with server(*new, *revised, twice, each=30) as api:
        papers = {paper.paper_id: paper for paper in day_of(access(tmp_path, api))}
        assert [path.rpartition("/")[2] for path in api.paths] == ["0", "30", "60"]
    assert set(papers) == {f"biorxiv:{each['doi']}" for each in new}
    better = papers[f"biorxiv:{twice['doi']}"]
    assert (better.version, better.title, better.day) == (2, "Better songs", DAY)


def test_a_day_without_papers_is_empty_and_medrxiv_has_separate_days(tmp_path: Path) -> None:
    with server(record(server="medRxiv")) as api:
        clients = access(tmp_path, api)
        assert day_of(clients) == []
        [paper] = day_of(clients, MEDRXIV)
    assert paper.paper_id == f"medrxiv:{DOI}"


@pytest.mark.parametrize(
    ("first_answers", "kind"),
    [
        ([Answer(body=b"<html>busy</html>")], IncompleteFeed),
        ([Answer(body=b"[" * 100_000)], IncompleteFeed),
        ([Answer(body=b'{"messages": [{"status": "internal error"}], "collection": []}')], IncompleteFeed),
        ([Answer(status=403)], NetworkError),
        ([listed([record()], total=2), listed([])], IncompleteFeed),
        ([listed([record()], total=10**8)], IncompleteFeed),
        ([listed([record(version="x")])], IncompleteFeed),  # type: ignore[arg-type]
        ([listed([record(title="")])], IncompleteFeed),
        ([listed([record("10.1101/../../x?")])], IncompleteFeed),
        ([listed([record(day=date(2026, 11, 3))])], IncompleteFeed),
    ],
    ids=["page", "nested", "error", "refused", "short", "too many", "version", "title", "doi", "other day"],
)
def test_an_answer_that_is_not_the_whole_day_fails_the_day(
    tmp_path: Path, first_answers: list[Answer], kind: type
) -> None:
    with server() as api:
        api.first_answers = first_answers
        assert isinstance(day_of(access(tmp_path, api)), kind)


def test_a_withdrawn_paper_is_marked_and_no_control_character_comes_in(tmp_path: Path) -> None:
    with server(record(title="WITHDRAWN: Songs"), record(DOI + "6", title="Songs\u202e of\u009b finches")) as api:
        gone, kept = day_of(access(tmp_path, api))
    assert (gone.withdrawn, kept.withdrawn) == (True, False)
    assert kept.title == "Songs of finches"


def test_its_papers_are_listed_and_ranked_beside_arxivs_and_never_collide(tmp_path: Path) -> None:
    mine = invented_paper(1, DAY, title="Songs of birds")
    with loopback_arxiv([mine]) as arxiv, server(record(), record(server="medRxiv")) as api:
        clients = access(tmp_path, api, PAPER_ASSETS_ARXIV_URL=arxiv.url)
        sources = sources_of_days(clients.settings)
        with open_listings(sources, Access(settings=clients.settings)) as fetch:
            found: DayOfPapers = fetch(DAY)
        keep_day(clients.warehouse, DAY, found, sources, lambda papers: Enriched(papers=list(papers)), now=NOW)
    stored = papers_from_table(papers_between(clients.warehouse, DAY, DAY))
    ids = {mine.paper_id, f"biorxiv:{DOI}", f"medrxiv:{DOI}"}
    assert {paper.paper_id for paper in stored} == ids
    result = called(
        [paper_to_mapping(paper) for paper in stored],
        settings=clients.settings, as_of=DAY, now=NOW, embed=None, save=False,
    )  # fmt: skip
    assert {paper["paper_id"] for paper in result["ranked_papers"]} == ids
    urls = dict(clients.warehouse.rows("select paper_id, url from retrievable"))
    assert urls == {paper_id: page_of(paper_id) for paper_id in ids}


def test_one_is_found_by_id_and_by_address_in_the_version_asked_for(tmp_path: Path) -> None:
    later = date(2026, 11, 21)
    with server(record(), record(version=2, day=later, title="Better songs")) as api:
        clients = access(tmp_path, api)
        newest = fetch_paper(clients, arxiv_id=f"biorxiv:{DOI}", include_pdf_content=False).paper
        first = fetch_paper(
            clients, url=f"https://www.biorxiv.org/content/{DOI}v1.full", include_pdf_content=False
        ).paper
        assert find_paper(clients.warehouse, newest.paper_id) is None
    assert (newest.title, newest.version, newest.day) == ("Better songs", 2, DAY)
    assert (first.version, first.paper_id) == (1, newest.paper_id)


def test_its_urls_are_recognised_and_others_are_not() -> None:
    assert BIORXIV.named_by is not None
    known = {
        f"https://www.biorxiv.org/content/{DOI}": None,
        f"http://biorxiv.org/content/{DOI}v3.full.pdf": 3,
        f"https://www.biorxiv.org/content/{DOI}v2.full-text": 2,
        f"https://www.biorxiv.org/content/early/2026/11/20/{DOI}v12": 12,
    }
    for url, version in known.items():
        assert BIORXIV.named_by(url) == (PaperId("biorxiv", DOI), version)
    for url in ("https://www.medrxiv.org/content/10.1101/1v1", f"https://evil.example/content/{DOI}", "https://["):
        assert BIORXIV.named_by(url) is None


def test_it_is_off_by_default_and_unknown_names_are_refused(tmp_path: Path) -> None:
    assert [source.name for source in sources_of_days(load_settings({}, tmp_path))] == ["arxiv"]
    for names in (sources_of_days, prefixes_of_fetched_sources):
        with pytest.raises(InvalidInput, match="use arxiv, biorxiv, medrxiv"):
            names(load_settings({"PAPER_ASSETS_SOURCES": "chemrxiv"}, tmp_path))


@pytest.mark.parametrize("named", ["", "arxiv", "biorxiv", "medrxiv,arxiv"])
def test_status_looks_for_the_days_of_the_sources_that_are_fetched(tmp_path: Path, named: str) -> None:
    settings = load_settings({"PAPER_ASSETS_SOURCES": named}, tmp_path)
    assert prefixes_of_fetched_sources(settings) == tuple(source.prefix for source in sources_of_days(settings))
