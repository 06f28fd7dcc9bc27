"""Show one paper, explain its place in a list, and show the shelf: the rated papers, to search and to export."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from paper_assets.digests.entry import LEVELS_IN_WORDS, Part
from paper_assets.digests.markdown import paper_list
from paper_assets.errors import InvalidArxivId, InvalidInput, PaperNotFound
from paper_assets.interfaces.page.desk import (
    Desk,
    day_of,
    desk_of,
    page,
    person_of,
    profile_of,
    reading_together,
)
from paper_assets.interfaces.page.display import Unshown, as_sentence, isolate, with_parts
from paper_assets.interfaces.page.paper_rows import (
    PaperRow,
    Stems,
    corpus_of,
    rated_by,
    reader_of,
    row_of,
    spans_about,
    stored_papers,
    telling_stems,
)
from paper_assets.interfaces.page.today import ratings_part
from paper_assets.interfaces.ranking_answers import (
    CITATION_FORMATS,
    NOT_CONSIDERED,
    citation_text,
    explanation,
    find_papers_named,
)
from paper_assets.learning.ratings import IN_WORDS
from paper_assets.library.formats import write_papers
from paper_assets.paper import Paper
from paper_assets.paper_id import split_paper_id
from paper_assets.ranking.explain import order_name, order_parts, removed_in_words
from paper_assets.ranking.final_list import order_value
from paper_assets.retrieval.desk_search import FoundPaper, similar_papers
from paper_assets.stores.feedback import last_ratings
from paper_assets.stores.papers import find_paper
from paper_assets.stores.rankings import DayOfPaper, latest_ranking_day, paper_history, ranking_header
from paper_assets.stores.rewrites import rewrites_by_command, rewrites_of
from paper_assets.text.cleaning import one_line
from paper_assets.text.words import words_in


@reading_together
def show_why(request: Request) -> Response:
    """Explain the paper that is named by an id or by words of its title."""
    desk, profile = desk_of(request), profile_of(request)
    day, typed = day_of(request, profile), one_line(request.query_params.get("paper", ""))[:300]
    matches = find_papers_named(desk.warehouse, profile, day, typed) if typed else []
    explanation: dict[str, Any] = {"paper": None, "said": None}
    if typed and len(matches) <= 1:
        paper_id = matches[0][0] if matches else typed
        said = explained_paper(desk, profile, day, paper_id)
        paper = find_paper(desk.warehouse, paper_id) if matches else None
        explanation = {"paper": row_of(paper, about=said["about"]) if paper else None, "said": said}
    return page(request, "why.html.jinja", day=day, asked=typed, found=matches, **explanation)


def explained_paper(desk: Desk, profile: str, day: date, paper_id: str) -> dict[str, Any]:
    """Explain the place of a paper in the list of a day: a verdict, the number that orders the list with its parts,
    and sentences.
    """
    try:
        explained = explanation(desk.warehouse, profile, paper_id, day=day)
    except (PaperNotFound, InvalidArxivId) as fault:
        unknown = "No stored paper has this id or these words in its title."
        verdict = as_sentence(fault) if isinstance(fault, PaperNotFound) else unknown
        return {"verdict": verdict, "score": None, "score_name": "", "parts": (), "why": (), "about": {}}
    score = explained["score"]
    parts: tuple[Part, ...] = ()
    value, name = None, ""
    if score:
        header = ranking_header(desk.warehouse, day, profile)
        value, name = order_value(score, header), order_name(header)
        parts = tuple(Part(name=part, words=words, points=by) for part, words, by in order_parts(score, header))
    return {
        "verdict": _verdict(explained),
        "score": value,
        "score_name": name,
        "parts": parts,
        "why": explained["why"] if explained["why"][0] != NOT_CONSIDERED else (),
        "about": next(iter(telling_stems(desk.warehouse, [(score and score["nearest"]) or ""]).values())),
    }


def _verdict(explained: Mapping[str, Any]) -> str:
    """Return the answer in one sentence."""
    row = explained["score"]
    if row is None:
        considered = explained["why"][0] != NOT_CONSIDERED
        return "It is not in the list: a filter removed it." if considered else explained["why"][-1]
    return f"It is number {row['rank']} of the list." if row["shown"] else f"{explained['why'][-1]}"


_SIMILAR = 6
_MOST_DAYS = 12  # of a paper's history
_ON_A_SHELF = 100
SHELVES = ("later", "worth", "no")
_FILES: Mapping[str, tuple[str, str, str]] = {  # format, ending, media type
    "bibtex": ("bibtex", "bib", "application/x-bibtex"),
    "ris": ("ris", "ris", "application/x-research-info-systems"),
    "csl": ("csl-json", "json", "application/vnd.citationstyles.csl+json"),
    "markdown": ("markdown", "md", "text/markdown; charset=utf-8"),
}
assert all(name in CITATION_FORMATS for name, _, _ in _FILES.values())  # noqa: S101


def show_paper(request: Request) -> Response:
    """Show a stored paper with its authors, abstract, similar papers, and what became of it in the profile's lists."""
    desk, profile = desk_of(request), reader_of(request)
    paper = _paper_of(request, desk)
    form = request.query_params.get("format")
    if form:
        return _file([paper], form, name=paper.paper_id)
    similar = isolate(
        "The list of similar papers", lambda: similar_papers(corpus_of(desk), paper, limit=_SIMILAR)
    )  # before `read_together`: a search may have to open the warehouse separately
    with desk.read_together() as warehouse:
        ratings = rated_by(desk, profile)
        history = paper_history(warehouse, profile, paper.paper_id, since=paper.day) if profile else []
        day = latest_ranking_day(warehouse, profile) if profile else None
        rows = similar if isinstance(similar, Unshown) else _rows_of_similar(desk, similar)
        state = ratings_part(warehouse, profile)
        explained = explained_paper(desk, profile, day, paper.paper_id) if profile and day else None
        rewrites = _rewrites(request, profile, paper.paper_id) if profile else []
    about = explained["about"] if explained else {}
    return page(
        request,
        "paper.html.jinja",
        paper=paper,
        row=row_of(paper, about=about),
        abstract=_paragraphs(paper.abstract, about),
        authors=[name for author in paper.authors if (name := one_line(author))],
        affiliations=[name for affiliation in paper.affiliations if (name := one_line(affiliation))],
        shared=paper_list([paper]),
        bibtex=write_papers([paper], "bibtex"),
        rated=ratings.get(paper.paper_id),
        ratings=ratings,
        state=state,
        history=[(day_of_paper, _became(day_of_paper)) for day_of_paper in history[:_MOST_DAYS]],
        more_days=max(len(history) - _MOST_DAYS, 0),
        explained_now=explained,
        latest=day,
        rewrites=rewrites,
        similar=rows,
    )


@reading_together
def show_shelf(request: Request) -> Response:
    """Show the papers with one rating, the latest first, or only those whose title or authors have all typed words."""
    desk, profile, query = desk_of(request), profile_of(request), request.query_params
    text = one_line(query.get("q", ""))[:300]
    rated = last_ratings(desk.warehouse, profile)[::-1]
    counts = Counter(rating.rating for rating in rated)
    shelf = query.get("show") or next((name for name in SHELVES if counts[name]), SHELVES[0])
    shelf = shelf if shelf in SHELVES else SHELVES[0]
    when = {rating.paper_id: rating.rated_at.date() for rating in rated}
    chosen = [rating.paper_id for rating in rated if rating.rating == shelf]
    stored = stored_papers(desk, chosen)
    papers = [paper for paper in stored if _has_words(paper, text)]
    if form := query.get("format"):
        return _file(papers, form, name=f"{profile}-{shelf}")
    return page(
        request,
        "shelf.html.jinja",
        back=f"{request.url.path}?{request.url.query or f'show={shelf}'}",  # a rating does not open another shelf
        shown=shelf,
        text=text,
        shelves=[(name, IN_WORDS[name]) for name in SHELVES],
        counts=counts,
        rows=[row_of(paper) for paper in papers[:_ON_A_SHELF]],
        found=len(papers),
        missing=len(chosen) - len(stored) if not text else 0,
        when=when,
        ratings={rating.paper_id: rating.rating for rating in rated},
        state=ratings_part(desk.warehouse, profile),
    )


def _rows_of_similar(desk: Desk, similar: Iterable[FoundPaper]) -> list[PaperRow]:
    scores = {each.paper_id: each.score for each in similar}
    return [replace(row_of(paper), score=scores[paper.paper_id]) for paper in stored_papers(desk, list(scores))]


def _paper_of(request: Request, desk: Desk) -> Paper:
    """Return the paper in the address. Raises PaperNotFound."""
    address = str(request.path_params["paper_id"])
    try:
        known_as = str(split_paper_id(address)[0])
    except InvalidArxivId:
        known_as = address
    paper = find_paper(desk.warehouse, known_as)
    if paper is None:
        raise PaperNotFound(f"paper {address[:60]!r} is not stored: its day was not fetched, or its id is wrong")
    return paper


def _became(on: DayOfPaper) -> str:
    """Return in a few words what happened to a paper on one day."""
    if on.rank is None:
        return f"left out: {removed_in_words(on.reason)}" if on.reason else "not ranked"
    return f"no. {on.rank} of the list" if on.shown else f"ranked {on.rank}, not in the list"


def _rewrites(request: Request, profile: str, paper_id: str) -> list[tuple[str, str]]:
    """Return the rewrites of the paper that the profile requested, on a personal desk also those that a command made:
    item and level in words.
    """
    warehouse = desk_of(request).warehouse
    items = rewrites_of(warehouse, profile=profile)
    if person_of(request) is None:
        items += rewrites_by_command(warehouse)
    of_paper = [item for item in items if item.paper_id == paper_id]
    return [(item.item, LEVELS_IN_WORDS.get(item.target_level, item.target_level)) for item in of_paper]


def _paragraphs(abstract: str, about: Stems) -> list[Markup]:
    """Return the abstract's paragraphs with words of these stems marked; single line breaks are a terminal's."""
    parts = [one_line(part) for part in abstract.split("\n\n") if part.strip()]
    return [with_parts(part, spans_about(part, about)) for part in parts]


def _has_words(paper: Paper, text: str) -> bool:
    words = words_in(" ".join((paper.title, *paper.authors)))
    return all(any(known_word.startswith(word) for known_word in words) for word in words_in(text))


def _file(papers: list[Paper], form: str, *, name: str) -> Response:
    """Return the papers as a file to save. Raises InvalidInput for an unknown format."""
    if form not in _FILES:
        raise InvalidInput(f"the format is one of {', '.join(_FILES)}, got {form[:40]!r}")
    written, ending, media_type = _FILES[form]
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-.") else "-" for letter in name)
    headers = {"Content-Disposition": f'attachment; filename="{safe}.{ending}"'}
    return Response(citation_text(papers, written), media_type=media_type, headers=headers)
