"""The map: the papers of a window or month, similar ones near each other, coloured by interest, with ratings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.errors import NotComputed
from paper_assets.interfaces.page.desk import Desk, day_of, desk_of, interests_of, page, profile_of
from paper_assets.interfaces.page.display import as_sentence, isolate
from paper_assets.learning.ratings import IN_WORDS, ratings_by_id
from paper_assets.pipeline.paper_map import PlacedPaper, paper_map
from paper_assets.stores.rankings import ranking

_SPANS = {"day": 1, "month": 31}
_COLOURS = 8  # interests with a separate colour; more cannot be distinguished
_WIDTH, _HEIGHT = 100, 70  # of the map, in its own units
_NUMBER = 2.2  # size of a place's number, and how far below another one it is moved
_SHELF = 0.4  # from this probability on a paper belongs to its interest


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The papers of one interest (None: of no interest)."""

    interest: str | None
    papers: tuple[PlacedPaper, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """The place of a paper in the list, with the base line of its number on the map."""

    place: int
    x: float
    y: float


def numbers(papers: Sequence[PlacedPaper], places: Mapping[str, int]) -> list[Number]:
    """Return the numbers beside the dots of the list's papers; one that would cover another is moved below it."""
    placed_numbers: list[Number] = []
    listed = [placed for placed in papers if placed.paper.paper_id in places]
    for placed in sorted(listed, key=lambda one: places[one.paper.paper_id]):
        x, y = _WIDTH * placed.x + radius(placed) + 0.5, _HEIGHT * placed.y + 0.8
        while any(abs(other.x - x) < _NUMBER and abs(other.y - y) < _NUMBER - 0.01 for other in placed_numbers):
            y += _NUMBER
        placed_numbers.append(Number(place=places[placed.paper.paper_id], x=x, y=y))
    return placed_numbers


def radius(placed: PlacedPaper) -> float:
    """Return the size of a paper's dot, larger for papers that are more likely to be on topic."""
    return 0.7 + placed.paper.relevance


def show_map(request: Request) -> Response:
    """Show the map of the day's window or of the last month."""
    desk, profile = desk_of(request), profile_of(request)
    day = day_of(request, profile)
    span = request.query_params.get("span", "day")
    first = day - timedelta(days=_SPANS.get(span, 1) - 1)
    values: dict[str, Any] = {"map": None, "fault": None, "groups": [], "places": {}}
    try:
        model = desk.workspace.embedding_model()
        if model is None:
            raise NotComputed("there are no vectors to draw a map of, because no embedding model is configured")
        drawn = isolate("The map", lambda: paper_map(desk.warehouse, profile, first, day, model=model))
        if hasattr(drawn, "papers"):
            places = _places(desk, profile, day)
            groups = _groups(drawn.papers, interests_of(desk, profile))
            values |= {"map": drawn, "groups": groups, "places": places}
        else:
            values["fault"] = f"{drawn}."
    except NotComputed as fault:
        values["fault"] = as_sentence(fault)
    return page(
        request,
        "map.html.jinja",
        day=day,
        span=span if span in _SPANS else "day",
        ratings=ratings_by_id(desk.warehouse, profile),
        words=IN_WORDS,
        colours=_COLOURS,
        numbers=numbers,
        radius=radius,
        **values,
    )


def _places(desk: Desk, profile: str, day: date) -> dict[str, int]:
    """Return the ranks of the papers in the day's list."""
    return {row["paper_id"]: row["rank"] for row in ranking(desk.warehouse, day, profile).listed}


def _groups(papers: Sequence[PlacedPaper], interests: Sequence[str]) -> list[Group]:
    """Return the papers by interest, every main interest included; an unlikely paper belongs to none."""
    interests = [
        *interests,
        *sorted({placed.paper.nearest for placed in papers if placed.paper.nearest} - set(interests)),
    ]
    members: dict[str | None, list[PlacedPaper]] = {interest: [] for interest in interests}
    members[None] = []
    for placed in papers:
        near = placed.paper.shown or placed.paper.relevance >= _SHELF
        members[placed.paper.nearest if near and placed.paper.nearest in members else None].append(placed)
    return [Group(interest=interest, papers=tuple(papers)) for interest, papers in members.items()]
