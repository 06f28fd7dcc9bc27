"""Fetching: a shortlist from each collection, merged to one list of whole texts, not yet cut to what is wanted (M1)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from paper_assets.errors import PaperAssetsError, StoreBusy
from paper_assets.retrieval.conditions import Condition, joined, undated
from paper_assets.retrieval.findings import Caller
from paper_assets.retrieval.merge import Merged, Rerank, merge
from paper_assets.retrieval.plan import Plan
from paper_assets.retrieval.policy import Policy
from paper_assets.retrieval.search import Corpus, Found, search
from paper_assets.settings import RetrievalConfig
from paper_assets.stores.documents import DataType
from paper_assets.stores.papers import papers_by_id

_log = logging.getLogger(__name__)

_DEEPER = 4  # times as many are asked for where drops left too few
_FIRST_DEPTH = 20  # documents asked for at once, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What each collection gave, what broke in those that gave nothing, and all of it as one list."""

    found: Mapping[DataType, Found]
    faults: tuple[str, ...]
    merged: Merged

    @property
    def search_scores(self) -> dict[str, float]:
        """What the search gave each document, whatever a reranker made of it; the best where it was found twice."""
        scores: dict[str, float] = {}
        for each in self.found.values():
            for candidate in each.candidates:
                scores[candidate.doc_id] = max(candidate.score, scores.get(candidate.doc_id, candidate.score))
        return scores


def shortlist_of(wanted: int, config: RetrievalConfig) -> int:
    """So many documents are fetched where `wanted` are to be left."""
    return max(wanted, min(config.shortlist * wanted, config.shortlist_most), _FIRST_DEPTH)


def fetch(
    corpus: Corpus,
    plan: Plan,
    query: str,
    conditions: tuple[Condition, ...],
    *,
    caller: Caller,
    wanted: int,
    depth: int,
    rerank: Rerank | None = None,
) -> Fetched:
    """Ask each collection for `depth`, deeper while the merge leaves fewer than `wanted` and there are more to be had.

    What breaks in one collection leaves the others whole (R2); only StoreBusy raises.
    """
    where, without_date = joined(conditions), undated(conditions, owner=caller.owner)
    while True:
        found: dict[DataType, Found] = {}
        faults: dict[str, None] = {}
        for each in plan.data_types:
            try:
                found[each] = search(
                    corpus, query, data_type=each, where=where, k=depth, method=plan.method, undated=without_date
                )
            except StoreBusy:
                raise
            except Exception as fault:
                faults[in_one_line(fault)] = None
        policy = Policy(owner=caller.owner, language=plan.language, latest=_latest(corpus, found))

        def merged(rerank: Rerank | None, found: Mapping[DataType, Found] = found, policy: Policy = policy) -> Merged:
            return merge(
                [each.candidates for each in found.values()],
                policy=policy,
                comparable=_comparable(found),
                fusion_constant=corpus.config.fusion_constant,
                max_per_source=plan.max_per_source,
                rerank=rerank,
            )

        whole = merged(None)
        if len(whole.candidates) >= wanted or all(len(each.candidates) < depth for each in found.values()):
            # Graded once, when it is known how deep to look.
            return Fetched(found=found, faults=tuple(faults), merged=merged(rerank) if rerank else whole)
        depth *= _DEEPER


def in_one_line(fault: Exception) -> str:
    """The one line of a fault a user can cause; of any other its name too, and its trace in the log."""
    if isinstance(fault, PaperAssetsError):
        return str(fault)
    _log.error("a search failed unexpectedly", exc_info=fault)
    return " ".join(f"{type(fault).__name__}: {fault}".split())[:300]


def _comparable(found: Mapping[DataType, Found]) -> bool:
    """Whether scores of several collections mean the same: cosines of one model do, shares of BM25 do not."""
    methods = {each.method for each in found.values()}
    return len(methods) == 1 and "lexical" not in methods


def _latest(corpus: Corpus, found: Mapping[DataType, Found]) -> dict[str, int]:
    """The latest versions that the warehouse knows of the papers whose passages and rewrites were found."""
    ids = {
        str(candidate.metadata["paper_id"])
        for data_type, each in found.items()
        for candidate in each.candidates
        if data_type != "abstract"  # those are of the latest version by their nature
    }
    if not ids:
        return {}
    papers = papers_by_id(corpus.warehouse, sorted(ids))
    return dict(zip(papers.column("paper_id").to_pylist(), papers.column("version").to_pylist(), strict=True))
