"""The map: the papers of a window or month, similar ones near each other, coloured by interest, with ratings."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.errors import InvalidProfile, NotComputed
from paper_assets.interfaces.page.desk import Desk, day_of, desk_of, isolate, page, profile_of
from paper_assets.learning.ratings import IN_WORDS, ratings_by_id
from paper_assets.pipeline.paper_map import PlacedPaper, paper_map
from paper_assets.pipeline.profiles import usable_profile
from paper_assets.stores.rankings import ranking

_SPANS = {"day": 1, "month": 31}
_COLOURS = 8  # interests with a separate colour; more cannot be distinguished
_LONGEST_LABEL = 34  # characters
_LABEL_WIDTH, _LABEL_HEIGHT = 0.4, 0.06  # shares of the map
_SHELF = 0.4  # from this probability on a paper belongs to its interest, where the ranking has no threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The papers of one interest (`lane`; None: of no interest), with the place of its label on the map."""

    lane: str | None
    papers: tuple[PlacedPaper, ...]
    x: float = 0.0
    y: float = 0.0

    @property
    def label(self) -> str:
        """The interest, cut for the map."""
        text = self.lane or ""
        return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1].rsplit(' ', 1)[0]}…"


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
        found = isolate("The map", lambda: paper_map(desk.warehouse, profile, first, day, model=model))
        if hasattr(found, "papers"):
            places, threshold = _places(desk, profile, day)
            groups = _groups(found.papers, _interests(desk, profile), threshold)
            values |= {"map": found, "groups": groups, "places": places}
        else:
            values["fault"] = f"{found}."
    except NotComputed as fault:
        values["fault"] = f"{str(fault)[:1].upper()}{str(fault)[1:]}."
    return page(
        request,
        "map.html.jinja",
        day=day,
        span=span if span in _SPANS else "day",
        ratings=ratings_by_id(desk.warehouse, profile),
        words=IN_WORDS,
        colours=_COLOURS,
        **values,
    )


def _interests(desk: Desk, profile: str) -> list[str]:
    """The profile's interests, main ones first; none if the profile was never readable."""
    try:
        interests = usable_profile(desk.workspace, profile).content.interests
    except InvalidProfile:
        return []
    return list(dict.fromkeys((*interests.primary, *interests.secondary, *interests.exploratory)))


def _places(desk: Desk, profile: str, day: date) -> tuple[dict[str, int], float]:
    """The ranks of the papers in the day's list, and the probability that separates them from the rest."""
    stored = ranking(desk.warehouse, day, profile)
    shown = stored.rows.filter(stored.rows.column("shown")).to_pylist()
    threshold = stored.header.get("line")
    return {row["paper_id"]: row["rank"] for row in shown}, _SHELF if threshold is None else float(threshold)


def _groups(papers: Sequence[PlacedPaper], interests: Sequence[str], threshold: float) -> list[Group]:
    """The papers by interest, every main interest included; below the threshold a paper belongs to none."""
    lanes = [*interests, *sorted({each.paper.lane for each in papers if each.paper.lane} - set(interests))]
    members: dict[str | None, list[PlacedPaper]] = {lane: [] for lane in lanes[:_COLOURS]}
    members[None] = []
    for each in papers:
        near = each.paper.shown or each.paper.relevance >= threshold
        members[each.paper.lane if near and each.paper.lane in members else None].append(each)
    groups: list[Group] = []
    for lane, those in members.items():
        best = max(those, key=lambda each: each.paper.relevance, default=None)
        x, y = (best.x, best.y) if best else (0.0, 0.0)
        while best and any(
            abs(y - other.y) < _LABEL_HEIGHT and abs(x - other.x) < _LABEL_WIDTH for other in groups if other.papers
        ):
            y += _LABEL_HEIGHT  # below a label that is there already
        groups.append(Group(lane=lane, papers=tuple(those), x=x, y=y))
    return groups
