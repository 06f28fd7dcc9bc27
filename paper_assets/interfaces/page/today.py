"""Today: a profile's list for a day, the reader's ratings, earlier days, and what changed between two lists."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from hashlib import sha256
from itertools import groupby
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from paper_assets.digests.content import Digest, change_set
from paper_assets.digests.markdown import paper_list
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import NotComputed
from paper_assets.interfaces.page.background_commands import rank_again_state, under_way
from paper_assets.interfaces.page.desk import (
    Desk,
    address_after,
    day_of,
    desk_of,
    interests_of,
    now,
    page,
    profile_of,
    reading_together,
    redirect_with_note,
)
from paper_assets.interfaces.page.display import isolate, readable_title
from paper_assets.interfaces.page.evidence import NO_MODEL, missing_model
from paper_assets.interfaces.page.learned import day_effect, first_set_left
from paper_assets.interfaces.page.paper_rows import PaperRow, row_of, telling_stems
from paper_assets.interfaces.page.profile_form import LABELS
from paper_assets.interfaces.ranking_answers import list_changes
from paper_assets.interfaces.values import parse_day
from paper_assets.learning.ratings import IN_WORDS, UNDO, rate, ratings_by_id, ratings_version
from paper_assets.paper import Paper, papers_from_table
from paper_assets.pipeline.digest_pages import gather
from paper_assets.pipeline.open_days import recent_days
from paper_assets.ranking.levels import level_of_row
from paper_assets.ranking.unmatched import CONTRADICTED, POWERLESS, UNMET
from paper_assets.small_files import file_state
from paper_assets.stores.feedback import last_ratings, mark_seen, seen_papers, unmark_seen
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import (
    StoredRanking,
    ranking,
    ranking_days,
    ranking_inputs,
    times_asked,
)
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.numbers import count_of
from paper_assets.text.sentences import cut_with_ellipsis

LAYOUTS = ("compact", "comfortable")
_LAYOUT_COOKIE, _A_YEAR = "layout", 365 * 24 * 3600
_MOST_DAYS = 30  # earlier days offered to compare with
_MOST_SEARCHES = 6  # interests offered to search for where the list is empty
_MOST_POSSIBLE, _LOOKED_AT = 10, 100  # possible papers beside the list, and rows among which they are
_MOST_ASKED = 2  # lists in which a paper is offered for rating
_LONGEST_INTEREST = 30  # characters of an interest in a row


def show_day(request: Request) -> Response:
    """Show the list of a day: rows to rate, each with its abstract, score and reasons."""
    desk, layout = desk_of(request), _layout(request)
    with desk.read_together() as warehouse:
        profile = profile_of(request)
        day = day_of(request, profile)
        values = _day_shown(request, warehouse, profile, day)
    response = page(
        request,
        "today.html.jinja",
        day=day,
        back=f"/p/{profile}/{day}",
        layout=layout,
        no_model=NO_MODEL,
        **values,
    )
    if "layout" in request.query_params:
        response.set_cookie(_LAYOUT_COOKIE, layout, max_age=_A_YEAR, httponly=True, samesite="strict")
    return response


def _day_shown(request: Request, warehouse: Warehouse, profile: str, day: date) -> dict[str, Any]:
    """Return what is stored about a day for its template. Raises NotComputed for a day without a list."""
    desk = desk_of(request)
    stored, days = ranking(warehouse, day, profile), ranking_days(warehouse, profile)
    digest = gather(warehouse, profile, day, settings=desk.settings)
    ratings, seen = ratings_by_id(warehouse, profile), seen_papers(warehouse, profile)
    listed, more = (
        [entry.paper_id for entry in digest.entries],
        [line.paper_id for line in (*digest.more_likely, *digest.by_people)],
    )
    questions = _questions(warehouse, stored, {*listed, *more})  # each paper once
    possible = _possible(stored, {each.paper_id for each in questions})
    papers = papers_from_table(papers_by_id(warehouse, [*listed, *more, *(row["paper_id"] for row in possible)]))
    warnings, unmet = _warnings(digest)
    missing = missing_model(desk)
    return {
        "before": max((ranked_day for ranked_day in days if ranked_day < day), default=None),
        "after": min((ranked_day for ranked_day in days if ranked_day > day), default=None),
        "digest": digest,
        "changes": [replace(each, otherwise=tuple(map(_labelled, each.otherwise))) for each in digest.changes],
        "possible": [row["paper_id"] for row in possible],
        "warnings": warnings,
        "unmet": unmet,
        "ratings": ratings,
        "questions": questions,
        "rows": _rows(warehouse, stored, [*stored.listed, *stored.more_likely, *stored.by_people, *possible], papers),
        "effect": day_effect(warehouse, stored, ratings),
        "again": rank_again_state(request, profile, day) if days[-1:] == [day] else None,
        "recent_days": recent_days(warehouse, desk.settings, now()),
        "making": under_way(desk, profile),
        "remarks": [line.replace(missing, NO_MODEL) if missing else line for line in digest.remarks],
        "teach": first_set_left(stored.header, ratings),
        "searches": [] if digest.entries else interests_of(desk, profile)[:_MOST_SEARCHES],
        "seen": seen,
        "left": sum(paper_id not in ratings and paper_id not in seen for paper_id in listed),
        "shared": paper_list(paper for paper in papers if paper.paper_id in listed),
        "state": f"{_state(warehouse, profile, day)} {_arrivals_part(desk, profile)}",
    }


def _warnings(digest: Digest) -> tuple[list[str], list[str]]:
    """Return the warnings for the top of the page, and the unmet preferences."""
    unmet = [line for line in digest.warnings if line.startswith((UNMET, CONTRADICTED, POWERLESS))]
    return [line for line in digest.warnings if line not in unmet], unmet


def _possible(stored: StoredRanking, asked: set[str]) -> list[dict[str, Any]]:
    """Return the rows of the best possible papers beside the list, except those offered for rating."""
    rows = (row for row in stored.following(_LOOKED_AT) if row["paper_id"] not in asked)
    return [row for row in rows if level_of_row(row, stored.header)][:_MOST_POSSIBLE]


def _rows(
    warehouse: Warehouse, stored: StoredRanking, ranked: Sequence[Mapping[str, Any]], papers: Sequence[Paper]
) -> dict[str, PaperRow]:
    """Return by id the rows that can be made; a row names its interest where the list serves several."""
    by_id = {row["paper_id"]: row for row in ranked}
    stems = telling_stems(warehouse, {row["nearest"] or "" for row in by_id.values()})
    rows = {}
    for paper in papers:
        made = isolate(f"The row of {paper.paper_id}", partial(_row, by_id[paper.paper_id], paper, stored, stems))
        if isinstance(made, PaperRow):
            rows[paper.paper_id] = made
    return rows


def _row(
    row: Mapping[str, Any], paper: Paper, stored: StoredRanking, stems: Mapping[str, Mapping[str, bool]]
) -> PaperRow:
    level = level_of_row(row, stored.header)
    nearest = row["nearest"] or ""
    return replace(
        row_of(paper, about=stems[nearest]),
        rank=row["rank"],
        interest=cut_with_ellipsis(nearest, _LONGEST_INTEREST) if len(stems) > 1 else "",
        level=level.name if level else "",
        dots=level.dots if level else 0,
    )


def list_days(request: Request) -> Response:
    """Show every ranked day up to today, by month."""
    with desk_of(request).read_together() as warehouse:
        days = ranking_days(warehouse, profile_of(request))[::-1]
    months = [
        (first, list(days_of_month)) for first, days_of_month in groupby(days, key=lambda day: day.replace(day=1))
    ]
    return page(request, "days.html.jinja", months=months)


def day_state(request: Request) -> Response:
    """Return three hashes, of the day's list, the ratings and what is in progress, for the script that watches."""
    desk, profile = desk_of(request), profile_of(request)
    day = day_of(request, profile)
    state = desk.cache.get(
        f"list {profile} {day}", lambda: _state(desk.warehouse, profile, day), file_state(desk.warehouse.files)
    )
    return PlainTextResponse(f"{state} {_arrivals_part(desk, profile)}")


def _arrivals_part(desk: Desk, profile: str) -> str:
    """Return the hash of what Today says about the newest list while it is made."""
    return sha256(f"{under_way(desk, profile)}".encode()).hexdigest()[:16]


def ratings_state(request: Request) -> Response:
    """Return the hash of the ratings, for the script that watches a view with papers of any day."""
    return PlainTextResponse(ratings_part(desk_of(request).warehouse, profile_of(request)))


def rate_paper(request: Request) -> Response:
    """Keep, change or remove the reader's rating of a paper.

    An undo names the rating that it reverts, `replaced`: if another tab changed it since, nothing is changed.
    """
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    paper_id, rating = str(form.get("paper", "")), str(form.get("rating", ""))
    folder, moment = desk.settings.profiles_dir, now()
    target, replaced = address_after(request, profile), form.get("replaced")
    if replaced and ratings_by_id(desk.warehouse, profile).get(paper_id, "none") != replaced:
        note = "Nothing was undone: this paper was rated again elsewhere, and that rating is kept."
        return redirect_with_note(request, f"{target}#paper-{quote(paper_id, safe=':/')}", note)
    rated = rate(
        desk.for_writing,
        profile,
        paper_id,
        UNDO if rating == "none" else rating,
        given_in="page",
        now=moment,
        profiles_dir=folder,
    )
    name = readable_title(rated.title or rated.paper_id)
    outcome = IN_WORDS[rated.rating] if rated.rating else "rating removed"
    note = f"{name}: {outcome}." if rated.changed else f"{name}: {outcome} already; nothing was changed."
    return redirect_with_note(request, f"{target}#paper-{rated.paper_id}", note)


@reading_together
def show_changes(request: Request) -> Response:
    """Show what changed in a list and why: since another day, or since the day was ranked before."""
    desk, profile = desk_of(request), profile_of(request)
    day, since = day_of(request, profile), request.query_params.get("since", "")
    earlier = [ranked_day for ranked_day in ranking_days(desk.warehouse, profile) if ranked_day < day][::-1]
    edit = since == "edit" or (not since and not earlier)
    before = parse_day(since, "since") if since and not edit else (earlier[0] if earlier else None)
    words = "since this day was last ranked" if edit else f"since {in_words(before)}" if before else ""
    values: dict[str, Any] = {"change": None, "edits": (), "reason": None}
    try:
        listed = list_changes(desk.warehouse, profile, day=day, before=None if edit else before, edit=edit)
        edits = listed.changes.edits
        changes = change_set(listed.changes, since=words, titles=listed.titles, edit_named=not edits)
        values |= {"change": changes, "edits": [_labelled(edit) for edit in edits]}
    except NotComputed as fault:
        values["reason"] = str(fault)
    return page(
        request,
        "changes.html.jinja",
        day=day,
        since="edit" if edit else f"{before}",
        words=words,
        earlier=earlier[:_MOST_DAYS],
        **values,
    )


def _labelled(edit: str) -> str:
    """Return edits of the profile with the labels of their fields in the form instead of the keys in the file."""
    for key, label in LABELS.items():
        edit = edit.replace(f"{key}: ", f"{label}: ")
    return edit


def _layout(request: Request) -> str:
    """Return the requested layout, else the one chosen before, else compact."""
    layout = request.query_params.get("layout") or request.cookies.get(_LAYOUT_COOKIE)
    return layout if layout in LAYOUTS else LAYOUTS[0]


def _questions(warehouse: Warehouse, stored: StoredRanking, listed: set[str]) -> list[PaperRow]:
    """Return papers outside the list whose rating would improve it most; none that was passed over twice."""
    asked = times_asked(warehouse, stored.profile, before=stored.day)
    ids = [
        paper_id
        for paper_id in stored.header.get("questions") or ()
        if paper_id not in listed and asked.get(paper_id, 0) < _MOST_ASKED
    ]
    return [replace(row_of(paper), byline="") for paper in papers_from_table(papers_by_id(warehouse, ids))]


def ratings_part(warehouse: Warehouse, profile: str | None) -> str:
    """Return a constant and the hash of the profile's ratings, in the form of a day's state."""
    return f"- {ratings_version(last_ratings(warehouse, profile))[:16]}" if profile else "-"


def _state(warehouse: Warehouse, profile: str, day: date) -> str:
    """Return two hashes: of the day's ranking together with the newest ranked day, and of the ratings."""
    listed = [ranking_inputs(warehouse, day, profile), ranking_days(warehouse, profile)[-1:]]
    return f"{sha256(repr(listed).encode()).hexdigest()[:16]} {ratings_version(last_ratings(warehouse, profile))[:16]}"


def mark_list(request: Request) -> Response:
    """Mark the unrated papers of a day's list as seen, or remove the mark."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    day = parse_day(str(form.get("day", "")), "the day of a list")
    with desk.warehouse.read_together() as warehouse:
        ratings = ratings_by_id(warehouse, profile)
        listed = {row["paper_id"] for row in ranking(warehouse, day, profile).listed}
    unrated = sorted(listed - ratings.keys())
    if form.get("seen") == "none":
        unmark_seen(desk.for_writing, profile, unrated)
        note = f"{count_of(len(unrated), 'paper')} no longer marked as seen."
    else:
        mark_seen(desk.for_writing, profile, unrated, now=now())
        note = f"{count_of(len(unrated), 'paper')} marked as seen."
    return redirect_with_note(request, address_after(request, profile), note)
