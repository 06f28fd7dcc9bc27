"""Sign people in to a lab's page by a form."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from paper_assets.interfaces.page.desk import local_address, page
from paper_assets.interfaces.tokens import COOKIE, Sessions, TooManyTokens

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
        response = RedirectResponse(local_address(back, "/"), status_code=303)
        self.sessions.begin(request, response, person)
        return response


def _sign_in_page(request: Request, *, back: str, fault: str = "", status: int = 401) -> Response:
    answer = page(request, "sign_in.html.jinja", status=status, back=back, fault=fault, profile=None, profiles=[])
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Cookie realm="desk"'
    return answer
