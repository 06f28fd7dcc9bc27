"""Commands in the background: fetch the first papers of a profile, rank it again, and the buttons of Health.

The page only starts a command and shows how far it is. The command continues when the browser is closed, and its runs
are in Dagster's UI.
"""

import re
import time
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Literal

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from paper_assets.announcements import announced_days, closing
from paper_assets.defs.history_files import runs_in_files
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import InvalidInput, InvalidProfile, PaperAssetsError
from paper_assets.interfaces import background
from paper_assets.interfaces.page.desk import (
    Desk,
    desk_of,
    folder_of,
    local_address,
    now,
    page,
    person_of,
    profile_of,
    redirect_with_note,
)
from paper_assets.interfaces.page.settings_form import is_kept_running
from paper_assets.interfaces.values import parse_day
from paper_assets.pipeline.health import progress_of_newest
from paper_assets.pipeline.profiles import followed_categories, usable_profile
from paper_assets.pipeline.staleness import late_assets
from paper_assets.pipeline.step import Partition
from paper_assets.profile import PROFILE_NAME
from paper_assets.settings import dagster_folder
from paper_assets.setup.categories import category_name
from paper_assets.setup.example import holds_only_the_example
from paper_assets.stores.embeddings import unembedded_count
from paper_assets.stores.harvests import why_unfetched
from paper_assets.stores.papers import latest_day, paper_counts
from paper_assets.stores.rankings import latest_ranking_day, ranking_inputs

DAYS = (3, 7, 14)
_DEFAULT_DAYS = 7
_EMBEDDED = re.compile(r"([\d,]+) of ([\d,]+) papers? embedded")
_REFRESH = 2  # seconds
_NEWEST_RUNS = 5  # among which a fetch in progress is found
_PATIENCE = 120.0  # seconds to wait for the removal of the example, which takes a few


def show_first(request: Request) -> Response:
    """Show the button that fetches, how far a command is, or why it ended. A finished one leads to Today."""
    desk, profile = desk_of(request), profile_of(request)
    job = background.last_job(desk.settings.home)
    watching = request.query_params.get("watch")
    ready = job and (job.state == "done" or (job.running and job.listed))
    if watching and job and ready and latest_ranking_day(desk.warehouse, profile):
        unprepared = job.running and unembedded_count(desk.warehouse, None, None, model=desk.settings.embedding_model)
        rest = " Older papers are still being prepared; until then Search finds them by their words only."
        return redirect_with_note(request, f"/p/{profile}", f"Your list is ready.{rest if unprepared else ''}")
    running = job is not None and job.needed
    stored = sum(paper_counts(desk.warehouse).values())
    making = under_way(desk, profile) if running else None
    embedded = _EMBEDDED.search(making or "")
    return page(
        request,
        "first.html.jinja",
        job=job,
        running=running,
        making=making,
        embedded=[int(number.replace(",", "")) for number in embedded.groups()] if embedded else None,
        refresh=f"{_REFRESH}; url=/p/{profile}/first?watch=1" if running else None,
        fetched=sum(job.counts.values()) if job else 0,
        categories=[category_name(code) for code in followed_categories(desk.settings)],
        days=DAYS,
        default=_DEFAULT_DAYS,
        stored=stored,
        interval=desk.settings.request_interval,
        newest=announced_days(now(), 1)[0],
        ranked=latest_ranking_day(desk.warehouse, profile) is not None,
    )


def fetch_first(request: Request) -> Response:
    """Start fetching the last days, or ranking what is stored, for a profile."""
    profile = profile_of(request)
    _begin(request, str(request.state.form.get("action", "update")), profile)
    return RedirectResponse(f"/p/{profile}/first?watch=1", status_code=303)


def missing_list(request: Request, *, view: str) -> Response | None:
    """Return the page with the buttons that make a missing list: the profile's first one, or that of the day in the
    address. None if the list is there, so that something else is missing.
    """
    desk, name = desk_of(request), str(request.path_params.get("profile", ""))
    if not PROFILE_NAME.fullmatch(name):
        return None
    day = None
    if latest_ranking_day(desk.warehouse, name) is not None:
        if "day" not in request.path_params:
            return None
        day = parse_day(str(request.path_params["day"]), "the day in the address")
        if ranking_inputs(desk.warehouse, day, name) is not None:
            return None
    job, counts, today = background.last_job(desk.settings.home), paper_counts(desk.warehouse), now().date()
    working = job is not None and job.needed and job.profile in (None, name)
    return page(
        request,
        "no_list.html.jinja",
        status=404,
        view=view,
        here=request.url.path,
        day=day,
        removed=folder_of(desk, name) is None,
        stored=any(day is None or day - _window(desk, name) < each <= day for each in counts),
        fetched=day in counts,
        unknown=why_unfetched(desk.warehouse, day) if day else None,
        possible=day is not None and desk.settings.first_day <= day <= today,
        recent=day is not None and now() < closing(day),
        first_day=desk.settings.first_day,
        job=job,
        working=working,
        failed=job is not None and job.state == "failed" and f"{day}" in job.arguments,
        refresh=_REFRESH if working else None,
    )


def _window(desk: Desk, profile: str) -> timedelta:
    """Return how far back the papers of a profile's list are from; nothing for a profile that is not readable."""
    try:
        return timedelta(days=usable_profile(desk.workspace, profile).content.feed.window_days)
    except InvalidProfile:
        return timedelta(0)


def rank_again_state(request: Request, profile: str, newest: date | None) -> Literal["late", "ranking"] | None:
    """Return whether the newest list of a profile is out of date, or being ranked; None where nothing is to be done.

    While `paper-assets up` runs, lists follow changes without a button; people of a lab and removed profiles have none.
    """
    desk = desk_of(request)
    if newest is None or person_of(request) or is_kept_running(desk) or folder_of(desk, profile) is None:
        return None
    job = background.last_job(desk.settings.home)
    if job and job.needed and job.profile in (None, profile):
        return "ranking"
    workspace, partition = replace(desk.workspace, warehouse=desk.warehouse), Partition(newest, profile)
    late = desk.cache.get(
        f"late {profile}", lambda: late_assets(workspace, [partition])[partition], *desk.due_states(), newest
    )
    return "late" if late else None


def under_way(desk: Desk, profile: str) -> str | None:
    """Describe what is being done for the newest list of a profile, by a command or by `paper-assets up`."""
    job = background.last_job(desk.settings.home)
    stage = job.stage if job and job.needed and job.profile in (None, profile) else None
    if stage is None and not is_kept_running(desk):
        return None
    with suppress(PaperAssetsError):
        if making := progress_of_newest(replace(desk.workspace, warehouse=desk.warehouse), profile):
            return making
    return stage or ("fetching new papers" if _is_fetching(desk) else None)


def _is_fetching(desk: Desk) -> bool:
    folder = dagster_folder(desk.environ, Path.cwd())
    runs = runs_in_files(folder, most=_NEWEST_RUNS) or ()
    return any(run.status in ("queued", "starting", "started") and "arxiv_papers" in run.assets for run in runs)


def stop_work(request: Request) -> Response:
    """Stop the command in the background; what it has finished is kept."""
    desk = desk_of(request)
    stopped = background.stop(desk.settings.home)
    note = "Stopped. What is fetched is kept; the same button continues." if stopped else "Nothing is running."
    return redirect_with_note(request, _back(request), note)


def do_work(request: Request) -> Response:
    """Start a command of Health: fetch missing days, rank what is out of date, send a digest."""
    form, desk = request.state.form, desk_of(request)
    profile = str(form.get("profile", ""))
    if profile and profile not in desk.profiles():
        raise InvalidInput(f"there is no profile {profile[:60]!r}")
    title = _begin(request, str(form.get("action", "")), profile)
    return redirect_with_note(request, _back(request), f"{title} has started.")


def _begin(request: Request, action: str, profile: str) -> str:
    """Start the command of an action, for one profile or ("") all; return its title."""
    desk, form = desk_of(request), request.state.form
    day = parse_day(str(form["day"]), "day") if form.get("day") else None
    of_profile = ["--profile", profile] if profile else []
    if action == "fetch":
        first, last = parse_day(str(form.get("first", "")), "first"), parse_day(str(form.get("last", "")), "last")
        arguments = ["fetch", "--day", f"{first}", "--to", f"{last}"]
        arguments += ["--accept-fewer"] if form.get("accept_fewer") else []
        title = f"Fetching {in_words(first)}{f' to {in_words(last)}' if last > first else ''}"
    elif action == "update":
        newest = None if profile else latest_day(desk.warehouse)
        missed = min(max((now().date() - newest - timedelta(days=1)).days, 1), 30) if newest else _DEFAULT_DAYS
        days = str(form.get("days", missed))
        if not days.isdecimal() or not 1 <= int(days) <= 60:
            raise InvalidInput("days must be a whole number from 1 to 60")
        arguments = ["start", "--days", days, *of_profile]
        title = f"Fetching {days} days{f' for {profile}' if profile else ''}"
    elif action == "rank":
        arguments = ["run", *of_profile, *(["--as-of", f"{day}"] if day else [])]
        title = f"Ranking {f'{in_words(day)} ' if day else ''}for {profile or 'all profiles'}"
    elif action == "deliver" and profile:
        again = ["--again"] if form.get("again") else []
        arguments = ["deliver", profile, *(["--day", f"{day}"] if day else []), *again]
        title = f"Sending the digest of {profile}"
    else:
        raise InvalidInput("Health has no such action")
    background.begin(desk.settings.home, desk.environ, arguments, title=title, profile=profile or None)
    return title


def leave_example(request: Request) -> Response:
    """Delete the invented papers of the demo and their lists, and open the form for the reader's own profile."""
    desk = desk_of(request)
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


def _back(request: Request) -> str:
    return local_address(str(request.state.form.get("back", "")), "/health")
