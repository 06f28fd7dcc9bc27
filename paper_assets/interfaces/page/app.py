"""The page as a Starlette application: its addresses, and how failures are said (SPEC V, 8).

Adding a view: a module of this folder, a template beside its siblings, and a line in `ROUTES`. A function is called in
a thread of its own; one that changes something is reached by POST only, and its form has passed the guard.
"""

import logging
from collections.abc import Callable, Mapping, Set
from importlib.resources import files

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from paper_assets.errors import InvalidInput, NotComputed, PaperAssetsError, PaperNotFound, StoreBusy
from paper_assets.interfaces.local_only import THIS_MACHINE
from paper_assets.interfaces.page import evidence, overview, paper_map, rewrites, today, why
from paper_assets.interfaces.page import profile as profile_view
from paper_assets.interfaces.page.desk import Desk, page, person_of, profile_of
from paper_assets.interfaces.page.guard import Guard
from paper_assets.interfaces.page.sign_in import SignedIn

_ASSETS: Mapping[str, str] = {
    "desk.css": "text/css",
    "desk.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
# address, what answers a GET, what answers a POST
ROUTES: tuple[tuple[str, Callable[[Request], Response] | None, Callable[[Request], Response] | None], ...] = (
    ("/", overview.show_profiles, None),
    ("/p/{profile}", today.show_day, None),
    ("/p/{profile}/days", today.list_days, None),
    ("/p/{profile}/rate", None, today.rate_paper),
    ("/p/{profile}/rewrites", rewrites.list_rewrites, None),
    ("/p/{profile}/rewrites/{item}", rewrites.show_rewrite, rewrites.decide_rewrite),
    ("/p/{profile}/rewrites/{item}/state", rewrites.rewrite_state, None),
    ("/p/{profile}/practices", rewrites.list_practices, None),
    ("/p/{profile}/practices/{identifier}", rewrites.show_practice, rewrites.remove_practice),
    ("/p/{profile}/map", paper_map.show_map, None),
    ("/p/{profile}/profile", profile_view.show_profile, profile_view.save_profile),
    ("/p/{profile}/profile/preview", None, profile_view.preview_profile),
    ("/p/{profile}/questions", None, evidence.keep_question),
    ("/p/{profile}/evidence", evidence.show_evidence, None),
    ("/p/{profile}/health", overview.show_health, None),
    ("/health", overview.show_health, None),
    ("/p/{profile}/{day}", today.show_day, None),
    ("/p/{profile}/{day}/state", today.day_state, None),
    ("/p/{profile}/{day}/why", why.show_why, None),
    ("/p/{profile}/{day}/changes", today.show_changes, None),
    ("/p/{profile}/{day}/evidence", evidence.show_evidence, None),
    ("/p/{profile}/{day}/map", paper_map.show_map, None),
)

logger = logging.getLogger(__name__)


def build_app(desk: Desk, *, names: Set[str] = THIS_MACHINE) -> Starlette:
    """The application, which answers to `names`; nothing is opened and no model loaded."""
    signing = [Middleware(SignedIn, sessions=desk.sessions)] if desk.sessions else []
    routes = [
        *(Route(path, _by_method(get, post), methods=_methods(get, post)) for path, get, post in ROUTES),
        Route("/assets/{name}", _asset, methods=["GET"]),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token_of=desk.form_token, names=names), *signing],
        exception_handlers={
            PaperAssetsError: _known_fault,
            404: _not_found,
            405: _not_found,
            Exception: _unexpected_fault,
        },
    )
    app.state.desk = desk
    return app


def _by_method(
    get: Callable[[Request], Response] | None, post: Callable[[Request], Response] | None
) -> Callable[[Request], Response]:
    """One address, two methods."""

    def answer(request: Request) -> Response:
        chosen = post if request.method == "POST" else get
        assert chosen is not None  # noqa: S101  # the route lets no other method in
        if person_of(request) and "profile" in request.path_params:
            profile_of(request)  # before the view, so that none can forget it
        return chosen(request)

    return answer


def _methods(get: object, post: object) -> list[str]:
    return [*(["GET"] if get else []), *(["POST"] if post else [])]


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        return PlainTextResponse("not found\n", 404)
    content = (files("paper_assets.interfaces.page") / "assets" / name).read_bytes()
    if name == "desk.css":
        content = (files("paper_assets.digests") / "digest.css.jinja").read_bytes() + content
    return Response(content, media_type=_ASSETS[name])


def _known_fault(request: Request, fault: Exception) -> Response:
    """What a user can cause or meet, in its one line. A store that is written to is asked again by itself."""
    if isinstance(fault, StoreBusy):
        repeat = getattr(request.state, "form", None)
        said = {"fault": str(fault), "busy": True, "refresh": None if repeat else 3}
        fields = [(name, value) for name, value in repeat.multi_items() if name != "token"] if repeat else []
        return page(request, "fault.html.jinja", status=503, fields=fields, **said)
    status = 404 if isinstance(fault, PaperNotFound | NotComputed) else 400 if isinstance(fault, InvalidInput) else 500
    return page(request, "fault.html.jinja", status=status, fault=str(fault), busy=False, fields=[])


def _not_found(request: Request, fault: Exception) -> Response:
    return page(
        request,
        "fault.html.jinja",
        status=getattr(fault, "status_code", 404),
        fault="there is nothing at this address",
        busy=False,
        fields=[],
    )


def _unexpected_fault(request: Request, fault: Exception) -> Response:
    """A fault of ours: the log has it, the page does not."""
    logger.error("%s %s failed", request.method, request.url.path, exc_info=fault)
    return PlainTextResponse("something went wrong here; the desk's log on standard error says what\n", 500)
