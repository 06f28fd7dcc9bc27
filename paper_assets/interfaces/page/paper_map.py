"""The map: the papers of a window or month, similar ones near each other, coloured by interest, with ratings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from paper_assets.text.sentences import cut_with_ellipsis

_SPANS = {"day": 1, "month": 31}
_COLOURS = 8  # interests with a separate colour; more cannot be distinguished
_LONGEST_LABEL = 48  # characters
_WIDTH, _HEIGHT = 100, 70  # of the map, in its own units
# On a phone, where letters and dots are largest on the map (desk.css): what is free there is free on a wide screen.
_LETTER, _LINE = 1.95, 3.0  # width of a letter, and height of a label above its base line
_DESCENT = 0.8  # of letters below the base line
_BESIDE = (-4.4, 6.6, -8.0, 10.2)  # from the centre of a dot to the base line of a label above or below it
_DOT = 3.5  # half the width of the largest dot, with its edge
_EDGE = 3.0  # that a label may reach beyond the outermost dots
_MOST_TRIED = 24  # papers beside which a label is tried
_NUMBER = 2.2  # size of a place's number, and how far below another one it is moved
_SHELF = 0.4  # from this probability on a paper belongs to its interest, where the ranking has no threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The papers of one interest (None: of no interest), with the place of its label's base line on the map."""

    interest: str | None
    papers: tuple[PlacedPaper, ...]
    x: float = 0.0
    y: float = 0.0

    @property
    def middle(self) -> float:
        """The middle of the label in the map's units: near its paper, and so that both ends stay on the map."""
        half = _LETTER * len(self.label) / 2
        return min(max(_WIDTH * self.x, half - _EDGE), _WIDTH + _EDGE - half)

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The label's left, top, right and bottom in the map's units."""
        half = _LETTER * len(self.label) / 2
        return self.middle - half, _HEIGHT * self.y - _LINE, self.middle + half, _HEIGHT * self.y + _DESCENT

    @property
    def label(self) -> str:
        """The interest, cut for the map."""
        return cut_with_ellipsis(self.interest or "", _LONGEST_LABEL)


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
            places, threshold = _places(desk, profile, day)
            groups = _groups(drawn.papers, interests_of(desk, profile), threshold, numbers(drawn.papers, places))
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


def _places(desk: Desk, profile: str, day: date) -> tuple[dict[str, int], float]:
    """Return the ranks of the papers in the day's list, and the probability that separates them from the rest."""
    stored = ranking(desk.warehouse, day, profile)
    listed = stored.rows.filter(stored.rows.column("shown")).to_pylist()
    threshold = stored.header.get("threshold")
    return {row["paper_id"]: row["rank"] for row in listed}, _SHELF if threshold is None else float(threshold)


def _groups(
    papers: Sequence[PlacedPaper], interests: Sequence[str], threshold: float, places: Sequence[Number]
) -> list[Group]:
    """Return the papers by interest, every main interest included; below the threshold a paper belongs to none."""
    interests = [
        *interests,
        *sorted({placed.paper.nearest for placed in papers if placed.paper.nearest} - set(interests)),
    ]
    members: dict[str | None, list[PlacedPaper]] = {interest: [] for interest in interests}
    members[None] = []
    for placed in papers:
        near = placed.paper.shown or placed.paper.relevance >= threshold
        members[placed.paper.nearest if near and placed.paper.nearest in members else None].append(placed)
    groups: list[Group] = []
    for interest, members_of_interest in members.items():
        near_first = sorted(members_of_interest, key=lambda placed: placed.paper.relevance, reverse=True)[:_MOST_TRIED]
        group = Group(interest=interest, papers=tuple(members_of_interest))
        tried = [replace(group, x=placed.x, y=placed.y + dy / _HEIGHT) for placed in near_first for dy in _BESIDE]
        groups.append(min(tried, key=lambda label: _covered(label, papers, groups, places), default=group))
    return groups


def _covered(label: Group, papers: Sequence[PlacedPaper], groups: Sequence[Group], places: Sequence[Number]) -> int:
    """Return how many dots a label would cover; a number of a place counts as several, and a label that covers another
    one or leaves the map above or below as many."""
    left, top, right, bottom = label.box
    covered = sum(
        left - reach < _WIDTH * placed.x < right + reach and top - reach < _HEIGHT * placed.y < bottom + reach
        for placed, reach in ((placed, _DOT * (0.7 + placed.paper.relevance) / 1.7) for placed in papers)
    )
    covered += 5 * sum(
        left < number.x + _NUMBER and number.x < right and top < number.y and number.y - _NUMBER < bottom
        for number in places
    )
    for other in groups:
        if other.interest and other.papers:
            box = other.box
            covered += 1000 * (left < box[2] and box[0] < right and top < box[3] and box[1] < bottom)
    return covered + 1000 * (top < -2 or bottom > _HEIGHT + 2)
