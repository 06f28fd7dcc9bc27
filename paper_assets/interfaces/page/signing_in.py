"""The front door of a lab's page: who has no session sees a form for their token, and nothing else (SPEC X4)."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from paper_assets.interfaces.page.desk import page
from paper_assets.interfaces.page.sessions import COOKIE, Sessions
from paper_assets.interfaces.tokens import TooManyTokens

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
            await _form(request, back=back if request.method == "GET" else "/")(scope, receive, send)
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
            said = _form(request, back=back, fault=str(fault), status=429)
            said.headers["Retry-After"] = str(fault.seconds)
            return said
        if person is None:
            return _form(request, back=back, fault="that is nobody's token")
        response = RedirectResponse(_of_this_page(back), status_code=303)
        self.sessions.begin(request, response, person)
        return response


def _form(request: Request, *, back: str, fault: str = "", status: int = 401) -> Response:
    said = page(request, "sign_in.html.jinja", status=status, back=back, fault=fault, profile=None, profiles=[])
    if status == 401:
        said.headers["WWW-Authenticate"] = 'Cookie realm="desk"'
    return said


def _of_this_page(address: str) -> str:
    """The address where it leads to a view of this page, else the front door: no way to another host."""
    plain = address.startswith("/") and not address.startswith("//") and address.isascii() and address.isprintable()
    return address if plain and "\\" not in address else "/"
