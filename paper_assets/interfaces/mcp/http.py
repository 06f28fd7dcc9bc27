"""Serve MCP over HTTP for a lab: each request carries a person's token and goes to that person's server (X4).

One server a person: its tools know the profiles of that person only, and whatever a server remembers (running calls,
clients of sources) is not shared. There are no protocol sessions: each request is checked, so that the next request
of a removed person is refused.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from paper_assets.interfaces.mcp.server import build_server, open_calls
from paper_assets.interfaces.server_guard import of_this_machine
from paper_assets.interfaces.tokens import Authenticator, TooManyTokens
from paper_assets.settings import Settings
from paper_assets.stores.profiles import Person

PATH = "/mcp"
_SCHEME = "bearer"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Served:
    """A running server of a person, valid while the person and their profiles are unchanged."""

    person: Person
    manager: StreamableHTTPSessionManager
    scope: anyio.CancelScope


@dataclass(kw_only=True)
class McpApplication:
    """The ASGI application at `PATH`; `names` are the hosts that it answers to."""

    settings: Settings
    environ: Mapping[str, str]
    authenticator: Authenticator
    names: Set[str]
    _served: dict[str, _Served] = field(default_factory=dict)
    _tasks: TaskGroup | None = None
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve until the end, when every call in progress is ended."""
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        answer = self._refused(request)
        if answer is None:
            answer, person = await self._person(request)
            if (
                person is not None and request.method != "POST"
            ):  # without sessions there is no stream to open and no session to end
                answer = PlainTextResponse("only POST is answered\n", 405, {"Allow": "POST"})
            elif person is not None:
                manager = await self._manager(person)
                headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
                await manager.handle_request({**scope, "headers": headers}, receive, send)
                return
        assert answer is not None  # noqa: S101  # a refused caller gets the reason
        await answer(scope, receive, send)

    def _refused(self, request: Request) -> Response | None:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not of_this_machine(host, self.names):
            return PlainTextResponse("this desk answers only to its own names\n", 421)
        if origin is not None and origin != f"{request.url.scheme}://{host}":
            return PlainTextResponse("no page of another site may ask\n", 403)
        return None

    async def _person(self, request: Request) -> tuple[Response | None, Person | None]:
        """Return the refusal or the person; a token counts only in the header, never in the address."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            address = request.client.host if request.client else ""
            token_sent = token.strip() if scheme.lower() == _SCHEME else ""
            person = await anyio.to_thread.run_sync(partial(self.authenticator.with_token, token_sent, address=address))
        except TooManyTokens as fault:
            return PlainTextResponse(f"{fault}\n", 429, {"Retry-After": f"{fault.seconds}"}), None
        if person is None:
            return PlainTextResponse("a token is needed\n", 401, {"WWW-Authenticate": "Bearer"}), None
        return None, person

    async def _manager(self, person: Person) -> StreamableHTTPSessionManager:
        """Return the person's server, started on first use; servers of people who were removed or changed are ended."""
        async with self._turn:
            people = await anyio.to_thread.run_sync(self.authenticator.people)
            by_name = {registered.name: registered for registered in people}
            for name, served in list(self._served.items()):
                if by_name.get(name) != served.person:
                    self._served.pop(name).scope.cancel()
            if person.name not in self._served:
                assert self._tasks is not None  # noqa: S101  # `running` is around every request
                self._served[person.name] = await self._tasks.start(self._serve, person)
            return self._served[person.name].manager

    async def _serve(self, person: Person, *, task_status: TaskStatus[_Served]) -> None:
        calls = open_calls(self.settings, self.environ)
        server = build_server(self.settings, self.environ, calls=calls, only=person.profiles)
        manager = StreamableHTTPSessionManager(app=server._lowlevel_server, stateless=True)
        try:
            with anyio.CancelScope() as scope:
                async with manager.run():
                    task_status.started(_Served(person, manager, scope))
                    await anyio.sleep_forever()
        finally:
            calls.shut_down(0)
