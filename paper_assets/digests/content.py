"""Build the content of a digest: plain text and numbers from stored rows (SPEC 1, `reading_digests`).

Pure. Every text of a paper or profile is cleaned here and every URL checked; renderers escape their format's markup.
Papers with excluded keywords are removed from stored answers and rewrites (G3).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from paper_assets.digests.entry import (
    DigestEntry,
    Matched,
    PaperLine,
    Version,
    entry_of,
    line_of,
    matches_of,
    order_notes,
    similar_papers,
    source_link,
    title_line,
    version_of,
)
from paper_assets.digests.evidence import EvidenceEntry, evidence_of, remarks_on
from paper_assets.digests.plain_text import sentence
from paper_assets.errors import named_error
from paper_assets.paper import Paper
from paper_assets.profile import ProfileContent
from paper_assets.ranking.changes import Changes, Move, difference_in_words
from paper_assets.ranking.filters import LEFT_OUT_IN_WORDS
from paper_assets.ranking.keywords import distinct, keywords_in, paper_texts
from paper_assets.ranking.levels import headline_of
from paper_assets.settings import RewritingConfig
from paper_assets.stores.harvests import NOT_FETCHED
from paper_assets.stores.rankings import StoredRanking
from paper_assets.stores.rewrites import RewriteItem
from paper_assets.text.cleaning import one_line


def window(papers: int, *, new: int, days: int | None, fetched: bool = True) -> str:
    """Return how many papers of the window are new since the list before. `days` of the window; None: it is not known.
    `fetched`: the day was requested from a source.
    """
    if not fetched:
        before = f" {window(papers, new=new, days=days)}" if papers else ""
        return f"The papers of this day {NOT_FETCHED}.{before}"
    if not papers:
        return "No new papers."
    within = f" in the last {days} days" if days and days > 1 else ""
    counted = "1 new paper" if papers == new == 1 else f"{papers:,} new papers"
    if new < papers:
        counted = f"{new:,} new of {papers:,} papers{within}" if new else f"Nothing new; {papers:,} papers{within}"
    return f"{counted}."


def filtered_out(reasons: Mapping[str, int]) -> str:
    """Return how many papers of the window were filtered out, by reason, most frequent first; empty for none."""
    by_number = sorted(reasons.items(), key=lambda reason: (-reason[1], reason[0]))
    named = [(f"{count:,} ", LEFT_OUT_IN_WORDS.get(code, one_line(code))) for code, count in by_number]
    of_all = ", ".join(f"{count if len(named) > 1 else ''}{words}" for count, words in named)
    return f"{sum(reasons.values()):,} filtered out: {of_all}." if reasons else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A paper of two lists, with its ranks `before` and `after`; 0 in a list that does not contain it."""

    paper_id: str
    title: str
    url: str | None
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """The changes since an earlier ranking (`since`), each with its reason; those who entered or left grouped by it.

    `otherwise`: other changes, such as an edited profile or another model.
    """

    since: str
    entered: tuple[tuple[str, tuple[Moved, ...]], ...]
    moved: tuple[tuple[str, Moved], ...]
    left: tuple[tuple[str, tuple[Moved, ...]], ...]
    otherwise: tuple[str, ...]


def change_set(changes: Changes, *, since: str, titles: Mapping[str, str], edit_named: bool = True) -> ChangeSet | None:
    """Describe the changes for a reader; None if there is nothing that a reader would notice.

    `edit_named`: whether an edit of the profile is among the other changes; not in views that show it apart.
    """
    hidden = ("as_of", "quiet") if edit_named else ("as_of", "quiet", "profile_hash")  # shown elsewhere on the page

    def moved(move: Move) -> Moved:
        link = source_link(move.paper_id)
        return Moved(
            paper_id=move.paper_id,
            title=title_line(titles.get(move.paper_id, ""), move.paper_id),
            url=link.url if link else None,
            before=move.before or 0,
            after=move.after or 0,
        )

    def by_reason(moves: Sequence[Move]) -> tuple[tuple[str, tuple[Moved, ...]], ...]:
        groups: dict[str, list[Moved]] = {}
        for move in moves:
            groups.setdefault(one_line(move.reason), []).append(moved(move))
        return tuple((reason, tuple(papers)) for reason, papers in groups.items())

    described = ChangeSet(
        since=since,
        entered=by_reason(changes.entered),
        moved=tuple((one_line(move.reason), moved(move)) for move in changes.moved),
        left=by_reason(changes.left),
        otherwise=tuple(
            one_line(difference_in_words(name, *values, edits=changes.edits))
            for name, values in changes.lineage.items()
            if name not in hidden
        ),
    )
    return described if described.entered or described.moved or described.left or described.otherwise else None


Thing = TypeVar("Thing")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestRows:
    """The stored rows from which a digest is made.

    `papers`: by id, those listed and those in the changes, as far as they are stored. `candidates`: the rows of the
    window. `changes`: (since when, what changed). `answers`: as in `stores.retrievals`. `decided_at`: when a person
    last decided on one of the rewrites. `content`: the profile for which the list was made, None if it is unknown.
    `new`: how many of the candidates the list before did not have; None: all. `fetched`: whether a source was ever
    asked about the day.
    """

    ranking: StoredRanking
    papers: Mapping[str, Paper]
    candidates: Sequence[Mapping[str, Any]]
    changes: Sequence[tuple[str, Changes]] = ()
    answers: Sequence[Mapping[str, Any]] = ()
    rewrites: Sequence[RewriteItem] = ()
    decided_at: datetime | None = None
    content: ProfileContent | None = None
    new: int | None = None
    fetched: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A paper that was rewritten but is not in the list."""

    title: str
    url: str | None
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One profile's page of a day.

    `window`: what was new, and `filtered` what was filtered out. `remarks`: how the list was ranked. `more_likely`: the
    likely papers that follow the list. `by_people`: other papers by people whom the reader follows. `also_rewritten`:
    rewrites of papers without an entry. `updated`: when the content changed, UTC.
    """

    profile: str
    day: date
    updated: datetime
    headline: str
    window: str
    filtered: str
    entries: tuple[DigestEntry, ...]
    more_likely: tuple[PaperLine, ...]
    by_people: tuple[PaperLine, ...]
    warnings: tuple[str, ...]
    remarks: tuple[str, ...]
    changes: tuple[ChangeSet, ...]
    notes: tuple[str, ...]
    evidence: tuple[EvidenceEntry, ...]
    also_rewritten: tuple[Rewritten, ...]


def digest_of(stored: DigestRows, *, config: RewritingConfig) -> Digest:
    """Build the digest of a stored day. Equal rows give equal digests: nothing here reads the clock.

    A paper, change, answer or rewrite that cannot be shown is left out and named among the warnings.
    """
    faults: list[str] = []
    ranking, header = stored.ranking, stored.ranking.header
    shown, places = ranking.listed, ranking.places
    titles = {row["paper_id"]: row["title"] for row in stored.candidates}
    titles |= {paper_id: paper.title for paper_id, paper in stored.papers.items()}
    versions = _versions(stored.rewrites, config=config, faults=faults)
    matched = matches_of(stored.content, [stored.papers[each] for each in places if each in stored.papers])
    orders = order_notes(shown, header)
    listed = _each(
        shown,
        lambda row: entry_of(
            row,
            _paper(row["paper_id"], stored, titles),
            ranking,
            places,
            versions=versions.get(row["paper_id"], ()),
            matched=matched.get(row["paper_id"], Matched()),
            order=orders.get(row["paper_id"]),
        ),
        named=lambda row: one_line(row["paper_id"]),
        faults=faults,
    )
    more, people = (
        _each(
            rows,
            lambda row: line_of(
                row, _paper(row["paper_id"], stored, titles), header, matched.get(row["paper_id"], Matched())
            ),
            named=lambda row: one_line(row["paper_id"]),
            faults=faults,
        )
        for rows in (ranking.more_likely, ranking.by_people)
    )
    changes = _each(
        stored.changes,
        lambda change: change_set(change[1], since=change[0], titles=titles),
        named=lambda change: f"what changed since {change[0]}",
        faults=faults,
    )
    evidence = _each(
        stored.answers, evidence_of, named=lambda answer: one_line(f"{answer.get('question')}"), faults=faults
    )
    in_full = {row["paper_id"] for row in shown}  # the likely ones after them are lines without their rewrites
    rewritten = _each(
        [(paper_id, found) for paper_id, found in versions.items() if paper_id not in in_full],
        lambda item: _rewritten(item[0], stored, item[1]),
        named=lambda item: one_line(item[0]),
        faults=faults,
    )
    similar = [note for note in header["comparison_notes"] if note["relation"] != "contrastive"]
    return Digest(
        profile=one_line(ranking.profile),
        day=ranking.day,
        updated=_updated(stored, versions),
        headline=headline_of(header, len(shown)),
        window=window(
            len(stored.candidates),
            new=len(stored.candidates) if stored.new is None else stored.new,
            days=stored.content.feed.window_days if stored.content else None,
            fetched=stored.fetched,
        ),
        filtered=filtered_out(reasons_of(stored.candidates)),
        entries=listed,
        more_likely=more,
        by_people=people,
        warnings=(*(one_line(line) for line in header["warnings"]), *faults),
        remarks=_remarks(header, stored.answers),
        changes=tuple(found for found in changes if found),
        notes=tuple(similar_papers(similar, places)),
        evidence=evidence,
        also_rewritten=rewritten,
    )


def _versions(
    rewrites: Sequence[RewriteItem], *, config: RewritingConfig, faults: list[str]
) -> dict[str, list[Version]]:
    """Return the rewrites that can be shown, by paper."""
    made = _each(
        rewrites,
        lambda item: (item.paper_id, version_of(item, config=config)),
        named=lambda item: one_line(f"the rewrite of {item.paper_id}"),
        faults=faults,
    )
    versions: dict[str, list[Version]] = {}
    for paper_id, version in made:
        if version:
            versions.setdefault(paper_id, []).append(version)
    return versions


def reasons_of(candidates: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Count the removed papers by the code of their filter."""
    return Counter(str(row["reason"]).partition(":")[0] for row in candidates if not row["passed"])


def _each(
    things: Iterable[Thing], make: Callable[[Thing], Made], *, named: Callable[[Thing], str], faults: list[str]
) -> tuple[Made, ...]:
    """Call `make` for each thing; log one that raises, leave it out, and name it in `faults`."""
    results: list[Made] = []
    for thing in things:
        try:
            results.append(make(thing))
        except Exception as error:
            faults.append(f"{named_error(error, f'{named(thing)} is not shown')}")
    return tuple(results)


def _updated(stored: DigestRows, versions: Mapping[str, Sequence[Version]]) -> datetime:
    """Return the latest of the day, the rewrites and the last decision (which can change what is shown)."""
    moments = [version.made_at for found in versions.values() for version in found]
    day = datetime.combine(stored.ranking.day, time(), UTC)
    return max(moment for moment in (day, stored.decided_at, *moments) if moment)


def _rewritten(paper_id: str, stored: DigestRows, versions: Sequence[Version]) -> Rewritten:
    titles = {item.paper_id: item.title for item in stored.rewrites}
    link = source_link(paper_id)
    return Rewritten(
        title=title_line(titles[paper_id], paper_id), url=link.url if link else None, versions=tuple(versions)
    )


def _remarks(header: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return how the list was made: worth knowing, and the same on most days."""
    chosen = "; ".join(
        f"{name} {header[key].replace('_', ' ')}"
        for name, key in (("purpose", "purpose"), ("ranking mode", "ranking_mode"), ("interest mode", "interest_mode"))
    )
    lines = (f"Ranked with the profile's settings: {chosen}", one_line(header["llm_note"] or ""), *remarks_on(answers))
    return tuple(sentence(line) for line in lines if line)


def _paper(paper_id: str, stored: DigestRows, titles: Mapping[str, str]) -> Paper:
    """Return the paper; if a later fetch has removed it, what the candidates still contain."""
    absent = Paper(paper_id=paper_id, title=titles.get(paper_id, paper_id), abstract="", authors=())
    return stored.papers.get(paper_id, absent)


def papers_named(answers: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the ids of the papers that stored answers cite."""
    return {name for each in _documents(answers) if (name := each["metadata"].get("paper_id"))}


def without_excluded(
    answers: Sequence[Mapping[str, Any]],
    rewrites: Sequence[RewriteItem],
    *,
    papers: Mapping[str, Paper],
    keywords: Sequence[str],
) -> tuple[list[dict[str, Any]], list[RewriteItem]]:
    """Remove what the keywords exclude from answers and rewrites; a side that loses documents reports how many.

    `papers`: by id, as far as stored; for others the text in the answer or rewrite is checked.
    """
    texts = {
        each["metadata"].get("paper_id") or each["doc_id"]: (each["metadata"].get("title") or "", each["page_content"])
        for each in _documents(answers)
    }
    texts |= {item.paper_id: (item.title, item.original_text) for item in rewrites}
    texts |= {paper_id: (paper.title, paper.abstract) for paper_id, paper in papers.items() if paper_id in texts}
    excluded = _excluded(texts, keywords)
    remaining = [
        {**answer, "sides": [_side(side, excluded) for side in answer["sides"]]} if excluded else dict(answer)
        for answer in answers
    ]
    return remaining, [item for item in rewrites if item.paper_id not in excluded]


def _excluded(texts: Mapping[str, tuple[str, str]], keywords: Sequence[str]) -> set[str]:
    names, known = list(texts), distinct(keywords)
    if not names or not known:
        return set()
    table = pa.table({"title": [texts[name][0] for name in names], "abstract": [texts[name][1] for name in names]})
    found = keywords_in(paper_texts(table), known)
    return {names[row] for row in np.flatnonzero(found.any(axis=1)).tolist()}


def _side(side: Mapping[str, Any], excluded: set[str]) -> dict[str, Any]:
    stays = [each for each in side["documents"] if (each["metadata"].get("paper_id") or each["doc_id"]) not in excluded]
    absent = len(side["documents"]) - len(stays)
    if not absent:
        return dict(side)
    removed = f"{absent} removed because of your excluded keywords"
    shortfall = "; ".join(part for part in (side["shortfall"], removed) if part)
    return {**side, "documents": stays, "shortfall": shortfall}


def _documents(answers: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    return (each for answer in answers for side in answer["sides"] for each in side["documents"])
