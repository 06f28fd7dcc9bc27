"""Bounds of a call, without a process: the time limit, what becomes of the work, the length of an answer, secrets."""

import asyncio
import json
import logging
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.faces.mcp_calls import CallIsOver, Calls, Progress, bounded_answer, page, text_page
from paper_assets.faces.mcp_refusals import SafeFormatter, Secrets
from tests.mcp.raw_host import error_in

NOTHING_HIDDEN = Secrets({})


class Listener:
    """Stands for the SDK's context: keeps what it is told of progress."""

    def __init__(self) -> None:
        self.told: list[tuple[float, str | None]] = []

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.told.append((progress, message))


def answer(calls: Calls, work: Any, listener: Any) -> Mapping[str, Any]:
    found = asyncio.run(calls.answer(listener, "a_tool", work))
    return found.model_dump(mode="json", by_alias=True, exclude_none=True)


def test_a_call_that_takes_too_long_is_answered_and_its_work_stops_at_its_next_step() -> None:
    gone_on, stopped = threading.Event(), threading.Event()

    def work(progress: Progress) -> Mapping[str, Any]:
        progress(1, 3, "step")
        gone_on.wait(30)
        try:
            progress(2, 3, "step")
        except CallIsOver:
            stopped.set()
            raise
        return {}

    error = error_in(answer(Calls(secrets=NOTHING_HIDDEN, limit=0.2), work, Listener()))
    assert error["code"] == "NETWORK_ERROR"
    assert "not finished within 0.2 s (last heard: step 1 of 3)" in error["message"]
    assert error["details"]["worth_another_try"] is True
    gone_on.set()
    assert stopped.wait(30)


def test_progress_only_grows_and_goes_on_while_the_work_says_nothing() -> None:
    listener, enough = Listener(), threading.Event()

    class Counting(Listener):
        async def report_progress(self, *told: Any) -> None:
            await super().report_progress(*told)
            if len(self.told) == 6:
                enough.set()

    listener = Counting()

    def work(progress: Progress) -> Mapping[str, Any]:
        progress(1, 2, "reading")
        enough.wait(30)
        return {"done": True}

    answer(Calls(secrets=NOTHING_HIDDEN, heartbeat=0.01), work, listener)
    numbers = [number for number, _ in listener.told]
    assert numbers == sorted(set(numbers))
    assert [message for _, message in listener.told][:2] == ["started", "reading 1 of 2"]
    assert listener.told[5][1] == "reading 1 of 2"


def test_a_fault_of_the_program_is_one_line_for_the_caller_and_a_trace_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def work(_: Progress) -> Mapping[str, Any]:
        raise ZeroDivisionError("by the private figure 17")

    error = error_in(answer(Calls(secrets=NOTHING_HIDDEN), work, Listener()))
    assert error["code"] == "INTERNAL_ERROR"
    assert error["message"] == "a_tool failed unexpectedly (ZeroDivisionError); the log of the server says where"
    assert "private figure" in caplog.text


def test_calls_beyond_the_threads_wait_in_line_and_say_so_when_their_time_is_over() -> None:
    release, calls = threading.Event(), Calls(secrets=NOTHING_HIDDEN, limit=0.3)

    def work(_: Progress) -> Mapping[str, Any]:
        release.wait(30)
        return {}

    async def many() -> list[Any]:
        return await asyncio.gather(*(calls.answer(Listener(), "a_tool", work) for _ in range(9)))  # type: ignore[arg-type]

    found = [each.content[0].text for each in asyncio.run(many())]
    release.set()
    assert sum("not begun within" in text for text in found) == 1


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


def test_an_answer_that_would_be_too_long_has_its_long_strings_cut_and_says_so() -> None:
    found = {"papers": [{"title": "short", "abstract": "y" * 9_000} for _ in range(5)], "score": float("nan")}
    told = bounded_answer(found, most=12_000, secrets=NOTHING_HIDDEN)
    assert len(told.content[0].text) <= 12_000
    assert told.structured_content["shortened"] is True
    assert told.structured_content["papers"][4]["title"] == "short"
    assert told.structured_content["score"] is None


def test_of_three_thousand_authors_an_answer_that_is_too_long_names_some_and_counts_the_others() -> None:
    found = {"paper": {"title": "A collaboration", "authors": [f"Author {number}" for number in range(3_000)]}}
    told = bounded_answer(found, most=12_000, secrets=NOTHING_HIDDEN).structured_content["paper"]
    assert told["authors"][0] == "Author 0"
    assert told["authors"][-1] == f"… ({3_000 - len(told['authors']) + 1} more)"


def test_a_secret_is_hidden_in_answers_and_in_log_lines_with_their_traces() -> None:
    secrets = Secrets({"OPENAI_API_KEY": "canary-0123456789", "OLLAMA_API_KEY": "ollama", "HOME": "/home/somebody"})
    told = bounded_answer({"text": "key canary-0123456789, ollama"}, most=1_000, secrets=secrets)
    assert told.structured_content == {"text": "key ***, ollama"}
    try:
        raise ValueError("canary-0123456789")
    except ValueError as fault:
        record = logging.LogRecord("a", logging.ERROR, "f", 1, "sent %s", ("canary-0123456789",), None)
        record.exc_info = (ValueError, fault, fault.__traceback__)
    line = SafeFormatter(secrets).format(record)
    assert "canary" not in line
    assert "sent ***" in line
    assert line.endswith("ValueError: ***")
