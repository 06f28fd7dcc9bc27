"""A host that speaks MCP by hand: the server as a separate process, one JSON line out, one in.

    with raw_host(desk) as host:
        host.handshake()
        answer = host.call("todays_ranking", profile="traffic")

It checks nothing that a test does not ask for; a line of standard output that is not JSON ends the test.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from tests.desk import COMMAND, Desk
from tests.forked_commands import Command, ForkedCommand, can_fork

PATIENCE = 600.0  # seconds; only a broken server takes as long
LEGACY = "2025-06-18"
MODERN = "2026-07-28"


class RawHost:
    """The running server, its lines as they come, and its log in a file."""

    def __init__(self, desk: Desk, environ: Mapping[str, str], log: Path) -> None:
        self.log_file = log
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        environ = {**kept, **desk.environment, **environ}
        self.process: Command
        with log.open("wb") as stderr:
            if can_fork(environ):
                self.process = ForkedCommand(
                    ["mcp"], folder=desk.folder, environ=environ, stdin=True, stderr=stderr, text=False
                )
            else:
                self.process = subprocess.Popen(
                    [*COMMAND, "mcp"],
                    cwd=desk.folder,
                    env=environ,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    start_new_session=True,
                )
        self.heard: list[dict[str, Any]] = []
        self._ids = count(1)
        self._lines: Queue[bytes | None] = Queue()
        Thread(target=self._listen, daemon=True).start()

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8")

    def handshake(self, version: str = LEGACY) -> dict[str, Any]:
        client = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "by hand", "version": "0"}}
        answer = self.request("initialize", client)
        self.tell("notifications/initialized")
        return answer

    def write(self, raw: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(raw)
        self.process.stdin.flush()

    def tell(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self._send({"method": method, **({"params": params} if params else {})})

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and do not wait; its id."""
        asked = next(self._ids)
        self._send({"id": asked, "method": method, **({"params": params} if params else {})})
        return asked

    def answer_to(self, asked: int | str) -> dict[str, Any]:
        """The answer to a request; what comes before it is kept in `heard`."""
        for message in self.heard:
            if message.get("id") == asked:
                return message
        while True:
            message = self.next_message()
            if message.get("id") == asked:
                return message

    def next_message(self) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=PATIENCE)
        except Empty:
            raise AssertionError(f"nothing heard for {PATIENCE:g} s; the log:\n{self.log[-3000:]}") from None
        assert line is not None, f"the server has gone; its log:\n{self.log[-3000:]}"
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        self.heard.append(message)
        return message

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.answer_to(self.ask(method, params))

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that must succeed, which its text repeats."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]

        return dict(result["structuredContent"])

    def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The error of a call that must fail, in the shape that every error has (I4)."""
        return error_in(self.request("tools/call", {"name": tool, "arguments": arguments})["result"])

    def leave(self) -> int:
        """Close the server's standard input; its exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def _send(self, message: Mapping[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)


def error_in(result: Mapping[str, Any]) -> dict[str, Any]:
    """`error` of an answer that is one: JSON in the first text, nothing structured, no stack trace."""
    assert result["isError"] is True
    assert result.get("structuredContent") is None
    [content] = result["content"]
    assert "Traceback" not in content["text"]
    error: dict[str, Any] = json.loads(content["text"])["error"]
    assert set(error) == {"code", "message", "details"}
    assert "\n" not in error["message"]
    return error


def serves_from(desk: Desk, **environ: str) -> dict[str, Any]:
    """The server as other hosts configure it: command, arguments, environment."""
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}  # a host passes nothing on
    return {"command": sys.executable, "args": [*COMMAND[1:], "mcp"], "env": {**kept, **desk.environment, **environ}}


@contextmanager
def raw_host(desk: Desk, **environ: str) -> Iterator[RawHost]:
    """A running server; it is killed at the end, if it still runs."""
    host = RawHost(desk, environ, desk.folder / f"mcp-{next(_LOGS)}.log")
    try:
        yield host
    finally:
        if host.process.poll() is None:
            os.killpg(host.process.pid, signal.SIGKILL)
        host.process.wait()


_LOGS = count(1)
