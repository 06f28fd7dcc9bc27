"""Who is looking at the page of a lab: a cookie that says so and that only this desk can have made (SPEC X4).

The cookie holds a name, when it ends, and a seal over both and the hash of the person's token: with the person, or with
their token, it becomes void at once. Nothing is kept in the process.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from paper_assets.interfaces.page.desk import page
from paper_assets.interfaces.tokens import Doorkeeper, TooManyTokens
from paper_assets.stores.people import Person

COOKIE = "desk"
_LASTS = timedelta(days=30)
_LONGEST = 300  # characters of a cookie of ours


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """The sessions of a page; `key` seals them. `clock` gives instants with a zone."""

    doorkeeper: Doorkeeper
    key: bytes
    clock: Callable[[], datetime]

    def person(self, request: Request) -> Person | None:
        """Who has signed in, if their cookie still holds."""
        given = request.cookies.get(COOKIE, "")
        name, _, rest = given.partition(".")
        ends, _, seal = rest.partition(".")
        if len(given) > _LONGEST or not (ends.isascii() and ends.isdigit()):
            return None
        person = self.doorkeeper.named(name)
        if person is None or int(ends) < self.clock().timestamp():
            return None
        return person if hmac.compare_digest(seal.encode(), self._seal(person, ends).encode()) else None

    def form_token(self, request: Request) -> str | None:
        """What the forms of this session carry; None for who has not signed in."""
        person = self.person(request)
        return self._sealed("form", person.name, request.cookies[COOKIE]) if person else None

    def begin(self, request: Request, response: Response, person: Person) -> None:
        """Let the person in. The cookie goes over TLS only where this request came over TLS."""
        ends = f"{int((self.clock() + _LASTS).timestamp())}"
        response.set_cookie(
            COOKIE,
            f"{person.name}.{ends}.{self._seal(person, ends)}",
            max_age=int(_LASTS.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def _seal(self, person: Person, ends: str) -> str:
        return self._sealed("session", person.name, ends, person.token_sha256)

    def _sealed(self, *parts: str) -> str:
        return hmac.new(self.key, "\n".join(parts).encode("utf-8", "surrogateescape"), sha256).hexdigest()


SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
_OPEN = "/assets/"  # style and script, the same for everybody


class SignedIn:
    """ASGI middleware behind the guard: lets in who has signed in, as `request.state.person`; the others sign in."""

    def __init__(self, app: ASGIApp, *, sessions: Sessions) -> None:
        self.app = app
        self.sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_OPEN):
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        if scope["path"] == SIGN_IN and request.method == "POST":
            await (await run_in_threadpool(self._sign_in, request))(scope, receive, send)
            return
        person = await run_in_threadpool(self.sessions.person, request)
        if person is None:
            back = str(request.url.path) + (f"?{request.url.query}" if request.url.query else "")
            await _sign_in_page(request, back=back if request.method == "GET" else "/")(scope, receive, send)
        elif scope["path"] == SIGN_OUT and request.method == "POST":
            response = RedirectResponse("/", status_code=303)
            response.delete_cookie(COOKIE, httponly=True, samesite="strict")
            await response(scope, receive, send)
        else:
            request.state.person = person
            await self.app(scope, receive, send)

    def _sign_in(self, request: Request) -> Response:
        form = request.state.form
        back = str(form.get("back", "/"))
        try:
            address = request.client.host if request.client else ""
            person = self.sessions.doorkeeper.with_token(str(form.get("key", "")).strip(), address=address)
        except TooManyTokens as fault:
            said = _sign_in_page(request, back=back, fault=str(fault), status=429)
            said.headers["Retry-After"] = str(fault.seconds)
            return said
        if person is None:
            return _sign_in_page(request, back=back, fault="that is nobody's token")
        response = RedirectResponse(_of_this_page(back), status_code=303)
        self.sessions.begin(request, response, person)
        return response


def _sign_in_page(request: Request, *, back: str, fault: str = "", status: int = 401) -> Response:
    said = page(request, "sign_in.html.jinja", status=status, back=back, fault=fault, profile=None, profiles=[])
    if status == 401:
        said.headers["WWW-Authenticate"] = 'Cookie realm="desk"'
    return said


def _of_this_page(address: str) -> str:
    """The address where it leads to a view of this page, else the front door: no way to another host."""
    plain = address.startswith("/") and not address.startswith("//") and address.isascii() and address.isprintable()
    return address if plain and "\\" not in address else "/"
