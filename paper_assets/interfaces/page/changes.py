"""What changed in a list, and why: since the ranked day before, since another day, or since an edit (SPEC G16)."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.digests.changed import change_set
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import NotComputed
from paper_assets.interfaces.days import parse_day
from paper_assets.interfaces.page.desk import day_of, desk_of, page, profile_of
from paper_assets.interfaces.ranking_answers import list_changes
from paper_assets.stores.rankings import ranking_days
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import readable

_MOST_DAYS = 30  # earlier days offered to compare with


def show(request: Request) -> Response:
    desk, profile = desk_of(request), profile_of(request)
    day, since = day_of(request, profile), request.query_params.get("since", "")
    earlier = [each for each in ranking_days(desk.warehouse, profile) if each < day][::-1]
    edit = since == "edit" or (not since and not earlier)
    before = parse_day(since, "since") if since and not edit else (earlier[0] if earlier else None)
    words = "since this day was last ranked" if edit else f"since {in_words(before)}" if before else ""
    shown: dict[str, Any] = {"change": None, "edits": (), "titles": {}, "none": None}
    try:
        listed = list_changes(desk.warehouse, profile, day=day, before=None if edit else before, edit=edit)
        titles = {
            move.after: readable(one_line(listed.titles.get(move.paper_id, move.paper_id)))
            for move in listed.changes.entered
        }
        found = change_set(listed.changes, since=words, titles=listed.titles)
        shown |= {"change": found, "edits": listed.edits, "titles": titles}
    except NotComputed as fault:
        shown["none"] = f"{fault}."
    return page(
        request,
        "changes.html.jinja",
        day=day,
        since="edit" if edit else f"{before}",
        words=words,
        earlier=earlier[:_MOST_DAYS],
        **shown,
    )
