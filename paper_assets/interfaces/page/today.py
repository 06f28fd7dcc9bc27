"""Today: one profile's list of a day, what is said of it, and the reader's word on each paper (SPEC V1)."""

from datetime import date
from hashlib import sha256
from itertools import groupby
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from paper_assets.digests.changed import change_set
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import NotComputed
from paper_assets.interfaces.page.desk import day_of, desk_of, now, page, profile_of, redirect_with_note
from paper_assets.interfaces.ranking_answers import list_changes
from paper_assets.interfaces.values import parse_day
from paper_assets.learning.ratings import IN_WORDS, ratings_by_id, take_back
from paper_assets.learning.ratings import rate as keep_rating
from paper_assets.paper import papers_from_table
from paper_assets.pipeline.digests import gather
from paper_assets.ranking.unmatched import UNMET
from paper_assets.sources.table import page_of
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import ranking, ranking_days, ranking_inputs
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import readable

_CHOICES = (("worth", "Worth reading", "w"), ("later", "Later", "l"), ("no", "Not for me", "n"))


def show_day(request: Request) -> Response:
    desk, profile = desk_of(request), profile_of(request)
    day = day_of(request, profile)
    with desk.warehouse.read_together() as warehouse:
        days = ranking_days(warehouse, profile)
        digest = gather(warehouse, profile, day, settings=desk.settings)
        ratings = ratings_by_id(warehouse, profile)
        state = _state(warehouse, profile, day)
        asks = _asks(warehouse, profile, day, {entry.paper_id for entry in digest.entries})
    unmet = [line for line in digest.warnings if line.startswith(UNMET)]
    return page(
        request,
        "today.html.jinja",
        day=day,
        before=max((each for each in days if each < day), default=None),
        after=min((each for each in days if each > day), default=None),
        digest=digest,
        warnings=[line for line in digest.warnings if line not in unmet],
        unmet=unmet,
        ratings=ratings,
        choices=_CHOICES,
        asks=asks,
        waiting=sum(version.waits for entry in digest.entries for version in entry.versions),
        state=state,
    )


def list_days(request: Request) -> Response:
    """Every ranked day, by month."""
    desk, profile = desk_of(request), profile_of(request)
    found = ranking_days(desk.warehouse, profile)[::-1]
    months = [(first, list(those)) for first, those in groupby(found, key=lambda day: day.replace(day=1))]
    return page(request, "days.html.jinja", months=months)


def day_state(request: Request) -> Response:
    """A word that changes when the list does, for the script that watches the day."""
    profile = profile_of(request)
    return PlainTextResponse(_state(desk_of(request).warehouse, profile, day_of(request, profile)))


def rate_paper(request: Request) -> Response:
    """Keep, change or take back the reader's word on a paper."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    paper_id, word = str(form.get("paper", "")), str(form.get("rating", ""))
    folder, moment = desk.settings.profiles_dir, now()
    if word == "none":
        rated = take_back(desk.for_writing, profile, paper_id, given_in="page", now=moment, profiles_dir=folder)
    else:
        rated = keep_rating(desk.for_writing, profile, paper_id, word, given_in="page", now=moment, profiles_dir=folder)
    said = IN_WORDS[rated.rating] if rated.rating else "no rating"
    name = one_line(rated.title or rated.paper_id)
    note = f"{name}: {said}." if rated.changed else f"{name}: {said} already; nothing was changed."
    back = str(form.get("back", ""))
    target = back if back.startswith(f"/p/{profile}/") or back == f"/p/{profile}" else f"/p/{profile}"
    return redirect_with_note(request, f"{target}#paper-{rated.paper_id}", note)


def _asks(warehouse: Warehouse, profile: str, day: date, listed: set[str]) -> list[tuple[str, str, str | None]]:
    """Papers outside the list on which the reader's word would teach most (L5): id, title and address."""
    wanted = [each for each in ranking(warehouse, day, profile).header.get("questions") or () if each not in listed]
    papers = papers_from_table(papers_by_id(warehouse, wanted))
    return [(paper.paper_id, readable(one_line(paper.title)), page_of(paper.paper_id)) for paper in papers]


def _state(warehouse: Warehouse, profile: str, day: date) -> str:
    """Changes with the ranking of the day, and with a newer day that is ranked."""
    parts = [ranking_inputs(warehouse, day, profile), ranking_days(warehouse, profile)[-1:]]
    return sha256(repr(parts).encode()).hexdigest()[:16]


_MOST_DAYS = 30  # earlier days offered to compare with


def show_changes(request: Request) -> Response:
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
