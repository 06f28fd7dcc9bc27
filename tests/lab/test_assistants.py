"""MCP over HTTP with the SDK's own client: two people at once, each with their own profiles and no others."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.lab.invented_lab import LATEST, Lab, call
from tests.mcp.raw_host import MODERN
from tests.mcp.test_hosts import TOOLS

# Which argument of a tool names a profile, and what else it needs; the others have no profile.
BY_PROFILE: dict[str, dict[str, Any]] = {
    "todays_ranking": {"profile": "{}"},
    "explain_rank": {"profile": "{}", "paper_id": "2603.00203"},
    "what_changed": {"profile": "{}"},
    "read_digest": {"profile": "{}"},
    "list_rewrites": {"profile": "{}"},
    "export_citations": {"profile": "{}"},
    "rate_paper": {"profile": "{}", "paper_id": "2603.00201", "rating": "worth"},
    "rank_and_filter_papers": {"profile_path": "{}", "save": False, "papers": []},
    "retrieve_balanced": {"profile": "{}", "question": "What predicts traffic?"},
    "search_desk": {"profile": "{}", "query": "traffic is:unseen"},
}
OF_THE_DESK = {"list_profiles", "best_practices"}
OF_NO_PROFILE = {
    "ask_desk",
    "retrieve_standard",
    "search_papers",
    "related_papers",
    "fetch_paper",
    "analyze_paper",
    "interpret_paper",
}


@asynccontextmanager
async def client_of(lab: Lab, token: str, mode: str = "legacy") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=600) as http,
        Client(streamable_http_client(f"{lab.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(answer: Any) -> str:
    return "\n".join(part.text for part in answer.content)


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_two_people_at_once_get_their_own_answers(served_lab: Lab, mode: str) -> None:
    profiles = {"ada": "traffic", "bob": "speech"}
    heard: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    async def asks(name: str) -> None:
        own, other = profiles[name], profiles["bob" if name == "ada" else "ada"]
        async with client_of(served_lab, served_lab.tokens[name], mode) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS | {"rate_paper"}
            for _ in range(5):
                shown = await client.call_tool("todays_ranking", {}, progress_callback=progress)
                assert shown.structured_content and shown.structured_content["profile"] == own
                listed = (await client.call_tool("list_profiles", {})).structured_content
                assert listed and [each["name"] for each in listed["profiles"]] == [own]
                practices = (await client.call_tool("best_practices", {})).structured_content
                assert practices and [each["text"] for each in practices["practices"]] == [f"A practice of {own}."]
                digests = (await client.list_resources()).resources
                assert [f"{each.uri}" for each in digests] == [f"digest://{own}/{LATEST}"]
                assert other not in (await client.read_resource(f"digest://{own}/{LATEST}")).contents[0].text
            assert (await client.get_prompt("what_to_read", {"profile": own})).messages

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            for name in profiles:
                tasks.start_soon(asks, name)

    asyncio.run(both())
    assert heard


def test_every_tool_declares_how_it_uses_profiles() -> None:
    """A new tool is put into one of these, so that it cannot be forgotten below."""
    assert BY_PROFILE.keys() | OF_THE_DESK | OF_NO_PROFILE == TOOLS | {"rate_paper"}


@pytest.mark.parametrize("tool", sorted(BY_PROFILE))
def test_another_persons_profile_is_answered_like_one_that_does_not_exist(served_lab: Lab, tool: str) -> None:
    def asked(profile: str) -> tuple[int, Any]:
        arguments = {
            key: str(value).format(profile) if value == "{}" else value for key, value in BY_PROFILE[tool].items()
        }
        status, text = call(served_lab, served_lab.tokens["ada"], tool, arguments)
        return status, re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+", "", text)  # the time of the answer

    own, theirs, nobodys = asked("traffic"), asked("speech"), asked("speed1")
    assert '"isError":true' not in own[1].replace(" ", ""), own[1]
    assert (theirs[0], theirs[1].replace("speech", "speed1")) == nobodys
    if tool == "rank_and_filter_papers":  # goes on without it
        assert "profile_path: no such profile" in theirs[1]
        return
    assert "INVALID_INPUT" in theirs[1]
    assert "speech recognition" not in own[1] and '"speech"' not in own[1]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("retrieve_balanced", {"profile": "traffic/../speech", "question": "x"}),
        ("retrieve_balanced", {"question": "x", "sides": ["cs.LG"], "data_type": ["rewrite"]}),
        ("retrieve_standard", {"question": "x", "data_type": ["rewrite"]}),
        ("search_desk", {"query": "speech in:speech"}),
        ("search_desk", {"query": "speech in:rewrites"}),
    ],
)
def test_no_path_and_no_collection_leads_to_anothers_profile(served_lab: Lab, tool: str, arguments: Any) -> None:
    status, text = call(served_lab, served_lab.tokens["ada"], tool, arguments)
    assert status == 200
    assert "INVALID_INPUT" in text and "speech recognition" not in text


@pytest.mark.parametrize(
    ("paths", "left_out"),
    [
        ({"profile_path": "../profiles/speech"}, "profile_path"),
        ({"profile_path": "speech/profile.json"}, "profile_path"),
        ({"profile_path": "traffic/../speech"}, "profile_path"),
        ({"profile_path": "traffic", "history_path": "speech/profile.json"}, "history_path"),
        ({"profile_path": "traffic", "history_path": "../speech/profile.json"}, "history_path"),
        ({"profile_path": "traffic", "local_pdf_dir": "../speech"}, "local_pdf_dir"),
    ],
)
def test_a_ranking_uses_no_file_of_another_person(served_lab: Lab, paths: dict[str, str], left_out: str) -> None:
    arguments = {**paths, "save": False, "papers": []}
    status, text = call(served_lab, served_lab.tokens["ada"], "rank_and_filter_papers", arguments)
    assert status == 200
    assert f"{left_out}: no" in text and "ranked without it" in text
    assert "speech recognition" not in text


def test_another_persons_digest_is_not_a_resource(served_lab: Lab) -> None:
    async def read(profile: str) -> str:
        async with client_of(served_lab, served_lab.tokens["ada"]) as client:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(f"digest://{profile}/{LATEST}")
            return str(refused.value)

    theirs, nobodys = asyncio.run(read("speech")), asyncio.run(read("speed1"))
    assert theirs.replace("speech", "speed1") == nobodys


def test_a_wrong_token_meets_no_server(served_lab: Lab) -> None:
    async def enter() -> None:
        async with client_of(served_lab, "not-a-token") as client:
            await client.list_tools()

    with pytest.raises(BaseException) as refused:
        asyncio.run(enter())
    assert "todays_ranking" not in json.dumps(str(refused.value))
