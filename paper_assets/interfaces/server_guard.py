"""Protect a server: refuse foreign host names and other sites, and limit connections that wait for a request.

Every site that the same browser has open can reach a page on the loopback. Only names of this machine are answered (a
foreign name would be DNS rebinding), and what changes something must not come from another site. The desk asks for more
(`page/guard.py`); this guards Dagster's page, whose web server accepts changes from any site and any host name:

    python -m paper_assets.interfaces.server_guard -w workspace.yaml

takes the options of `dagster-webserver`; `make dev` starts it this way (`defs/services.py`).

uvicorn has no time-out for an unfinished request, and its `limit_concurrency` answers 503 to everyone, people with a
valid token included. Here a connection without a complete request has a deadline; where too many wait, the oldest
are closed, so that a new connection, whose request arrives at once, is served. A request that is complete is never cut.
"""

import asyncio
import resource
from collections.abc import Mapping, Set
from typing import Any
from urllib.parse import urlsplit

import h11
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "::1"})
READS = frozenset({"GET", "HEAD"})
_OF_OUR_PAGES = frozenset({"same-origin", "none"})  # none: an address that a person typed
_POLICY_VIOLATION = 1008  # how a websocket is refused


def of_this_machine(host: str, names: Set[str] = THIS_MACHINE) -> bool:
    """Return whether a Host header names this machine, on whatever port; `names` are all that it answers to, in
    lower case.
    """
    try:
        return urlsplit(f"//{host}").hostname in names
    except ValueError:
        return False


def refused(headers: Mapping[str, str], scheme: str, names: Set[str] = THIS_MACHINE) -> tuple[int, str] | None:
    """Return status and reason if a request asks under a foreign name or comes from a page of another site."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if not of_this_machine(host, names):
        return 421, "only host names of this machine, such as 127.0.0.1, are answered\n"
    if origin not in (None, f"{scheme}://{host}"):
        return 403, "no page of another site may ask\n"
    return None


class LocalOnly:
    """ASGI middleware around a page that answers programs of this machine and its own scripts, and no other site.

    Programs send neither Origin nor Sec-Fetch-Site and may do all; a page that a link elsewhere leads to is shown.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _refused(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": refusal[1].strip()})
        else:
            await PlainTextResponse(refusal[1], refusal[0])(scope, receive, send)


def _refused(scope: Scope) -> tuple[int, str] | None:
    """Return status and reason if the request is refused, from its headers alone."""
    headers, read = Headers(scope=scope), scope["type"] == "http" and scope["method"] in READS
    if read and scope["path"].rstrip("/").endswith("/graphql") and b"query" in scope.get("query_string", b""):
        return 405, "queries come by POST\n"  # a picture of another site could ask by GET, and change something
    if fault := refused(headers, str(scope["scheme"]).replace("ws", "http")):
        return fault
    linked = read and headers.get("sec-fetch-mode") == "navigate"
    if not linked and headers.get("sec-fetch-site", "none") not in _OF_OUR_PAGES:
        return 403, "no page of another site may ask\n"
    return None


_HEADER_SECONDS = 10.0  # from the first moment of a connection, or of its next request, to the end of the header
_BODY_SECONDS = 60.0  # to the end of the body
_SHARE_OF_FILES = 4  # one file descriptor of this many may wait; the stores and the answers need the others
_MAX_WAITING = 1_000
BACKLOG = 32  # connections accepted in one go; the limits apply only after that


class Waiting:
    """The connections that wait for a complete request, oldest first; the oldest are closed if there are too many."""

    def __init__(self, most: int | None = None) -> None:
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        unlimited = files == resource.RLIM_INFINITY
        self.most = most or (_MAX_WAITING if unlimited else max(8, min(_MAX_WAITING, files // _SHARE_OF_FILES)))
        self._waiting: dict[GuardedProtocol, str] = {}

    def add(self, connection: "GuardedProtocol", address: str) -> None:
        """Register a connection; close the oldest of its address, or of all, if there are too many."""
        if connection in self._waiting:
            return
        self._waiting[connection] = address
        of_address = [each for each, other in self._waiting.items() if other == address]
        if len(of_address) > max(4, self.most // 2):
            self._close(of_address[0])
        elif len(self._waiting) > self.most:
            self._close(next(iter(self._waiting)))

    def remove(self, connection: "GuardedProtocol") -> None:
        """Forget a connection: its request is complete, or it is closed."""
        self._waiting.pop(connection, None)

    def _close(self, connection: "GuardedProtocol") -> None:
        self.remove(connection)
        connection.transport.abort()


def guarded_protocol(waiting: Waiting) -> type[H11Protocol]:
    """Make the protocol class for `uvicorn.Config(http=...)`; its connections share `waiting`."""
    return type("GuardedProtocol", (GuardedProtocol,), {"waiting": waiting})


class GuardedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a deadline for each request to be complete."""

    waiting: Waiting
    _deadline: asyncio.TimerHandle | None = None
    _has_header = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._done()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        state = self.conn.their_state
        if state is h11.IDLE:
            self._wait()  # the beginning of a next request stops uvicorn's own keep-alive timer
        elif state is h11.SEND_BODY:
            if not self._has_header:
                self._done()
                self._has_header = True
                self._wait(_BODY_SECONDS)
        else:
            self._done()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()

    def _wait(self, seconds: float = _HEADER_SECONDS) -> None:
        self.waiting.add(self, self.client[0] if self.client else "")
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _done(self) -> None:
        self._has_header = False
        self.waiting.remove(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def main() -> None:
    """Serve Dagster's page behind the guard until the process is ended."""
    import dagster_webserver.app
    from dagster_webserver.cli import cli
    from dagster_webserver.webserver import DagsterWebserver
    from starlette.middleware import Middleware

    from paper_assets.defs.dagster_internals import keep_engines

    class GuardedWebserver(DagsterWebserver):
        """Every request passes the guard first, websockets too."""

        def build_middleware(self) -> list[Middleware]:
            return [Middleware(LocalOnly), *super().build_middleware()]

    keep_engines()
    dagster_webserver.app.DagsterWebserver = GuardedWebserver  # type: ignore[misc]  # what its own command makes
    cli(auto_envvar_prefix="DAGSTER_WEBSERVER")


if __name__ == "__main__":
    main()
