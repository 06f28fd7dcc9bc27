"""Retrieve the sides of a plan: fetch a shortlist from each collection, merge, cut, explain shortfalls (SPEC R2, R3,
R7).

A side is a value, a condition or a wording (`findings_of`), or a stance (`stance_findings`): candidates for all stances
are fetched once, judged passage by passage, and each document joins the side of its label.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paper_assets.errors import PaperAssetsError, StoreBusy
from paper_assets.progress import WorkEnded
from paper_assets.retrieval.findings import Caller, Findings, Judged, log_findings, warnings_of
from paper_assets.retrieval.grading import Reranker
from paper_assets.retrieval.merge import Candidate, Drop, Merged, Policy, Rules, compressed, merge
from paper_assets.retrieval.plan import Condition, Plan, Side, conditions_of, joined, undated
from paper_assets.retrieval.search import Corpus, Found, search
from paper_assets.retrieval.stance import Label, Labels, Passage, Stance, StanceJudge
from paper_assets.settings import RetrievalConfig
from paper_assets.stores.documents import DataType, count_documents
from paper_assets.stores.papers import papers_by_id

_log = logging.getLogger(__name__)

_DEEPER = 4  # factor of the depth if drops left too few
_FIRST_DEPTH = 20  # smallest depth


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The results of each collection, the errors of those that failed, and all results merged."""

    found: Mapping[DataType, Found]
    faults: tuple[str, ...]
    merged: Merged

    @property
    def search_scores(self) -> dict[str, float]:
        """Return the search's score of each document, before reranking; the best if it was found twice."""
        scores: dict[str, float] = {}
        for each in self.found.values():
            for candidate in each.candidates:
                scores[candidate.doc_id] = max(candidate.score, scores.get(candidate.doc_id, candidate.score))
        return scores


def shortlist_of(wanted: int, config: RetrievalConfig) -> int:
    """Return how many documents to fetch for `wanted` results."""
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
    reranker: Reranker | None = None,
) -> Fetched:
    """Search each collection for `depth` documents, deeper while the merge leaves fewer than `wanted` and more exist.

    An error in one collection does not affect the others (R2); only StoreBusy is raised.
    """
    where, without_date = joined(conditions), undated(conditions, owner=caller.owner)
    while True:
        found: dict[DataType, Found] = {}
        faults: dict[str, None] = {}
        for each in plan.data_types:
            try:
                found[each] = search(corpus, query, data_type=each, where=where, k=depth, undated=without_date)
            except StoreBusy:
                raise
            except Exception as fault:
                faults[in_one_line(fault)] = None
        lists, methods = [each.candidates for each in found.values()], {each.method for each in found.values()}
        rules = Rules(
            policy=Policy(owner=caller.owner, language=plan.language, latest=_latest(corpus, found)),
            comparable=methods != {"lexical"} and len(methods) == 1,  # cosines of one model; not shares of BM25
            fusion_constant=corpus.config.fusion_constant,
            max_per_source=plan.max_per_source,
        )
        merged = merge(lists, rules)
        if len(merged.candidates) >= wanted or all(len(each.candidates) < depth for each in found.values()):
            if reranker and reranker.grader.reorders:  # once, at the final depth
                merged = merge(lists, replace(rules, rerank=reranker))
            return Fetched(found=found, faults=tuple(faults), merged=merged)
        depth *= _DEEPER


def in_one_line(fault: Exception) -> str:
    """Return an error in one line; for unexpected ones with the class name, and the traceback in the log."""
    if isinstance(fault, PaperAssetsError):
        return str(fault)
    _log.error("a search failed unexpectedly", exc_info=fault)
    return " ".join(f"{type(fault).__name__}: {fault}".split())[:300]


def _latest(corpus: Corpus, found: Mapping[DataType, Found]) -> dict[str, int]:
    """Return the latest known versions of the papers whose passages and rewrites were found."""
    ids = {
        str(candidate.metadata["paper_id"])
        for data_type, each in found.items()
        for candidate in each.candidates
        if data_type != "abstract"  # abstracts are always of the latest version
    }
    if not ids:
        return {}
    papers = papers_by_id(corpus.warehouse, sorted(ids))
    return dict(zip(papers.column("paper_id").to_pylist(), papers.column("version").to_pylist(), strict=True))


def findings_of(
    corpus: Corpus,
    plan: Plan,
    side: Side | None,
    *,
    caller: Caller,
    wanted: int,
    max_tokens: int,
    reranker: Reranker | None = None,
) -> Findings:
    """Return the `wanted` best documents of a side (None: of the plan without sides) in at most `max_tokens` of text.

    A failed search is reported in `error`, so that other sides continue; only StoreBusy (the store is in use by another
    process) is raised.
    """
    conditions = conditions_of(plan, side, as_of=caller.as_of, owner=caller.owner)
    findings = Findings(
        side=side.name if side else None,
        query=(side and side.query) or plan.rewritten_question,
        filter=joined(conditions),
        wanted=wanted,
    )
    try:
        depth = shortlist_of(wanted, corpus.config)
        fetched = fetch(
            corpus, plan, findings.query, conditions, caller=caller, wanted=wanted, depth=depth, reranker=reranker
        )
        findings = cut_to(findings, corpus, fetched, conditions, max_tokens=max_tokens)
    except (StoreBusy, WorkEnded):
        raise
    except Exception as fault:  # an error in one side must not affect the others (R3)
        findings = replace(findings, error=in_one_line(fault))
    log_findings(findings)
    return findings


def cut_to(
    request: Findings, corpus: Corpus, fetched: Fetched, conditions: Sequence[Condition], *, max_tokens: int
) -> Findings:
    """Cut everything that was fetched to the `wanted` best documents, with shortfall and warnings.

    `request` has the side, query, filter and number wanted, and no documents yet.
    """
    final = compressed(fetched.merged.candidates, limit=request.wanted, max_tokens=max_tokens)
    drops = (*fetched.merged.drops, *final.drops)
    found, scores = fetched.found, fetched.search_scores
    short = len(final.candidates) < request.wanted and found
    return replace(
        request,
        documents=final.candidates,
        matching=sum(each.matching for each in found.values()),
        unembedded=sum(each.unembedded for each in found.values()),
        undated=sum(each.undated for each in found.values()),
        methods=tuple(sorted({each.method for each in found.values()})),
        ways=tuple(sorted({each.way for each in found.values()})),
        search_scores={each.doc_id: scores[each.doc_id] for each in final.candidates},
        cut=final.cut,
        warnings=warnings_of(corpus, list(found.values()), final, scores=scores),
        shortfall=_shortfall(corpus, conditions, found, drops, request.wanted) if short else None,
        error="; ".join(fetched.faults) or None,
        drops=drops,
    )


def _shortfall(
    corpus: Corpus,
    conditions: Sequence[Condition],
    found: Mapping[DataType, Found],
    drops: Sequence[Drop],
    wanted: int,
) -> str:
    """Explain why there are fewer than wanted: by what was dropped, else by counting."""
    matching = sum(each.matching for each in found.values())
    if not matching:
        return _why_none(corpus, conditions, tuple(found))
    parts = [f"{len(drop.doc_ids)} {drop.reason}" for drop in drops]
    silent = sum(each.matching - len(each.candidates) for each in found.values() if each.method == "lexical")
    if silent > 0:
        parts.append(f"{silent} share no word with the question")
    bare = sum(
        min(each.unembedded, each.matching - len(each.candidates))
        for each in found.values()
        if each.method != "lexical"
    )
    if bare > 0:
        parts.append(f"{bare} have no vector and share no word with the question")
    only = f"{'only ' if matching < wanted else ''}{matching} of type {' or '.join(found)} meet the conditions"
    return f"{only}: {', '.join(parts)}" if parts else only


def _why_none(corpus: Corpus, conditions: Sequence[Condition], data_types: Sequence[DataType]) -> str:
    """Name the condition that no document meets, or say that none meets all of them together."""

    def count(chosen: Sequence[Condition]) -> int:
        return sum(count_documents(corpus.warehouse, each, joined(chosen)) for each in data_types)

    always = [condition for condition in conditions if not condition.asked]
    asked = [condition for condition in conditions if condition.asked]
    if not count(always):
        return f"none of type {' or '.join(data_types)}" + "".join(f" {each.words}" for each in always if each.words)
    alone = {condition.words: count([*always, condition]) for condition in asked}
    if unmet := [words for words, documents in alone.items() if not documents]:
        return "; ".join(f"none {words}" for words in unmet)
    return "none " + " and ".join(f"{words} ({documents} alone)" for words, documents in alone.items())


_AT_A_TIME = 20  # documents judged between checks whether all sides are full
_EVIDENCE: dict[Stance, str] = {"supports": "supporting", "contradicts": "contradicting"}


def stance_findings(
    corpus: Corpus, plan: Plan, *, caller: Caller, judge: StanceJudge, reranker: Reranker | None = None
) -> tuple[Findings, ...]:
    """Return each side's `k_per_side` best documents of its stance; one list if stance could not be judged.

    Documents are judged in the order of relevance until every side is full or all that were fetched are examined. No
    document is on two sides. Raises StoreBusy.
    """
    wanted = plan.k_per_side * len(plan.sides)
    conditions = conditions_of(plan, None, as_of=caller.as_of, owner=caller.owner)
    where, query = joined(conditions), plan.rewritten_question
    tokens_a_side = plan.max_tokens // len(plan.sides)
    requests = [
        Findings(side=side.name, stance=side.stance, query=query, filter=where, wanted=plan.k_per_side)
        for side in plan.sides
    ]
    try:
        depth = max(corpus.config.examined, shortlist_of(wanted, corpus.config))
        fetched = fetch(corpus, plan, query, conditions, caller=caller, wanted=wanted, depth=depth, reranker=reranker)
        labels, judged = _judged(plan, fetched.merged.candidates[:depth], judge)
        if not labels and fetched.merged.candidates:
            request = Findings(side=None, query=query, filter=where, wanted=wanted)
            one_list = cut_to(request, corpus, fetched, conditions, max_tokens=plan.max_tokens)
            warning = f"stance could not be judged, so this is one list: {'; '.join(judged.reasons)}"
            one_list = replace(one_list, judged=judged, warnings=(warning, *one_list.warnings))
            log_findings(one_list)
            return (one_list,)
        unjudged, findings = list[str](), list[Findings]()
        if judged.unjudged:
            count = f"{judged.unjudged} of {judged.examined}"
            unjudged = [f"{count} documents were not judged: {'; '.join(judged.reasons)}"]
        for request in requests:
            of_side = [
                each
                for each in fetched.merged.candidates
                if (own := labels.get(each.doc_id)) and own.stance == request.stance
            ]
            chosen = replace(fetched, merged=replace(fetched.merged, candidates=tuple(of_side)))
            found = cut_to(request, corpus, chosen, conditions, max_tokens=tokens_a_side)
            quotes = {each.doc_id: labels[each.doc_id].sentence or "" for each in found.documents}
            findings.append(
                replace(
                    found,
                    quotes=quotes,
                    judged=judged,
                    shortfall=_stance_shortfall(found, judged),
                    warnings=(*unjudged, *found.warnings),
                )
            )
    except (StoreBusy, WorkEnded):
        raise
    except Exception as fault:
        error = in_one_line(fault)
        findings = [replace(request, error=error) for request in requests]
    for each in findings:
        log_findings(each)
    return tuple(findings)


def _judged(plan: Plan, candidates: Sequence[Candidate], judge: StanceJudge) -> tuple[dict[str, Label], Judged]:
    """Return the labels by document, as far as needed and available, and a summary."""
    labels: dict[str, Label] = {}
    reasons: dict[str, None] = {}
    counts: Counter[str] = Counter()
    examined, failed, over = 0, False, False
    for start in range(0, len(candidates), _AT_A_TIME):
        if over or all(side.stance and counts[side.stance] >= plan.k_per_side for side in plan.sides):
            break
        part = candidates[start : start + _AT_A_TIME]
        passages = [Passage(text=each.content, private=each.metadata.get("access_level") != "public") for each in part]
        given: Labels = judge.label(plan.question, passages)
        examined += len(part)
        reasons |= dict.fromkeys(given.reasons)
        failed, over = failed or given.failed, given.over
        for candidate, label in zip(part, given.labels, strict=True):
            if label is not None:
                labels[candidate.doc_id] = label
                counts[label.stance] += 1
    return labels, Judged(
        judge=judge.name if labels else None,
        kind=judge.kind,
        examined=examined,
        supports=counts["supports"],
        contradicts=counts["contradicts"],
        neutral=counts["neutral"],
        unjudged=examined - len(labels),
        reasons=tuple(reasons),
        failed=failed,
    )


def _stance_shortfall(found: Findings, judged: Judged) -> str | None:
    """Explain why a side is short although the search succeeded; that none takes this stance is an answer."""
    stance = found.stance
    if len(found.documents) >= found.wanted or stance is None:
        return None
    if not judged.examined:
        return found.shortfall
    few = f"only {len(found.documents)} with" if found.documents else "no"
    known = judged.examined - judged.unjudged
    if not known:
        return f"none of {judged.examined} documents could be judged"
    evidence_found = f"{few} {_EVIDENCE[stance]} evidence among {known} examined"
    others = [
        f"{count} {words}"
        for count, words in (
            (judged.supports if stance == "contradicts" else judged.contradicts, "on the other side"),
            (judged.neutral, "neutral"),
            (judged.unjudged, "not judged"),
        )
        if count
    ]
    return f"{evidence_found} ({', '.join(others)})" if others else evidence_found
