"""Commands in the background: fetch the first papers of a profile, rank it again, and the buttons of Health.

The page only starts a command and shows how far it is. The command continues when the browser is closed, and its runs
are in Dagster's UI.
"""

import time
from dataclasses import replace
from datetime import date, timedelta
from typing import Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from paper_assets.errors import InvalidInput
from paper_assets.interfaces import background
from paper_assets.interfaces.page.desk import desk_of, newest_day, now, page, person_of, profile_of, redirect_with_note
from paper_assets.interfaces.page.settings import is_kept_running
from paper_assets.interfaces.values import parse_day
from paper_assets.pipeline.profiles import followed_categories
from paper_assets.pipeline.staleness import late_with_learning
from paper_assets.pipeline.step import Partition
from paper_assets.setup.categories import category_name
from paper_assets.setup.example import holds_only_the_example
from paper_assets.stores.embeddings import unembedded_count
from paper_assets.stores.papers import latest_day, paper_counts

DAYS = (3, 7, 14)
_DEFAULT_DAYS = 7
_REFRESH = 2  # seconds
_PATIENCE = 120.0  # seconds to wait for the removal of the example, which takes a few


def show_first(request: Request) -> Response:
    """Show the button that fetches, how far a command is, or why it ended. A finished one leads to Today."""
    desk, profile = desk_of(request), profile_of(request)
    _operator_only(request)
    job = background.last_job(desk.settings.home)
    watching = request.query_params.get("watch")
    ready = job and (job.state == "done" or (job.running and job.listed))
    if watching and job and ready and newest_day(desk.warehouse, profile):
        unprepared = job.running and unembedded_count(desk.warehouse, None, None, model=desk.settings.embedding_model)
        rest = " Older papers are still being prepared; until then Search finds them by their words only."
        return redirect_with_note(request, f"/p/{profile}", f"Your list is ready.{rest if unprepared else ''}")
    running = job is not None and job.needed
    stored = sum(paper_counts(desk.warehouse).values())
    return page(
        request,
        "first.html.jinja",
        job=job,
        running=running,
        refresh=f"{_REFRESH}; url=/p/{profile}/first?watch=1" if running else None,
        fetched=sum(job.counts.values()) if job else 0,
        categories=[category_name(code) for code in followed_categories(desk.settings)],
        days=DAYS,
        default=_DEFAULT_DAYS,
        stored=stored,
        interval=desk.settings.request_interval,
        newest=now().date() - timedelta(days=2),
        ranked=newest_day(desk.warehouse, profile) is not None,
    )


def fetch_first(request: Request) -> Response:
    """Start fetching the last days, or ranking what is stored, for a profile."""
    desk, profile = desk_of(request), profile_of(request)
    _operator_only(request)
    form = request.state.form
    if form.get("action") == "rank":
        arguments, title = ["run", "--profile", profile], f"Ranking for {profile}"
    else:
        days = str(form.get("days", _DEFAULT_DAYS))
        if not days.isdecimal() or not 1 <= int(days) <= 60:
            raise InvalidInput("days must be a whole number from 1 to 60")
        arguments, title = ["start", "--days", days, "--profile", profile], f"Fetching {days} days for {profile}"
    background.begin(desk.settings.home, desk.environ, arguments, title=title, profile=profile)
    return RedirectResponse(f"/p/{profile}/first?watch=1", status_code=303)


def rank_again_state(request: Request, profile: str, newest: date | None) -> Literal["late", "ranking"] | None:
    """Return whether the newest list of a profile is out of date, or being ranked; None where nothing is to be done.

    While `paper-assets up` runs, lists follow changes without a button; people of a lab have none.
    """
    desk = desk_of(request)
    if newest is None or person_of(request) or is_kept_running(desk):
        return None
    job = background.last_job(desk.settings.home)
    if job and job.needed and job.profile in (None, profile):
        return "ranking"
    stamp = (desk.files_stamp(), newest, f"{now():%Y-%m-%d %H}")  # what is due depends on the hour
    workspace, partition = replace(desk.workspace, warehouse=desk.warehouse), Partition(newest, profile)
    late = desk.kept_while(f"late {profile}", stamp, lambda: late_with_learning(workspace, [partition])[partition])
    return "late" if late else None


def stop_work(request: Request) -> Response:
    """Stop the command in the background; what it has finished is kept."""
    desk = desk_of(request)
    _operator_only(request)
    stopped = background.stop(desk.settings.home)
    note = "Stopped. What is fetched is kept; the same button continues." if stopped else "Nothing is running."
    return redirect_with_note(request, _back(request), note)


def do_work(request: Request) -> Response:
    """Start a command of Health: fetch missing days, rank what is out of date, send a digest."""
    desk, form = desk_of(request), request.state.form
    _operator_only(request)
    action, profile = str(form.get("action", "")), str(form.get("profile", ""))
    if action == "fetch":
        first, last = parse_day(str(form.get("first", "")), "first"), parse_day(str(form.get("last", "")), "last")
        arguments = ["fetch", "--day", f"{first}", "--to", f"{last}"]
        arguments += ["--accept-fewer"] if form.get("accept_fewer") else []
        title = f"Fetching {first} to {last}"
    elif action == "update":
        newest = latest_day(desk.warehouse)
        days = min(max((now().date() - newest - timedelta(days=1)).days, 1), 30) if newest else _DEFAULT_DAYS
        arguments, title = ["start", "--days", str(days)], f"Fetching {days} days"
    elif action == "rank":
        arguments = ["run", *(["--profile", profile] if profile else [])]
        title = f"Ranking for {profile or 'all profiles'}"
    elif action == "deliver" and profile:
        arguments, title = ["deliver", profile], f"Sending the digest of {profile}"
    else:
        raise InvalidInput("Health has no such action")
    if profile and profile not in desk.profiles():
        raise InvalidInput(f"there is no profile {profile[:60]!r}")
    background.begin(desk.settings.home, desk.environ, arguments, title=title, profile=profile or None)
    return redirect_with_note(request, _back(request), f"{title} has started.")


def leave_example(request: Request) -> Response:
    """Delete the invented papers of the demo and their lists, and open the form for the reader's own profile."""
    desk = desk_of(request)
    _operator_only(request)
    if not holds_only_the_example(desk.warehouse):
        raise InvalidInput("only papers of the demo can be removed here; `paper-assets reset` deletes all papers")
    home = desk.settings.home
    background.begin(home, desk.environ, ["reset", "--yes"], title="Removing the invented papers", profile=None)
    ends = time.monotonic() + _PATIENCE
    while (job := background.last_job(home)) and job.running and time.monotonic() < ends:
        time.sleep(0.2)
    if job is None or job.state != "done":
        reason = (job.message if job else None) or "it is not finished yet; Health shows how it ends"
        raise InvalidInput(f"the invented papers could not be removed: {reason}")
    note = "The invented papers are removed. Make your own profile here; those of the demo can be removed too."
    return redirect_with_note(request, "/welcome", note)


def _operator_only(request: Request) -> None:
    if person_of(request):
        raise HTTPException(404)


def _back(request: Request) -> str:
    """Return the view that the form names, if it is one of this desk's."""
    back = str(request.state.form.get("back", "/health"))
    return back if back.startswith("/") and not back.startswith("//") and "\\" not in back else "/health"
