"""What the ratings teach: their effect on a day's list, the words and papers behind it, and a first set to rate."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pyarrow.compute as pc
from starlette.requests import Request
from starlette.responses import Response

from paper_assets.errors import InvalidProfile
from paper_assets.interfaces.page.desk import day_of, desk_of, now, page, profile_of, redirect_with_note
from paper_assets.interfaces.page.display import readable_title
from paper_assets.interfaces.page.paper_rows import row_of, titles_of
from paper_assets.learning.questions import FEW_RATINGS
from paper_assets.learning.ratings import IN_WORDS, change_forgotten, ratings_by_id
from paper_assets.paper import Paper, papers_from_table
from paper_assets.pipeline.preferences import evidence_of
from paper_assets.pipeline.profiles import usable_profile
from paper_assets.profile import Interests
from paper_assets.ranking.changes import RatedMove, ratings_effect
from paper_assets.ranking.preferences import strongest_stems
from paper_assets.stores.feedback import Forgotten, forgotten, stored_model
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import StoredRanking, ranking
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.words import commonest_forms, stems_in

_MOST = 12  # words or papers in one direction
_AT_ONCE = 4  # of them before "more" is opened
_MOST_NAMED = 5  # papers that came or went, on Today


def day_effect(warehouse: Warehouse, stored: StoredRanking, rated: Mapping[str, str]) -> dict[str, Any] | None:
    """Return which other papers than the rated ones came into a day's list or went because of the ratings; None if
    learning counts nothing.
    """
    if not pc.any(pc.not_equal(stored.rows.column("learned"), 0)).as_py():
        return None  # checked in Arrow, without converting hundreds of rows to Python values
    effect = ratings_effect(stored.rows.to_pylist(), stored.header)
    if effect is None:
        return None
    came = [moved for moved in effect.came if moved.paper_id not in rated]
    went = [moved for moved in effect.went if moved.paper_id not in rated]
    named = (*came[:_MOST_NAMED], *went[:_MOST_NAMED])
    ids = [paper_id for moved in named for paper_id in (moved.paper_id, *moved.near)]
    papers = {paper.paper_id: paper for paper in papers_from_table(papers_by_id(warehouse, ids))}
    return {
        "counts": stored.header.get("learning"),
        "came": [_effect_record(moved, papers) for moved in came[:_MOST_NAMED]],
        "went": [_effect_record(moved, papers) for moved in went[:_MOST_NAMED]],
        "more": max(len(came) - _MOST_NAMED, 0) + max(len(went) - _MOST_NAMED, 0),
    }


def first_set_left(header: Mapping[str, Any], rated: Mapping[str, str]) -> int:
    """Return how many papers a new reader can still rate in the first set; 0 from ten ratings on."""
    return 0 if len(rated) >= FEW_RATINGS else sum(paper_id not in rated for paper_id in header.get("teach") or ())


def show_teach(request: Request) -> Response:
    """Show a first set of papers to rate, spread over the papers near the reader's interests."""
    desk, profile = desk_of(request), profile_of(request)
    day = day_of(request, profile)
    with desk.warehouse.read_together() as warehouse:
        first_set = list(ranking(warehouse, day, profile).header.get("teach") or ())
        papers = papers_from_table(papers_by_id(warehouse, first_set))
        ratings = ratings_by_id(warehouse, profile)
    return page(
        request,
        "teach.html.jinja",
        rows=[row_of(paper) for paper in papers],
        ratings=ratings,
        done=sum(paper_id in ratings for paper_id in first_set),
    )


def show_learned(request: Request) -> Response:
    """Show the words and rated papers that move the list up and down, each with a button to forget it."""
    desk, profile, evidence, named = desk_of(request), profile_of(request), None, set[str]()
    with suppress(InvalidProfile):
        usable = usable_profile(desk.workspace, profile)
        evidence, named = evidence_of(desk.warehouse, usable), _stems_of(usable.content.interests)
    with desk.warehouse.read_together() as warehouse:
        model, unlearned = stored_model(warehouse, profile), forgotten(warehouse, profile)
        ratings = ratings_by_id(warehouse, profile)
        pulls = sorted(zip(model.rated, model.pull.tolist(), strict=True), key=lambda pair: pair[1]) if model else []
        pulls = [(paper_id, pull) for paper_id, pull in pulls if paper_id not in unlearned.papers]
        up = [paper_id for paper_id, pull in pulls[::-1][:_MOST] if pull > 0]
        down = [paper_id for paper_id, pull in pulls[:_MOST] if pull < 0]
        titles = titles_of(warehouse, [*up, *down, *unlearned.papers])
        read = papers_from_table(papers_by_id(warehouse, list(model.rated) if model else []))
    words = {stem: weight for stem, weight in model.words.items() if stem not in unlearned.words} if model else {}
    telling = strongest_stems(words, _MOST)
    return page(
        request,
        "learned.html.jinja",
        words=telling,
        named=named,
        at_once=_AT_ONCE,
        spelled=commonest_forms(
            [f"{paper.title} {paper.abstract}" for paper in read], (*telling[0], *telling[1], *unlearned.words)
        ),
        papers=[
            [(paper_id, titles.get(paper_id, paper_id), _why(paper_id, ratings)) for paper_id in direction]
            for direction in (up, down)
        ],
        forgotten=_forgotten(unlearned, titles),
        rated=len(ratings),
        evidence=evidence,
    )


def forget(request: Request) -> Response:
    """Forget a word or rated paper, or learn from it again."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    again = bool(form.get("again"))
    change_forgotten(
        desk.for_writing,
        profile,
        str(form.get("kind", "")),
        str(form.get("name", "")),
        again=again,
        now=now(),
        profiles_dir=desk.settings.profiles_dir,
    )
    note = "It counts again" if again else "Forgotten"
    return redirect_with_note(request, f"/p/{profile}/learned", f"{note}. The next ranking follows.")


def _effect_record(moved: RatedMove, papers: Mapping[str, Paper]) -> dict[str, Any]:
    sign, paper = "+" if moved.with_ratings > moved.without else "-", papers.get(moved.paper_id)
    stems = [word[1:] for word in moved.words if word.startswith(sign)]
    forms = commonest_forms([f"{paper.title} {paper.abstract}"] if paper else [], stems)
    return {
        "paper_id": moved.paper_id,
        "title": readable_title(paper.title) if paper else moved.paper_id,
        "without": moved.without,
        "with_ratings": moved.with_ratings,
        "words": [forms.get(stem, stem) for stem in stems],
        "near": [readable_title(papers[paper_id].title) if paper_id in papers else paper_id for paper_id in moved.near],
    }


def _stems_of(interests: Interests) -> set[str]:
    named = (*interests.primary, *interests.secondary, *interests.exploratory)
    return {stem for interest in named for stem in stems_in(interest)}


def _why(paper_id: str, ratings: Mapping[str, str]) -> str:
    return IN_WORDS[ratings[paper_id]] if paper_id in ratings else "no longer rated"


def _forgotten(unlearned: Forgotten, titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    return [
        *(("word", word, word) for word in unlearned.words),
        *(("paper", paper_id, titles.get(paper_id, paper_id)) for paper_id in unlearned.papers),
    ]
