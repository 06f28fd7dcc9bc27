"""Serve the desk to a lab: the page and MCP on one port, behind the tokens of its people (SPEC X4).

One list of people, two ways to sign in: a browser gets a cookie, a program sends its token with each request. A reverse
proxy provides TLS; its X-Forwarded-Proto and X-Forwarded-For count where it runs on this machine.
"""

import hmac
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import NoReturn

from starlette.applications import Starlette
from starlette.routing import Mount, Route

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.mcp.http import PATH, McpApplication
from paper_assets.interfaces.mcp.server import log_to_stderr
from paper_assets.interfaces.page.app import build_app, form_token_of, open_listener, run_until_ended
from paper_assets.interfaces.page.desk import Desk, now
from paper_assets.interfaces.server_guard import THIS_MACHINE
from paper_assets.interfaces.tokens import Authenticator, Sessions
from paper_assets.settings import Settings
from paper_assets.stores.profiles import people_file, read_people
from paper_assets.text.secrets import Secrets

_ANY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104  # compared with, not listened at


def build_lab(settings: Settings, environ: Mapping[str, str], *, names: frozenset[str]) -> Starlette:
    """Build the application; it answers to `names` and to the people in the file. Nothing is opened yet."""
    authenticator = Authenticator(file=people_file(settings.home))
    token = form_token_of(settings)
    sessions = Sessions(authenticator=authenticator, key=hmac.digest(token.encode(), b"sessions", sha256), clock=now)
    desk = Desk(settings=settings, environ=environ, token=token, sessions=sessions)
    mcp = McpApplication(settings=settings, environ=environ, authenticator=authenticator, names=names)

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
