"""What a digest says: plain text and numbers put together from stored rows (SPEC 1, `reading_digests`).

Pure. Every text of a paper or a profile is made `clean` here, every address checked; what a format takes for markup is
escaped by its renderer.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import pyarrow.compute as pc

from paper_assets.digests.changed import ChangeSet, change_set
from paper_assets.digests.contribution import opening_of
from paper_assets.digests.evidence import Evidence, evidence_of, remarks_on
from paper_assets.digests.matches import Matched, listed, matches_of
from paper_assets.digests.order import order_notes
from paper_assets.digests.plain_text import in_letters, lead, web_address
from paper_assets.digests.versions import Version, version_of
from paper_assets.paper import Paper
from paper_assets.profile import ProfileContent
from paper_assets.ranking.changes import Changes
from paper_assets.ranking.explain import as_sum, parts_of, why
from paper_assets.ranking.filters import FILTERS
from paper_assets.ranking.list_order import probability_of
from paper_assets.ranking.tags import CONTRASTIVE_IN_WORDS, IN_WORDS, SOFT_PENALTY
from paper_assets.settings import RewritingConfig
from paper_assets.sources.table import html_of, page_of, source_of
from paper_assets.stores.rankings import StoredRanking
from paper_assets.stores.rewrites import RewriteItem
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import readable

_MOST_AUTHORS = 6
_LEAD = 480  # characters of an abstract that are always shown; the rest is folded away
_MOST_TEXT = 4_000  # characters of an abstract or a paragraph; arXiv's own limit of an abstract is 1,920
_MOST_UNDER_THE_LINE = 3

_LEFT_OUT = {each.code: each.counted for each in FILTERS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The rows that a digest is made of, as the stores give them.

    `papers` by id: those shown and those in the changes, as far as still known. `candidates`: the rows of the window.
    `changes`: since when, in words, and what has changed. `answers`: as `stores.retrievals` keeps them.
    `decided_at`: when a person last decided on one of the rewrites. `content`: the profile that the list was made for,
    None where it is not known any more.
    """

    ranking: StoredRanking
    papers: Mapping[str, Paper]
    candidates: Sequence[Mapping[str, Any]]
    changes: Sequence[tuple[str, Changes]] = ()
    answers: Sequence[Mapping[str, Any]] = ()
    rewrites: Sequence[RewriteItem] = ()
    decided_at: datetime | None = None
    content: ProfileContent | None = None


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
    """One paper of the list. `lead` says what it does; `rest` goes on, or is the whole abstract where background was
    `skipped` (None: that was all). `tags`: (name, words). `order`: why it stands here where the score does not say it.
    """

    rank: int
    paper_id: str
    title: str
    authors: str
    published: date | None
    categories: tuple[str, ...]
    lead: str
    rest: str | None
    skipped: bool
    links: tuple[Link, ...]
    score: float
    sum: str
    order: str | None
    parts: tuple[Part, ...]
    why: tuple[str, ...]
    tags: tuple[tuple[str, str], ...]
    contrast: Contrast | None
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderTheLine:
    """One of the papers that a quiet day would have had next, with the probability that it is on topic."""

    title: str
    url: str | None
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A paper that was rewritten and does not stand in the list."""

    title: str
    url: str | None
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One profile's page of a day. `window` tells what came in and what was left out, `remarks` how it was ranked.

    `under_the_line`: on a quiet day, the papers that come next; `also_rewritten`: rewrites of papers below the list;
    `updated`: the latest moment of what it shows, UTC.
    """

    profile: str
    day: date
    updated: datetime
    headline: str
    window: str
    entries: tuple[Entry, ...]
    under_the_line: tuple[UnderTheLine, ...]
    warnings: tuple[str, ...]
    remarks: tuple[str, ...]
    changes: tuple[ChangeSet, ...]
    notes: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    also_rewritten: tuple[Rewritten, ...]


def digest_of(stored: Stored, *, config: RewritingConfig) -> Digest:
    """The digest of a stored day. Equal rows give equal digests: nothing here knows the time."""
    versions: dict[str, list[Version]] = {}
    for item in stored.rewrites:
        if version := version_of(item, config=config):
            versions.setdefault(item.paper_id, []).append(version)
    ranking, header = stored.ranking, stored.ranking.header
    shown = ranking.rows.filter(ranking.rows.column("shown")).to_pylist()
    places = {row["paper_id"]: row["rank"] for row in shown}
    reasons = Counter(str(row["reason"]).partition(":")[0] for row in stored.candidates if not row["passed"])
    notes = header["comparison_notes"]
    titles = {row["paper_id"]: row["title"] for row in stored.candidates}
    titles |= {paper_id: paper.title for paper_id, paper in stored.papers.items()}
    matched = matches_of(stored.content, [stored.papers[each] for each in places if each in stored.papers])
    orders = order_notes(shown, header)
    changes = (change_set(found, since=since, titles=titles) for since, found in stored.changes)
    return Digest(
        profile=one_line(ranking.profile),
        day=ranking.day,
        updated=_updated(stored, versions),
        headline=_headline(len(shown), ranking.rows.num_rows, quiet=header.get("quiet", False)),
        window=_window(len(stored.candidates), reasons),
        entries=tuple(
            _entry(
                row,
                _paper(row["paper_id"], stored, titles),
                stored,
                places,
                versions=versions.get(row["paper_id"], ()),
                matched=matched.get(row["paper_id"], Matched()),
                order=orders.get(row["paper_id"]),
            )
            for row in shown
        ),
        under_the_line=_under_the_line(stored, titles) if header.get("quiet") else (),
        warnings=tuple(one_line(line) for line in header["warnings"]),
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
    links = links_of(Paper(paper_id=paper_id, title="", abstract="", authors=()))
    return Rewritten(
        title=readable(one_line(titles[paper_id])) or one_line(paper_id),
        url=links[0].url if links else None,
        versions=tuple(versions),
    )


def _remarks(header: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """How the list was made: worth knowing, and the same on most days."""
    chosen = ", ".join(header[name].replace("_", " ") for name in ("purpose", "ranking_mode", "interest_mode"))
    lines = (
        f"Ranked for the profile's purpose and modes: {chosen}",
        one_line(header["llm_note"] or ""),
        *remarks_on(answers),
    )
    return tuple(_sentence(line) for line in lines if line)


def _headline(shown: int, ranked: int, *, quiet: bool) -> str:
    if quiet and ranked:
        papers = {0: "no paper was", 1: "one paper was"}.get(shown, f"{in_letters(shown)} papers were")
        return f"A quiet day: {papers} worth it, of {ranked}"
    if not shown:
        return "Nothing to read today"
    papers = "One paper" if shown == 1 else f"{shown} papers"
    return f"{papers} to read" if shown == ranked else f"{papers} to read, of {ranked}"


def _under_the_line(stored: Stored, titles: Mapping[str, str]) -> tuple[UnderTheLine, ...]:
    rows = stored.ranking.rows
    following = rows.filter(pc.invert(rows.column("shown"))).slice(0, _MOST_UNDER_THE_LINE).to_pylist()
    return tuple(
        UnderTheLine(
            title=readable(one_line(titles.get(row["paper_id"], ""))) or one_line(row["paper_id"]),
            url=links[0].url if (links := links_of(_paper(row["paper_id"], stored, titles))) else None,
            probability=probability_of(row),
        )
        for row in following
    )


def _window(papers: int, reasons: Mapping[str, int]) -> str:
    """How many papers came in, and how many of them were left out for which reason, most first."""
    if not papers:
        return "No paper came in."
    came, out = "One paper" if papers == 1 else f"{papers} papers", sum(reasons.values())
    if not out:
        return f"{came} came in, none was left out."
    by_number = sorted(reasons.items(), key=lambda reason: (-reason[1], reason[0]))
    left_out = ", ".join(f"{n} {_LEFT_OUT.get(code, one_line(code))}" for code, n in by_number)
    return f"{came} came in, {out} left out: {left_out}."


def _paper(paper_id: str, stored: Stored, titles: Mapping[str, str]) -> Paper:
    """The paper; of one that a later fetch of its day has removed, what the candidates still know."""
    gone = Paper(paper_id=paper_id, title=titles.get(paper_id, paper_id), abstract="", authors=())
    return stored.papers.get(paper_id, gone)


def _entry(
    row: Mapping[str, Any],
    paper: Paper,
    stored: Stored,
    places: Mapping[str, int],
    *,
    versions: Sequence[Version],
    matched: Matched,
    order: str | None,
) -> Entry:
    header = stored.ranking.header
    opening = opening_of(lead(readable(one_line(paper.abstract)), _MOST_TEXT), _LEAD)
    return Entry(
        rank=row["rank"],
        paper_id=one_line(paper.paper_id),
        title=readable(one_line(paper.title)) or one_line(paper.paper_id),
        authors=authors_line(paper.authors),
        published=paper.day,
        categories=tuple(one_line(category) for category in paper.categories),
        lead=opening.lead,
        rest=opening.rest,
        skipped=opening.skipped,
        links=links_of(paper),
        score=row["final"],
        sum=as_sum(row, header["weights"]),
        order=order,
        parts=tuple(Part(name=name, words=words, points=by) for name, words, by in parts_of(row, header["weights"])),
        why=tuple(one_line(line) for line in why(row, header, scored=stored.ranking.rows.num_rows)),
        tags=_tags(row, matched),
        contrast=_contrast(header, places) if "CONTRASTIVE_PICK" in row["tags"] else None,
        versions=tuple(versions),
    )


def authors_line(names: Sequence[str]) -> str:
    """The first authors, the others counted."""
    known = [name for each in names if (name := one_line(each))]
    if len(known) <= _MOST_AUTHORS:
        return ", ".join(known)
    return f"{', '.join(known[: _MOST_AUTHORS - 1])} and {len(known) - _MOST_AUTHORS + 1} others"


def links_of(paper: Paper) -> tuple[Link, ...]:
    """Where the paper and its code can be read, the page at its source first."""
    source = source_of(paper.paper_id)
    named = (
        (source.title if source else "", page_of(paper.paper_id)),
        ("PDF", paper.pdf_url),
        ("HTML", html_of(paper.paper_id)),
        ("Code", paper.github_url),
    )
    return tuple(Link(label=label, url=url) for label, given in named if (url := web_address(given)))


def _tags(row: Mapping[str, Any], matched: Matched) -> tuple[tuple[str, str], ...]:
    """Each tag in words, with the name of the interest, the author, the institution or the keyword that it is about."""
    lane = readable(one_line(row["lane"] or ""))
    named = {
        "SEMANTIC_HIGH_MATCH": lane and f"very close to your interest in {lane}",
        "PREFERRED_AUTHOR": matched.authors and f"by {listed(matched.authors)}, whom you follow",
        "PREFERRED_INSTITUTION": matched.institutions and f"from {listed(matched.institutions)}, which you follow",
        "MUST_KEYWORD_MATCH": matched.keywords and f"your keywords: {listed(matched.keywords)}",
    }
    tags = [(one_line(tag), named.get(tag) or _tag(tag)) for tag in row["tags"]]
    if lane and "SEMANTIC_HIGH_MATCH" not in row["tags"]:
        tags.insert(0, ("LANE", f"nearest to your interest in {lane}"))
    return tuple(tags)


def _tag(tag: str) -> str:
    name, _, keyword = tag.partition(":")
    return f"avoided keyword: {one_line(keyword)}" if name == SOFT_PENALTY else (IN_WORDS | CONTRASTIVE_IN_WORDS)[tag]


def _contrast(header: Mapping[str, Any], places: Mapping[str, int]) -> Contrast:
    points = [note["contrast_point"] for note in header["comparison_notes"] if note["relation"] == "contrastive"]
    info = header["contrastive_info"] or {}
    return Contrast(
        point=_by_place(points[0], places) if points else "",
        rows=tuple(
            (one_line(row["dimension"]), _listed(row["this"]), _listed(row["others"]))
            for row in info.get("contrast_dimensions", ())
        ),
    )


def _note(note: Mapping[str, Any], places: Mapping[str, int]) -> str:
    papers = " and ".join(f"no. {places[each]}" if each in places else one_line(each) for each in note["paper_ids"])
    shared = f" ({_listed(note['shared_traits'])})" if note["shared_traits"] else ""
    own = _by_place(note["differentiator"], places)
    return f"{_sentence(papers)} go the same way{shared}. {_sentence(own)}."


def _sentence(text: str) -> str:
    """The text with a capital at its beginning and no full stop."""
    return text[:1].upper() + text[1:].removesuffix(".")


def _by_place(text: str, places: Mapping[str, int]) -> str:
    """The text with the ids of shown papers replaced by their places."""
    if not places:
        return one_line(text)
    ids = re.compile("|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in sorted(places, key=len, reverse=True)))
    return one_line(ids.sub(lambda found: f"no. {places[found[0]]}", text))


def _listed(traits: Sequence[str]) -> str:
    return ", ".join(one_line(trait) for trait in traits) or "–"
