"""What a digest says: plain text and numbers put together from stored rows (SPEC 1, `reading_digests`).

Pure. Every text of a paper or a profile is made `clean` here, every address checked; what a format takes for markup is
escaped by its renderer.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

from paper_assets.digests.changed import ChangeSet, change_set
from paper_assets.digests.evidence import Evidence, evidence_of, remarks_on
from paper_assets.digests.plain_text import clean, lead, web_address
from paper_assets.digests.versions import Version, version_of
from paper_assets.errors import InvalidArxivId
from paper_assets.paper import Paper, split_arxiv_id
from paper_assets.ranking import filters
from paper_assets.ranking.changes import ADDED, Changes
from paper_assets.ranking.explain import DIMENSIONS_IN_WORDS, as_sum, why
from paper_assets.ranking.tags import CONTRASTIVE_IN_WORDS, IN_WORDS, SOFT_PENALTY
from paper_assets.settings import DIMENSIONS, Rewriting
from paper_assets.stores.rewrites import RewriteItem

if TYPE_CHECKING:
    from paper_assets.stores.rankings import Ranking

_MOST_AUTHORS = 6
_LEAD = 480  # characters of an abstract that are always shown; the rest is folded away
_MOST_TEXT = 4_000  # characters of an abstract or a paragraph; arXiv's own limit of an abstract is 1,920

_LEFT_OUT = {
    filters.WITHDRAWN: "withdrawn",
    filters.ALREADY_READ: "read already",
    filters.BLACKLIST_KEYWORD: "with a keyword you exclude",
    filters.TOO_OLD: "too old",
    filters.NO_CODE_REQUIRED: "without code",
    filters.ALREADY_SHOWN: "in your list on an earlier day",
}
_ADDED_IN_WORDS = {
    "bonus": "ranking mode",
    "soft_penalty": "keywords you avoid",
    "diversity_penalty": "likeness to one above",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The rows that a digest is made of, as the stores give them.

    `papers` by id: those shown and those in the changes, as far as still known. `candidates`: the rows of the window.
    `changes`: since when, in words, and what has changed. `answers`: as `stores.retrievals` keeps them.
    `decided_at`: when a person last decided on one of the rewrites.
    """

    ranking: "Ranking"
    papers: Mapping[str, Paper]
    candidates: Sequence[Mapping[str, Any]]
    changes: Sequence[tuple[str, Changes]] = ()
    answers: Sequence[Mapping[str, Any]] = ()
    rewrites: Sequence[RewriteItem] = ()
    decided_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    label: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one dimension (or bonus, or penalty) brought to a score; `name` is the column's, `words` a reader's."""

    name: str
    words: str
    points: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Why the contrastive pick stands here; `rows`: dimension, this paper's traits, those of the others."""

    point: str
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One paper of the list. `lead` begins its abstract, `rest` goes on (None: that was all); `tags`: (name, words)."""

    rank: int
    paper_id: str
    title: str
    authors: str
    published: date | None
    categories: tuple[str, ...]
    lead: str
    rest: str | None
    links: tuple[Link, ...]
    score: float
    sum: str
    parts: tuple[Part, ...]
    why: tuple[str, ...]
    tags: tuple[tuple[str, str], ...]
    contrast: Contrast | None
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A paper that was rewritten and does not stand in the list."""

    title: str
    url: str | None
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One profile's page of a day. `window` tells what came in and what was left out, `remarks` how it was ranked.

    `also_rewritten`: rewrites of papers below the list; `updated`: the latest moment of what it shows, UTC.
    """

    profile: str
    day: date
    updated: datetime
    headline: str
    window: str
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    remarks: tuple[str, ...]
    changes: tuple[ChangeSet, ...]
    notes: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    also_rewritten: tuple[Rewritten, ...]


def digest_of(stored: Stored, *, numbers: Rewriting) -> Digest:
    """The digest of a stored day. Equal rows give equal digests: nothing here knows the time."""
    versions: dict[str, list[Version]] = {}
    for item in stored.rewrites:
        if version := version_of(item, numbers=numbers):
            versions.setdefault(item.paper_id, []).append(version)
    ranking, header = stored.ranking, stored.ranking.header
    shown = ranking.rows.filter(ranking.rows.column("shown")).to_pylist()
    places = {row["paper_id"]: row["rank"] for row in shown}
    reasons = Counter(str(row["reason"]).partition(":")[0] for row in stored.candidates if not row["passed"])
    notes = header["comparison_notes"]
    titles = {row["paper_id"]: row["title"] for row in stored.candidates}
    titles |= {paper_id: paper.title for paper_id, paper in stored.papers.items()}
    changes = (change_set(found, since=since, titles=titles) for since, found in stored.changes)
    return Digest(
        profile=clean(ranking.profile),
        day=ranking.day,
        updated=_updated(stored, versions),
        headline=_headline(len(shown), ranking.rows.num_rows),
        window=_window(len(stored.candidates), reasons),
        entries=tuple(
            _entry(row, _paper(row["paper_id"], stored, titles), stored, places, versions.get(row["paper_id"], ()))
            for row in shown
        ),
        warnings=tuple(clean(line) for line in header["warnings"]),
        remarks=_remarks(header, stored.answers),
        changes=tuple(found for found in changes if found),
        notes=tuple(_note(note, places) for note in notes if note["relation"] != "contrastive"),
        evidence=tuple(evidence_of(answer) for answer in stored.answers),
        also_rewritten=tuple(
            _rewritten(paper_id, stored, found) for paper_id, found in versions.items() if paper_id not in places
        ),
    )


def _updated(stored: Stored, versions: Mapping[str, Sequence[Version]]) -> datetime:
    """The day, unless rewrites came later; a person's word shows another text without writing one."""
    moments = [version.made_at for found in versions.values() for version in found]
    day = datetime.combine(stored.ranking.day, time(), UTC)
    return max(moment for moment in (day, stored.decided_at, *moments) if moment)


def _rewritten(paper_id: str, stored: Stored, versions: Sequence[Version]) -> Rewritten:
    titles = {item.paper_id: item.title for item in stored.rewrites}
    links = _links(Paper(paper_id=paper_id, title="", abstract="", authors=()))
    return Rewritten(
        title=clean(titles[paper_id]) or clean(paper_id), url=links[0].url if links else None, versions=tuple(versions)
    )


def _remarks(header: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """How the list was made: worth knowing, and the same on most days."""
    told = ", ".join(header[name].replace("_", " ") for name in ("purpose", "ranking_mode", "interest_mode"))
    lines = (
        f"Ranked for the profile's purpose and modes: {told}",
        clean(header["llm_note"] or ""),
        *remarks_on(answers),
    )
    return tuple(_sentence(line) for line in lines if line)


def _headline(shown: int, ranked: int) -> str:
    if not shown:
        return "Nothing to read today"
    papers = "One paper" if shown == 1 else f"{shown} papers"
    return f"{papers} to read" if shown == ranked else f"{papers} to read, of {ranked}"


def _window(papers: int, reasons: Mapping[str, int]) -> str:
    """How many papers came in, and how many of them were left out for which reason, most first."""
    if not papers:
        return "No paper came in."
    came, out = "One paper" if papers == 1 else f"{papers} papers", sum(reasons.values())
    if not out:
        return f"{came} came in, none was left out."
    told = sorted(reasons.items(), key=lambda reason: (-reason[1], reason[0]))
    return (
        f"{came} came in, {out} left out: {', '.join(f'{n} {_LEFT_OUT.get(code, clean(code))}' for code, n in told)}."
    )


def _paper(paper_id: str, stored: Stored, titles: Mapping[str, str]) -> Paper:
    """The paper; of one that a later fetch of its day has removed, what the candidates still know."""
    gone = Paper(paper_id=paper_id, title=titles.get(paper_id, paper_id), abstract="", authors=())
    return stored.papers.get(paper_id, gone)


def _entry(
    row: Mapping[str, Any], paper: Paper, stored: Stored, places: Mapping[str, int], versions: Sequence[Version]
) -> Entry:
    header = stored.ranking.header
    abstract = lead(clean(paper.abstract), _MOST_TEXT)
    first = lead(abstract, _LEAD)
    return Entry(
        rank=row["rank"],
        paper_id=clean(paper.paper_id),
        title=clean(paper.title) or clean(paper.paper_id),
        authors=_authors(paper.authors),
        published=paper.day,
        categories=tuple(clean(category) for category in paper.categories),
        lead=first,
        rest=None if first == abstract else abstract[len(first.removesuffix("…")) :].lstrip(),
        links=_links(paper),
        score=row["final"],
        sum=as_sum(row, header["weights"]),
        parts=_parts(row, header["weights"]),
        why=tuple(clean(line) for line in why(row, header, scored=stored.ranking.rows.num_rows, cutoff=None)),
        tags=tuple((clean(tag), _tag(tag)) for tag in row["tags"]),
        contrast=_contrast(header, places) if "CONTRASTIVE_PICK" in row["tags"] else None,
        versions=tuple(versions),
    )


def _authors(names: Sequence[str]) -> str:
    known = [name for each in names if (name := clean(each))]
    if len(known) <= _MOST_AUTHORS:
        return ", ".join(known)
    return f"{', '.join(known[: _MOST_AUTHORS - 1])} and {len(known) - _MOST_AUTHORS + 1} others"


def _links(paper: Paper) -> tuple[Link, ...]:
    try:
        identifier, _ = split_arxiv_id(paper.paper_id)
        abs_page = f"https://arxiv.org/abs/{identifier}"
    except InvalidArxivId:
        abs_page = None
    named = (("arXiv", abs_page), ("PDF", paper.pdf_url), ("Code", paper.github_url))
    return tuple(Link(label=label, url=url) for label, given in named if (url := web_address(given)))


def _parts(row: Mapping[str, Any], weights: Mapping[str, float]) -> tuple[Part, ...]:
    """The parts of a score that are not nothing, the largest first."""
    parts = [Part(name=name, words=DIMENSIONS_IN_WORDS[name], points=weights[name] * row[name]) for name in DIMENSIONS]
    parts += [Part(name=name, words=_ADDED_IN_WORDS[name], points=row[name]) for name in ADDED]
    return tuple(sorted((part for part in parts if part.points), key=lambda part: -abs(part.points)))


def _tag(tag: str) -> str:
    name, _, keyword = tag.partition(":")
    return f"avoided keyword: {clean(keyword)}" if name == SOFT_PENALTY else (IN_WORDS | CONTRASTIVE_IN_WORDS)[tag]


def _contrast(header: Mapping[str, Any], places: Mapping[str, int]) -> Contrast:
    points = [note["contrast_point"] for note in header["comparison_notes"] if note["relation"] == "contrastive"]
    info = header["contrastive_info"] or {}
    return Contrast(
        point=_by_place(points[0], places) if points else "",
        rows=tuple(
            (clean(row["dimension"]), _listed(row["this"]), _listed(row["others"]))
            for row in info.get("contrast_dimensions", ())
        ),
    )


def _note(note: Mapping[str, Any], places: Mapping[str, int]) -> str:
    papers = " and ".join(f"no. {places[each]}" if each in places else clean(each) for each in note["paper_ids"])
    shared = f" ({_listed(note['shared_traits'])})" if note["shared_traits"] else ""
    own = _by_place(note["differentiator"], places)
    return f"{_sentence(papers)} go the same way{shared}. {_sentence(own)}."


def _sentence(text: str) -> str:
    """The text with a capital at its beginning and no full stop."""
    return text[:1].upper() + text[1:].removesuffix(".")


def _by_place(text: str, places: Mapping[str, int]) -> str:
    """The text with the ids of shown papers replaced by their places."""
    if not places:
        return clean(text)
    ids = re.compile("|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in sorted(places, key=len, reverse=True)))
    return clean(ids.sub(lambda found: f"no. {places[found[0]]}", text))


def _listed(traits: Sequence[str]) -> str:
    return ", ".join(clean(trait) for trait in traits) or "–"
