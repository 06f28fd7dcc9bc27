"""Sign people in to a lab's page: the sign-in form and the session cookie.

The cookie contains a name, an expiry time and a signature of both and of the hash of the person's token. Removing the
person or changing the token therefore ends the session at once. No state is kept in the process.
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
from paper_assets.interfaces.tokens import Authenticator, TooManyTokens
from paper_assets.stores.profiles import Person

COOKIE = "desk"
_SESSION = timedelta(days=30)
_LONGEST_COOKIE = 300  # characters


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """The sessions of a page, signed with `key`. `clock` returns times with a zone."""

    authenticator: Authenticator
    key: bytes
    clock: Callable[[], datetime]

    def person(self, request: Request) -> Person | None:
        """Return the person who has signed in, if the cookie is still valid."""
        given = request.cookies.get(COOKIE, "")
        name, _, rest = given.partition(".")
        expires, _, signature = rest.partition(".")
        if len(given) > _LONGEST_COOKIE or not (expires.isascii() and expires.isdigit()):
            return None
        person = self.authenticator.named(name)
        if person is None or int(expires) < self.clock().timestamp():
            return None
        return person if hmac.compare_digest(signature.encode(), self._signature(person, expires).encode()) else None

    def form_token(self, request: Request) -> str | None:
        """Return the token for the forms of this session; None before signing in."""
        person = self.person(request)
        return self._sign("form", person.name, request.cookies[COOKIE]) if person else None

    def begin(self, request: Request, response: Response, person: Person) -> None:
        """Start a session. The cookie is restricted to TLS if the request used TLS."""
        expires = f"{int((self.clock() + _SESSION).timestamp())}"
        response.set_cookie(
            COOKIE,
            f"{person.name}.{expires}.{self._signature(person, expires)}",
            max_age=int(_SESSION.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def _signature(self, person: Person, expires: str) -> str:
        return self._sign("session", person.name, expires, person.token_sha256)

    def _sign(self, *parts: str) -> str:
        return hmac.new(self.key, "\n".join(parts).encode("utf-8", "surrogateescape"), sha256).hexdigest()


SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
_OPEN = "/assets/"  # style and script, public


class SignedIn:
    """ASGI middleware behind the guard: sets `request.state.person`, or answers with the sign-in form."""

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
            person = self.sessions.authenticator.with_token(str(form.get("key", "")).strip(), address=address)
        except TooManyTokens as fault:
            answer = _sign_in_page(request, back=back, fault=str(fault), status=429)
            answer.headers["Retry-After"] = str(fault.seconds)
            return answer
        if person is None:
            return _sign_in_page(request, back=back, fault="this token is not valid")
        response = RedirectResponse(_of_this_page(back), status_code=303)
        self.sessions.begin(request, response, person)
        return response


def _sign_in_page(request: Request, *, back: str, fault: str = "", status: int = 401) -> Response:
    answer = page(request, "sign_in.html.jinja", status=status, back=back, fault=fault, profile=None, profiles=[])
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Cookie realm="desk"'
    return answer


def _of_this_page(address: str) -> str:
    """Return the address if it is a view of this page, else the start page, so that no redirect leaves this host."""
    plain = address.startswith("/") and not address.startswith("//") and address.isascii() and address.isprintable()
    return address if plain and "\\" not in address else "/"
