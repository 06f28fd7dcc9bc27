"""Work that needs no network looks up and contacts no address except those of this machine.

Heard is what Python's sockets do, in every process that a command starts; libraries in other languages are not heard.
"""

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.desk import Desk
from tests.example_profiles import copied
from tests.invented_cross_encoder import tiny_cross_encoder
from tests.mcp.raw_host import raw_host
from tests.page.invented_desk import served

LISTENS = "a process listens"
OURS = re.compile(rf"{LISTENS}|127\.0\.0\.1|localhost|::1|None|/[\w./-]+")  # a path is a socket between processes
LISTENER = """
import os, sys
os.environ["PYTHONPATH"] = os.environ["EARS"]  # so that the interpreters that a fork starts listen too
def heard(event, args):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.connect", "socket.sendto"):
        asked = args[-1] if event in ("socket.connect", "socket.sendto") else args
        name = asked[0] if isinstance(asked, tuple) else asked
        name = name.decode() if isinstance(name, bytes) else name
        with open(os.environ["HEARD"], "a") as file:
            file.write(f"{name}\\n")
sys.addaudithook(heard)
with open(os.environ["HEARD"], "a") as file:
    file.write("a process listens" + os.linesep)
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which every Python process records its connections; without keys and models."""
    ears = tmp_path / "ears"
    ears.mkdir()
    (ears / "sitecustomize.py").write_text(LISTENER, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(ears), os.environ.get("PYTHONPATH")]))
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LLM_PROVIDER", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return {
        **dict.fromkeys(names, ""),
        "PYTHONPATH": path,
        "EARS": path,
        "HEARD": str(tmp_path / "heard"),
        "HF_HOME": str(ears),
    }


@pytest.fixture
def strangers(environ: dict[str, str]) -> Callable[[], set[str]]:
    """Return the recorded addresses that are not of this machine."""

    def asked() -> set[str]:
        file = Path(environ["HEARD"])
        names = set(file.read_text("utf-8").splitlines()) if file.exists() else set()
        return {name for name in names if not OURS.fullmatch(name)}

    return asked


def test_no_command_that_needs_no_network_asks_for_anybody(
    tmp_path: Path, environ: dict[str, str], strangers: Callable[[], set[str]]
) -> None:
    desk = Desk(tmp_path / "desk")
    copied(desk.folder / "profiles")
    desk.run("demo", **environ)
    plan = {"rewritten_question": "evidence for contested topics", "generation_required": True}
    with raw_host(desk, **environ) as host:
        host.handshake()
        assert host.call("todays_ranking", profile="retrieval-evidence")["papers"]
        assert host.call("retrieve_standard", question=plan["rewritten_question"], generation_required=True)
    (desk.folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    model = tiny_cross_encoder(tmp_path / "tiny")
    # The two above import what they need; forks of a process that has imported it tell their own listener.
    forked = {name: value for name, value in environ.items() if name != "PYTHONPATH"}
    retrieving = desk.start("retrieve", "plan.json", before=LISTENER, **forked, PAPER_ASSETS_CROSS_ENCODER=str(model))
    assert retrieving.communicate(timeout=600)[0] and retrieving.returncode == 0
    with served(desk, before=LISTENER, **forked) as page:
        address = urlsplit(page.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=600)
        connection.request("GET", "/p/retrieval-evidence")
        assert connection.getresponse().status == 200
    assert strangers() == set()
    assert Path(environ["HEARD"]).read_text("utf-8").count(LISTENS) >= 4, "each command, the page and the MCP server"


def test_the_listener_hears_a_command_that_does_ask(environ: dict[str, str], strangers: Callable[[], set[str]]) -> None:
    ask = "import socket\ntry: socket.create_connection(('nobody.invalid', 9))\nexcept OSError: pass"
    subprocess.run([sys.executable, "-c", ask], env={**os.environ, **environ}, check=True, timeout=600)
    assert strangers() == {"nobody.invalid"}
