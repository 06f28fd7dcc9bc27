"""Bounds of a call, without a process: the time limit, what becomes of the work, the length of an answer, secrets."""

import asyncio
import json
import logging
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.errors import (
    IncompleteFeed,
    InvalidInput,
    LLMBudgetReached,
    LLMConfigError,
    LLMError,
    LLMRateLimited,
    NetworkError,
    PaperNotFound,
    PdfFetchFailed,
    RateLimited,
    StoreBusy,
    StoreUnwritable,
)
from paper_assets.interfaces.mcp.calls import Calls, bounded_answer, page, paged, text_page
from paper_assets.interfaces.mcp.error_answers import Outgoing, SafeFormatter, folders_of, refusal
from paper_assets.progress import Progress, WorkEnded
from paper_assets.settings import load_settings
from paper_assets.text.secrets import Secrets
from tests.mcp.passing_time import let_pass, run_in_passing_time
from tests.mcp.raw_host import error_in
from tests.waiting import until

NOTHING_HIDDEN = Secrets({})


class Listener:
    """Replace the SDK's context and keep the reported progress."""

    def __init__(self) -> None:
        self.reports: list[tuple[float, str | None]] = []

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.reports.append((progress, message))


class Passing(Listener):
    """A listener for whom some time has passed whenever it hears a message that ends so."""

    def __init__(self, ending: str, seconds: float) -> None:
        super().__init__()
        self.ending, self.seconds = ending, seconds

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        await super().report_progress(progress, total, message)
        if (message or "").endswith(self.ending):
            let_pass(asyncio.get_running_loop(), self.seconds)


def answer(calls: Calls, work: Any, listener: Any) -> Mapping[str, Any]:
    found = run_in_passing_time(calls.answer(listener, "a_tool", work))
    return found.model_dump(mode="json", by_alias=True, exclude_none=True)


def test_a_call_that_takes_too_long_is_answered_and_its_work_stops_at_its_next_step() -> None:
    gone_on, stopped = threading.Event(), threading.Event()

    def work(progress: Progress) -> Mapping[str, Any]:
        progress(1, 3, "step")
        gone_on.wait(60)
        try:
            progress(2, 3, "step")
        except WorkEnded:
            stopped.set()
            raise
        return {}

    error = error_in(answer(Calls(secrets=NOTHING_HIDDEN, limit=50), work, Passing("step 1 of 3", 50)))
    assert error["code"] == "NETWORK_ERROR"
    assert "not finished within 50 s (last report: step 1 of 3)" in error["message"]
    assert error["details"]["worth_another_try"] is True
    gone_on.set()
    assert stopped.wait(60)


def test_progress_only_grows_and_continues_while_the_work_reports_nothing() -> None:
    enough = threading.Event()

    class Counting(Passing):
        async def report_progress(self, *reports: Any) -> None:
            await super().report_progress(*reports)
            if len(self.reports) == 6:
                enough.set()

    listener = Counting("reading 1 of 2", 60)

    def work(progress: Progress) -> Mapping[str, Any]:
        progress(1, 2, "reading")
        enough.wait(60)
        return {"done": True}

    answer(Calls(secrets=NOTHING_HIDDEN, limit=3_600, heartbeat=60), work, listener)
    numbers = [number for number, _ in listener.reports]
    assert numbers == sorted(set(numbers))
    assert [message for _, message in listener.reports][:2] == ["started", "reading 1 of 2"]
    assert listener.reports[5][1] == "reading 1 of 2"


def test_a_store_that_another_process_holds_is_waited_for_twice_within_a_call(tmp_path: Path) -> None:
    settings = load_settings({"PAPER_ASSETS_STORE_DEADLINE": "3"}, tmp_path)
    assert [Calls(secrets=NOTHING_HIDDEN, limit=limit).store_deadline(settings) for limit in (5.0, 50.0)] == [2.0, 3.0]


def test_a_fault_of_the_program_is_one_line_for_the_caller_and_a_trace_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def work(_: Progress) -> Mapping[str, Any]:
        raise ZeroDivisionError("by the private figure 17")

    error = error_in(answer(Calls(secrets=NOTHING_HIDDEN), work, Listener()))
    assert error["code"] == "INTERNAL_ERROR"
    assert error["message"] == "a_tool failed unexpectedly (ZeroDivisionError); the log of the server says where"
    assert "private figure" in caplog.text


@pytest.mark.parametrize("joinable", [False, True])
def test_calls_beyond_the_threads_wait_and_report_it_when_their_time_is_over(joinable: bool) -> None:
    release, calls = threading.Event(), Calls(secrets=NOTHING_HIDDEN, limit=50)

    async def many() -> list[Any]:
        loop, begun = asyncio.get_running_loop(), threading.Barrier(8, lambda: let_pass(loop, 50))

        def work(_: Progress) -> Mapping[str, Any]:
            begun.wait(60)  # until all threads are at work
            release.wait(60)
            return {}

        names = [f"{number}" if joinable else None for number in range(9)]
        return await asyncio.gather(*(calls.answer(Listener(), "a_tool", work, joined_as=name) for name in names))  # type: ignore[arg-type]

    found = [each.content[0].text for each in run_in_passing_time(many())]
    release.set()
    assert sum("not begun within" in text for text in found) == 1


def test_a_call_that_joins_another_says_since_when_it_is_under_way_and_when_a_silent_model_is_given_up() -> None:
    listeners, release, runs = [Passing("judging stances", 100) for _ in range(2)], threading.Event(), []
    calls = Calls(secrets=NOTHING_HIDDEN, limit=100, model_deadline=90)

    def work(progress: Progress) -> Mapping[str, Any]:
        runs.append(1)
        progress(0, None, "judging stances")
        release.wait(60)
        return {}

    async def one_after_the_other() -> list[Any]:
        return [await calls.answer(listener, "a_tool", work, joined_as="x") for listener in listeners]  # type: ignore[arg-type]

    found = run_in_passing_time(one_after_the_other())
    first, second = (error_in(each.model_dump(by_alias=True))["message"] for each in found)
    release.set()
    assert runs == [1]
    assert [message for _, message in listeners[0].reports][:2] == ["started", "judging stances"]
    texts = (first, listeners[1].reports[0][1] or "", second)
    begun, joined, ended = (int(each[1]) for text in texts if (each := re.search(r"running for (\d+) s", text)))
    assert 100 <= begun <= joined < 200 <= ended
    assert listeners[1].reports[0][1].endswith(": judging stances")
    assert "and not finished (last report: judging stances); it continues: " in first
    assert second.endswith("If the language model is silent, its question is given up after 90 s")


def test_a_call_that_joins_another_hears_of_its_progress() -> None:
    listeners, joined, calls = [Listener(), Listener()], threading.Event(), Calls(secrets=NOTHING_HIDDEN, limit=60)

    def work(progress: Progress) -> Mapping[str, Any]:
        progress(0, None, "judging stances")
        joined.wait(60)
        progress(0, None, "grading passages")
        until(lambda: all(listener.reports[-1][1] == "grading passages" for listener in listeners))
        return {}

    async def both() -> None:
        answers = []
        for listener in listeners:
            answers.append(asyncio.create_task(calls.answer(listener, "a_tool", work, joined_as="x")))  # type: ignore[arg-type]
            await asyncio.to_thread(until, lambda listener=listener: listener.reports)
        joined.set()
        await asyncio.gather(*answers)

    asyncio.run(both())


@pytest.mark.parametrize("waits_for", ["networked", "asks_model"])
def test_what_needs_no_network_never_waits_behind_what_does(waits_for: str) -> None:
    release, calls = threading.Event(), Calls(secrets=NOTHING_HIDDEN, limit=60)

    def searching(_: Progress) -> Mapping[str, Any]:
        release.wait(60)
        return {}

    async def one_behind_twelve() -> Any:
        searches = [
            asyncio.ensure_future(calls.answer(Listener(), "a_search", searching, **{waits_for: True}))  # type: ignore[arg-type]
            for _ in range(12)
        ]
        await asyncio.sleep(0)  # all of them have taken their place
        found = await calls.answer(Listener(), "a_look", lambda _: {"found": True})  # type: ignore[arg-type]
        waiting = not any(search.done() for search in searches)
        release.set()
        await asyncio.gather(*searches)
        return found, waiting

    found, waiting = asyncio.run(one_behind_twelve())
    assert json.loads(found.content[0].text) == {"found": True}
    assert waiting


@given(
    sizes=st.lists(st.integers(0, 400), max_size=30), limit=st.none() | st.integers(1, 10), most=st.integers(1, 1_000)
)
def test_pages_one_after_the_other_give_every_item_once_and_each_keeps_its_bound(
    sizes: list[int], limit: int | None, most: int
) -> None:
    items = [f"{number}:{'x' * size}" for number, size in enumerate(sizes)]
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        part = page(items, offset=offset, limit=limit, most=most)
        assert part.total == len(items)
        assert len(part.items) == 1 or sum(len(json.dumps(item)) for item in part.items) <= most
        assert limit is None or len(part.items) <= limit
        seen += part.items
        offset = part.next_offset
    assert seen == items


@given(text=st.text(max_size=300), limit=st.integers(1, 60))
def test_pages_of_a_text_joined_are_the_text(text: str, limit: int) -> None:
    seen, offset = "", 0
    while True:
        part = text_page(text, offset=offset, limit=limit)
        seen += part.items[0]
        if part.next_offset is None:
            break
        offset = part.next_offset
    assert seen == text


def test_an_answer_that_would_be_too_long_has_its_long_strings_cut_and_reports_it() -> None:
    found = {"papers": [{"title": "short", "abstract": "y" * 9_000} for _ in range(5)], "score": float("nan")}
    result = bounded_answer(found, most=12_000, secrets=NOTHING_HIDDEN)
    assert len(result.content[0].text) <= 12_000
    assert result.structured_content["shortened"] is True
    assert result.structured_content["papers"][4]["title"] == "short"
    assert result.structured_content["score"] is None


def test_an_answer_that_is_too_long_names_some_of_three_thousand_authors_and_counts_the_others() -> None:
    found = {"paper": {"title": "A collaboration", "authors": [f"Author {number}" for number in range(3_000)]}}
    result = bounded_answer(found, most=12_000, secrets=NOTHING_HIDDEN).structured_content["paper"]
    assert result["authors"][0] == "Author 0"
    assert result["authors"][-1] == f"… ({3_000 - len(result['authors']) + 1} more)"


@given(
    note=st.integers(0, 8_000),
    sizes=st.lists(st.integers(0, 3_000), max_size=60),
    offset=st.integers(0, 60),
)
def test_a_page_beside_the_rest_of_an_answer_fits_without_being_cut(note: int, sizes: list[int], offset: int) -> None:
    items = ["y" * size for size in sizes]
    found = paged({"note": "n" * note}, "papers", items, offset=offset)
    result = bounded_answer(found, most=12_000, secrets=NOTHING_HIDDEN)
    assert result.structured_content == {**found, "note": "n" * note}
    assert found["papers"] == items[offset : offset + len(found["papers"])]


@pytest.mark.parametrize(
    "rest",
    [
        {"filter": {"date_int": {"$in": list(range(100_000))}}},
        {"notes": [{"paper_id": f"2501.{number:05d}", "note": "z" * 300} for number in range(2_000)]},
        {"filter": [[number] * 50 for number in range(2_000)]},
    ],
)
def test_long_lists_of_any_kind_are_cut_and_reported_beside_the_page(rest: dict[str, Any]) -> None:
    found = paged(rest, "papers", [{"title": "A short one"}], offset=0)
    result = bounded_answer(found, most=12_000, secrets=NOTHING_HIDDEN)
    assert len(result.content[0].text) <= 12_000
    assert result.structured_content["shortened"] is True
    assert result.structured_content["papers"] == [{"title": "A short one"}]


def test_an_answer_that_cannot_be_cut_is_refused_with_what_to_do() -> None:
    error = error_in(
        answer(Calls(secrets=NOTHING_HIDDEN), lambda _: {f"key {number}": 1 for number in range(5_000)}, Listener())
    )
    assert error["code"] == "INVALID_INPUT"
    assert error["message"].endswith("ask for less")


@pytest.mark.parametrize(
    ("error", "code", "again"),
    [
        (InvalidInput("x"), "INVALID_INPUT", False),
        (PaperNotFound("x"), "PAPER_NOT_FOUND", False),
        (PdfFetchFailed("x"), "PDF_FETCH_FAILED", False),
        (NetworkError("x"), "NETWORK_ERROR", True),
        (IncompleteFeed("x"), "NETWORK_ERROR", True),
        (RateLimited("x"), "RATE_LIMIT", True),
        (StoreBusy("x"), "RATE_LIMIT", True),
        (StoreUnwritable("x"), "INTERNAL_ERROR", False),
        (LLMError("x"), "LLM_ERROR", True),
        (LLMBudgetReached("x"), "LLM_ERROR", True),
        (LLMConfigError("x"), "LLM_CONFIG_ERROR", False),
        (ZeroDivisionError("x"), "INTERNAL_ERROR", False),
    ],
)
def test_each_error_says_whether_another_try_is_worth_it(error: Exception, code: str, again: bool) -> None:
    result = error_in(refusal(error, tool="a_tool", secrets=NOTHING_HIDDEN).model_dump(by_alias=True))
    assert (result["code"], result["details"]["worth_another_try"]) == (code, again)


@pytest.mark.parametrize("secret", ["12345678", 'quo"te-0123', "back\\slash-0123", "line-é-\U0001f600-0123"])
def test_a_secret_of_any_characters_is_hidden_and_the_answer_is_still_json(secret: str) -> None:
    secrets = Secrets({"OPENAI_API_KEY": secret})
    result = bounded_answer({"count": 12345678, "text": f"key {secret}."}, most=1_000, secrets=secrets)
    assert result.structured_content == {"count": 12345678, "text": "key ***."}
    error = error_in(refusal(NetworkError(f"sent {secret}"), tool="a_tool", secrets=secrets).model_dump(by_alias=True))
    assert error["message"] == "sent ***"
    logged = logging.LogRecord("a", logging.INFO, "f", 1, "%s %r", (json.dumps(secret), secret), None)
    assert SafeFormatter(secrets).format(logged).endswith("""a: "***" '***'""")


def test_no_place_on_this_machine_is_in_an_answer_or_an_error(tmp_path: Path) -> None:
    settings = load_settings({"PAPER_ASSETS_HOME": str(tmp_path / "desk"), "PAPER_ASSETS_PROFILES": "/srv/p"}, tmp_path)
    outgoing = Outgoing({}, folders_of(settings))
    home = settings.home
    result = bounded_answer(
        {
            "file": f"{home}/output/rankings/a.json",
            "why": [f"{home}/warehouse.duckdb is held"],
            "url": "http://a.b/srv/p",
        },
        most=1_000,
        secrets=outgoing,
    )
    assert result.structured_content == {
        "file": "$OUTPUT_DIR/rankings/a.json",
        "why": ["$PAPER_ASSETS_HOME/warehouse.duckdb is held"],
        "url": "http://a.b/srv/p",
    }
    fault = StoreUnwritable(f"{home}/chroma: /mnt/disk 1/full and '/var/lib/x.db' (see https://a.b/c/d, cs/0501001)")
    message = error_in(refusal(fault, tool="a_tool", secrets=outgoing).model_dump(by_alias=True))["message"]
    assert message == "$PAPER_ASSETS_HOME/chroma: …/disk 1/full and '…/x.db' (see https://a.b/c/d, cs/0501001)"


def test_a_model_that_asks_to_slow_down_is_reported_with_its_time() -> None:
    error = LLMRateLimited("x")
    error.retry_after = 90.0
    result = error_in(refusal(error, tool="a_tool", secrets=NOTHING_HIDDEN).model_dump(by_alias=True))
    assert (result["code"], result["details"]["worth_another_try"]) == ("RATE_LIMIT", True)
    assert result["details"]["retry_after_seconds"] == 90.0


def test_half_a_secret_at_the_end_of_a_long_message_is_hidden_too() -> None:
    secrets = Secrets({"OPENAI_API_KEY": "canary-0123456789"})
    error = refusal(NetworkError("x" * 990 + "canary-0123456789"), tool="a_tool", secrets=secrets)
    assert "canary" not in error.content[0].text


@pytest.mark.parametrize(
    ("name", "address", "leaked"),
    [
        ("OPENAI_BASE_URL", "https://gateway.example/v1?sig=canary%2F0123456789&a=b", "canary%2F0123456789"),
        ("OPENAI_BASE_URL", "https://gateway.example/v1?sig=canary%2F0123456789", "canary/0123456789"),
        ("OPENAI_BASE_URL", "https://gateway.example/v1?canary-0123456789", "canary-0123456789"),
        ("https_proxy", "http://somebody:canary-0123456789@proxy.example:3128", "canary-0123456789"),
        ("HTTPS_PROXY", "somebody:canary%400123456789@proxy.example:3128", "canary@0123456789"),
        ("OLLAMA_BASE_URL", "http://canary-0123456789@localhost:11434", "canary-0123456789"),
    ],
)
def test_what_an_address_holds_of_secrets_is_hidden_and_its_host_is_not(name: str, address: str, leaked: str) -> None:
    secrets = Secrets({name: address, "OTHER_URL": "http://[broken", "NO_PROXY": "localhost,127.0.0.1"})
    assert secrets.hide(f"asking {leaked} at localhost") == "asking *** at localhost"
    assert "canary" not in secrets.hide(f"GET {address}")
    assert "example" in secrets.hide("GET gateway.example")


def test_a_secret_is_hidden_in_answers_and_in_log_lines_with_their_traces() -> None:
    secrets = Secrets({"OPENAI_API_KEY": "canary-0123456789", "OLLAMA_API_KEY": "ollama", "HOME": "/home/somebody"})
    result = bounded_answer({"text": "key canary-0123456789, ollama"}, most=1_000, secrets=secrets)
    assert result.structured_content == {"text": "key ***, ollama"}
    try:
        raise ValueError("canary-0123456789")
    except ValueError as fault:
        record = logging.LogRecord("a", logging.ERROR, "f", 1, "sent %s", ("canary-0123456789",), None)
        record.exc_info = (ValueError, fault, fault.__traceback__)
    line = SafeFormatter(secrets).format(record)
    assert "canary" not in line
    assert "sent ***" in line
    assert line.endswith("ValueError: ***")
