"""Answer questions about stored rankings with plain values; command line, MCP and page share them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from paper_assets.digests.markdown import paper_list
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import InvalidArxivId, InvalidInput, NotComputed, PaperNotFound, named_error
from paper_assets.library.formats import FORMATS, write_papers
from paper_assets.paper import Paper, papers_from_table
from paper_assets.paper_id import split_paper_id, unversioned
from paper_assets.ranking.explain import order_as_sum, reason, what_was_missing, why, why_removed
from paper_assets.ranking.final_list import match_of
from paper_assets.ranking.levels import headline_of, level_of_row
from paper_assets.ranking.tags import UNREMARKABLE, tag_in_words
from paper_assets.settings import Settings
from paper_assets.stores.feedback import RATING_VALUES, last_ratings
from paper_assets.stores.harvests import why_unfetched
from paper_assets.stores.papers import find_paper, paper_titled, papers_by_id, papers_with_words
from paper_assets.stores.profiles import profile_version
from paper_assets.stores.ranking_files import saved_file
from paper_assets.stores.rankings import (
    StoredRanking,
    candidates,
    latest_ranking_day,
    new_in_window,
    ranking,
    ranking_days,
)
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.abstracts import key_sentence
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import readable
from paper_assets.text.words import normal_form

if TYPE_CHECKING:
    from paper_assets.ranking.changes import Changes

P = ParamSpec("P")
T = TypeVar("T")
_MAX_MATCHES = 12
NOT_CONSIDERED = "It was not considered for this list."
_GONE: Mapping[str, Any] = {"title": "(no longer stored)", "authors": []}  # ranked once, then removed from the papers
_IN_COLUMNS = ("SEMANTIC_HIGH_MATCH",)  # shown as relevance beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChanges:
    """What changed in a profile's list of a day, with the titles of the papers concerned."""

    day: date
    changes: "Changes"
    titles: Mapping[str, str]


def newest_ranking(warehouse: Warehouse, profile: str) -> date:
    """Find the day of the profile's newest ranking. Raises NotComputed."""
    day = latest_ranking_day(warehouse, profile)
    if day is None:
        raise NotComputed(f"profile {profile!r} has no ranking yet; run `paper-assets run --profile {profile}` first")
    return day


def list_day(warehouse: Warehouse, profile: str, day: date | None, *, settings: Settings) -> date:
    """Return `day`, or (None) that of the profile's newest list. Raises NotComputed, with what makes a missing list."""
    newest = newest_ranking(warehouse, profile)
    if day is None or day in ranking_days(warehouse, profile):
        return day or newest
    made = f"`paper-assets run --profile {profile} --as-of {day}` makes it"
    if (today := datetime.now(UTC).date()) < day or day < settings.first_day:
        remedy = f"Lists begin on {settings.first_day} and end today, {today}"
    else:
        remedy = f"{fetched}, then {made}" if (fetched := not_fetched(warehouse, day)) else made
    raise NotComputed(f"no ranking for profile {profile!r} on {day}; the newest is of {newest}. {remedy}")


def shown_ranking(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> dict[str, Any]:
    """Return the shown papers of a stored ranking with titles and reasons; one deleted since then has no authors.
    `more_likely`: the likely papers that follow the list. `window`: what was new and what was filtered out. `file`:
    where its file is, or was.

    Raises NotComputed.
    """
    stored = ranking(warehouse, day, profile)
    papers = _papers_of(warehouse, stored)
    noted = stored.header["output_path"]
    file = saved_file(settings.rankings_dir, profile, noted)

    def shown(row: Mapping[str, Any]) -> dict[str, Any]:
        paper = papers.get(row["paper_id"])
        return {
            "rank": row["rank"],
            "level": _level(row, stored),
            "paper_id": row["paper_id"],
            **{name: (paper or _GONE)[name] for name in ("title", "authors")},
            "score": row["final"],
            "match": match_of(row, stored.header),
            "relevance": row["semantic_relevance"],
            "learned": row["learned"],
            "tags": row["tags"],
            "notable": [tag_in_words(tag) for tag in row["tags"] if tag not in (*UNREMARKABLE, *_IN_COLUMNS)],
            "reason": _or_fault(row["paper_id"], reason, row, stored.header, _texts(paper)),
            "sum": _or_fault(row["paper_id"], order_as_sum, row, stored.header),
            "why": _listed(_or_fault(row["paper_id"], _reasons, row, stored, paper)),
        }

    return {
        "profile": profile,
        "day": f"{day}",
        **_about(warehouse, stored),
        "window": _window(warehouse, stored),
        "file": str(file) if file else noted,
        "papers": [shown(row) for row in stored.listed],
        "more_likely": [shown(row) for row in stored.more_likely],
        "by_people": [shown(row) for row in stored.by_people],
    }


def _papers_of(warehouse: Warehouse, stored: StoredRanking) -> dict[str, dict[str, Any]]:
    """Return by id the stored papers among those of the list, the likely ones that follow it, and the questions."""
    ids = [*(row["paper_id"] for row in (*stored.listed, *stored.more_likely, *stored.by_people)), *_questions(stored)]
    return {row["paper_id"]: row for row in papers_by_id(warehouse, list(dict.fromkeys(ids))).to_pylist()}


def _reasons(row: Mapping[str, Any], stored: StoredRanking, paper: Mapping[str, Any] | None) -> list[str]:
    return why(row, stored.header, scored=stored.rows.num_rows, texts=_texts(paper))


def _level(row: Mapping[str, Any], stored: StoredRanking) -> str | None:
    level = level_of_row(row, stored.header)
    return level.name if level else None


def _or_fault(paper_id: str, make: Callable[P, T], *given: P.args, **named: P.kwargs) -> T | str:
    """Return what `make` returns for a listed paper; after an unexpected error a line that names the paper."""
    try:
        return make(*given, **named)
    except Exception as error:
        return f"{named_error(error, paper_id)}"


def _listed(sentences: list[str] | str) -> list[str]:
    return [sentences] if isinstance(sentences, str) else sentences


def brief_ranking(warehouse: Warehouse, profile: str, day: date) -> dict[str, Any]:
    """Return what to read of a stored ranking and why, in a few lines for each paper: see `shown_ranking`.

    The warnings of an empty list say what was filtered out. Raises NotComputed.
    """
    stored = ranking(warehouse, day, profile)
    papers, about = _papers_of(warehouse, stored), _about(warehouse, stored)
    if not stored.listed:
        about["warnings"] = [*about["warnings"], f"the list is empty: {_window(warehouse, stored)}"]

    def brief(row: Mapping[str, Any]) -> dict[str, Any]:
        paper = papers.get(row["paper_id"], _GONE)
        return {
            "rank": row["rank"],
            "level": _level(row, stored),
            "paper_id": row["paper_id"],
            "title": paper["title"],
            "authors": _first_author(paper["authors"]),
            "summary": _or_fault(row["paper_id"], _summary, paper.get("abstract") or ""),
            "why": _or_fault(row["paper_id"], reason, row, stored.header, _texts(papers.get(row["paper_id"]))),
        }

    return {
        "profile": profile,
        "day": f"{day}",
        **about,
        "questions": [
            {"paper_id": paper_id, "title": papers.get(paper_id, _GONE)["title"]} for paper_id in about["questions"]
        ],
        "papers": [brief(row) for row in stored.listed],
        **{
            group: [
                {name: found for name, found in brief(row).items() if name in ("paper_id", "title", "authors", "level")}
                for row in rows
            ]
            for group, rows in (("more_likely", stored.more_likely), ("by_people", stored.by_people))
        },
    }


def _window(warehouse: Warehouse, stored: StoredRanking) -> str:
    """Return a sentence on how many papers the list's window has, how many are new, and what was filtered out."""
    from paper_assets.digests.content import filtered_out, reasons_of, window  # what `rank` need not load

    day, profile = stored.day, stored.profile
    judged = candidates(warehouse, day, profile).select(["passed", "reason"]).to_pylist()
    ranked_for = profile_version(warehouse, profile, stored.header.get("profile_hash") or "")
    sentence = window(
        len(judged),
        new=new_in_window(warehouse, day, profile),
        days=ranked_for.content.feed.window_days if ranked_for else None,
    )
    sentence = f"{sentence} {filtered_out(reasons_of(judged))}".strip()
    unknown = not_fetched(warehouse, day)
    return f"{unknown}.{f' {sentence}' if judged else ''}" if unknown else sentence


def not_fetched(warehouse: Warehouse, day: date) -> str | None:
    """Say why the papers of a day are unknown, which is not "no new papers", and what fetches them. None if known."""
    why = why_unfetched(warehouse, day)
    return f"The papers of {in_words(day)} {why}: `paper-assets fetch --day {day}`" if why else None


def _summary(abstract: str) -> str:
    return readable(key_sentence(one_line(abstract)))


def _questions(stored: StoredRanking) -> list[str]:
    return stored.header.get("questions") or []


def _about(warehouse: Warehouse, stored: StoredRanking) -> dict[str, Any]:
    header, unknown = stored.header, None if stored.listed else not_fetched(warehouse, stored.day)
    return {
        "scored": stored.rows.num_rows,
        "headline": unknown or headline_of(header, len(stored.listed)),
        "is_probability": header.get("threshold") is not None,
        "learning": header.get("learning"),
        "questions": _questions(stored),
        "warnings": header["warnings"],
    }


def _texts(paper: Mapping[str, Any] | None) -> tuple[str, str] | None:
    return (paper["title"] or "", paper["abstract"] or "") if paper else None


def _first_author(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)


def explanation(
    warehouse: Warehouse, profile: str, paper_id: str, *, day: date | None = None, numbers: bool = True
) -> dict[str, Any]:
    """Explain the rank of any stored paper, or why it is not in the list: score, filter, date or category.

    `numbers`: whether the sentences include those with the numbers.

    Raises InvalidArxivId, NotComputed, and PaperNotFound for a paper that is not stored.
    """
    stored = ranking(warehouse, day or newest_ranking(warehouse, profile), profile)
    identifier, rows = f"{split_paper_id(paper_id)[0]}", stored.rows.to_pylist()
    row = next((each for each in rows if each["paper_id"] == identifier), None)
    judged = candidates(warehouse, stored.day, profile).to_pylist()
    candidate = next((each for each in judged if each["paper_id"] == identifier), None)
    if row is not None:
        missing = what_was_missing(identifier, rows, stored.header)
        known = papers_by_id(warehouse, [identifier]).to_pylist()
        texts = _texts(known[0]) if known else None
        sentences = why(row, stored.header, scored=len(rows), missing=missing, texts=texts, numbers=numbers)
    elif candidate is not None:
        sentences = [why_removed(candidate["reason"])]
    elif paper := find_paper(warehouse, identifier):
        candidate = {"paper_id": paper.paper_id, "title": paper.title, "passed": False, "reason": None}
        sentences = [NOT_CONSIDERED, _why_not_considered(warehouse, profile, stored.day, paper)]
    else:
        raise PaperNotFound(
            f"paper {paper_id[:60]} is not stored: its day was not fetched, or it is in no followed category"
        )
    return {
        "day": f"{stored.day}",
        "profile": profile,
        "paper_id": paper_id,
        "why": sentences,
        "score": row,
        "candidate": candidate,
    }


def list_changes(
    warehouse: Warehouse, profile: str, *, day: date | None = None, before: date | None = None, edit: bool = False
) -> ListChanges:
    """Compare the profile's list of `day` (None: the newest) with that of `before`, or with that before the last edit.

    Raises NotComputed.
    """
    from paper_assets.pipeline.changes import changes_of  # what compares two lists, which `rank` need not load

    last = day or newest_ranking(warehouse, profile)
    changes = changes_of(warehouse, profile, last, before=before, edit=edit)
    papers = papers_by_id(warehouse, [move.paper_id for move in changes.moves]).to_pylist()
    return ListChanges(day=last, changes=changes, titles={paper["paper_id"]: paper["title"] for paper in papers})


def find_papers_named(warehouse: Warehouse, profile: str, day: date, text: str) -> list[tuple[str, str]]:
    """Find the (id, title) of papers by an id, a URL, a title or words of a title; at most `_MAX_MATCHES`.

    Searches the papers considered for the profile's list first, then all stored papers.
    """
    try:
        paper = find_paper(warehouse, str(split_paper_id(text)[0]))
    except InvalidArxivId:
        paper = paper_titled(warehouse, text)
    if paper is not None:
        return [(paper.paper_id, paper.title)]
    words = normal_form(text).split()
    if not words:
        return []
    judged = candidates(warehouse, day, profile).select(["paper_id", "title"]).to_pylist()
    matching = [(row["paper_id"], row["title"]) for row in judged if _holds(row["title"], words)]
    return (matching or papers_with_words(warehouse, words, most=_MAX_MATCHES))[:_MAX_MATCHES]


def _holds(title: str, words: Sequence[str]) -> bool:
    known = normal_form(title)
    return all(word in known for word in words)


def _why_not_considered(warehouse: Warehouse, profile: str, day: date, paper: Paper) -> str:
    """Explain in a sentence why a stored paper was not considered for the day's list: date, category or age."""
    header = ranking(warehouse, day, profile).header
    content = profile_version(warehouse, profile, header.get("profile_hash") or "")
    if paper.day is None:
        return "It has no date, so no list can include it."
    if content is not None:
        feed = content.content.feed
        first = day - timedelta(days=feed.window_days - 1)
        if not first <= paper.day <= day:
            covered = f"the {feed.window_days} days from {in_words(first)} to {in_words(day)}"
            covered = covered if first < day else f"only {in_words(day)}"
            return f"It was submitted on {in_words(paper.day)}; this list covers {covered}."
        if feed.categories is not None and not set(feed.categories) & set(paper.categories):
            categories, followed = ", ".join(paper.categories), ", ".join(feed.categories)
            return f"Its categories are {categories}; the profile follows only {followed}."
    return "It was not stored when the list was made; the next run includes it."


def citations(
    warehouse: Warehouse, profile: str, name: str, *, day: date | None = None, rated: str | None = None
) -> str:
    """Return what the profile's ranking of `day` (None: the newest) shows, or, with `rated`, the papers with that
    rating.

    Raises InvalidInput, NotComputed.
    """
    if rated is not None:
        if rated not in RATING_VALUES:
            raise InvalidInput(f"a rating is one of {', '.join(RATING_VALUES)}, got {rated[:40]!r}")
        if day is not None:
            raise InvalidInput("a day and a rating: give one of them")
        ids = [rating.paper_id for rating in last_ratings(warehouse, profile) if rating.rating == rated]
    else:
        listed = ranking(warehouse, day or newest_ranking(warehouse, profile), profile).listed
        ids = [row["paper_id"] for row in listed]
    return citation_text(papers_from_table(papers_by_id(warehouse, ids)), name)


def citations_of(warehouse: Warehouse, paper_ids: Sequence[str], name: str) -> str:
    """Return the citations of stored papers, in the order in which they were given, each once.

    Raises InvalidInput, InvalidArxivId, PaperNotFound.
    """
    ids = list(dict.fromkeys(unversioned(paper_id) for paper_id in paper_ids))
    papers = papers_from_table(papers_by_id(warehouse, ids))
    if missing := set(ids) - {paper.paper_id for paper in papers}:
        raise PaperNotFound(f"not stored: {', '.join(sorted(missing))}; check the ids, or fetch their days first")
    return citation_text(sorted(papers, key=lambda paper: ids.index(paper.paper_id)), name)


CITATION_FORMATS = (*FORMATS, "markdown")


def citation_text(papers: Sequence[Paper], name: str) -> str:
    """Return the papers in a format of reference managers, or as a list in Markdown. Raises InvalidInput."""
    if name not in CITATION_FORMATS:
        raise InvalidInput(f"unknown format {name[:40]!r}; choose one of {', '.join(CITATION_FORMATS)}")
    if name == "markdown":
        return f"{paper_list(papers)}\n" if papers else ""
    return write_papers(papers, name)
