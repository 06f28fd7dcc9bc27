"""What a reader of a side should know beside its documents, in words (SPEC R8): nothing is lost silently."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from paper_assets.retrieval.candidates import Candidate
from paper_assets.retrieval.findings import Findings
from paper_assets.retrieval.plan import Plan
from paper_assets.retrieval.search import Found
from paper_assets.settings import RetrievalConfig

OVERLAPPING = 0.5  # share of the smaller side's documents from which two wordings are no two sides (R7)


def warnings_of(
    found: Iterable[Found],
    documents: Sequence[Candidate],
    *,
    scores: Mapping[str, float],
    cut: Mapping[str, int],
    model: bool,
    config: RetrievalConfig,
) -> tuple[str, ...]:
    """Documents without vectors, without dates, texts that were cut, and a side in which everything is weak."""
    each = list(found)
    parts = [
        _without_vectors(each, model=model),
        _undated(sum(one.undated for one in each)),
        _weak([scores[document.doc_id] for document in documents], {one.method for one in each}, config),
        _cut(documents, cut),
    ]
    return tuple(part for part in parts if part)


def overlap_warnings(findings: Sequence[Findings], plan: Plan) -> tuple[Findings, ...]:
    """The findings, with a warning on every two sides by `query` that hold mostly the same documents."""
    worded = {side.name for side in plan.sides if side.query}
    said: dict[str | None, list[str]] = {}
    for one, other in combinations(findings, 2):
        if not {one.side, other.side} & worded or not (one.documents and other.documents):
            continue
        shared = {each.doc_id for each in one.documents} & {each.doc_id for each in other.documents}
        fewest = min(len(one.documents), len(other.documents))
        if len(shared) <= OVERLAPPING * fewest:
            continue
        for here, there in ((one, other), (other, one)):
            said.setdefault(here.side, []).append(
                f"{len(shared)} of {len(here.documents)} documents also stand on the side {there.side!r}: two wordings "
                "do not part for from against; give the sides a stance (supports, contradicts) instead of a query"
            )
    return tuple(replace(each, warnings=(*each.warnings, *said.get(each.side, ()))) for each in findings)


def _without_vectors(found: Sequence[Found], *, model: bool) -> str | None:
    if not model:
        return "the embedding model cannot be used, so only words were compared"
    without, matching = sum(one.unembedded for one in found), sum(one.matching for one in found)
    if not without:
        return None
    by_words = any(one.method == "lexical" and one.unembedded > 0 for one in found)
    how = ", so all were compared by words alone" if by_words else " and were compared by words alone"
    return f"{without:,} of {matching:,} documents have no vector yet{how}; `paper-assets run` embeds them"


def _undated(count: int) -> str | None:
    return f"{count:,} more would match but have no date, and dates were asked for" if count else None


def _weak(scores: Sequence[float], methods: set[str], config: RetrievalConfig) -> str | None:
    floor = min((config.floors[method] for method in methods), default=0.0)
    if not scores or max(scores) >= floor:
        return None
    return f"everything here is weak: the best likeness is {max(0.0, max(scores)):.2f}, below {floor:g} little answers"


def _cut(documents: Sequence[Candidate], cut: Mapping[str, int]) -> str | None:
    if not cut:
        return None
    letters = sum(cut.values())
    return (
        f"the text of {len(cut)} of {len(documents)} documents was cut to fit, by {letters:,} characters (max_tokens)"
    )
