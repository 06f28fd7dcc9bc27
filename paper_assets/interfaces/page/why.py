"""Explain the place of a paper in a list, or the filter or score that kept it out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.digests.entry import Link, Part, authors_line, links_of
from paper_assets.errors import InvalidArxivId, PaperNotFound
from paper_assets.interfaces.page.desk import Desk, day_of, desk_of, page, profile_of
from paper_assets.interfaces.ranking_answers import explained_rank, outside_the_window, papers_meant
from paper_assets.ranking.explain import parts_of
from paper_assets.stores.papers import find_paper
from paper_assets.stores.rankings import ranking
from paper_assets.text.cleaning import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPaper:
    """A paper with its links and abstract."""

    paper_id: str
    title: str
    authors: str
    published: date | None
    abstract: str
    links: tuple[Link, ...]


def show_why(request: Request) -> Response:
    """Explain the paper that is named by an id or by words of its title."""
    desk, profile = desk_of(request), profile_of(request)
    day, asked = day_of(request, profile), one_line(request.query_params.get("paper", ""))[:300]
    found = papers_meant(desk.warehouse, profile, day, asked) if asked else []
    said: dict[str, Any] = {"paper": None, "said": None}
    if asked and len(found) <= 1:
        paper_id = found[0][0] if found else asked
        said = {
            "paper": _shown(desk, paper_id) if found else None,
            "said": explained_paper(desk, profile, day, paper_id),
        }
    return page(request, "why.html.jinja", day=day, asked=asked, found=found, **said)


def explained_paper(desk: Desk, profile: str, day: date, paper_id: str) -> dict[str, Any]:
    """Explain the place of a paper in the list of a day: a verdict, the parts of its score, and sentences."""
    try:
        explained = explained_rank(desk.warehouse, profile, paper_id, day=day)
    except (PaperNotFound, InvalidArxivId):
        outside = outside_the_window(desk.warehouse, profile, day, paper_id)
        return {"verdict": outside, "score": None, "parts": (), "why": ()}
    score = explained["score"]
    parts: tuple[Part, ...] = ()
    if score:
        weights = ranking(desk.warehouse, day, profile).header["weights"]
        parts = tuple(Part(name=name, words=words, points=by) for name, words, by in parts_of(score, weights))
    return {
        "verdict": _verdict(explained),
        "score": score["final"] if score else None,
        "parts": parts,
        "why": explained["why"],
    }


def _verdict(explained: Mapping[str, Any]) -> str:
    """The answer in one sentence."""
    row = explained["score"]
    if row is None:
        return "It is not in the list: a filter removed it."
    if row["shown"]:
        return f"It is number {row['rank']} of the list."
    return "It is not in the list: its score is too low."


def _shown(desk: Desk, paper_id: str) -> ShownPaper | None:
    paper = find_paper(desk.warehouse, paper_id)
    if paper is None:
        return None
    return ShownPaper(
        paper_id=paper.paper_id,
        title=paper.title,
        authors=authors_line(paper.authors),
        published=paper.day,
        abstract=one_line(paper.abstract),
        links=links_of(paper),
    )
