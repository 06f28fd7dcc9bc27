"""`make dev` seen from other sites: Dagster's page answers only this machine and its own scripts (SPEC 8)."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.desk import Desk
from tests.loopback import Answer, free_port
from tests.loopback_arxiv import LoopbackArxiv, loopback_arxiv
from tests.waiting import until

MODULE = "paper_assets.interfaces.supervisor"
_WITHOUT_SIGINT = f"""
import runpy, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
runpy.run_module("{MODULE}", run_name="__main__")
"""
PATIENCE = 300  # seconds for what takes ten on an idle machine
QUERY = json.dumps({"query": "{ version }"})
POST = {"Content-Type": "application/json"}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "graphql-ws",
}


def asked(port: int, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, "" if answer.status == 101 else answer.read().decode("utf-8", "replace")
    finally:
        connection.close()


@contextmanager
def started(desk: Desk, **more: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """What `make dev` starts from a script, behind `&`, once its page answers, and its port."""
    (desk.folder / "dagster_home").mkdir(exist_ok=True)
    port, log = free_port(), desk.folder / "dev.log"
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", _WITHOUT_SIGINT, "-p", str(port)],
            cwd=desk.folder,
            env={**os.environ, **desk.environment, **more},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        until(lambda: answers(port) or process.poll() is not None, report=lambda: log.read_text("utf-8")[-4000:])
        assert process.poll() is None, log.read_text("utf-8")[-4000:]
        yield process, port
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(port: int) -> bool:
    with suppress(OSError):
        return asked(port, "GET", "/server_info")[0] == 200
    return False


@dataclass(frozen=True)
class Served:
    """What `make dev` has started: its process, the port of its page, and an arXiv that never answers."""

    desk: Desk
    process: "subprocess.Popen[bytes]"
    port: int
    arxiv: LoopbackArxiv


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    desk = Desk(tmp_path_factory.mktemp("dev"))
    with loopback_arxiv([], script=[Answer(hang=True)] * 20) as arxiv:
        waits = {"PAPER_ASSETS_ARXIV_URL": arxiv.url, "PAPER_ASSETS_REQUEST_TIMEOUT": "3600"}  # longer than the tests
        with started(desk, **waits) as (process, port):
            assert (desk.folder / "dagster_home" / "dagster.yaml").is_file()
            yield Served(desk, process, port, arxiv)


@pytest.fixture
def port(served: Served) -> int:
    return served.port


def processes(desk: Desk) -> list[str]:
    """Return the command lines of all processes that work on the desk's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if f"DAGSTER_HOME={desk.folder}".encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_text("utf-8", "replace").replace("\0", " "))
    return found


DAY = "2026-03-02"
LAUNCH = """mutation($run: ExecutionParams!) { launchRun(executionParams: $run) { __typename } }"""
RUN = {
    "selector": {
        "repositoryLocationName": "paper_assets",
        "repositoryName": "__repository__",
        "pipelineName": "__ASSET_JOB",
        "assetSelection": [{"path": ["arxiv_papers"]}],
    },
    "mode": "default",
    "executionMetadata": {"tags": [{"key": "dagster/partition", "value": DAY}]},
}


def test_a_second_daemon_on_the_same_history_is_refused_in_one_line(served: Served) -> None:
    second = subprocess.run(
        [sys.executable, "-m", MODULE],
        cwd=served.desk.folder,
        env={**os.environ, **served.desk.environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert second.returncode == 1
    assert second.stderr.strip().startswith(f"{served.desk.folder / 'dagster_home'} is in use by another `make dev`")
    assert "\n" not in second.stderr.strip()


def test_this_machine_and_the_pages_own_scripts_are_answered(port: int) -> None:
    assert asked(port, "GET", "/")[0] == 200
    for host in ("127.0.0.1", "localhost"):
        own = {"Host": f"{host}:{port}", "Origin": f"http://{host}:{port}", "Sec_Fetch_Site": "same-origin"}
        status, text = asked(port, "POST", "/graphql", QUERY, **POST, **own)
        assert status == 200 and re.search(r"version", text)
        assert asked(port, "GET", "/graphql", **UPGRADE, **own)[0] == 101
    assert asked(port, "POST", "/graphql", QUERY, **POST)[0] == 200, "a program sends no Origin"
    linked = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert asked(port, "GET", "/runs", **linked)[0] == 200, "a link elsewhere may lead here"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:3000", "127.0.0.1.evil.example", ""])
@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("GET", "/server_info"), ("POST", "/graphql")])
def test_a_foreign_name_is_not_answered(port: int, host: str, method: str, path: str) -> None:
    status, text = asked(port, method, path, QUERY if method == "POST" else None, Host=host, **POST)
    assert status in (400, 421)
    assert "version" not in text


@pytest.mark.parametrize(
    "headers_sent",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_no_other_site_can_ask_or_change_anything(port: int, headers_sent: dict[str, str]) -> None:
    assert asked(port, "POST", "/graphql", QUERY, **POST, **headers_sent)[0] == 403
    assert asked(port, "POST", "/graphql", QUERY, Content_Type="text/plain", **headers_sent)[0] == 403
    assert asked(port, "GET", "/server_info", **headers_sent)[0] == 403
    assert asked(port, "POST", "/report_asset_materialization/arxiv_papers", "{}", **POST, **headers_sent)[0] == 403
    assert asked(port, "GET", "/graphql", **UPGRADE, **headers_sent)[0] == 403


def test_a_graphql_query_in_a_get_request_is_refused(port: int) -> None:
    for path in ("/graphql?query=%7Bversion%7D", "/graphql/?query=mutation"):
        assert asked(port, "GET", path)[0] == 405


@pytest.mark.skipif(sys.platform != "linux", reason="lists processes by /proc")
def test_a_run_in_progress_ends_with_services_that_a_script_started_in_the_background(served: Served) -> None:
    """The last test, as it ends the server."""
    desk, port = served.desk, served.port
    body = json.dumps({"query": LAUNCH, "variables": {"run": RUN}})
    assert "LaunchRunSuccess" in asked(port, "POST", "/graphql", body, **POST)[1]
    assert desk.happens(lambda: bool(served.arxiv.requests), within=PATIENCE)
    assert len(processes(desk)) >= 6  # this command, the services, code server, UI, daemon, run
    served.process.terminate()
    assert desk.happens(lambda: not processes(desk), within=PATIENCE)
