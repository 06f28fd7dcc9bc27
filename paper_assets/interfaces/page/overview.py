"""The front door: every profile with its newest list. With one profile there is nothing to choose."""

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from paper_assets.errors import InvalidProfile, PaperAssetsError
from paper_assets.interfaces.missing_days import missing_days
from paper_assets.interfaces.page.desk import Desk, desk_of, may_see, page, person_of
from paper_assets.models.llm_budget import Usage, cost
from paper_assets.models.llm_config import llm_config
from paper_assets.pipeline.health import health
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles
from paper_assets.pipeline.rewrites import waiting_by_profile
from paper_assets.stores.summary import summary


def show_profiles(request: Request) -> Response:
    desk = desk_of(request)
    try:
        found = find_profiles(desk.settings.profiles_dir)
    except InvalidProfile:
        found = ProfilesFound({}, {})
    held = summary(desk.warehouse)
    names = sorted(found.readable.keys() | found.faults.keys() | held.rankings.keys())
    names = [name for name in names if may_see(request, name)]
    if len(names) == 1 and names[0] in held.last_ranking:
        return RedirectResponse(f"/p/{names[0]}", status_code=303)
    waiting = waiting_by_profile(desk.warehouse, config=desk.settings.rewriting)
    return page(
        request,
        "home.html.jinja",
        rows=[(name, held.last_ranking.get(name), waiting.get(name, 0), found.faults.get(name)) for name in names],
        papers=held.papers,
        folder=None if person_of(request) else desk.settings.profiles_dir,
    )


_MOST_RUNS = 12


def show_health(request: Request) -> Response:
    desk = desk_of(request)
    if person_of(request):  # it is about all profiles, and for who keeps the desk
        raise HTTPException(404)
    found = health(desk.workspace)
    try:
        runs, no_runs = _runs(desk), None
    except PaperAssetsError as fault:
        runs, no_runs = [], str(fault)
    spent = Usage(
        calls=sum(each.calls for each in found.use),
        input_tokens=sum(each.input_tokens for each in found.use),
        output_tokens=sum(each.output_tokens for each in found.use),
    )
    return page(
        request,
        "health.html.jinja",
        health=found,
        mend=missing_days(found.troubles),
        runs=runs,
        no_runs=no_runs,
        spent=spent,
        price=_price(desk, spent),
        home=desk.settings.home,
    )


def _runs(desk: Desk) -> list[object]:
    """The last runs of the Dagster instance that this desk belongs to."""
    from paper_assets.defs.run_history import latest_runs  # Dagster: two seconds, and only this view wants it

    folder = Path(desk.environ.get("DAGSTER_HOME") or Path.cwd() / "dagster_home")
    return list(latest_runs(folder, most=_MOST_RUNS)) if (folder / "storage").is_dir() else []


def _price(desk: Desk, spent: Usage) -> float | None:
    try:
        return cost(llm_config(desk.environ), spent)
    except PaperAssetsError:
        return None
