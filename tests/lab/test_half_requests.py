"""Test that a person with a token is served while hundreds of connections never complete their request."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

from paper_assets.interfaces.server_guard import BACKLOG, GuardedProtocol, Waiting
from tests.desk import Desk
from tests.lab.invented_lab import call, lab

HALF_HEADER = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
HALF_BODY = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nkey="


@contextmanager
def half_requests(url: str, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    address = urlsplit(url)
    opened: list[socket.socket] = []
    try:
        for number in range(count):
            if number % (BACKLOG // 2) == 0:
                time.sleep(0.02)  # the system repeats a connection that finds the queue full after a second
            connection = socket.create_connection((address.hostname, address.port), timeout=600)
            opened.append(connection)
            connection.sendall(sent)
        yield opened
    finally:
        for connection in opened:
            connection.close()


def waiting_for(seconds: float) -> str:
    """Code of a server that gives each header, and each body, this time."""
    guard = "from paper_assets.interfaces import server_guard as guard"
    return f"{guard}; guard.GuardedProtocol._wait.__defaults__ = ({seconds},); guard._BODY_SECONDS = {seconds}"


def test_a_person_is_served_while_400_half_requests_are_open_and_256_files_allowed(tmp_path: Path) -> None:
    with lab(tmp_path, open_files=256, before=waiting_for(3_600)) as served:  # none of them is over before the test is
        for sent in (b"", HALF_HEADER, HALF_BODY):
            with half_requests(served.url, 400, sent) as opened:
                assert call(served, served.tokens["ada"], "todays_ranking", {"profile": "traffic"})[0] == 200
                assert served.asked("GET", "/p/traffic", Cookie=served.signed_in(served.tokens["ada"]))[0] == 200
                assert len(opened) == 400
        assert "Too many open files" not in served.log.read_text("utf-8")


def test_a_request_that_is_not_finished_in_time_is_closed(tmp_path: Path) -> None:
    assert GuardedProtocol._wait.__defaults__ == (10.0,)
    with (
        lab(tmp_path, before=waiting_for(1.0)) as served,
        half_requests(served.url, 1, HALF_HEADER) as [connection],
        suppress(ConnectionError),
    ):
        connection.settimeout(0.2)
        for _ in range(600):
            with suppress(TimeoutError):
                assert connection.recv(100) == b""
                return
            connection.sendall(b"x")
        raise AssertionError("a byte now and then extends the deadline")


def test_the_oldest_of_the_address_with_too_many_waiting_connections_is_closed() -> None:
    closed: list[str] = []

    def connection(name: str) -> SimpleNamespace:
        return Connection(transport=SimpleNamespace(abort=lambda: closed.append(name)))

    waiting = Waiting(most=8)  # 4 of an address
    for number in range(6):
        waiting.add(connection(f"a{number}"), "10.0.0.1")  # type: ignore[arg-type]
    assert closed == ["a0", "a1"]
    kept = connection("b")
    waiting.add(kept, "10.0.0.2")  # type: ignore[arg-type]
    for number in range(4):
        waiting.add(connection(f"c{number}"), "10.0.0.3")  # type: ignore[arg-type]
    assert closed == ["a0", "a1", "a2"], "the oldest of all, where there are too many in all"
    waiting.remove(kept)  # type: ignore[arg-type]
    waiting.add(connection("d"), "10.0.0.2")  # type: ignore[arg-type]
    assert len(closed) == 3


class Connection(SimpleNamespace):
    __hash__ = object.__hash__


def test_the_desk_closes_a_request_that_is_not_finished_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path).start_interpreter("start", "--port", "0", "--no-browser", before=waiting_for(1.0))
    try:
        assert isinstance(desk.stdout, TextIOWrapper)
        url = next(word for word in desk.stdout.readline().split() if word.startswith("http://"))
        with half_requests(url, 1, HALF_HEADER) as [connection]:
            connection.settimeout(60)
            with suppress(ConnectionError):
                assert connection.recv(1) == b""
    finally:
        desk.kill()
        desk.communicate()
