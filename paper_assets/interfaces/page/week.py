"""The week: the lists of the last seven ranked days in one view, and "All seen"."""

from dataclasses import dataclass
from datetime import date

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.page.desk import count_of, day_of, desk_of, now, page, profile_of, redirect_with_note
from paper_assets.interfaces.page.paper_rows import CHOICES, PaperRow, row_of
from paper_assets.interfaces.values import parse_day
from paper_assets.learning.ratings import ratings_by_id
from paper_assets.paper import papers_from_table
from paper_assets.stores.feedback import mark_seen, seen_papers, unmark_seen
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import ranking, ranking_days
from paper_assets.stores.warehouse import Warehouse

_DAYS = 7
_MOST_DAYS = 31  # whose lists one click marks as seen


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOfDay:
    """A day's list in the week: its papers by rank, and how many of them have neither a rating nor the mark "seen"."""

    day: date
    rows: tuple[PaperRow, ...]
    left: int


def show_week(request: Request) -> Response:
    """Show the lists of the seven newest ranked days up to a day, the newest first; a paper once."""
    desk, profile = desk_of(request), profile_of(request)
    until, only_left = request.query_params.get("until"), request.query_params.get("show") == "unseen"
    last = parse_day(until, "until") if until else day_of(request, profile)
    with desk.warehouse.read_together() as warehouse:
        all_days = ranking_days(warehouse, profile)
        days = [each for each in all_days if each <= last][-_DAYS:][::-1]
        ratings, seen = ratings_by_id(warehouse, profile), seen_papers(warehouse, profile)
        lists, known = list[ListOfDay](), set[str]()
        for day in days:
            ids = [each for each in _listed(warehouse, profile, day) if each not in known]
            known.update(ids)
            left = [each for each in ids if each not in ratings and each not in seen]
            papers = papers_from_table(papers_by_id(warehouse, left if only_left else ids))
            lists.append(ListOfDay(day=day, rows=tuple(row_of(each) for each in papers), left=len(left)))
    earlier = [each for each in all_days if days and each < days[-1]]
    later = [each for each in all_days if each > last]
    return page(
        request,
        "week.html.jinja",
        base=f"/p/{profile}",
        day=last,
        lists=[each for each in lists if each.rows or not only_left],
        days=days,
        left=sum(each.left for each in lists),
        only_left=only_left,
        earlier=earlier[-1] if earlier else None,
        later=later[:_DAYS][-1] if later else None,
        ratings=ratings,
        seen=seen,
        choices=CHOICES,
        back=f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path,
    )


def mark_lists(request: Request) -> Response:
    """Mark the unrated papers of the lists of some days as seen, or remove the mark."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    days = [parse_day(str(each), "the day of a list") for each in form.getlist("day")]
    if not days or len(days) > _MOST_DAYS:
        raise InvalidInput(f"name 1 to {_MOST_DAYS} days, got {len(days)}")
    with desk.warehouse.read_together() as warehouse:
        ratings = ratings_by_id(warehouse, profile)
        listed = {each for day in days for each in _listed(warehouse, profile, day)}
    unrated = sorted(listed - ratings.keys())
    if form.get("seen") == "none":
        unmark_seen(desk.for_writing, profile, unrated)
        note = f"{count_of(len(unrated), 'paper')} no longer marked as seen."
    else:
        mark_seen(desk.for_writing, profile, unrated, now=now())
        note = f"{count_of(len(unrated), 'paper')} marked as seen."
    back = str(form.get("back", ""))
    own = back == f"/p/{profile}" or back.startswith(f"/p/{profile}/")
    return redirect_with_note(request, back if own else f"/p/{profile}", note)


def _listed(warehouse: Warehouse, profile: str, day: date) -> list[str]:
    """Return the ids of the papers of a day's list, by rank. Raises NotComputed."""
    rows = ranking(warehouse, day, profile).rows
    found: list[str] = rows.filter(rows.column("shown")).column("paper_id").to_pylist()
    return found
