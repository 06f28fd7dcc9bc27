"""Test other MCP clients over HTTP: the TypeScript SDK, the inspector, and the protocol's own conformance suite."""

import http.client
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import loopback
from tests.lab.invented_lab import Lab
from tests.loopback import Answer
from tests.mcp.test_hosts import PACKAGES, TOOLS
from tests.node_packages import NotInstalled, installed

# The last version that Node 20 runs. The suite's other 26 scenarios need tools, prompts and resources that the suite
# defines (`test_image_content` …), or what this server does not offer: completion, logging, sampling, elicitation,
# subscriptions, sessions.
CONFORMANCE = "@modelcontextprotocol/conformance@0.1.13"
APPLICABLE = ("server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection")


def node(*packages: str) -> Path:
    try:
        return installed(*packages) / "node_modules"
    except NotInstalled as reason:
        pytest.skip(f"not tried: {reason}")


def test_the_typescript_client_lists_calls_hears_progress_and_cancels_over_http(served_lab: Lab) -> None:
    modules = node(*PACKAGES)
    headers = {"Authorization": f"Bearer {served_lab.tokens['cleo']}"}
    done = subprocess.run(
        ["node", str(Path(__file__).parents[1] / "mcp" / "typescript_client.mjs"), str(modules.parent)],
        env={**os.environ, "SERVER": json.dumps({"url": f"{served_lab.url}/mcp", "headers": headers})},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert set(outcome["tools"]) == TOOLS | {"rate_paper"}
    assert outcome["shown"]["structuredContent"]["papers"][0]["rank"] == 1
    assert json.loads(outcome["refused"]["content"][0]["text"])["error"]["code"] == "INVALID_ARXIV_ID"
    assert outcome["progress"] == sorted(outcome["progress"]) != []
    assert "abort" in outcome["cancelled"].lower()
    assert outcome["again"] == "speech"


def test_the_inspector_shows_an_answer_over_http(served_lab: Lab) -> None:
    """Tools and errors over HTTP are the TypeScript client's, above; the inspector's over a pipe in `tests/mcp`."""
    call = ["--method", "tools/call", "--tool-name", "todays_ranking", "--tool-arg", "profile=traffic"]
    inspector = node(*PACKAGES) / ".bin" / "mcp-inspector"
    header = f"Authorization: Bearer {served_lab.tokens['ada']}"
    done = subprocess.run(
        [str(inspector), "--cli", f"{served_lab.url}/mcp", "--transport", "http", "--header", header, *call],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert "summary" in done.stdout, done.stderr


@pytest.fixture(scope="module")
def without_token(served_lab: Lab) -> Iterator[str]:
    """Return the URL of a proxy that adds Ada's token, for a suite that cannot."""
    target = urlsplit(served_lab.url)

    def forward(request: loopback.Request) -> Answer:
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=600)
        kept = {name: value for name, value in request.headers.items() if name not in ("content-length", "connection")}
        try:
            bearer = {"Authorization": f"Bearer {served_lab.tokens['ada']}"}
            connection.request(request.method, request.path, request.body or None, {**kept, **bearer})
            answer = connection.getresponse()
            left_out = ("content-length", "transfer-encoding", "connection")
            headers = {name: value for name, value in answer.getheaders() if name.lower() not in left_out}
            return Answer(status=answer.status, body=answer.read(), headers=headers)
        finally:
            connection.close()

    with loopback.serving(forward) as url:
        yield f"{url}/mcp"


@pytest.mark.parametrize("scenario", APPLICABLE)
def test_the_conformance_suite_finds_nothing_in_its_scenarios_that_apply(without_token: str, scenario: str) -> None:
    suite = node(CONFORMANCE) / ".bin" / "conformance"
    asked = [str(suite), "server", "--url", without_token, "--scenario", scenario]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout, done.stdout
