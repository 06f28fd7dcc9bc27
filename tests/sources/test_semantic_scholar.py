"""Test Semantic Scholar's recorded answers, served over loopback (shared_data/semantic_scholar)."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from paper_assets.errors import InvalidInput, NetworkError, RateLimited
from paper_assets.paper_id import PaperId
from paper_assets.sources.semantic_scholar import (
    SEMANTIC_SCHOLAR,
    Scholar,
    api_key,
    details,
    find,
    match_title,
    read_paper,
    search,
)
from tests.loopback import Answer
from tests.loopback_semantic_scholar import loopback_semantic_scholar, scholar_paper


def recorded(shared_data: Path) -> list[dict[str, Any]]:
    with gzip.open(shared_data / "semantic_scholar" / "semanticscholar.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def paper_objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [paper for entry in value for paper in paper_objects(entry)]
    if not isinstance(value, dict):
        return []
    inside = [paper for entry in value.values() for paper in paper_objects(entry)]
    return inside + ([value] if "paperId" in value else [])


def of(exchanged: dict[str, Any]) -> Answer:
    return Answer(status=exchanged["status"], body=exchanged["response_body"].encode())


def asked(url: str, polite: Callable[..., requests.Session]) -> Scholar:
    return Scholar(session=polite(interval=0), url=url)


@pytest.mark.shared_data
def test_every_recorded_paper_is_read_completely(shared_data: Path) -> None:
    records = [paper for each in recorded(shared_data) for paper in paper_objects(json.loads(each["response_body"]))]
    assert len(records) > 10_000
    read = 0
    for record in records:
        paper = read_paper(record)
        if paper is None:
            assert not record.get("title") or not record.get("paperId")
            continue
        read += 1
        assert paper.scholar_id == record["paperId"]
        assert paper.citation_count == record.get("citationCount")
        assert paper.arxiv_id == (record.get("externalIds") or {}).get("ArXiv")
        assert paper.authors == tuple(" ".join(author["name"].split()) for author in record.get("authors") or [])
        given = record.get("publicationDate")
        assert (f"{paper.published:%Y-%m-%d}" if paper.published else None) == given
    assert read > 10_000


@pytest.mark.shared_data
def test_recorded_searches_give_their_papers_and_total(shared_data: Path, polite: Callable[..., Any]) -> None:
    searches = [each for each in recorded(shared_data) if urlsplit(each["uri"]).path.endswith("/paper/search")]
    assert len(searches) > 20
    with loopback_semantic_scholar(script=[of(each) for each in searches]) as server:
        for each in searches:
            body = json.loads(each["response_body"])
            found, total = search(asked(server.url, polite), "anything", limit=100)
            titled = [paper for paper in body.get("data", []) if paper.get("title")]
            assert total == max(body["total"], len(titled))
            assert [paper.title for paper in found] == [" ".join(paper["title"].split()) for paper in titled]


@pytest.mark.shared_data
def test_recorded_title_matches_are_papers_or_none(shared_data: Path, polite: Callable[..., Any]) -> None:
    matches = [each for each in recorded(shared_data) if urlsplit(each["uri"]).path.endswith("/search/match")]
    assert {each["status"] for each in matches} == {200, 404}
    with loopback_semantic_scholar(script=[of(each) for each in matches]) as server:
        for each in matches:
            expected = (json.loads(each["response_body"]).get("data") or [None])[0]
            found = match_title(asked(server.url, polite), "anything")
            assert (found and found.scholar_id) == (expected and expected["paperId"])


@pytest.mark.shared_data
def test_recorded_batches_have_null_for_what_is_unknown_and_a_refusal(
    shared_data: Path, polite: Callable[..., Any]
) -> None:
    batches = [each for each in recorded(shared_data) if urlsplit(each["uri"]).path.endswith("/paper/batch")]
    assert sorted(each["status"] for each in batches) == [200, 200, 200, 403]
    nulls = 0
    with loopback_semantic_scholar(script=[of(each) for each in batches]) as server:
        for each in batches:
            answer = json.loads(each["response_body"])
            ids = [f"2601.{number:05d}" for number in range(len(json.loads(each["request_body"])["ids"]))]
            if each["status"] == 403:
                with pytest.raises(NetworkError, match="SEMANTIC_SCHOLAR_API_KEY"):
                    details(asked(server.url, polite), ids)
                continue
            found = details(asked(server.url, polite), ids)
            nulls += sum(record is None for record in answer)
            expected = [arxiv_id for arxiv_id, record in zip(ids, answer, strict=True) if record and "title" in record]
            assert list(found) == expected
    assert nulls == 2


def test_what_is_sent_is_what_the_api_takes(polite: Callable[..., requests.Session]) -> None:
    with loopback_semantic_scholar(
        script=[Answer(body=b'{"total": 0}'), Answer(status=404), Answer(status=404)]
    ) as server:
        scholar = Scholar(session=polite(interval=0), url=server.url, key="s2-hidden")
        assert search(scholar, "state-space  models", limit=7) == ([], 0)
        assert find(scholar, "hep-th/9901001v2") is None
        assert details(scholar, ["2601.00001", "hep-th/9901001"]) == {}
        first, second, third = server.requests
    assert (first.query["query"], first.query["limit"]) == ("state space models", "7")
    assert second.path == "/graph/v1/paper/ARXIV:hep-th/9901001"
    assert json.loads(third.body) == {"ids": ["ARXIV:2601.00001", "ARXIV:hep-th/9901001"]}
    assert {request.headers["x-api-key"] for request in server.requests} == {"s2-hidden"}
    assert "hidden" not in repr(scholar)


def test_requests_are_a_second_apart_and_a_redirect_gets_no_key(polite: Callable[..., Any], fake_time: Any) -> None:
    with loopback_semantic_scholar() as elsewhere:
        moved = Answer(status=302, headers={"Location": f"{elsewhere.url}/paper/search"})
        with loopback_semantic_scholar(script=[moved, moved]) as server:
            scholar = Scholar(session=polite(interval=1.0), url=server.url, key="s2-hidden")
            for _ in range(2):
                with pytest.raises(NetworkError, match="HTTP 302"):
                    search(scholar, "anything", limit=1)
        assert elsewhere.requests == []
    assert fake_time.sleeps == pytest.approx([1.0])


def test_a_request_to_slow_down_is_rate_limited(polite: Callable[..., requests.Session]) -> None:
    with loopback_semantic_scholar(script=[Answer(status=429)] * 4) as server, pytest.raises(RateLimited):
        find(asked(server.url, polite), "2601.00001")


def test_a_key_is_plain_text_or_none_and_never_shown() -> None:
    assert api_key({}) is api_key({"SEMANTIC_SCHOLAR_API_KEY": " "}) is None
    assert api_key({"SEMANTIC_SCHOLAR_API_KEY": " k-1 "}) == "k-1"
    with pytest.raises(InvalidInput) as raised:
        api_key({"SEMANTIC_SCHOLAR_API_KEY": "hid\nden"})
    assert "hid" not in str(raised.value)


def test_a_paper_of_arxivs_has_arxivs_pdf_and_any_other_the_open_one() -> None:
    elsewhere = {"openAccessPdf": {"url": "https://example.org/open.pdf"}}
    at_arxiv = read_paper(scholar_paper(1, arxiv="2601.05001", **elsewhere))
    in_print = read_paper(scholar_paper(2, **elsewhere))
    assert at_arxiv is not None and in_print is not None
    assert at_arxiv.as_paper().pdf_url == "https://arxiv.org/pdf/2601.05001"
    assert in_print.as_paper().pdf_url == "https://example.org/open.pdf"
    assert (at_arxiv.as_paper().paper_id, in_print.as_paper().paper_id) == ("2601.05001", f"S2:{2:040x}")


@pytest.mark.parametrize(
    ("address", "number"),
    [
        (f"https://www.semanticscholar.org/paper/Folding-Caches/{3:040x}", 3),
        (f"https://semanticscholar.org/reader/{3:040x}/", 3),
        ("https://www.semanticscholar.org/paper/Folding-Caches", None),
        (f"https://example.org/paper/{3:040x}", None),
    ],
)
def test_the_address_of_a_page_names_its_paper(address: str, number: int | None) -> None:
    assert SEMANTIC_SCHOLAR.named_by is not None
    found = SEMANTIC_SCHOLAR.named_by(address)
    assert found == (None if number is None else (PaperId("S2", f"{number:040x}"), None))


def test_text_that_could_steer_a_terminal_or_break_a_store_is_cleaned() -> None:
    paper = read_paper({"paperId": "a" * 40, "title": "A\x1b[31m red\u202e \0 title \ud800", "abstract": 7})
    assert paper is not None and paper.title == "A[31m red title" and paper.abstract is None
