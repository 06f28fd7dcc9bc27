"""Protect the page from other sites: accepted host names, required proof for writes, and security headers.

Every site that is open in the same browser can send requests to a page on the loopback interface. Therefore only host
names of this machine are accepted (DNS rebinding); a write is a POST with the Origin of this page and the token of its
forms; and responses allow only this page's own scripts and styles, and no framing. In a lab people sign in by a form.
"""

import secrets
from collections.abc import Callable, Set
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paper_assets.interfaces.page.desk import local_address, page
from paper_assets.interfaces.server_guard import READS, THIS_MACHINE, refused
from paper_assets.interfaces.tokens import COOKIE, Sessions, people_of
from paper_assets.stores.profiles import person_with
from paper_assets.text.cleaning import without_controls

_FORM = "application/x-www-form-urlencoded"
_UPLOAD = "multipart/form-data"  # a form with files
_MOST_UPLOADED = 30_000_000  # bytes; a library of 20,000 works with abstracts
_MOST_FILES = 20
_MOST_BYTES = 2_000_000  # of a form; a profile file may have 5 MB, but a typed one is far smaller
_MOST_FIELDS = 2_000
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer the Origin of this page's forms would be null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """ASGI middleware around the whole page. An accepted form is kept in `request.state.form`.

    `token_of` returns the token that the forms of a request must contain; None before signing in, when the sign-in form
    is the only one accepted.
    """

    def __init__(
        self, app: ASGIApp, *, token_of: Callable[[Request], str | None], names: Set[str] = THIS_MACHINE
    ) -> None:
        self.app = app
        self.token_of = token_of
        self.names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        request = Request(scope, receive)
        refusal = self._refused(request) or await self._bad_form(request)
        await (refusal or self.app)(scope, receive, send_guarded)

    def _refused(self, request: Request) -> Response | None:
        """Return the refusal of a request, before its body is read; None if it may continue."""
        headers = request.headers
        if fault := refused(headers, request.url.scheme, self.names):
            return PlainTextResponse(fault[1], fault[0])
        if request.method in READS:
            return None
        if request.method != "POST":
            return PlainTextResponse("only GET and POST are supported\n", 405)
        if "origin" not in headers or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return PlainTextResponse("changes are accepted only from a page of this desk\n", 403)
        if headers.get("content-type", "").partition(";")[0].strip().lower() not in (_FORM, _UPLOAD):
            return PlainTextResponse("changes are accepted only as a form\n", 415)
        return None

    async def _bad_form(self, request: Request) -> Response | None:
        """Read the form of a POST into the request's state; return the refusal of an invalid form."""
        if request.method != "POST":
            return None
        if request.headers["content-type"].lower().startswith(_UPLOAD):
            return await self._bad_upload(request)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BYTES:
                return PlainTextResponse("the form is too large\n", 413)
        try:
            fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            return PlainTextResponse("the form has too many fields\n", 413)
        form = ImmutableMultiDict([(name, value.replace("\r\n", "\n")) for name, value in fields])
        return self._accepted(request, form)

    async def _bad_upload(self, request: Request) -> Response | None:
        """Read a form with files; the files are in `request.state.uploads` as (name, content) by field."""
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > _MOST_UPLOADED:
            return PlainTextResponse("the files are too large\n", 413)
        fields: list[tuple[str, str]] = []
        uploads: dict[str, list[tuple[str, bytes]]] = {}
        try:
            async with request.form(
                max_files=_MOST_FILES, max_fields=_MOST_FIELDS, max_part_size=_MOST_BYTES
            ) as submitted:
                for name, value in submitted.multi_items():
                    if isinstance(value, str):
                        fields.append((name, value.replace("\r\n", "\n")))
                    elif value.filename:
                        uploads.setdefault(name, []).append((value.filename, await value.read()))
        except (HTTPException, MultiPartException):
            return PlainTextResponse("the form cannot be read\n", 400)
        request.state.uploads = uploads
        return self._accepted(request, ImmutableMultiDict(fields))

    def _accepted(self, request: Request, form: ImmutableMultiDict[str, str]) -> Response | None:
        """Keep a form whose token is right, without control characters; return the refusal of another."""
        token = self.token_of(request)
        if token is not None and not secrets.compare_digest(str(form.get("token", "")).encode(), token.encode()):
            return PlainTextResponse("this form has expired: go back, reload the page, and repeat the change\n", 403)
        request.state.form = ImmutableMultiDict([(name, without_controls(value)) for name, value in form.multi_items()])
        return None


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
        person = person_with(people_of(self.sessions.file), str(form.get("key", "")).strip())
        if person is None:
            return _sign_in_page(request, back=back, fault="this token is not valid")
        response = RedirectResponse(local_address(back, "/"), status_code=303)
        self.sessions.begin(request, response, person)
        return response


def _sign_in_page(request: Request, *, back: str, fault: str = "") -> Response:
    answer = page(request, "sign_in.html.jinja", status=401, back=back, fault=fault, profile=None, profiles=[])
    answer.headers["WWW-Authenticate"] = 'Cookie realm="desk"'
    return answer
