"""Other people's clients against the server: the Python SDK in both generations of the protocol, the official inspector
and the TypeScript SDK v1.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.desk import Desk
from tests.interpreting.outside import outside
from tests.loopback import Answer
from tests.mcp.raw_host import MODERN, serves_from
from tests.node_packages import NotInstalled, installed

TOOLS = {
    "search_papers",
    "related_papers",
    "fetch_paper",
    "analyze_paper",
    "interpret_paper",
    "rank_and_filter_papers",
    "retrieve_balanced",
    "search_desk",
    "ask_desk",
    "retrieve_standard",
    "todays_ranking",
    "explain_rank",
    "what_changed",
    "export_citations",
    "list_profiles",
    "read_digest",
    "list_rewrites",
    "best_practices",
}
PACKAGES = ("@modelcontextprotocol/inspector@2.12.0", "@modelcontextprotocol/sdk@1.32.2")


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_the_python_client_lists_calls_hears_progress_and_cancels(desk: Desk, mode: str) -> None:
    reported: list[float] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        reported.append(progress)

    async def talk(server: StdioServerParameters) -> None:
        async with Client(server, mode=mode) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            shown = await client.call_tool("todays_ranking", {"profile": "traffic"}, progress_callback=heard)
            assert shown.structured_content and shown.structured_content["papers"][0]["rank"] == 1
            refused = await client.call_tool("explain_rank", {"paper_id": "2501.1", "profile": "traffic"})
            assert refused.is_error
            assert json.loads(refused.content[0].text)["error"]["code"] == "INVALID_ARXIV_ID"
            with anyio.move_on_after(0.5) as waiting:
                await client.call_tool("search_papers", {"query": "trains"})
            assert waiting.cancelled_caught
            again = await client.call_tool("todays_ranking", {"profile": "speech"})
            assert not again.is_error

    with outside(desk.folder) as world:
        world.arxiv.script = [Answer(hang=True)] * 9
        server = StdioServerParameters(**serves_from(desk, PAPER_ASSETS_ARXIV_URL=world.arxiv.url), cwd=desk.folder)
        asyncio.run(talk(server))
    assert reported
    assert reported == sorted(set(reported))


@pytest.fixture(scope="module")
def node_packages() -> Path:
    """A folder with the packages installed; skips where there is no Node."""
    try:
        return installed(*PACKAGES)
    except NotInstalled as reason:
        pytest.skip(f"the inspector and the TypeScript SDK are not tried: {reason}")


@pytest.fixture
def node_environment(desk: Desk) -> Iterator[dict[str, str]]:
    """The environment of a Node process that starts the server, whose arXiv never answers."""
    with outside(desk.folder) as world:
        world.arxiv.script = [Answer(hang=True)] * 9
        server = serves_from(desk, PAPER_ASSETS_ARXIV_URL=world.arxiv.url)
        yield {**os.environ, **server["env"], "SERVER": json.dumps(server)}


def test_the_typescript_client_lists_calls_hears_progress_and_cancels(
    node_packages: Path, node_environment: dict[str, str], desk: Desk
) -> None:
    script = Path(__file__).with_name("typescript_client.mjs")
    done = subprocess.run(
        ["node", str(script), str(node_packages)],
        env=node_environment,
        cwd=desk.folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    assert set(outcome["tools"]) == TOOLS
    assert outcome["shown"]["structuredContent"]["papers"][0]["rank"] == 1
    assert outcome["refused"]["isError"] is True
    assert json.loads(outcome["refused"]["content"][0]["text"])["error"]["code"] == "INVALID_ARXIV_ID"
    assert outcome["progress"] == sorted(outcome["progress"]) != []
    assert "AbortError" in outcome["cancelled"] or "abort" in outcome["cancelled"].lower()
    assert outcome["again"] == "speech"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--method", "tools/list"], '"todays_ranking"'),
        (
            ["--method", "tools/call", "--tool-name", "explain_rank", "--tool-arg", "paper_id=x"],
            "INVALID_ARXIV_ID",
        ),
        (
            ["--method", "tools/call", "--tool-name", "todays_ranking", "--tool-arg", "profile=traffic"],
            "summary",
        ),
    ],
)
def test_the_inspector_shows_tools_answers_and_errors(
    node_packages: Path, node_environment: dict[str, str], desk: Desk, arguments: list[str], expected: str
) -> None:
    server = serves_from(desk)
    launcher = desk.folder / "serve.sh"
    launcher.write_text(f"#!/bin/sh\nexec '{server['command']}' -c '{server['args'][1]}' mcp\n", encoding="utf-8")
    launcher.chmod(0o755)
    done = subprocess.run(
        [str(node_packages / "node_modules" / ".bin" / "mcp-inspector"), "--cli", str(launcher), *arguments],
        env=node_environment,
        cwd=desk.folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert expected in done.stdout, done.stderr
