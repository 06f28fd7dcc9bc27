"""The tools over the sources and the language model, asked over stdio, with the outside world on loopback."""

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from paper_assets.interfaces.mcp.calls import Calls
from paper_assets.interfaces.mcp.paper_tools import PaperTools
from paper_assets.interpreting.clients import Clients
from paper_assets.settings import Settings
from paper_assets.text.secrets import Secrets
from tests.desk import Desk
from tests.interpreting.outside import Outside, outside, pdf_answer, titled
from tests.invented_pdfs import pdf
from tests.loopback import Answer
from tests.loopback_llm import KEY, LoopbackLLM, Raw, Request, Says, Step, fault, hang, loopback_llm, says
from tests.mcp.passing_time import let_pass, run_in_passing_time
from tests.mcp.ranked_desk import ranked_desk
from tests.mcp.raw_host import RawHost, raw_host
from tests.waiting import until

ID, SCAN, LONE = "2601.05001", "2601.05002", "2601.05003"
PAGES = ("We fold the cache once.", "The gain is steady. " * 60)
READING = {
    "summary": "The cache is folded.",
    "key_contributions": ["a fold"],
    "methodology": "Folding.",
    "limitations": [],
    "related_work": [],
}
SCHOLAR_KEY = "canary-4711-of-s2"


@dataclass
class World:
    """The server, what it can reach, and what the language model answers next."""

    host: RawHost
    outside: Outside
    llm: LoopbackLLM
    answers: list[Step] = field(default_factory=list)

    def arxiv_answers(self, *answers: Answer) -> None:
        """For the next requests only; without any, arXiv knows its papers again."""
        before = [Answer()] * len(self.outside.arxiv.requests)
        self.outside.arxiv.script = [*before, *answers] if answers else None


def tools_over(clients: Clients) -> PaperTools:
    tools = PaperTools(calls=Calls(secrets=Secrets({}), limit=50), settings=Settings())
    tools.__dict__["_shared_clients"] = clients
    return tools


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for all tests of the module; its log is complete."""
    folder = tmp_path_factory.mktemp("world")
    answers: list[Step] = []

    def answering(_: Request) -> Step:
        return answers.pop(0) if answers else says(READING)

    papers = [titled(number, f"Folding Caches, part {number}") for number in range(1, 30)]
    with outside(folder, papers) as world, loopback_llm(answering) as llm:
        world.arxiv.pdfs[f"{ID}v1"] = pdf_answer(pdf(*PAGES))
        world.arxiv.pdfs[f"{SCAN}v1"] = Answer(body=b"<html>sign in</html>", headers={"Content-Type": "text/html"})
        environ = {
            **world.clients().environ,
            **llm.environ("openai"),
            "SEMANTIC_SCHOLAR_API_KEY": SCHOLAR_KEY,
            "LOG_LEVEL": "debug",
        }
        with raw_host(Desk(folder), **environ) as host:
            host.handshake()
            yield World(host=host, outside=world, llm=llm, answers=answers)


@pytest.fixture
def world(serving: World) -> Iterator[World]:
    yield serving
    serving.arxiv_answers()
    serving.answers.clear()
    rmtree(serving.outside.folder / "gate", ignore_errors=True)  # it remembers whom we are to leave alone for a while


def test_papers_are_found_and_more_of_them_on_the_next_page(world: World) -> None:
    first = world.host.call("search_papers", query="folding caches", max_results=29)
    assert first["total_count"] == first["total"] == 29
    assert 0 < len(first["papers"]) <= first["total"]
    rest = world.host.call("search_papers", query="folding caches", max_results=29, offset=28)
    assert len(rest["papers"]) == 1
    assert rest["next_offset"] is None


def test_the_text_of_a_paper_comes_in_pages(world: World) -> None:
    first = world.host.call("fetch_paper", arxiv_id=ID, limit=20)
    assert first["paper"]["content"] == PAGES[0][:20]
    assert (first["offset"], first["next_offset"]) == (0, 20)
    rest = world.host.call("fetch_paper", url=f"https://arxiv.org/abs/{ID}", offset=20)
    assert (first["paper"]["content"] + rest["paper"]["content"]).startswith(PAGES[0])
    assert rest["next_offset"] is None
    assert first["total"] == rest["total"] == 20 + len(rest["paper"]["content"])


def test_without_its_pdf_a_paper_has_no_content(world: World) -> None:
    answer = world.host.call("fetch_paper", arxiv_id=LONE, include_pdf_content=False)
    assert answer["paper"]["content"] is None
    assert answer["total"] == 0


def test_a_paper_named_by_its_id_or_given_in_part_is_read_whole(world: World) -> None:
    by_id = world.host.call("analyze_paper", paper={"paper_id": ID})
    assert by_id["analysis"]["summary"] == READING["summary"]
    assert by_id["analysis"]["read"] == "full text"
    part = world.host.call("fetch_paper", arxiv_id=ID, limit=5)["paper"]
    assert world.host.call("analyze_paper", paper=part) | by_id == by_id
    assert "The gain is steady" in world.llm.requests[-1].turns[0]


def test_a_paper_without_id_given_in_part_is_read_from_its_whole_pdf(world: World) -> None:
    address = f"{world.outside.arxiv.pdf_url}/bridges.pdf"
    world.outside.arxiv.pdfs["bridges.pdf"] = pdf_answer(pdf("A bridge of paper.", "It bears a cat."))
    given = {"title": "Of Bridges", "pdf_url": address, "content": "A bridge", "content_is_part": True}
    answer = world.host.call("analyze_paper", paper=given, llm_config={"model": "whole"})
    assert answer["analysis"]["read"] == "full text"
    assert "It bears a cat." in world.llm.requests[-1].turns[0]
    assert "Of Bridges" in world.llm.requests[-1].turns[0]


@pytest.mark.parametrize("named", [{"paper_id": SCAN}, {"pdf_url": "https://example.org/x.pdf"}, {}])
def test_a_part_of_a_text_is_never_read_as_the_full_text(world: World, named: dict[str, str]) -> None:
    part = {"title": "Of Bridges", "content": "Only the first page", "content_is_part": True, **named}
    answer = world.host.call("analyze_paper", paper={**part, "abstract": "We bridge."}, llm_config={"model": "part"})
    assert answer["analysis"]["read"] == "abstract"
    assert "Only the first page" not in world.llm.requests[-1].turns[0]
    if "paper_id" not in named:  # arXiv has the abstract of the other
        assert world.host.refused("analyze_paper", paper=part)["code"] in {"PDF_FETCH_FAILED", "INVALID_INPUT"}


def test_a_paper_is_fetched_and_read_within_one_deadline(tmp_path: Path) -> None:
    class Nobody:
        async def report_progress(self, *_: object) -> None:
            pass

    with outside(tmp_path, [titled(1, "Folding Caches")]) as world, loopback_llm(lambda _: says(READING)) as llm:
        world.arxiv.pdfs[f"{ID}v1"] = pdf_answer(pdf(*PAGES))
        clients = replace(
            world.clients(deadline=100.0, **llm.environ("openai")), clock=lambda: 30.0 * len(world.arxiv.requests)
        )
        asked = tools_over(clients).analyze_paper(Nobody(), paper={"paper_id": ID})  # type: ignore[arg-type]
        found = asyncio.run(asked)
    answer = json.loads(found.content[0].text)
    # Half of the time after the paper was found is for its text; the model reads the abstract in the rest.
    assert (answer["analysis"]["read"], len(world.arxiv.requests)) == ("abstract", 3)
    assert "only the abstract was read" in answer["paper"]["warnings"][0]


def test_a_paper_given_with_its_text_is_read_as_it_is(world: World) -> None:
    given = {"title": "Of Bridges", "abstract": "", "content": "A bridge of paper bears a cat."}
    answer = world.host.call("analyze_paper", paper=given, analysis_type="detailed", llm_config={"model": "other"})
    assert answer["analysis"]["model"] == "other"
    assert "bears a cat" in world.llm.requests[-1].turns[0]


def test_the_same_question_asks_the_model_once(world: World) -> None:
    first = world.host.call("interpret_paper", query={"arxiv_id": ID})
    asked = len(world.llm.requests)
    again = world.host.call("interpret_paper", query={"url": f"https://arxiv.org/abs/{ID}v1"})
    assert again["analysis"]["summary"] == first["analysis"]["summary"]
    assert len(world.llm.requests) == asked
    assert "content" not in again["paper"]


def test_if_the_model_fails_the_paper_is_there_all_the_same(world: World) -> None:
    world.answers.append(fault(400, "no such thing"))
    answer = world.host.call("interpret_paper", query={"arxiv_id": ID}, llm_config={"model": "failing"})
    assert answer["paper"]["paper_id"] == ID
    assert answer["analysis"] is None
    assert answer["analysis_error"]["code"] == "LLM_ERROR"


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("fetch_paper", {"arxiv_id": "2501.1"}, "INVALID_ARXIV_ID"),
        ("fetch_paper", {"arxiv_id": "../x"}, "INVALID_ARXIV_ID"),
        ("fetch_paper", {"arxiv_id": "9" * 10_000}, "INVALID_ARXIV_ID"),
        ("fetch_paper", {"arxiv_id": "2601.09999"}, "PAPER_NOT_FOUND"),
        ("fetch_paper", {}, "INVALID_INPUT"),
        ("fetch_paper", {"url": "file:///etc/passwd"}, "INVALID_INPUT"),
        ("fetch_paper", {"url": "http://example.org/abs/2601.05001"}, "INVALID_INPUT"),
        ("fetch_paper", {"url": "https://example.org/x.pdf"}, "INVALID_INPUT"),
        ("search_papers", {"query": "x", "max_results": 0}, "INVALID_INPUT"),
        ("search_papers", {"query": ""}, "INVALID_INPUT"),
        ("analyze_paper", {"paper": {}}, "INVALID_INPUT"),
        ("analyze_paper", {"paper": {"paper_id": "2501.1"}}, "INVALID_ARXIV_ID"),
        ("analyze_paper", {"paper": {"paper_id": ID}, "llm_config": {"api_key": "x"}}, "INVALID_INPUT"),
        ("analyze_paper", {"paper": {"paper_id": ID}, "analysis_type": "poem"}, "INVALID_INPUT"),
        ("interpret_paper", {"query": {}}, "INVALID_INPUT"),
        ("interpret_paper", {"query": {"doi": "10.1/x"}}, "INVALID_INPUT"),
    ],
)
def test_every_mistake_has_its_code(world: World, tool: str, arguments: dict[str, Any], code: str) -> None:
    error = world.host.refused(tool, **arguments)
    assert error["code"] == code
    assert 0 < len(error["message"]) <= 1_000


def test_a_key_that_an_assistant_sends_as_an_unknown_argument_is_not_repeated(world: World) -> None:
    error = world.host.refused("analyze_paper", paper={"paper_id": ID}, llm_config={"api_key": "invented-secret"})
    assert "llm_config.api_key: unknown key" in error["message"]
    assert "invented-secret" not in str(error)


def test_a_source_that_asks_us_to_slow_down_is_reported_as_rate_limited(world: World) -> None:
    world.arxiv_answers(Answer(status=429, headers={"Retry-After": "600"}))
    error = world.host.refused("fetch_paper", arxiv_id="2601.05020", include_pdf_content=False)
    assert error["code"] == "RATE_LIMIT"
    assert error["details"]["worth_another_try"] is True


@pytest.mark.parametrize("configured", [False, True])
def test_a_stored_paper_is_answered_from_the_store_without_a_model_or_network(tmp_path: Path, configured: bool) -> None:
    desk = ranked_desk(tmp_path)
    stored = "2603.00203"
    with outside(tmp_path / "world", []) as world, loopback_llm(lambda _: says(READING)) as llm:
        world.arxiv.script = [Answer(status=500)] * 50
        environ = {**world.clients().environ, **desk.environment}
        with raw_host(desk, **environ, **(llm.environ("openai") if configured else {})) as host:
            host.handshake()
            answer = host.call("analyze_paper", paper={"paper_id": stored})
            given = host.call("analyze_paper", paper={"title": "Folding", "abstract": "We fold.", "authors": []})
        if configured:
            assert answer["analysis"]["read"] == "abstract"
            assert "only the abstract was read" in answer["paper"]["warnings"][0]
        else:
            assert answer["analysis"] is None
            assert answer["analysis_error"]["code"] == "LLM_CONFIG_ERROR"
            assert answer["paper"]["paper_id"] == stored
            assert (given["analysis"], given["paper"]["title"]) == (None, "Folding")
            assert given["analysis_error"]["code"] == "LLM_CONFIG_ERROR"
            assert llm.requests == world.arxiv.requests == []


def test_a_source_of_texts_that_is_down_leaves_what_is_known_of_the_paper(world: World) -> None:
    number = "2601.05022"
    world.outside.arxiv.pdfs[f"{number}v1"] = Answer(status=500)
    answer = world.host.call("fetch_paper", arxiv_id=number)
    assert (answer["paper"]["paper_id"], answer["paper"]["content"], answer["total"]) == (number, None, 0)
    assert answer["content_error"]["code"] == "NETWORK_ERROR"


def test_a_paper_whose_text_cannot_be_reached_is_returned_as_known_and_its_abstract_read(world: World) -> None:
    fetched = world.host.call("fetch_paper", arxiv_id=SCAN)
    assert (fetched["paper"]["arxiv_id"], fetched["paper"]["content"], fetched["total"]) == (SCAN, None, 0)
    assert fetched["content_error"]["code"] == "PDF_FETCH_FAILED"
    read = world.host.call("analyze_paper", paper={"arxiv_id": SCAN})
    assert read["analysis"]["read"] == "abstract"
    assert "only the abstract was read" in read["paper"]["warnings"][0]
    unread = world.host.call("analyze_paper", paper={"paper_id": ID}, llm_config={"provider": "anthropic"})
    assert (unread["paper"]["paper_id"], unread["analysis"]) == (ID, None)
    assert unread["analysis_error"]["code"] == "LLM_CONFIG_ERROR"


PAPER = {"title", "authors", "abstract", "arxiv_id", "published_date", "pdf_url"}
ANALYSIS = {"summary", "key_contributions", "methodology", "limitations"}
ANSWERS: tuple[tuple[str, str, dict[str, Any], dict[str, set[str]]], ...] = (
    # statement of the original document, tool, arguments, names of each part of the answer
    ("a search", "search_papers", {"query": "folding caches"}, {"papers": PAPER, "": {"papers", "total_count"}}),
    ("by author", "search_papers", {"query": "caches", "author": "Author 1"}, {"": {"papers", "total_count"}}),
    ("by category", "search_papers", {"query": "caches", "category": "cs.CL"}, {"": {"papers", "total_count"}}),
    ("at most so many", "search_papers", {"query": "folding caches", "max_results": 1}, {"papers": PAPER}),
    ("a paper by its id", "fetch_paper", {"arxiv_id": ID}, {"paper": PAPER | {"categories", "content"}}),
    ("by its address", "fetch_paper", {"url": f"https://arxiv.org/abs/{ID}"}, {"paper": PAPER | {"content"}}),
    ("without its text", "fetch_paper", {"arxiv_id": ID, "include_pdf_content": False}, {"paper": PAPER | {"content"}}),
    ("an analysis", "analyze_paper", {"paper": {"arxiv_id": ID}}, {"analysis": ANALYSIS | {"related_work"}}),
    ("all at once, by id", "interpret_paper", {"query": {"arxiv_id": ID}}, {"paper": PAPER, "analysis": ANALYSIS}),
    ("by a part of the title", "interpret_paper", {"query": {"title": "caches, part 7"}}, {"paper": PAPER}),
    ("by address", "interpret_paper", {"query": {"url": f"https://arxiv.org/abs/{ID}"}}, {"analysis": ANALYSIS}),
    ("by PDF", "interpret_paper", {"query": {"pdf_url": f"https://arxiv.org/pdf/{ID}"}}, {"analysis": ANALYSIS}),
)


@pytest.mark.parametrize(("tool", "arguments", "names"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_an_answer_has_the_names_of_the_original_document_beside_ours(
    world: World, tool: str, arguments: dict[str, Any], names: dict[str, set[str]]
) -> None:
    answer = world.host.call(tool, **arguments)
    for part, expected in names.items():
        found = answer[part] if part else answer
        for each in found if isinstance(found, list) else [found]:
            assert expected <= each.keys()
            if expected >= PAPER:
                assert (each["arxiv_id"], each["published_date"]) == (each["paper_id"], "2026-01-05")
    assert len(answer.get("papers", ())) <= arguments.get("max_results", 10)


def test_found_and_fetched_papers_can_be_ranked_as_they_are(world: World) -> None:
    found = world.host.call("search_papers", query="folding caches", max_results=5)["papers"]
    given = [*found, world.host.call("fetch_paper", arxiv_id="2601.05029", include_pdf_content=False)["paper"]]
    answer = world.host.call("rank_and_filter_papers", papers=given, top_k=10, save=False)
    assert (answer["success"], answer["error"], answer["total"]) == (True, None, 6)
    originals = [{"arxiv_id": each["arxiv_id"], "title": "T", "abstract": "A", "authors": []} for each in found]
    assert world.host.call("rank_and_filter_papers", papers=originals, save=False)["total"] == 5
    refused = world.host.request(
        "tools/call", {"name": "rank_and_filter_papers", "arguments": {"papers": [{"title": "T"}]}}
    )["result"]
    body = json.loads(refused["content"][0]["text"])
    assert (refused["isError"], body["success"], body["error"]["code"]) == (True, False, "INVALID_INPUT")


def test_a_paper_is_found_by_a_part_of_its_title_and_several_are_listed(world: World) -> None:
    found = world.host.call("interpret_paper", query={"title": "caches, part 7"})
    assert found["paper"]["title"] == "Folding Caches, part 7"
    several = world.host.refused("interpret_paper", query={"title": "folding caches part"})
    assert several["code"] == "PAPER_NOT_FOUND"
    assert len(several["details"]["candidates"]) > 1
    assert several["details"]["candidates"][0].keys() == {"arxiv_id", "title"}


def test_a_paper_that_is_not_found_is_answered_with_its_id_and_what_was_searched(world: World) -> None:
    details = world.host.refused("fetch_paper", arxiv_id="2601.09999v2")["details"]
    assert (details["arxiv_id"], details["searched_sources"]) == ("2601.09999", ["desk", "arxiv"])
    titled_so = world.host.refused("interpret_paper", query={"title": "Unheard of"})["details"]
    assert (titled_so["arxiv_id"], titled_so["searched_sources"]) == (None, ["desk", "arxiv", "semantic_scholar"])


def test_a_model_slower_than_a_call_is_paid_once_and_read_when_it_has_ended(tmp_path: Path) -> None:
    class Nobody:
        async def report_progress(self, *_: object) -> None:
            pass

    done = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    class Joining(Nobody):
        async def report_progress(self, progress: float, total: float | None, message: str) -> None:
            if message.startswith("already running"):
                let_pass(loops[0], 50)

    def slow(_: Request) -> Step:
        let_pass(loops[0], 50)  # the paper is there and the model is asked
        done.wait(120)
        return says(READING)

    async def calls(tools: PaperTools) -> list[Any]:
        async def call(listener: Nobody) -> Any:
            found = await tools.interpret_paper(listener, query={"arxiv_id": ID})  # type: ignore[arg-type]
            return json.loads(found.content[0].text)

        loops.append(asyncio.get_running_loop())
        impatient = [await call(Nobody()), await call(Joining())]
        done.set()
        return [*impatient, await call(Nobody())]

    with outside(tmp_path, [titled(1, "Folding Caches")]) as world, loopback_llm(slow) as llm:
        world.arxiv.pdfs[f"{ID}v1"] = pdf_answer(pdf(*PAGES))
        clients = world.clients(deadline=100.0, **llm.environ("ollama"))
        tools = tools_over(clients)
        first, second, third = run_in_passing_time(calls(tools))
    for answer in (first, second):
        assert answer["paper"]["paper_id"] == ID
        assert answer["analysis"] is None
        assert "ask the same again" in answer["analysis_error"]["message"]
    assert third["analysis"]["summary"] == READING["summary"]
    assert len(llm.requests) == 1


def test_a_model_that_answers_nonsense_is_an_error_of_the_model(world: World) -> None:
    world.answers += [says("no"), says("still no")]
    answer = world.host.call("analyze_paper", paper={"paper_id": ID}, llm_config={"model": "mute"})
    assert (answer["analysis"], answer["analysis_error"]["code"], answer["paper"]["paper_id"]) == (
        None,
        "LLM_ERROR",
        ID,
    )


def test_a_source_that_fails_late_is_reported_and_other_calls_do_not_wait_for_it(world: World) -> None:
    others_answered = threading.Event()
    world.arxiv_answers(Answer(status=500, after=others_answered), *3 * [Answer(status=500)])
    ask = {"name": "fetch_paper", "arguments": {"arxiv_id": "2601.05021", "include_pdf_content": False}}
    asked = world.host.ask("tools/call", {**ask, "_meta": {"progressToken": "slow"}})
    assert "result" in world.host.request("tools/list")
    while "finding the paper" not in f"{world.host.heard}":
        world.host.next_message()
    others_answered.set()
    result = world.host.answer_to(asked)["result"]
    assert json.loads(result["content"][0]["text"])["error"]["code"] == "NETWORK_ERROR"
    answer = [
        message["params"]
        for message in world.host.heard
        if message.get("method") == "notifications/progress" and message["params"]["progressToken"] == "slow"
    ]
    assert [each["progress"] for each in answer] == sorted({each["progress"] for each in answer})
    assert world.host.heard[-1]["id"] == asked  # no message of the call follows its answer


def test_a_cancelled_call_is_not_answered_and_the_server_continues(world: World) -> None:
    world.answers.append(hang())
    before = len(world.llm.requests)
    ask = {"name": "analyze_paper", "arguments": {"paper": {"paper_id": ID}, "llm_config": {"model": "sleeper"}}}
    asked = world.host.ask("tools/call", {**ask, "_meta": {"progressToken": "cancelled"}})
    until(lambda: len(world.llm.requests) > before)
    world.host.tell("notifications/cancelled", {"requestId": asked, "reason": "no longer wanted"})
    world.host.call("search_papers", query="folding")
    assert not [message for message in world.host.heard if message.get("id") == asked and "result" in message]


def test_no_key_is_in_any_answer_or_in_the_log_though_a_server_repeats_it(world: World) -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}", "code": "invalid_api_key"}}).encode()
    echo = {"content-type": "application/json", "x-your-key": f"Bearer {KEY}"}
    world.answers.append(Raw(401, body, echo))
    answer = world.host.call("analyze_paper", paper={"paper_id": ID}, llm_config={"model": "echo"})
    assert answer["analysis_error"]["code"] == "LLM_CONFIG_ERROR"
    world.answers += [Raw(400, body, echo), Says(f"your key is {KEY}")]
    world.host.call("analyze_paper", paper={"paper_id": ID}, llm_config={"model": "echo2"})
    answer_text = json.dumps({**READING, "summary": f"It says {KEY} and {SCHOLAR_KEY}."})
    world.answers.append(Says(answer_text))
    answer = world.host.call("analyze_paper", paper={"paper_id": ID}, llm_config={"model": "echo3"})
    assert (answer["analysis"]["summary"], answer["analysis"]["dropped"]) == ("", 1)
    leaked = {"title": "Of keys", "content": f"It says {KEY} and {SCHOLAR_KEY}."}
    world.answers.append(Says(answer_text))
    answer = world.host.call("analyze_paper", paper=leaked, llm_config={"model": "echo4"})
    assert answer["analysis"]["summary"] == "It says *** and ***."
    log = world.host.log
    assert " DEBUG " in log
    for secret in (KEY, SCHOLAR_KEY):
        assert secret not in log
        assert secret not in json.dumps(world.host.heard)
    assert world.llm.requests[-1].headers["authorization"] == f"Bearer {KEY}"


def test_no_stack_trace_was_logged_for_what_a_caller_or_a_source_can_cause(serving: World) -> None:
    assert "Traceback" not in serving.host.log
