"""Test related papers: similar, cited and citing ones, as Semantic Scholar returns them."""

import gzip
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from paper_assets.errors import InvalidArxivId, InvalidInput, NetworkError, PaperNotFound
from paper_assets.interfaces.cli import interpreting
from paper_assets.interpreting.papers import related
from paper_assets.paper_id import PaperId
from paper_assets.sources.semantic_scholar import opened, related_papers
from paper_assets.sources.source import Access
from tests.interpreting.outside import Outside
from tests.loopback_semantic_scholar import scholar_paper

ID = "2601.05001"
PAPER = f"/graph/v1/paper/ARXIV:{ID}"
LIKE = f"/recommendations/v1/papers/forpaper/ARXIV:{ID}"


def known(world: Outside) -> None:
    world.scholar.lists |= {
        f"{PAPER}/references": {
            "data": [
                {"citedPaper": scholar_paper(1, arxiv="2512.00001", title="Old folds")},
                {"citedPaper": {"paperId": None, "title": "A book without an id"}},
                {"citedPaper": scholar_paper(2, title="Caches")},
                {"citedPaper": scholar_paper(1, arxiv="2512.00001", title="Old folds")},
            ]
        },
        f"{PAPER}/citations": {"data": [{"citingPaper": scholar_paper(3, title="New folds")}]},
        LIKE: {"recommendedPapers": [scholar_paper(number) for number in range(20)]},
    }


def test_what_a_paper_cites_what_cites_it_and_what_is_like_it(world: Outside) -> None:
    known(world)
    clients = world.clients()
    cites = related(clients, paper_id=f"{ID}v2", relation="cites")
    assert [(found.paper.paper_id, found.url) for found in cites.papers] == [
        ("2512.00001", "https://arxiv.org/abs/2512.00001"),
        (f"S2:{2:040x}", f"https://www.semanticscholar.org/paper/{2:040x}"),
    ]
    assert [found.paper.title for found in related(clients, paper_id=ID, relation="cited_by").papers] == ["New folds"]
    like = related(clients, url=f"https://arxiv.org/abs/{ID}", max_results=5)
    assert [found.citation_count for found in like.papers] == [0, 1, 2, 3, 4]


def test_papers_of_other_sources_are_asked_for_by_what_they_are_called_there(world: Outside) -> None:
    world.scholar.lists |= {
        "/graph/v1/paper/DOI:10.1101/2026.11.17.712345/citations": {"data": [{"citingPaper": scholar_paper(4)}]},
        f"/graph/v1/paper/{7:040x}/citations": {"data": None},  # not given, at the publisher's wish
    }
    clients = world.clients()
    assert related(clients, paper_id="biorxiv:10.1101/2026.11.17.712345", relation="cited_by").total_count == 1
    assert related(clients, paper_id=f"S2:{7:040x}", relation="cited_by").papers == ()


def test_an_impossible_request_is_refused_in_one_line(world: Outside) -> None:
    clients = world.clients()
    with pytest.raises(PaperNotFound, match=r"does not know 2601\.05009"):
        related(clients, paper_id="2601.05009")
    with pytest.raises(InvalidInput, match="relation must be one of similar, cites, cited_by"):
        related(clients, paper_id=ID, relation="mentions")
    with pytest.raises(InvalidInput, match="max_results must be from 1 to 100"):
        related(clients, paper_id=ID, max_results=101)
    with pytest.raises(InvalidArxivId):
        related(clients, paper_id="2601.1")
    world.scholar.lists[LIKE] = {"recommendedPapers": "none"}
    with pytest.raises(NetworkError, match="no list of papers"):
        related(clients, paper_id=ID)


def test_the_command_prints_a_table_or_json(
    world: Outside, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known(world)
    for name, value in world.clients().environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "160")
    interpreting.related(ID, relation="cites")
    assert "Old folds" in capsys.readouterr().out
    interpreting.related(f"https://arxiv.org/abs/{ID}", relation="cited_by", as_json=True)
    assert json.loads(capsys.readouterr().out)["papers"][0]["title"] == "New folds"
    with pytest.raises(InvalidInput, match="neither an id nor an address"):
        interpreting.related("Folding caches at night")


def test_recorded_lists_are_read_whole(world: Outside, shared_data: Path) -> None:
    """Real citations, references and recommendations: every entry with an id is a paper, each once."""
    packed = gzip.decompress((shared_data / "semantic_scholar" / "semanticscholar.jsonl.gz").read_bytes())
    read = 0
    with opened(Access(settings=world.clients().settings)) as scholar:
        for line in packed.splitlines():
            exchange = json.loads(line)
            path = urlsplit(exchange["uri"]).path
            kinds = {"/citations": "cited_by", "/references": "cites", "/papers/forpaper/": "similar"}
            kind = next((kind for part, kind in kinds.items() if part in path and "/paper" in path), None)
            if kind is None or exchange["method"] != "GET" or exchange["status"] != 200 or "/author" in path:
                continue
            answer = json.loads(exchange["response_body"])
            lists = {"cited_by": f"{PAPER}/citations", "cites": f"{PAPER}/references", "similar": LIKE}
            world.scholar.lists = {lists[kind]: answer}
            entries = answer.get("recommendedPapers") or [next(iter(each.values())) for each in answer["data"]]
            ids = list(dict.fromkeys(each["paperId"] for each in entries if each["paperId"] and each["title"]))
            found = related_papers(scholar, PaperId("arxiv", ID), kind, limit=1_000)  # type: ignore[arg-type]
            assert found is not None and [paper.scholar_id for paper in found] == ids
            read += len(found)
    assert read > 1_500
