"""Run a real HTTP server on 127.0.0.1 whose answers come from a function; base of all invented sources."""

import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One HTTP answer. `missing` bytes are promised and not sent; `hang` gives no answer until the server stops.
    `after` is waited for before the answer.

    `drip` are seconds between two of the body's `pieces`; `drip_head` those between two bytes of a head that does not
    end. `reset` breaks off in the middle of the body.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    missing: int = 0
    hang: bool = False
    after: threading.Event | None = None
    drip: float = 0.0
    pieces: int = 20
    drip_head: float = 0.0
    reset: bool = False


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request of a client; header names in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


# Below the ports that Linux (from 32768) and macOS (from 49152) give to connections and to servers that name none.
_FOR_SERVERS = range(20_000, 32_000)


def free_port() -> int:
    """Return a port for a server that must be told one, which no other process is given before the server has it."""
    while True:
        port = secrets.choice(_FOR_SERVERS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def listens(port: int) -> bool:
    """Return whether a server on this machine accepts connections."""
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port that refuses connections: it is taken, so that no server gets it meanwhile, and nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


@contextmanager
def serving(answer: Callable[[Request], Answer]) -> Iterator[str]:
    """The address of a running server."""
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            length = int(self.headers.get("Content-Length", 0))
            given = answer(
                Request(
                    method=self.command,
                    path=address.path,
                    query={name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()},
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=self.rfile.read(length) if length else b"",
                )
            )
            if given.after:
                given.after.wait()
            if given.hang:
                stopping.wait()
                return
            if given.drip_head:
                self._drip_head(given.drip_head)
                return
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(given.body) + given.missing))
            self.end_headers()
            try:
                self._write_body(given)
            except OSError:  # the client has disconnected
                self.close_connection = True

        def _drip_head(self, seconds: float) -> None:
            self.close_connection = True
            try:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not stopping.wait(seconds):
                    self.wfile.write(b"x")
            except OSError:  # the client has disconnected
                return

        def _write_body(self, given: Answer) -> None:
            size = max(1, len(given.body) // given.pieces)
            pieces = [given.body[at : at + size] for at in range(0, len(given.body), size)]
            if given.reset:
                self.wfile.write(given.body[: len(given.body) // 2])
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif given.drip:
                for piece in pieces:
                    self.wfile.write(piece)
                    stopping.wait(given.drip)
            else:
                self.wfile.write(given.body)
            self.close_connection = given.missing > 0 or given.reset

        do_POST = do_GET
        do_CONNECT = do_GET  # as a proxy

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
