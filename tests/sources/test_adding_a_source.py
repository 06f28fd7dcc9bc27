"""Test that a second source takes one file and one line: its days are fetched beside arXiv's, with separate ids.

`BULLETIN` is the content of the one file; `bulletin_in_the_table` is the one line.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput, NetworkError, RateLimited
from paper_assets.interpreting import lookup
from paper_assets.interpreting.clients import Clients, open_clients
from paper_assets.interpreting.papers import fetch_paper
from paper_assets.paper import Paper, paper_to_mapping, papers_from_table
from paper_assets.paper_id import PaperId
from paper_assets.pipeline.papers import keep_day
from paper_assets.settings import load_settings
from paper_assets.setup.draft import read_references
from paper_assets.sources import table
from paper_assets.sources.polite_http import ask
from paper_assets.sources.semantic_scholar import Enriched
from paper_assets.sources.source import Access, PapersOfDay, PaperText, Source, SourceRecord
from paper_assets.sources.table import DayOfPapers, open_listings, page_of, sources_of_days
from paper_assets.stores.papers import find_paper, papers_between
from tests.loopback import Answer
from tests.loopback_arxiv import LoopbackArxiv, invented_paper, loopback_arxiv
from tests.ranking.calling import called

DAY, NEXT = date(2026, 3, 2), date(2026, 3, 3)
NUMBER = "2603.02001"  # also that of a paper at arXiv: a bulletin may count as it likes
NOW = datetime(2026, 3, 5, 7, 30, tzinfo=UTC)
SUBJECT = "Kelp and tides"  # nothing like arXiv's categories


@contextmanager
def bulletin_days(access: Access) -> Iterator[PapersOfDay]:
    with access.session(gate="bulletin", interval=0.0) as session:

        def papers_of_day(day: date) -> list[Paper]:
            answer = ask(session, "GET", f"{access.environ['BULLETIN_URL']}?day={day}")
            return [
                Paper(
                    paper_id=str(PaperId("bulletin", record["number"])),
                    title=record["title"],
                    abstract=record["text"],
                    authors=("Ada Example",),
                    published=datetime.combine(day, datetime.min.time(), tzinfo=UTC),
                    categories=(SUBJECT,),
                )
                for record in json.loads(answer.content)
            ]

        yield papers_of_day


def bulletin_paper(access: Access, paper_id: PaperId, version: int | None) -> SourceRecord | None:
    with bulletin_days(access) as papers_of_day:
        return next((SourceRecord(paper=each) for each in papers_of_day(NEXT) if each.paper_id == str(paper_id)), None)


BULLETIN = Source(
    name="bulletin",
    title="The Bulletin",
    prefix="bulletin",
    hosts=("bulletin.example",),
    page=lambda paper_id: f"https://bulletin.example/{paper_id.value}",
    named_by=lambda url: (PaperId("bulletin", url.rpartition("/")[2]), None) if "//bulletin.example/" in url else None,
    texts=lambda paper, settings: (PaperText(form="html", url=f"{page_of(paper.paper_id)}/full"),),
    open_days=bulletin_days,
    find=bulletin_paper,
)


@pytest.fixture(autouse=True)
def bulletin_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (table, lookup, lookup):
        monkeypatch.setattr(module, "SOURCES", (*table.SOURCES, BULLETIN))


@pytest.fixture
def arxiv() -> Iterator[LoopbackArxiv]:
    papers = [invented_paper(1, day, title="Tides of attention") for day in (DAY, NEXT)]
    with loopback_arxiv(papers) as server:
        yield server


def printed(*numbers: str) -> Answer:
    return Answer(
        body=json.dumps([{"number": each, "title": "Kelp", "text": "It grows."} for each in numbers]).encode()
    )


@contextmanager
def desk(folder: Path, arxiv: LoopbackArxiv, *script: Answer, sources: str = "arxiv,bulletin") -> Iterator[Clients]:
    """A desk whose bulletin answers so."""
    with loopback_arxiv(script=script) as bulletin:
        environ = {
            "PAPER_ASSETS_HOME": str(folder / "data"),
            "PAPER_ASSETS_SOURCES": sources,
            "PAPER_ASSETS_ARXIV_URL": arxiv.url,
            "PAPER_ASSETS_REQUEST_GATE": str(folder / "gate"),
            "PAPER_ASSETS_REQUEST_INTERVAL": "0",
            "BULLETIN_URL": bulletin.url,
        }
        yield open_clients(load_settings(environ, folder), environ)


def fetch(clients: Clients, *days: date, accept_fewer: bool = False) -> list[DayOfPapers]:
    """Fetch the days and keep them."""
    sources = sources_of_days(clients.settings)
    access = Access(settings=clients.settings, environ=clients.environ)
    with open_listings(sources, access) as fetch_day:
        found = [fetch_day(day) for day in days]
    for day, papers in zip(days, found, strict=True):
        keep_day(
            clients.warehouse,
            day,
            papers,
            sources,
            lambda papers: Enriched(papers=list(papers)),
            now=NOW,
            accept_fewer=accept_fewer,
        )
    return found


def stored(clients: Clients) -> dict[str, Paper]:
    return {paper.paper_id: paper for paper in papers_from_table(papers_between(clients.warehouse, DAY, NEXT))}


def test_its_papers_are_stored_and_ranked_beside_arxivs_under_the_same_number(
    tmp_path: Path, arxiv: LoopbackArxiv
) -> None:
    with desk(tmp_path, arxiv, printed(NUMBER)) as clients:
        fetch(clients, DAY)
        papers = stored(clients)
    assert {paper_id: paper.title for paper_id, paper in papers.items()} == {
        NUMBER: "Tides of attention",
        f"bulletin:{NUMBER}": "Kelp",
    }
    assert page_of(NUMBER) == f"https://arxiv.org/abs/{NUMBER}"
    assert page_of(f"bulletin:{NUMBER}") == f"https://bulletin.example/{NUMBER}"
    records = [paper_to_mapping(paper) for paper in papers.values()]
    result = called(
        records, settings=clients.settings, as_of=NEXT, now=datetime(2026, 3, 4, tzinfo=UTC), embed=None, save=False
    )
    assert {paper["paper_id"] for paper in result["ranked_papers"]} == set(papers)


def test_a_day_fetched_again_removes_only_what_its_own_source_no_longer_lists(
    tmp_path: Path, arxiv: LoopbackArxiv
) -> None:
    with desk(tmp_path, arxiv, printed(NUMBER, "2"), printed("2")) as clients:
        fetch(clients, DAY)
        fetch(clients, DAY, accept_fewer=True)
        assert set(stored(clients)) == {NUMBER, "bulletin:2"}
        arxiv.papers.clear()
        alone = replace(clients, settings=clients.settings.model_copy(update={"sources": ("arxiv",)}))
        fetch(alone, DAY, accept_fewer=True)
        assert set(stored(clients)) == {"bulletin:2"}


def test_a_source_that_fails_blocks_no_other_and_keeps_its_stored_papers(tmp_path: Path, arxiv: LoopbackArxiv) -> None:
    with desk(tmp_path, arxiv, printed("2"), *[Answer(status=500)] * 4) as clients:
        fetch(clients, DAY)
        arxiv.papers[0] = replace(arxiv.papers[0], version=2)
        [again] = fetch(clients, DAY)
        assert isinstance(again.failure, NetworkError)
        assert {paper_id: paper.version for paper_id, paper in stored(clients).items()} == {NUMBER: 2, "bulletin:2": 1}


def test_a_source_that_asks_to_slow_down_is_left_alone_for_the_other_days(tmp_path: Path, arxiv: LoopbackArxiv) -> None:
    with desk(tmp_path, arxiv, *[Answer(status=429, headers={"Retry-After": "0"})] * 4, printed("2")) as clients:
        found = fetch(clients, DAY, NEXT)
    assert [isinstance(day.failure, RateLimited) for day in found] == [True, True]
    assert [list(day.papers) for day in found] == [["arxiv"], ["arxiv"]]


def test_by_default_it_is_not_asked_nor_are_its_hosts(tmp_path: Path, arxiv: LoopbackArxiv) -> None:
    with desk(tmp_path, arxiv, sources="") as clients:
        [found] = fetch(clients, DAY)
        assert (list(found.papers), found.failure) == (["arxiv"], None)
        assert "bulletin.example" not in clients.hosts.names
    with desk(tmp_path, arxiv) as clients:
        assert "bulletin.example" in clients.hosts.names


def test_a_source_that_is_not_in_the_table_or_has_no_days_is_refused_by_name(
    tmp_path: Path, arxiv: LoopbackArxiv
) -> None:
    for name in ("gazette", "semantic_scholar", "files"):
        with desk(tmp_path, arxiv, sources=f"arxiv,{name}") as clients, pytest.raises(InvalidInput, match=name):
            sources_of_days(clients.settings)


def test_one_of_its_papers_can_be_liked() -> None:
    assert read_references("bulletin:1, biorxiv:10.1101/2026.01.02.123456 gazette:1").ids == (
        "bulletin:1",
        "biorxiv:10.1101/2026.01.02.123456",
    )


def test_one_of_its_papers_is_found_by_id_and_by_address_stored_or_not(tmp_path: Path, arxiv: LoopbackArxiv) -> None:
    with desk(tmp_path, arxiv, printed("1"), printed("1", "2")) as clients:
        fetch(clients, DAY)
        by_id = fetch_paper(clients, arxiv_id="bulletin:1", include_pdf_content=False)
        assert by_id.paper == find_paper(clients.warehouse, "bulletin:1")
        by_address = fetch_paper(clients, url="https://bulletin.example/2", include_pdf_content=False)
    assert (by_address.paper.paper_id, by_address.url) == ("bulletin:2", "https://bulletin.example/2")
