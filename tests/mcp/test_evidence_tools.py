"""Evidence over stdio: by filter, side by side, and never a private document."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from paper_assets.interfaces.mcp.search_tools import SearchTools
from paper_assets.settings import Settings
from paper_assets.stores.documents import Document, replace_documents
from tests.desk import Desk
from tests.mcp.raw_host import RawHost

PRIVATE_WORDS = "the private notes on road tolls"


def passage(doc_id: str, text: str, *, owner: str | None) -> Document:
    return Document(
        doc_id=doc_id,
        text=text,
        paper_id=f"2603.{doc_id[-5:]}",
        title="Of tolls",
        date_int=20260302,
        primary_category="cs.LG",
        categories=("cs.LG",),
        topic_id="cs",
        data_type="fulltext",
        access_level="private" if owner else "public",
        language="en",
        version=1,
        url=None if owner else "https://arxiv.org/abs/2603.00103",
        owner=owner,
    )


@pytest.fixture(scope="module", autouse=True)
def passages(desk: Desk) -> None:
    replace_documents(
        desk.warehouse, "fulltext", origin="own", documents=[passage("own:90001", PRIVATE_WORDS, owner="traffic")]
    )
    replace_documents(
        desk.warehouse,
        "fulltext",
        origin="open",
        documents=[passage("open:90002", "road tolls in the open", owner=None)],
    )


def test_the_best_documents_come_with_the_filter_that_was_used(host: RawHost) -> None:
    answer = host.call("retrieve_standard", question="traffic on road networks", k=3, startdate="2026-03-03")
    assert answer["documents"][0]["metadata"]["paper_id"] == "2603.00203"
    assert {document["metadata"]["date_int"] for document in answer["documents"]} == {20260303}
    assert "20260303" in json.dumps(answer["filter"])
    assert "arxiv.org/abs/2603.00203" in answer["links"]


def test_each_side_gets_as_many_documents_or_says_why_not(host: RawHost) -> None:
    answer = host.call(
        "retrieve_balanced",
        question="speech recognition",
        sides=["cs.LG", "cs.CL"],
        side_field="categories",
        k_per_side=2,
        startdate="soon",
    )
    full, empty = answer["sides"]
    assert (full["side"], len(full["documents"]), full["shortfall"]) == ("cs.LG", 2, None)
    assert (empty["side"], empty["documents"]) == ("cs.CL", [])
    assert empty["shortfall"]
    assert any("startdate" in note for note in answer["notes"])


def test_default_sides_have_a_note_that_they_are_not_stances(host: RawHost) -> None:
    assert any("contradicts" in note for note in host.call("retrieve_balanced", question="speech")["notes"])
    sides = ["cs.LG", "cs.CL"]
    assert not any("contradicts" in note for note in host.call("retrieve_balanced", question="x", sides=sides)["notes"])


@pytest.mark.parametrize("count", [198, 20_000])
def test_the_answer_to_a_long_condition_is_bounded(host: RawHost, count: int) -> None:
    days = list(range(20260300, 20260300 + count))
    sides = [{"name": f"{n}", "where": {"date_int": {"$in": days}}} for n in (1, 2)]
    answer = host.call("retrieve_balanced", question="steady gain", sides=sides)
    assert len(json.dumps(answer, ensure_ascii=False)) <= 12_000
    assert all(side["documents"] for side in answer["sides"])


def test_a_private_document_is_never_served(host: RawHost) -> None:
    asks = (
        ("retrieve_standard", {}),
        ("retrieve_balanced", {"sides": ["cs.LG"], "k_per_side": 5}),
        ("retrieve_balanced", {"profile": "traffic", "sides": [{"name": "own", "where": {"owner": "traffic"}}]}),
    )
    for tool, more in asks:
        answer = host.call(tool, question="private notes on road tolls", data_type=["fulltext"], **more)
        assert PRIVATE_WORDS not in json.dumps(answer)
        assert "own:90001" not in json.dumps(answer)
    assert "open:90002" in json.dumps(host.call("retrieve_standard", question="road tolls", data_type=["fulltext"]))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("retrieve_standard", {"question": ""}),
        ("retrieve_standard", {"question": " "}),
        ("retrieve_standard", {"question": "x", "k": 101}),
        ("retrieve_standard", {"question": "x", "data_type": ["secret"]}),
        ("retrieve_balanced", {"question": "x", "sides": ["a", "a"]}),
        ("retrieve_balanced", {"question": "x", "sides": [{"name": "a"}]}),
        ("retrieve_balanced", {"question": "x", "sides": [{"name": "a", "where": {"nothing": 1}}]}),
        ("retrieve_balanced", {"question": "x", "profile": "nobody"}),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_by_name(
    host: RawHost, tool: str, arguments: dict[str, object]
) -> None:
    assert host.refused(tool, **arguments)["code"] == "INVALID_INPUT"


def test_a_fault_in_a_side_is_named_with_its_key(host: RawHost) -> None:
    message = host.refused("retrieve_balanced", question="x", sides=[{"stance": "supports"}])["message"]
    assert message == "the question: filters.sides.0.name: field required"


def test_only_evidence_for_and_against_goes_on_after_its_call_and_the_same_call_joins_it() -> None:
    class Recording:
        async def answer(self, ctx: object, tool: str, work: object, *, joined_as: str | None = None) -> str | None:
            return joined_as

    calls: Any = Recording()
    tools = SearchTools(calls=calls, settings=Settings(), environ={})

    def joined_as(question: str, sides: Any, **more: Any) -> object:
        return asyncio.run(tools.retrieve_balanced(calls, question, sides, **more))

    stances = [{"name": "for", "stance": "supports"}, {"name": "against", "stance": "contradicts"}]
    assert joined_as("Is it so?", None) is joined_as("Is it so?", ["cs.LG", "cs.CL"]) is None
    own = joined_as("Is it so?", stances)
    assert None is not own == joined_as("Is it so?", stances)
    assert own != joined_as("Is it so?", stances, offset=2)
    tools = replace(tools, only={"traffic"})  # another person, who may name other profiles
    assert own != joined_as("Is it so?", stances)
