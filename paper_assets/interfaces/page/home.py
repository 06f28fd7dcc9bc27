"""The front door: every profile with its newest list. With one profile there is nothing to choose."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from paper_assets.errors import InvalidProfile
from paper_assets.interfaces.page.desk import desk_of, page, person_of, sees
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles
from paper_assets.pipeline.rewrites import waiting_by_profile
from paper_assets.stores.summary import summary


def show(request: Request) -> Response:
    desk = desk_of(request)
    try:
        found = find_profiles(desk.settings.profiles_dir)
    except InvalidProfile:
        found = ProfilesFound({}, {})
    held = summary(desk.warehouse)
    names = sorted(found.readable.keys() | found.faults.keys() | held.rankings.keys())
    names = [name for name in names if sees(request, name)]
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
