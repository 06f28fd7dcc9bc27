"""Serve the desk to a lab: the page and MCP on one port, behind the tokens of its people (SPEC X4).

One list of people, two ways to sign in: a browser gets a cookie, a program sends its token with each request. A reverse
proxy provides TLS; its X-Forwarded-Proto and X-Forwarded-For count where it runs on this machine.

MCP has one server a person: its tools know the profiles of that person only, and whatever a server remembers (running
calls, clients of sources) is not shared. There are no protocol sessions: each request is checked, so that the next
request of a removed person is refused.
"""

import hmac
from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.mcp.server import build_server, log_to_stderr, open_calls
from paper_assets.interfaces.page.app import build_app, form_token_of, open_listener, run_until_ended
from paper_assets.interfaces.page.desk import Desk, now
from paper_assets.interfaces.server_guard import THIS_MACHINE, refused
from paper_assets.interfaces.tokens import Sessions, people_of
from paper_assets.settings import Settings
from paper_assets.stores.profiles import Person, people_file, person_with, read_people
from paper_assets.text.secrets import Secrets

PATH = "/mcp"
_ANY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104  # compared with, not listened at


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
    people: Path  # the file
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
        person, answer = None, None
        if fault := refused(request.headers, request.url.scheme, self.names):
            answer = PlainTextResponse(fault[1], fault[0])
        else:
            person = await anyio.to_thread.run_sync(self._person, request)
            if person is None:
                answer = PlainTextResponse("a token is needed\n", 401, {"WWW-Authenticate": "Bearer"})
            elif request.method != "POST":  # without sessions there is no stream to open and no session to end
                answer = PlainTextResponse("only POST is answered\n", 405, {"Allow": "POST"})
        if answer is None and person is not None:
            manager = await self._manager(person)
            headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
            await manager.handle_request({**scope, "headers": headers}, receive, send)
        elif answer is not None:
            await answer(scope, receive, send)

    def _person(self, request: Request) -> Person | None:
        """Return who has the token of a request; it counts only in the header, never in the address."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return person_with(people_of(self.people), token.strip()) if scheme.lower() == "bearer" else None

    async def _manager(self, person: Person) -> StreamableHTTPSessionManager:
        """Return the person's server, started on first use; servers of people who were removed or changed are ended."""
        async with self._turn:
            people = await anyio.to_thread.run_sync(people_of, self.people)
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


def build_lab(settings: Settings, environ: Mapping[str, str], *, names: frozenset[str]) -> Starlette:
    """Build the application; it answers to `names` and to the people in the file. Nothing is opened yet."""
    people, token = people_file(settings.home), form_token_of(settings)
    sessions = Sessions(file=people, key=hmac.digest(token.encode(), b"sessions", sha256), clock=now)
    desk = Desk(settings=settings, environ=environ, token=token, sessions=sessions)
    mcp = McpApplication(settings=settings, environ=environ, people=people, names=names)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mcp.running():
            yield

    routes = [Route(PATH, mcp), Mount("/", build_app(desk, names=names))]
    return Starlette(routes=routes, lifespan=lifespan)


def serve(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    host: str,
    port: int,
    names: Sequence[str],
    say: Callable[[str], None],
) -> NoReturn:
    """Serve until Ctrl-C or SIGTERM; `say` receives the URL, `names` are hosts that it answers to in addition to this
    machine's.

    Raises InvalidInput for an address that cannot be used, and for one beyond this machine while no person is added.
    """
    people = read_people(people_file(settings.home))
    if not people and host not in THIS_MACHINE:
        raise InvalidInput(
            f"--host {host}: no person has access yet, so it listens on this machine only; "
            "run `paper-assets lab add NAME --profile PROFILE` first"
        )
    log_to_stderr(environ.get("LOG_LEVEL", "") or "WARNING", Secrets(environ))
    answers_to = THIS_MACHINE | {name.strip().lower() for name in names} | ({host} - _ANY_ADDRESS)
    listener = open_listener(host, port)
    host_in_address = f"[{host}]" if ":" in host else host
    who = "one person" if len(people) == 1 else f"{len(people)} people"
    address = f"http://{host_in_address}:{listener.getsockname()[1]}/"
    say(f"the desk is open to {who} at {address}, MCP at {PATH}  (Ctrl-C ends it)")
    run_until_ended(
        build_lab(settings, environ, names=frozenset(answers_to)),
        listener,
        log_config=None,
        proxy_headers=True,
        forwarded_allow_ips="127.0.0.1,::1",
        lifespan="on",
    )
