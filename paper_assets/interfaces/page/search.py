"""Search the stored papers, find papers like one of them, and keep a search as an interest or a question."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.errors import InvalidInput, NotComputed, PaperAssetsError, PaperNotFound
from paper_assets.interfaces.background import Task
from paper_assets.interfaces.page.desk import (
    Desk,
    desk_of,
    folder_of,
    may_see,
    now,
    page,
    person_of,
    profile_of,
    redirect_with_note,
)
from paper_assets.interfaces.page.display import Unshown, isolate, readable_title
from paper_assets.interfaces.page.evidence import address_of_question, keep_plan, questions_of
from paper_assets.interfaces.page.paper_rows import (
    corpus_of,
    in_only_profile,
    rated_by,
    reader_of,
    rows_found,
)
from paper_assets.interfaces.page.profile_form import field_faults, read_file
from paper_assets.interfaces.page.today import ratings_part
from paper_assets.learning.ratings import is_profile
from paper_assets.retrieval.desk_search import SearchPage, search_desk, similar_papers
from paper_assets.retrieval.merge import Candidate, access
from paper_assets.retrieval.question_answering import extractive_answer
from paper_assets.retrieval.search import Corpus, search
from paper_assets.retrieval.search_query import SearchQuery, parse_search_query
from paper_assets.stores.documents import DataType
from paper_assets.stores.kept_answers import KeptAnswer, kept_answers
from paper_assets.stores.papers import find_paper, latest_day
from paper_assets.stores.profiles import write_json
from paper_assets.text.cleaning import one_line
from paper_assets.text.words import words_in

_ON_A_PAGE = 20
_LAST_PAGE = 50  # MOST_RESULTS of the search
_SIMILAR = 20
_RECENT_DAYS = 30
_ANY_QUESTION = "what is this paper about"
_PASSAGES = 8  # their sentences are enough for the embedding model to be compiled
_PLACE = re.compile(r"\bat character (\d+)")
FILTER_HELP: tuple[tuple[str, str], ...] = (
    ('"graph neural network"', "the phrase occurs in the title or abstract"),
    ('author:Vaswani · author:"Ashish Vaswani"', "an author; several authors must all match"),
    ("category:cs.LG · category:stat", "a category, or all of an archive; several are alternatives"),
    ("from:2026-03 · to:2026-03-15", "first submission, from and to a day, month or year"),
    ("is:worth · is:later · is:no · is:shown · is:unseen", "your ratings, and what your lists have shown"),
    ("has:code · has:pdf", "a code repository is known; a full text is stored"),
    ("in:profile", "papers that passed the filters of this profile"),
    ("in:fulltexts · in:rewrites", "search full texts or rewrites instead of abstracts"),
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlace:
    """An error in a query: its text, and the query before, at and after the place that it is about."""

    text: str
    before: str
    at: str
    after: str


def show_search(request: Request) -> Response:
    """Show the papers that a query finds, best first, or the papers most like one of them."""
    desk, profile, parameters = desk_of(request), reader_of(request), request.query_params
    if elsewhere := in_only_profile(request, desk):
        return elsewhere
    text, like = one_line(parameters.get("q", ""))[:2_000], one_line(parameters.get("like", ""))[:200]
    number = _page_number(parameters.get("page", "1"))
    values: dict[str, Any] = {"query": None, "fault": None, "rows": None, "liked": None, "found": None}
    values |= {"questions": (), "answers": ()}
    if like:
        paper = find_paper(desk.warehouse, like)
        if paper is None:
            raise PaperNotFound(f"paper {like!r} is not stored, so no similar papers can be found")
        similar = isolate("The similar papers", lambda: similar_papers(corpus_of(desk), paper, limit=_SIMILAR))
        values["liked"] = {"paper_id": paper.paper_id, "title": readable_title(paper.title)}
        values |= {"fault": _plain(similar)} if isinstance(similar, Unshown) else {"rows": rows_found(desk, similar)}
    elif text:
        try:
            query = _allowed(request, parse_search_query(text))
            results = isolate("The search", lambda: _searched(desk, query, profile, number))
            values["query"] = query
            if isinstance(results, Unshown):
                values["fault"] = _plain(results)
            else:
                values |= {"found": results, "rows": rows_found(desk, results.papers)}
        except InvalidInput as fault:
            values["fault"] = _placed(text, str(fault))
    else:
        preload(desk)
        if profile:
            values["questions"] = questions_of(desk, profile)
        values["answers"] = kept_answers_of(request, desk, profile)[::-1]
    ratings, newest = rated_by(desk, profile), latest_day(desk.warehouse, until=now().date())
    return page(
        request,
        "search.html.jinja",
        status=400 if values["fault"] else 200,
        text=text,
        score="similar" if values["liked"] else "match",
        number=number,
        first=(number - 1) * _ON_A_PAGE + 1,
        earlier=_address(text, number - 1 if values["rows"] else 1) if number > 1 else None,
        later=_address(text, number + 1) if values["found"] and values["found"].more and number < _LAST_PAGE else None,
        suggested=_suggested(text, profile, newest or now().date()) if not like else (),
        help=FILTER_HELP,
        empty=newest is None,
        ratings=ratings,
        state=ratings_part(desk.warehouse, profile),
        savable=bool(profile and folder_of(desk, profile) and values["query"] and words_in(values["query"].words)),
        **values,
    )


def kept_answers_of(request: Request, desk: Desk, profile: str | None) -> list[KeptAnswer]:
    """Return the kept answers that the reader may see: in a lab those of the profile."""
    answers = kept_answers(desk.warehouse)
    return [answer for answer in answers if person_of(request) is None or answer.options.get("profile") == profile]


def keep_search(request: Request) -> Response:
    """Add the words of a search to the profile, as an interest or as a question."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    text = one_line(str(form.get("q", "")))[:2_000]
    words = parse_search_query(text).words.strip()
    if not words_in(words):
        raise InvalidInput("this search has no words that could be kept; type some in addition to the filters")
    back = f"/p/{profile}/search?{urlencode({'q': text})}"
    if form.get("as") == "question":
        is_new = keep_plan(desk, profile, words)
        note = f"“{words}” is a question of {profile} now. From the next run on it is answered every day."
        return redirect_with_note(
            request,
            address_of_question(profile, words),
            note if is_new else f"“{words}” is a question of {profile} already.",
        )
    is_new = _keep_interest(desk, profile, words)
    note = f"“{words}” is a main interest of {profile} now. The next ranking uses it."
    return redirect_with_note(request, back, note if is_new else f"“{words}” is an interest of {profile} already.")


def _keep_interest(desk: Desk, profile: str, words: str) -> bool:
    """Add a main interest to the profile's file; False if it is there. Raises InvalidInput, InvalidProfile."""
    if folder_of(desk, profile) is None:
        raise NotComputed(f"the folder of profile {profile!r} was removed; it cannot be edited")
    file, record, version = read_file(desk, profile)
    interests = record.get("interests", {})
    if not isinstance(interests, dict):
        raise InvalidInput(f"{file} has an error; correct it before a search is added")
    if any(words.lower() == str(interest).lower() for level in interests.values() if level for interest in level):
        return False
    edited = {**record, "interests": {**interests, "primary": [*(interests.get("primary") or []), words]}}
    faults, other = field_faults(edited)
    if faults or other:
        raise InvalidInput(f"the interest cannot be added: {' '.join((*faults.values(), *other))}")
    write_json(file, edited, version=version, turns=desk.editing)
    return True


def _searched(desk: Desk, query: SearchQuery, profile: str | None, number: int) -> SearchPage:
    return search_desk(corpus_of(desk), query, profile=profile, offset=(number - 1) * _ON_A_PAGE, limit=_ON_A_PAGE)


def _allowed(request: Request, query: SearchQuery) -> SearchQuery:
    """Return the query if it refers to a profile that exists and is this person's. Raises InvalidInput."""
    if person_of(request) and "rewrite" in query.data_types:
        raise InvalidInput("search: in:rewrites is not searched in a lab, because rewrites belong to profiles")
    if query.profile not in (None, "profile") and person_of(request) and not may_see(request, str(query.profile)):
        raise InvalidInput(f"search: in:{query.profile} is not a profile of yours")
    desk = desk_of(request)
    if query.profile not in (None, "profile") and not is_profile(
        desk.warehouse, str(query.profile), desk.settings.profiles_dir
    ):
        raise InvalidInput(f"search: there is no profile {str(query.profile)[:60]!r} to search in")
    return query


def _placed(text: str, fault: str) -> FaultPlace:
    """Return the error with the part of the query that it is about; that part is empty where the error names no
    place.
    """
    message = fault.removeprefix("search: ")
    if not message.split(" ", 1)[0].endswith(":"):  # a filter's name stays as it is typed
        message = f"{message[:1].upper()}{message[1:]}"
    place = _PLACE.search(fault)
    if not place or int(place[1]) > len(text):
        return FaultPlace(text=message, before="", at="", after="")
    start = int(place[1]) - 1
    end = start + len(text[start:].split(None, 1)[0]) if text[start:].strip() else len(text)
    return FaultPlace(text=message, before=text[:start], at=text[start:end], after=text[end:])


def _plain(unshown: Unshown) -> FaultPlace:
    return FaultPlace(text=f"{unshown}.", before="", at="", after="")


def _suggested(text: str, profile: str | None, newest: date) -> tuple[tuple[str, str], ...]:
    """Return filters to add with one click, each with the query that has it; none of a kind that the query uses."""
    recent = f"from:{newest - timedelta(days=_RECENT_DAYS)}"
    offered: Mapping[str, tuple[str, ...]] = {
        "is:": ("is:unseen", "is:worth", "is:later") if profile else (),
        "in:": ("in:profile",) if profile else (),
        "has:": ("has:code",),
        "from:": (recent,),
    }
    used = text.lower()
    return tuple(
        (suggestion, f"{text} {suggestion}".strip())
        for kind, filters in offered.items()
        if not re.search(rf"(?:^|\s){kind}", used)
        for suggestion in filters
    )


def _address(text: str, number: int) -> str:
    return f"?{urlencode({'q': text, 'page': number} if number > 1 else {'q': text})}"


def _page_number(text: str) -> int:
    return min(max(int(text), 1), _LAST_PAGE) if text.isascii() and text.isdigit() and len(text) < 6 else 1


def preload(desk: Desk) -> Task:
    """Load in the background what the first search or question needs, once for each desk.

    Called when a reader opens the view and begins to type, not when the page is served: the model and the documents of
    8,000 papers take two seconds of both cores and 400 MB, which a desk without questions does not need.
    """

    def load(_: Task) -> bool:
        try:
            corpus = corpus_of(desk)
            passages = _nearest(corpus, "abstract") + _nearest(corpus, "fulltext")
            extractive_answer(_ANY_QUESTION, passages, embedder=corpus.embedder)
            return bool(passages)
        except PaperAssetsError as fault:  # the reader's own search or question will explain it
            logger.info("not loaded in advance: %s", fault)
            return False
        except Exception:
            logger.exception("not loaded in advance")
            return False

    return desk.tasks.start("loading", None, load, failed=lambda loaded: not loaded)


def _nearest(corpus: Corpus, data_type: DataType) -> tuple[Candidate, ...]:
    return search(
        corpus, _ANY_QUESTION, data_type=data_type, where=access(None), k=_PASSAGES, method=corpus.config.method
    ).candidates
