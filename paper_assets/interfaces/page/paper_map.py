"""The map: a window's or month's papers by likeness, coloured by interest, the rated ones marked (SPEC V5)."""

from collections import Counter
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.errors import NotComputed
from paper_assets.interfaces.page.desk import day_of, desk_of, page, profile_of
from paper_assets.learning.ratings import IN_WORDS, ratings_by_id
from paper_assets.pipeline.paper_map import paper_map

_SPANS = {"day": 1, "month": 31}
_COLOURS = 6  # interests with a colour of their own; more cannot be told apart


def show_map(request: Request) -> Response:
    desk, profile = desk_of(request), profile_of(request)
    day = day_of(request, profile)
    span = request.query_params.get("span", "day")
    first = day - timedelta(days=_SPANS.get(span, 1) - 1)
    said: dict[str, Any] = {"map": None, "fault": None, "lanes": []}
    try:
        model = desk.workspace.embedding_model()
        if model is None:
            raise NotComputed("no embedding model can be named, so there are no vectors to draw a map of")
        found = paper_map(desk.warehouse, profile, first, day, model=model)
        counted = Counter(each.paper.lane for each in found.papers if each.paper.lane)
        lanes = [lane for lane, _ in counted.most_common(_COLOURS)]
        said = {"map": found, "fault": None, "lanes": lanes}
    except NotComputed as fault:
        said["fault"] = str(fault)
    return page(
        request,
        "map.html.jinja",
        day=day,
        span=span if span in _SPANS else "day",
        ratings=ratings_by_id(desk.warehouse, profile),
        words=IN_WORDS,
        **said,
    )
