"""The door of the page: whom it answers, what a write must bring along, and what a browser may do with an answer.

A page on the loopback can be reached by every site that the same browser has open. So: only names of this machine are
answered (DNS rebinding); a write is a POST that comes from a page of ours (Origin) and carries the token that our forms
hold; answers forbid scripts and styles but our own files, and to be framed.
"""

import secrets
from collections.abc import Callable, Set
from urllib.parse import parse_qsl

from starlette.datastructures import ImmutableMultiDict, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paper_assets.interfaces.local_only import THIS_MACHINE, of_this_machine

_FORM = "application/x-www-form-urlencoded"
_MOST_BYTES = 2_000_000  # of a form; a profile may have 5 MB as a file, but nobody types that
_MOST_FIELDS = 2_000
_READS = frozenset({"GET", "HEAD"})
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # no-referrer would make the Origin of our own forms null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """ASGI middleware around the whole page. A form that passes stands in `request.state.form`.

    `token_of` says what the forms of a request must carry; None where nobody has signed in, who may only do that.
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
        refused = self._refused(request) or await self._bad_form(request)
        await (refused or self.app)(scope, receive, send_guarded)

    def _refused(self, request: Request) -> Response | None:
        """Why a request is not answered, before anything of its body is read."""
        headers = request.headers
        if not of_this_machine(headers.get("host", ""), self.names):
            return PlainTextResponse("this desk answers only under names of this machine, like 127.0.0.1\n", 421)
        if request.method in _READS:
            return None
        if request.method != "POST":
            return PlainTextResponse("only GET and POST are answered\n", 405)
        if headers.get("origin") != f"{request.url.scheme}://{headers['host']}":
            return PlainTextResponse("a change must come from a page of this desk\n", 403)
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return PlainTextResponse("a change must come from a page of this desk\n", 403)
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            return PlainTextResponse("a change must come as a form\n", 415)
        return None

    async def _bad_form(self, request: Request) -> Response | None:
        """Read the form of a POST into the request's state; the answer where it may not be used."""
        if request.method != "POST":
            return None
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BYTES:
                return PlainTextResponse("the form is larger than any of this desk\n", 413)
        try:
            fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            return PlainTextResponse("the form has more fields than any of this desk\n", 413)
        form = ImmutableMultiDict([(name, value.replace("\r\n", "\n")) for name, value in fields])
        token = self.token_of(request)
        if token is not None and not secrets.compare_digest(str(form.get("token", "")).encode(), token.encode()):
            return PlainTextResponse(
                "this page is not of this desk: go back, load it again, and repeat the change\n",
                403,
            )
        request.state.form = form
        return None
