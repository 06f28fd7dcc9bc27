"""Searching the desk and asking it over stdio: one call each, nothing private, errors that say what to do."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from paper_assets.errors import NotComputed
from paper_assets.interfaces.mcp.calls import Calls
from paper_assets.interfaces.mcp.search_tools import SearchTools, paper_row
from paper_assets.pipeline.desk_answers import AnsweringContext
from paper_assets.retrieval.desk_search import FoundPaper
from paper_assets.settings import Settings
from paper_assets.stores.documents import Document, replace_documents
from paper_assets.text.secrets import Secrets
from tests.desk import Desk
from tests.loopback import Answer
from tests.loopback_arxiv import loopback_arxiv
from tests.mcp.raw_host import RawHost, raw_host

PRIVATE = "the unpublished ledger of toll bridges"
ANSWERING = "2603.00205"
FINDING = "Graph networks predict traffic on road networks with an error that is 12 % lower than before."


@pytest.fixture(scope="module", autouse=True)
def full_texts(desk: Desk) -> None:
    """Store a private text, and of another paper a public one that answers a question."""
    private = Document(
        doc_id="own:70001",
        text=PRIVATE,
        paper_id="2603.00203",
        title="Of tolls",
        data_type="fulltext",
        access_level="private",
        owner="traffic",
        date_int=20260302,
    )
    public = replace(
        private, doc_id="70002", paper_id=ANSWERING, text=FINDING, title="Of traffic", access_level="public", owner=None
    )
    replace_documents(desk.warehouse, "fulltext", origin="ledger", documents=[private, public])


def test_stored_papers_are_found_with_the_sentence_that_fits_and_in_pages(host: RawHost) -> None:
    whole = host.call("search_desk", query="traffic on road networks", limit=5)
    assert {"2603.00103", "2603.00203"} <= {each["paper_id"] for each in whole["papers"]}
    assert all(each["passage"] for each in whole["papers"])
    first = host.call("search_desk", query="traffic on road networks", limit=1)
    second = host.call("search_desk", query="traffic on road networks", limit=1, offset=first["next_offset"])
    assert [*first["papers"], *second["papers"]] == whole["papers"][:2]


def test_papers_like_one_are_found_without_itself(host: RawHost) -> None:
    found = host.call("search_desk", like="2603.00203")
    assert found["papers"] and "2603.00203" not in {each["paper_id"] for each in found["papers"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "query or like"),
        ({"query": "x", "like": "2603.00203"}, "query or like"),
        ({"query": "from:2026-99-01"}, "from:"),
        ({"query": "is:worth"}, "profile"),
        ({"query": "in:trafic roads"}, "list_profiles"),
        ({"query": "is:worth", "profile": "trafic"}, "list_profiles"),
        ({"like": "2501.99999"}, "not stored"),
        ({"like": "roads"}, "not an arXiv id"),
        ({"like": " "}, "query or like"),
    ],
)
def test_a_query_that_cannot_be_read_is_explained(host: RawHost, arguments: dict[str, str], message: str) -> None:
    assert message in host.refused("search_desk", **arguments)["message"]


def test_a_private_text_is_neither_found_nor_quoted(host: RawHost) -> None:
    found = host.call("search_desk", query="unpublished ledger of toll bridges in:fulltexts", profile="traffic")
    answer = host.call("ask_desk", question="What is in the unpublished ledger of toll bridges?")
    assert "ledger" not in f"{found['papers']}{answer['sentences']}"


def test_a_question_is_answered_in_one_call_with_quotes_of_stored_papers(host: RawHost) -> None:
    answer = host.call("ask_desk", question="How is traffic on road networks predicted?")
    assert answer["kind"] == "extractive" and answer["answered"] and not answer["nearest"]
    assert not any(each.get("text") == cited["quote"] for each in answer["sentences"] for cited in each["citations"])
    quoted = {cited["paper_id"]: cited["quote"] for each in answer["sentences"] for cited in each["citations"]}
    assert quoted == {ANSWERING: FINDING}
    for paper_id, quote in quoted.items():
        fetched = host.call("search_desk", query=f'"{" ".join(quote.split()[:6])}" in:fulltexts')
        assert paper_id in {each["paper_id"] for each in fetched["papers"]}


def test_where_no_stored_paper_reports_a_result_the_nearest_sentences_are_quoted_and_nothing_is_answered(
    host: RawHost,
) -> None:
    answer = host.call("ask_desk", question="How are rare languages recognised in speech?")
    assert not answer["answered"] and not answer["sentences"]
    assert "We study speech recognition for rare languages." in {each["quote"] for each in answer["nearest"]}


def test_an_answer_that_cannot_separate_for_and_against_reports_it(host: RawHost) -> None:
    asked = "Is traffic on road networks predicted?"
    assert any(
        "for and against" in note for note in host.call("ask_desk", question=asked, for_and_against=True)["notes"]
    )
    assert not any("for and against" in note for note in host.call("ask_desk", question=asked)["notes"])


def test_a_question_is_answered_without_the_full_text_that_a_silent_source_does_not_give(desk: Desk) -> None:
    with loopback_arxiv(script=[Answer(hang=True)] * 9) as arxiv:
        reach = {
            "PAPER_ASSETS_ARXIV_URL": arxiv.url,
            "PAPER_ASSETS_ARXIV_PDF_URL": f"{arxiv.url}/pdf",
            "PAPER_ASSETS_KNOWN_HOSTS": arxiv.url,
            "PAPER_ASSETS_SEMANTIC_SCHOLAR": "off",
            "PAPER_ASSETS_REQUEST_TIMEOUT": "0.2",
            "PAPER_ASSETS_REQUEST_INTERVAL": "0",
        }
        with raw_host(desk, **reach) as host:
            host.handshake()
            answer = host.call("ask_desk", question="How is traffic on road networks predicted?", fetch=2)
            assert answer["sentences"]
            assert sum("was not read" in note for note in answer["notes"]) == 2


def test_full_texts_are_fetched_in_half_of_the_time_of_a_call(monkeypatch: pytest.MonkeyPatch, desk: Desk) -> None:
    class Nobody:
        async def report_progress(self, *_: object) -> None:
            pass

    seconds: list[float] = []

    def prepare(context: AnsweringContext, *_: object, **__: object) -> None:
        seconds.append(context.fetching)
        raise NotComputed("no question is prepared here")

    monkeypatch.setattr("paper_assets.pipeline.desk_answers.prepare_question", prepare)
    monkeypatch.setattr("paper_assets.interfaces.mcp.tool_set.embedder_or_none", lambda _: None)
    tools = SearchTools(calls=Calls(secrets=Secrets({}), limit=20), settings=desk.settings, environ={})
    asyncio.run(tools.ask_desk(Nobody(), "Why?", fetch=2))  # type: ignore[arg-type]
    assert seconds == [10]


def test_the_same_question_joins_a_slow_answer_and_only_quotations_are_made_in_the_call() -> None:
    class Recording:
        async def answer(self, ctx: object, tool: str, work: object, *, joined_as: str | None = None) -> str | None:
            return joined_as

    calls: Any = Recording()
    tools = SearchTools(calls=calls, settings=Settings(), environ={})

    def joined_as(question: str, **more: Any) -> object:
        return asyncio.run(tools.ask_desk(calls, question, **more))

    assert joined_as("Why?") == joined_as("Why?") != joined_as("Why not?")
    assert joined_as("Why?", extractive=True) is None
    assert None is not joined_as("Why?", extractive=True, fetch=1) != joined_as("Why?", fetch=1)


def test_a_long_list_of_authors_shows_the_one_that_was_searched() -> None:
    found = FoundPaper(
        paper_id="2603.00203",
        title="Of tolls",
        abstract="",
        authors=("Ada Berg", "Bo Chen", "Cy Dorn", "Eve Falk", "Zhang, Mei"),
        published=None,
        categories=(),
        score=None,
        passage="",
        collection="abstract",
        hits=(),
    )
    assert (
        paper_row(replace(found, authors=("A", "B", "C", "Jörg Müller")), authors=("muller",))["authors"][-1]
        == "Jörg Müller"
    )
    assert paper_row(found)["authors"] == ["Ada Berg", "Bo Chen", "Cy Dorn", "and 2 more"]
    assert paper_row(found, authors=("zhang",))["authors"] == [
        "Ada Berg",
        "Bo Chen",
        "Cy Dorn",
        "Zhang, Mei",
        "and 1 more",
    ]
