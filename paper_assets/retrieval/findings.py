"""The documents found for one side of a plan (or for all of it), with warnings and log lines (R2, R3, R8)."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import combinations

from paper_assets.retrieval.merge import Candidate, Drop, Merged
from paper_assets.retrieval.plan import Plan
from paper_assets.retrieval.search import Corpus, Found, without_vectors
from paper_assets.retrieval.stance import Stance
from paper_assets.settings import RetrievalConfig
from paper_assets.stores.documents import Where

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller and the last day: private documents are returned only to their `owner` (M3), nothing after `as_of`."""

    owner: str | None = None
    as_of: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How stances were judged (R7): of the `examined` documents, how often each label.

    `judge`: None without an available judge; `reasons`: why some were not judged. `failed`: asking again may help.
    """

    judge: str | None
    kind: str
    examined: int
    supports: int = 0
    contradicts: int = 0
    neutral: int = 0
    unjudged: int = 0
    reasons: tuple[str, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The result of one search: `matching` documents meet the `filter`, the `wanted` best of them are `documents`.

    `unembedded` of the matching documents have no vector and were compared by words; `undated` more would match if they
    had a date. `search_scores`: the search's scores by document id, before reranking; `cut`: characters left out of a
    document's text. `shortfall`: why there are fewer than wanted, `error`: what could not be searched, `warnings`
    what else a reader should know; `methods` and `ways` (`Found.way`) are those used. For a stance side, `quotes`
    has for each document the sentence that supports the label, and `judged` names how labels were found.
    """

    side: str | None
    query: str
    filter: Where | None
    wanted: int
    documents: tuple[Candidate, ...] = ()
    matching: int = 0
    unembedded: int = 0
    undated: int = 0
    methods: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    search_scores: Mapping[str, float] = field(default_factory=dict)
    cut: Mapping[str, int] = field(default_factory=dict)
    stance: Stance | None = None
    quotes: Mapping[str, str] = field(default_factory=dict)
    judged: Judged | None = None
    warnings: tuple[str, ...] = ()
    shortfall: str | None = None
    error: str | None = None
    drops: tuple[Drop, ...] = ()


@contextmanager
def log_handler(listener: logging.Handler) -> Iterator[None]:
    """Send the log lines of this package (one for each side) to `listener` too, while the context is open."""
    core = logging.getLogger(__package__)
    level = core.level
    core.addHandler(listener)
    core.setLevel(logging.INFO)
    try:
        yield
    finally:
        core.removeHandler(listener)
        core.setLevel(level)


def log_findings(findings: Findings) -> None:
    """Log how many of how many, the filter, what was dropped and why the side is short, in one line.

    It is a warning if something could not be searched.
    """
    dropped = "; ".join(f"{drop.stage} dropped {len(drop.doc_ids)} ({drop.reason})" for drop in findings.drops)
    line = "; ".join(
        part
        for part in (
            f"{findings.side or 'search'}: {len(findings.documents)} of {findings.wanted} documents",
            f"{findings.matching} meet the filter {json.dumps(findings.filter, ensure_ascii=False)}",
            f"by {' and '.join(findings.methods)}, in {' and '.join(findings.ways)}" if findings.methods else "",
            dropped,
            *findings.warnings,
            f"short: {findings.shortfall}" if findings.shortfall else "",
            f"failed: {findings.error}" if findings.error else "",
        )
        if part
    )
    _log.log(logging.WARNING if findings.error else logging.INFO, "%s", line)


OVERLAPPING = 0.5  # share of the smaller side's documents from which two wordings are not two sides (R7)


def warnings_of(
    corpus: Corpus, found: Sequence[Found], final: Merged, *, scores: Mapping[str, float]
) -> tuple[str, ...]:
    """Warn of documents without vectors, without dates, with cut texts, and of a side in which everything is weak."""
    parts = [
        without_vectors(found, model=corpus.embedder is not None),
        _undated(sum(one.undated for one in found)),
        _weak([scores[each.doc_id] for each in final.candidates], {one.method for one in found}, corpus.config),
        _cut(final.candidates, final.cut),
    ]
    return tuple(part for part in parts if part)


def overlap_warnings(findings: Sequence[Findings], plan: Plan) -> tuple[Findings, ...]:
    """Add a warning to every two sides by `query` that return mostly the same documents."""
    worded = {side.name for side in plan.sides if side.query}
    overlaps: dict[str | None, list[str]] = {}
    for one, other in combinations(findings, 2):
        if not {one.side, other.side} & worded or not (one.documents and other.documents):
            continue
        shared = {each.doc_id for each in one.documents} & {each.doc_id for each in other.documents}
        fewest = min(len(one.documents), len(other.documents))
        if len(shared) <= OVERLAPPING * fewest:
            continue
        for here, there in ((one, other), (other, one)):
            overlaps.setdefault(here.side, []).append(
                f"{len(shared)} of {len(here.documents)} documents are also on the side {there.side!r}: wording alone "
                "does not separate for from against; give the sides a stance (supports, contradicts) instead of a query"
            )
    return tuple(replace(each, warnings=(*each.warnings, *overlaps.get(each.side, ()))) for each in findings)


def _undated(count: int) -> str | None:
    return f"{count:,} more would match but have no date, and the question limits dates" if count else None


def _weak(scores: Sequence[float], methods: set[str], config: RetrievalConfig) -> str | None:
    floor = min((config.floors[method] for method in methods), default=0.0)
    if not scores or max(scores) >= floor:
        return None
    best = f"{max(0.0, max(scores)):.2f}"
    return f"everything here is weak: the best similarity is {best}; below {floor:g} documents rarely answer"


def _cut(documents: Sequence[Candidate], cut: Mapping[str, int]) -> str | None:
    if not cut:
        return None
    letters = sum(cut.values())
    return (
        f"the text of {len(cut)} of {len(documents)} documents was cut to fit, by {letters:,} characters (max_tokens)"
    )
