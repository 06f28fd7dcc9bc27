"""Whatever a host, another process or a kill does to the server, it answers, continues, or ends cleanly."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.desk import COMMAND, Desk, paper
from tests.loopback import Answer, Request, refusing_port, serving
from tests.loopback_arxiv import loopback_arxiv
from tests.mcp.raw_host import LEGACY, RawHost, error_in, raw_host
from tests.waiting import until

GARBAGE = (
    b"hello\n",
    b"\n",
    b"\xff\xfe\x00\n",
    b"{\n",
    b'{"jsonrpc": "2.0", "id": 900, "method": \n',
    b"[]\n",
    b"[" * 100_000 + b"\n",
    b'{"jsonrpc": "1.0", "id": 901, "method": "tools/list"}\n',
    b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}\n',
    b'{"jsonrpc": "2.0", "id": 902, "method": 7}\n',
    b'{"jsonrpc": "2.0", "id": 903, "result": {}}\n',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}}\n',
    b'{"jsonrpc": "2.0", "method": "notifications/nothing"}\n',
    b'"' + b"x" * 5_000_000 + b'"\n',
)

KEEP_OR_SPEND = {
    "ask_desk",
    "retrieve_balanced",
    "fetch_paper",
    "analyze_paper",
    "interpret_paper",
    "rank_and_filter_papers",
}

_HOLD = """
import sys
from pathlib import Path
from paper_assets.stores.warehouse import Warehouse
with Warehouse(Path(sys.argv[1]), deadline=30).writing():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_garbage_on_standard_input_costs_no_other_call(host: RawHost) -> None:
    for garbage in GARBAGE:
        host.write(garbage)
    assert host.call("todays_ranking", profile="traffic")["profile"] == "traffic"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("no/such/method", {}),
        ("tools/call", {}),
        ("tools/call", {"name": 7}),
        ("tools/call", {"name": "todays_ranking", "arguments": "traffic"}),
        ("resources/read", {"uri": "file:///etc/passwd"}),
    ],
)
def test_a_request_that_breaks_the_protocol_gets_the_error_of_the_protocol(
    host: RawHost, method: str, params: dict[str, object]
) -> None:
    answer = host.request(method, params)
    assert answer["error"]["code"] in {-32601, -32602, -32603}
    assert "Traceback" not in json.dumps(answer)


def test_half_a_surrogate_pair_does_not_break_the_pipe(host: RawHost) -> None:
    record = paper(1, "2026-03-01", "trains")
    host.write(
        b'{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":"explain_rank",'
        b'"arguments":{"paper_id":"\\ud800","profile":"traffic"}}}\n'
    )
    answer = host.call("rank_and_filter_papers", papers=[{**record, "note": "\U0001f600"}], save=False)
    assert answer["total"] == 1


def test_a_server_whose_client_leaves_ends_at_once_with_code_zero(desk: Desk) -> None:
    with loopback_arxiv(script=[Answer(hang=True)]) as arxiv:
        reach = {"PAPER_ASSETS_ARXIV_URL": arxiv.url, "PAPER_ASSETS_SEMANTIC_SCHOLAR": "off"}
        with raw_host(desk, **reach) as host:
            host.handshake()
            host.ask("tools/call", {"name": "search_papers", "arguments": {"query": "trains"}})
            host.request("ping")
            assert host.leave() == 0
            assert "Traceback" not in host.log


def test_a_server_that_no_client_initializes_ends_with_code_zero(desk: Desk) -> None:
    with raw_host(desk) as host:
        host.write(b"hello\n")
        assert host.leave() == 0
        assert "Traceback" not in host.log


def test_a_server_that_is_interrupted_ends_without_a_stack_trace(desk: Desk) -> None:
    with raw_host(desk) as host:
        host.handshake()
        host.process.send_signal(signal.SIGINT)
        assert host.process.wait(600) == 130
        assert "Traceback" not in host.log


def test_a_client_that_stops_listening_ends_the_server_without_a_stack_trace(desk: Desk) -> None:
    nobody, out = os.pipe()
    server = subprocess.Popen(
        [*COMMAND, "mcp"],
        cwd=desk.folder,
        env={**os.environ, **desk.environment},
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(nobody)
    os.close(out)
    _, log = server.communicate('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n' * 3, timeout=600)
    assert server.returncode == 0
    assert "Traceback" not in log


def test_a_warehouse_that_another_process_writes_is_reported_with_its_holder(desk: Desk) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(desk.warehouse.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        with raw_host(desk, PAPER_ASSETS_STORE_DEADLINE="1") as host:
            host.handshake()
            asked = [
                host.ask("tools/call", {"name": tool, "arguments": {"profile": "traffic", **more}})
                for tool, more in (("todays_ranking", {}), ("explain_rank", {"paper_id": "2603.00103"}))
            ]
            errors = [error_in(host.answer_to(each)["result"]) for each in asked]
            assert any(f"pid {holder.pid}" in error["message"] for error in errors)
            for error in errors:
                assert error["code"] == "RATE_LIMIT"
                assert error["details"]["worth_another_try"] is True
            holder.communicate("", timeout=600)
            assert host.call("todays_ranking", profile="traffic")["total"] == 2
    finally:
        holder.kill()
        holder.wait()


def test_two_clients_at_once_each_get_their_own_answers(desk: Desk, host: RawHost) -> None:
    with raw_host(desk) as other:
        other.handshake()
        asked = [
            (each, profile, each.ask("tools/call", {"name": "todays_ranking", "arguments": {"profile": profile}}))
            for each, profile in 4 * [(host, "traffic"), (other, "speech")]
        ]
        for each, profile, number in asked:
            assert each.answer_to(number)["result"]["structuredContent"]["profile"] == profile


def test_a_server_killed_while_it_writes_leaves_the_stores_whole(desk: Desk, host: RawHost) -> None:
    before = desk.state()
    papers = [paper(number, "2026-03-01", f"subject {number}") for number in range(1, 100)]
    arguments = {"papers": papers, "profile_path": "traffic"}
    with raw_host(desk) as doomed:
        doomed.handshake()
        doomed.ask(
            "tools/call",
            {"name": "rank_and_filter_papers", "arguments": arguments, "_meta": {"progressToken": "p"}},
        )
        until(lambda: desk.state()["embeddings"] != before["embeddings"])  # vectors just kept, file to come
        os.killpg(doomed.process.pid, signal.SIGKILL)
        doomed.process.wait()
    after = desk.state()
    for name in ("papers", "candidates", "rankings", "sets"):
        assert after[name] == before[name]
    assert host.call("rank_and_filter_papers", **arguments, save=False)["summary"]["scored_count"] == 99


def test_a_wrong_configuration_of_the_server_is_reported_in_one_line(desk: Desk) -> None:
    assert "LOG_LEVEL" in desk.refused("mcp", LOG_LEVEL="loud")


def test_an_older_client_is_served_in_its_own_version(host: RawHost) -> None:
    assert host.heard[0]["result"]["protocolVersion"] == LEGACY
    tools = host.request("tools/list")["result"]["tools"]
    assert len(tools) == 18
    for tool in tools:
        assert tool["description"]
        hints = tool["annotations"]
        assert hints["readOnlyHint"] is (tool["name"] not in KEEP_OR_SPEND)
        assert hints["idempotentHint"] is (tool["name"] != "rank_and_filter_papers")
        assert hints.get("destructiveHint", False) is False


@pytest.mark.parametrize(("status", "words"), [(403, "does not allow"), (407, "asks for a login")])
def test_a_proxy_that_refuses_is_asked_once_for_each_source(tmp_path: Path, status: int, words: str) -> None:
    asked: list[Request] = []

    def refuse(request: Request) -> Answer:
        asked.append(request)
        return Answer(status=status)

    desk = Desk(tmp_path)
    with serving(refuse) as proxy:
        behind = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), proxy) | dict.fromkeys(("NO_PROXY", "no_proxy"), "")
        behind["PAPER_ASSETS_REQUEST_INTERVAL"] = "0"  # two processes ask one after the other
        with raw_host(desk, **behind) as host:
            host.handshake()
            error = host.refused("fetch_paper", arxiv_id="2601.05001")
        line = desk.refused("arxiv", "show", "2601.05001", **behind)
    assert (error["code"], [request.method for request in asked]) == ("NETWORK_ERROR", ["CONNECT"] * 4)
    assert words in error["message"] and f"HTTP {status}" in error["message"]
    assert error["message"] in line


def test_a_refused_connection_is_reported_without_the_pauses_of_retries(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with refusing_port() as port:
        names = ("PAPER_ASSETS_ARXIV_URL", "PAPER_ASSETS_SEMANTIC_SCHOLAR_URL")
        asking = {**dict.fromkeys(names, f"http://127.0.0.1:{port}"), "PAPER_ASSETS_REQUEST_INTERVAL": "1000"}
        with raw_host(desk, **asking, PAPER_ASSETS_REQUEST_GATE=str(tmp_path / "gates" / "host")) as host:
            host.handshake()
            error = host.refused("fetch_paper", arxiv_id="2601.05001")
        gate = str(tmp_path / "gates" / "command")
        line = desk.refused("arxiv", "show", "2601.05001", **asking, PAPER_ASSETS_REQUEST_GATE=gate)
    assert "127.0.0.1 cannot be reached" in error["message"] and "127.0.0.1 cannot be reached" in line
    for gate in (tmp_path / "gates").iterdir():
        written, opens = map(float, (gate / "next_request").read_text("ascii").split())
        assert opens - written == pytest.approx(1000), "arXiv's gate is closed for two intervals before a retry"
