"""Evidence: the documents found for one side of a plan or for all of it, and why there are no more (SPEC R2, R3)."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

from paper_assets.errors import PaperAssetsError, StoreBusy
from paper_assets.retrieval.candidates import Candidate
from paper_assets.retrieval.conditions import Condition, conditions_of, joined
from paper_assets.retrieval.merge import Drop, Merged, merge
from paper_assets.retrieval.plan import Plan, Side
from paper_assets.retrieval.policy import Policy
from paper_assets.retrieval.search import Corpus, Found, count_matching, search
from paper_assets.stores.document_filters import Where
from paper_assets.stores.documents import DataType
from paper_assets.stores.papers import papers_by_id

_log = logging.getLogger(__name__)

_DEEPER = 4  # times as many are asked for where drops left too few
_FIRST_DEPTH = 20  # documents asked for at once, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and until which day: private documents come to their `owner` only (M3), nothing of after `as_of`."""

    owner: str | None = None
    as_of: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was found: `matching` documents meet the `filter`, the `wanted` best of them are `documents`; `unembedded`
    of the matching ones have no vector yet, so that only words find them.

    `shortfall` says why there are fewer, `error` what could not be searched, all of it or a type of documents;
    `methods` are the ones really used.
    """

    side: str | None
    query: str
    filter: Where | None
    wanted: int
    documents: tuple[Candidate, ...] = ()
    matching: int = 0
    unembedded: int = 0
    methods: tuple[str, ...] = ()
    shortfall: str | None = None
    error: str | None = None
    drops: tuple[Drop, ...] = ()


def evidence_of(
    corpus: Corpus, plan: Plan, side: Side | None, *, caller: Caller, wanted: int, max_tokens: int
) -> Evidence:
    """The `wanted` best documents of a side (None: of the plan without sides), at most `max_tokens` of text.

    A search that fails is told in `error` and raises nothing, so that the others go on; only a store that another
    process holds (StoreBusy) is no fault of the side, and raises.
    """
    query = (side and side.query) or plan.rewritten_question
    conditions = conditions_of(plan, side, as_of=caller.as_of, owner=caller.owner)
    name, where = side.name if side else None, joined(conditions)
    try:
        found, faults, merged = _search(corpus, plan, query, where, caller=caller, wanted=wanted, max_tokens=max_tokens)
        short = len(merged.candidates) < wanted and found
        evidence = Evidence(
            side=name,
            query=query,
            filter=where,
            wanted=wanted,
            documents=merged.candidates,
            matching=sum(each.matching for each in found.values()),
            unembedded=sum(each.unembedded for each in found.values()),
            methods=tuple(sorted({each.method for each in found.values()})),
            shortfall=_shortfall(corpus, conditions, found, merged, wanted) if short else None,
            error="; ".join(faults) or None,
            drops=merged.drops,
        )
    except StoreBusy:
        raise
    except Exception as fault:  # whatever breaks one side must leave the others whole (R3)
        evidence = Evidence(side=name, query=query, filter=where, wanted=wanted, error=_told(fault))
    _log.log(logging.WARNING if evidence.error else logging.INFO, "%s", log_line(evidence))
    return evidence


@contextmanager
def heard_by(listener: logging.Handler) -> Iterator[None]:
    """While it lasts, the lines of this package, one a side, go to `listener` too."""
    core = logging.getLogger(__package__)
    level = core.level
    core.addHandler(listener)
    core.setLevel(logging.INFO)
    try:
        yield
    finally:
        core.removeHandler(listener)
        core.setLevel(level)


def log_line(evidence: Evidence) -> str:
    """One line that tells a side's whole story: how many of how many, by which filter, what was dropped, why short."""
    dropped = "; ".join(f"{drop.stage} dropped {len(drop.doc_ids)} ({drop.reason})" for drop in evidence.drops)
    return "; ".join(
        part
        for part in (
            f"{evidence.side or 'search'}: {len(evidence.documents)} of {evidence.wanted} documents",
            f"{evidence.matching} meet the filter {json.dumps(evidence.filter, ensure_ascii=False)}",
            f"by {' and '.join(evidence.methods)}" if evidence.methods else "",
            f"{evidence.unembedded} without a vector" if evidence.unembedded else "",
            dropped,
            f"short: {evidence.shortfall}" if evidence.shortfall else "",
            f"failed: {evidence.error}" if evidence.error else "",
        )
        if part
    )


def _search(
    corpus: Corpus,
    plan: Plan,
    query: str,
    where: Where | None,
    *,
    caller: Caller,
    wanted: int,
    max_tokens: int,
) -> tuple[dict[DataType, Found], list[str], Merged]:
    """Ask each collection, deeper while the stages of the merge leave too few and there are more to be had.

    Beside what was found: what broke in the collections that gave nothing.
    """
    depth = max(2 * wanted, _FIRST_DEPTH)
    while True:
        found: dict[DataType, Found] = {}
        faults: dict[str, None] = {}
        for each in plan.data_types:
            try:
                found[each] = search(corpus, query, data_type=each, where=where, k=depth, method=plan.method)
            except StoreBusy:
                raise
            except Exception as fault:  # likewise one collection the others (R2)
                faults[_told(fault)] = None
        merged = merge(
            [each.candidates for each in found.values()],
            policy=Policy(owner=caller.owner, language=plan.language, latest=_latest(corpus, found)),
            comparable=_comparable(found),
            fusion_constant=corpus.numbers.fusion_constant,
            max_per_source=plan.max_per_source,
            limit=wanted,
            max_tokens=max_tokens,
        )
        if len(merged.candidates) >= wanted or all(len(each.candidates) < depth for each in found.values()):
            return found, list(faults), merged
        depth *= _DEEPER


def _comparable(found: Mapping[DataType, Found]) -> bool:
    """Whether scores of several collections mean the same: cosines of one model do, shares of BM25 do not."""
    methods = {each.method for each in found.values()}
    return len(methods) == 1 and "lexical" not in methods


def _told(fault: Exception) -> str:
    """The one line of a fault a user can cause; of any other its name too, and its trace in the log."""
    if isinstance(fault, PaperAssetsError):
        return str(fault)
    _log.error("a search failed unexpectedly", exc_info=fault)
    return " ".join(f"{type(fault).__name__}: {fault}".split())[:300]


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


def _shortfall(
    corpus: Corpus, conditions: Sequence[Condition], found: Mapping[DataType, Found], merged: Merged, wanted: int
) -> str:
    """Why there are fewer than wanted, in words: by what was dropped of the matching ones, else by counting."""
    matching = sum(each.matching for each in found.values())
    if not matching:
        return _why_none(corpus, conditions, tuple(found))
    parts = [f"{len(drop.doc_ids)} {drop.reason}" for drop in merged.drops]
    if unembedded := sum(each.unembedded for each in found.values()):
        parts.append(f"{unembedded} without a vector")
    silent = sum(each.matching - len(each.candidates) for each in found.values() if each.method == "lexical")
    if silent > 0:
        parts.append(f"{silent} share no word with the question")
    only = f"{'only ' if matching < wanted else ''}{matching} of type {' or '.join(found)} meet the conditions"
    return f"{only}: {', '.join(parts)}" if parts else only


def _why_none(corpus: Corpus, conditions: Sequence[Condition], data_types: Sequence[DataType]) -> str:
    """Which condition no document meets, or else that none meets all of them together."""

    def count(chosen: Sequence[Condition]) -> int:
        return sum(count_matching(corpus, data_type=each, where=joined(chosen)) for each in data_types)

    always = [condition for condition in conditions if not condition.asked]
    asked = [condition for condition in conditions if condition.asked]
    if not count(always):
        return f"none of type {' or '.join(data_types)}" + "".join(f" {each.words}" for each in always if each.words)
    alone = {condition.words: count([*always, condition]) for condition in asked}
    if unmet := [words for words, documents in alone.items() if not documents]:
        return "; ".join(f"none {words}" for words in unmet)
    return "none " + " and ".join(f"{words} ({documents} by itself)" for words, documents in alone.items())
