"""The page as a Starlette application: its routes, its error pages, and its server on the loopback interface.

To add a view, write a function in a module of this folder and a template, and add a line to `ROUTES`. Each call runs in
a separate thread. Every change is a POST request whose form has passed the guard.
"""

import logging
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Set
from importlib.resources import files
from typing import Any, NoReturn

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from paper_assets.errors import InvalidInput, NotComputed, PaperAssetsError, PaperNotFound, StoreBusy
from paper_assets.interfaces.page import (
    background_commands,
    evidence,
    learned,
    overview,
    paper_map,
    paper_views,
    profile_form,
    rewrite_views,
    search,
    settings_form,
    today,
    welcome,
)
from paper_assets.interfaces.page.desk import Desk, desk_of, page, person_of, profile_of
from paper_assets.interfaces.page.guard import Guard, SignedIn
from paper_assets.interfaces.server_guard import BACKLOG, THIS_MACHINE, Waiting, guarded_protocol
from paper_assets.locks import store_lock
from paper_assets.profile import PROFILE_NAME
from paper_assets.settings import Settings
from paper_assets.setup.draft import LONGEST_NAME
from paper_assets.small_files import make_private_folder, write_file

_ASSETS: Mapping[str, str] = {
    "desk.css": "text/css",
    "desk.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
View = Callable[[Request], Response]
# Address, handler of GET, handler of POST. These are for the operator of a lab, not for the people who sign in.
OPERATOR_ROUTES: tuple[tuple[str, View | None, View | None], ...] = (
    ("/welcome", welcome.show_form, welcome.make_profile),
    ("/welcome/preview", None, welcome.preview_welcome),
    ("/welcome/read", None, welcome.read_words),
    ("/welcome/own-papers", None, welcome.show_own_papers),
    ("/p/{profile}/add", welcome.show_form, welcome.add_papers),
    ("/p/{profile}/add/own-papers", None, welcome.show_own_papers),
    ("/p/{profile}/first", background_commands.show_first, background_commands.fetch_first),
    ("/settings", settings_form.show_settings, settings_form.save_settings),
    # The same, in the profile's frame.
    ("/p/{profile}/settings", settings_form.show_settings, settings_form.save_settings),
    ("/work", None, background_commands.do_work),
    ("/work/leave-example", None, background_commands.leave_example),
    ("/work/stop", None, background_commands.stop_work),
    ("/p/{profile}/rename", None, welcome.rename),
    ("/p/{profile}/remove", None, welcome.remove),
    ("/p/{profile}/restore", None, welcome.restore),
    ("/p/{profile}/health", overview.show_health, None),
    ("/health", overview.show_health, None),
)
ROUTES: tuple[tuple[str, View | None, View | None], ...] = (
    ("/", overview.show_profiles, None),
    ("/p/{profile}", today.show_day, None),
    ("/p/{profile}/days", today.list_days, None),
    ("/p/{profile}/seen", None, today.mark_list),
    ("/p/{profile}/rate", None, today.rate_paper),
    ("/p/{profile}/learned", learned.show_learned, learned.forget),
    ("/p/{profile}/teach", learned.show_teach, None),
    ("/p/{profile}/rewrites", rewrite_views.list_rewrites, None),
    ("/p/{profile}/rewrites/{item}", rewrite_views.show_rewrite, rewrite_views.decide_rewrite),
    ("/p/{profile}/rewrites/{item}/state", rewrite_views.rewrite_state, None),
    ("/p/{profile}/practices", rewrite_views.list_practices, None),
    ("/p/{profile}/practices/{identifier}", rewrite_views.show_practice, rewrite_views.remove_practice),
    ("/p/{profile}/map", paper_map.show_map, None),
    ("/p/{profile}/profile", profile_form.show_profile, profile_form.save_profile),
    ("/p/{profile}/profile/read", None, profile_form.read_words),
    ("/p/{profile}/profile/preview", None, profile_form.preview_profile),
    ("/p/{profile}/questions", None, evidence.keep_question),
    ("/p/{profile}/evidence", evidence.show_evidence, None),
    ("/ask", search.lead_to_search, None),
    ("/p/{profile}/ask", search.lead_to_search, search.write_answer),
    ("/p/{profile}/ask/state", search.answer_state, None),
    ("/search", search.search_or_ask, None),
    ("/p/{profile}/search", search.search_or_ask, None),
    ("/p/{profile}/search/keep", None, search.keep_search),
    ("/paper/{paper_id:path}", paper_views.show_paper, None),
    ("/p/{profile}/paper/{paper_id:path}", paper_views.show_paper, None),
    ("/p/{profile}/shelf", paper_views.show_shelf, None),
    ("/p/{profile}/ratings/state", today.ratings_state, None),
    ("/p/{profile}/{day}", today.show_day, None),
    ("/p/{profile}/{day}/state", today.day_state, None),
    ("/p/{profile}/{day}/why", paper_views.show_why, None),
    ("/p/{profile}/{day}/changes", today.show_changes, None),
    ("/p/{profile}/{day}/evidence", evidence.show_evidence, None),
    ("/p/{profile}/{day}/evidence/state", evidence.answer_state, None),
    ("/p/{profile}/{day}/map", paper_map.show_map, None),
)

logger = logging.getLogger(__name__)


def build_app(desk: Desk, *, names: Set[str] = THIS_MACHINE) -> Starlette:
    """Build the application for the host names `names`; opens no store and loads no model."""
    signing = [Middleware(SignedIn, sessions=desk.sessions)] if desk.sessions else []
    routes = [
        *(_route(*route, of_operator=True) for route in OPERATOR_ROUTES),
        *(_route(*route) for route in ROUTES),
        Route("/assets/{name}", _asset, methods=["GET"]),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token_of=desk.form_token, names=names), *signing],
        exception_handlers={
            PaperAssetsError: _user_error,
            404: _not_found,
            405: _not_found,
            Exception: _unexpected_fault,
        },
    )
    app.state.desk = desk
    return app


def _route(path: str, get: View | None, post: View | None, *, of_operator: bool = False) -> Route:
    """Combine the handlers of an address; what they do not expect is logged and shown as a page, not as a trace."""

    def answer(request: Request) -> Response:
        chosen = post if request.method == "POST" else get
        assert chosen is not None  # noqa: S101  # the route admits no other method
        try:
            if person_of(request):  # before the view, so that no view can forget it
                if of_operator:
                    raise HTTPException(404)
                if "profile" in request.path_params:
                    profile_of(request)
            return chosen(request)
        except (PaperAssetsError, HTTPException):
            raise
        except Exception as fault:
            return _unexpected_fault(request, fault)

    return Route(path, answer, methods=[*(["GET"] if get else []), *(["POST"] if post else [])])


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        return PlainTextResponse("not found\n", 404)
    content = (files("paper_assets.interfaces.page") / "assets" / name).read_bytes()
    if name == "desk.css":
        content = (files("paper_assets.digests") / "digest.css.jinja").read_bytes() + content
    return Response(content, media_type=_ASSETS[name])


def _user_error(request: Request, fault: Exception) -> Response:
    """Show an error that a user can cause, in one line. While another process writes, the page reloads itself."""
    view = _view_of(request)
    if isinstance(fault, StoreBusy):
        repeat = getattr(request.state, "form", None)
        address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        fields = [(name, value) for name, value in repeat.multi_items() if name != "token"] if repeat else []
        more = {"refresh": None if repeat else 3, "address": address, "fields": fields}
        return _fault_page(request, 503, str(fault), busy=True, view=view, **more)
    if isinstance(fault, NotComputed) and (offer := background_commands.missing_list(request, view=view)):
        return offer
    status = 404 if isinstance(fault, PaperNotFound | NotComputed) else 400 if isinstance(fault, InvalidInput) else 500
    return _fault_page(request, status, str(fault), offered=_offered(request), view=view)


def _fault_page(request: Request, status: int, fault: str, **more: Any) -> Response:
    return page(request, "fault.html.jinja", status=status, fault=fault, **{"busy": False, "fields": [], **more})


def _view_of(request: Request) -> str:
    """Return the view that the address asks for, so that its tab is marked although it failed."""
    parts = request.url.path.strip("/").split("/")
    return parts[2] if len(parts) >= 3 and parts[0] == "p" and not parts[2][:1].isdigit() else "today"


def _offered(request: Request) -> str | None:
    """Return the name of a profile that the address names and that does not exist, so that it can be made."""
    name = str(request.path_params.get("profile", ""))
    desk = desk_of(request)
    possible = PROFILE_NAME.fullmatch(name) and len(name) <= LONGEST_NAME
    is_new = possible and not (desk.settings.profiles_dir / name).exists()
    return name if is_new and not person_of(request) else None


def _not_found(request: Request, fault: Exception) -> Response:
    return _fault_page(request, getattr(fault, "status_code", 404), "there is no page at this address")


def _unexpected_fault(request: Request, fault: Exception) -> Response:
    """Show that a view failed because of a bug; the log has the trace, the page only its kind."""
    logger.error("%s %s failed", request.method, request.url.path, exc_info=fault)
    error = f"this page could not be shown ({type(fault).__name__}); the log on standard error has the details"
    try:
        return _fault_page(request, 500, error)
    except Exception:
        logger.exception("the error page failed too")
        return PlainTextResponse(f"{error}\n", 500)


HOST = "127.0.0.1"
_DEADLINE = 10.0  # seconds to wait for another desk that creates the token
_SHUTDOWN_SECONDS = 2  # for requests in progress


def serve(settings: Settings, environ: Mapping[str, str], *, port: int, say: Callable[[str], None]) -> NoReturn:
    """Serve the desk until Ctrl-C or SIGTERM; its address goes to `say`. Port 0 takes a free port.

    Raises InvalidInput if the port is in use.
    """
    desk = Desk(settings=settings, environ=environ, token=form_token_of(settings))
    logging.basicConfig(level=logging.WARNING)
    listener = open_listener(HOST, port)
    say(f"the desk is open at http://{HOST}:{listener.getsockname()[1]}/  (Ctrl-C stops it)")
    run_until_ended(build_app(desk), listener, log_level="warning", lifespan="off")


def run_until_ended(app: Starlette, listener: socket.socket, **options: Any) -> NoReturn:
    """Serve until Ctrl-C or SIGTERM, and end the process; `options` are uvicorn's.

    A connection that never completes its request is closed (server_guard.py).
    """
    config = uvicorn.Config(
        app,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        ws="none",
        http=guarded_protocol(Waiting()),
        backlog=BACKLOG,
        **options,
    )
    uvicorn.Server(config).run(sockets=[listener])
    # A thread may still wait for a language model or a store; ending it leaves nothing half-written.
    os._exit(0)


def open_listener(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free port. Raises InvalidInput."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)  # before the address is printed, so that it can be opened at once
    except (OSError, OverflowError) as fault:
        listener.close()
        reason = fault.strerror if isinstance(fault, OSError) else "invalid port"
        raise InvalidInput(
            f"port {port} of {host} cannot be used ({reason}); stop the program that uses it, or choose another --port"
        ) from None
    return listener


def form_token_of(settings: Settings) -> str:
    """Return the token of the forms, kept in a private file so that open pages survive a restart of the desk."""
    file = settings.home / "desk.token"
    try:
        make_private_folder(settings.home)
        with store_lock(file, deadline=_DEADLINE):
            if not file.exists():
                write_file(file, secrets.token_urlsafe(32))
        return file.read_text(encoding="utf-8").strip() or secrets.token_urlsafe(32)
    except OSError as fault:
        raise InvalidInput(
            f"{file} cannot be used: {fault.strerror}; check permissions or set PAPER_ASSETS_HOME"
        ) from None
