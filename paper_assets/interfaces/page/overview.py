"""Views across profiles: the start page with every profile, and Health with what is missing, late or broken.

Health shows each problem together with the button, link or command that fixes it.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from paper_assets.defs.history_files import failure_in_files, runs_in_files
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import InvalidProfile, PaperAssetsError, StoreError
from paper_assets.interfaces.background import last_job
from paper_assets.interfaces.page.desk import Desk, desk_of, is_correctable, may_see, now, page, person_of
from paper_assets.interfaces.page.display import Unshown, isolate
from paper_assets.interfaces.page.settings_form import hours_of, is_kept_running, model_use
from paper_assets.interfaces.page.welcome import removed_of
from paper_assets.interfaces.values import assets_in_words, late_in_words
from paper_assets.pipeline.deliveries import undelivered
from paper_assets.pipeline.health import health
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles
from paper_assets.pipeline.rewrites import waiting_by_profile
from paper_assets.settings import dagster_folder
from paper_assets.setup.example import holds_only_the_example
from paper_assets.setup.fetch_hours import hours_in_words, next_due
from paper_assets.stores.backups import backups, time_of
from paper_assets.stores.harvests import missing_days
from paper_assets.stores.papers import summary

_MOST_RUNS = 12
_HISTORY = "history"  # Dagster's run storage below DAGSTER_HOME, as dagster.yaml names it


def show_profiles(request: Request) -> Response:
    """Show every profile with its newest ranking; with a single ranked profile go straight to its list."""
    desk = desk_of(request)
    try:
        folders = find_profiles(desk.settings.profiles_dir)
    except InvalidProfile:
        folders = ProfilesFound({}, {})
    held = summary(desk.warehouse)
    names = sorted(folders.readable.keys() | folders.faults.keys() | held.rankings.keys())
    names = [name for name in names if may_see(request, name)]
    removed = [] if person_of(request) else removed_of(desk, now())
    if not names and not removed and not person_of(request):
        return RedirectResponse("/welcome", status_code=303)
    if "all" not in request.query_params and len(names) == 1 and names[0] in held.last_ranking and not folders.faults:
        return RedirectResponse(f"/p/{names[0]}", status_code=303)
    waiting = isolate("The rewrites", lambda: waiting_by_profile(desk.warehouse, config=desk.settings.rewriting))
    return page(
        request,
        "home.html.jinja",
        names=names,
        last=held.last_ranking,
        waiting={} if isinstance(waiting, Unshown) else waiting,
        faults=folders.faults,
        correctable=lambda name: is_correctable(desk, name),
        problem=waiting if isinstance(waiting, Unshown) else None,
        papers=held.papers,
        removed=removed,
        example=not person_of(request) and holds_only_the_example(desk.warehouse),
        folder=None if person_of(request) else desk.settings.profiles_dir,
    )


def show_health(request: Request) -> Response:
    """Show the state of all profiles, missing days, the last runs and the use of the language model."""
    desk = desk_of(request)
    state = isolate(
        "The state of the profiles",
        lambda: desk.cache.get("health", lambda: health(desk.workspace), *desk.due_states()),
    )
    try:
        runs = isolate("The list of runs", lambda: _runs(desk))
        no_runs = None
    except PaperAssetsError as fault:
        runs, no_runs = [], str(fault)
    whole = None if isinstance(state, Unshown) else state
    settings, wrong_hours = hours_of(desk)
    sending = _sending(desk)
    return page(
        request,
        "health.html.jinja",
        correctable=lambda name: is_correctable(desk, name),
        health=whole,
        problems=[part for part in (state, runs) if isinstance(part, Unshown)],
        late={name: late_in_words(assets) for name, assets in whole.late.items()} if whole else {},
        missing=missing_days(whole.troubles) if whole else (),
        runs=[] if isinstance(runs, Unshown) else runs,
        no_runs=no_runs,
        partitions_in_words=partitions_in_words,
        reason_of=lambda run: failure_in_files(dagster_folder(desk.environ, Path.cwd()), run.run_id),
        graph=desk.environ.get("PAPER_ASSETS_GRAPH"),
        assets_in_words=assets_in_words,
        model=isolate("The use of the language model", lambda: model_use(desk)),
        hours=hours_in_words(settings),
        wrong_hours=wrong_hours,
        next_fetch=next_due(settings, now()).astimezone(ZoneInfo(settings.time_zone)),
        fetching=is_kept_running(desk),
        home=desk.settings.home,
        backup=next((time_of(file).date() for file in backups(desk.settings.home)), None),
        sending=sending,
        undelivered=undelivered(desk.workspace, sending) if sending else [],
        job=(job := last_job(desk.settings.home)),
        refresh=(3 if job.needed else 30) if job and job.running else None,
    )


def _sending(desk: Desk) -> list[str]:
    """Return the profiles whose digests are sent."""
    folder = desk.settings.profiles_dir
    return [name for name in desk.profiles() if (folder / name / "delivery.json").is_file()] if folder.is_dir() else []


def partitions_in_words(keys: Sequence[str]) -> str:
    """Describe the first and the last partition of a run: 2 March 2026 to 4 March 2026, traffic.

    Two profiles are the ends of a range: profiles from roads to traffic.
    """
    parts = [list(dict.fromkeys(ends)) for ends in zip(*(key.split("|") for key in keys), strict=False)]
    return ", ".join(
        ("" if len(ends) == 1 or _day_in_words(ends[0]) != ends[0] else "profiles from ")
        + " to ".join(_day_in_words(end) for end in ends)
        for ends in parts
    )


def _day_in_words(key: str) -> str:
    with suppress(ValueError):
        return in_words(date.fromisoformat(key))
    return key


def _runs(desk: Desk) -> list[object]:
    """Return the last runs of this desk's Dagster instance; none where Dagster has stored no history."""
    folder = dagster_folder(desk.environ, Path.cwd())
    if not (folder / _HISTORY).is_dir():
        return []
    runs = runs_in_files(folder, most=_MOST_RUNS)
    if runs is None:
        raise StoreError(f"The runs in {folder} are on a server or cannot be read; Dagster's own page shows them")
    return list(runs)
