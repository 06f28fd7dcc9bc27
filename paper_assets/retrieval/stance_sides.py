"""Sides by stance: fetched once, judged passage by passage, each document on the side that it takes (SPEC R7)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from paper_assets.errors import StoreBusy
from paper_assets.retrieval.candidates import Candidate
from paper_assets.retrieval.conditions import conditions_of, joined
from paper_assets.retrieval.fetching import fetch, in_one_line, shortlist_of
from paper_assets.retrieval.findings import Caller, Findings, Judged, log_findings
from paper_assets.retrieval.merge import Rerank
from paper_assets.retrieval.plan import Plan
from paper_assets.retrieval.search import Corpus
from paper_assets.retrieval.sides import cut_to
from paper_assets.retrieval.stance import Label, Labels, Passage, Stance, StanceJudge

_AT_A_TIME = 20  # documents judged before it is looked whether all sides are full
_EVIDENCE: dict[Stance, str] = {"supports": "supporting", "contradicts": "contradicting"}


def stance_findings(
    corpus: Corpus, plan: Plan, *, caller: Caller, judge: StanceJudge, rerank: Rerank | None = None
) -> tuple[Findings, ...]:
    """A side's `k_per_side` best documents of its stance, none on two sides; one list where nobody could judge.

    Judged in the order of relevance, until every side is full or all that were fetched are examined. Raises StoreBusy.
    """
    wanted = plan.k_per_side * len(plan.sides)
    conditions = conditions_of(plan, None, as_of=caller.as_of, owner=caller.owner)
    where, query = joined(conditions), plan.rewritten_question
    room = plan.max_tokens // len(plan.sides)
    try:
        depth = max(corpus.config.examined, shortlist_of(wanted, corpus.config))
        fetched = fetch(corpus, plan, query, conditions, caller=caller, wanted=wanted, depth=depth, rerank=rerank)
        labels, judged = _judged(plan, fetched.merged.candidates[:depth], judge)
        if not labels and fetched.merged.candidates:
            asked = Findings(side=None, query=query, filter=where, wanted=wanted)
            one_list = cut_to(asked, corpus, fetched, conditions, max_tokens=plan.max_tokens)
            warning = f"stance could not be judged, so this is one list: {'; '.join(judged.reasons)}"
            one_list = replace(one_list, judged=judged, warnings=(warning, *one_list.warnings))
            log_findings(one_list)
            return (one_list,)
        findings = []
        for side in plan.sides:
            of_side = [
                each
                for each in fetched.merged.candidates
                if (own := labels.get(each.doc_id)) and own.stance == side.stance
            ]
            asked = Findings(side=side.name, query=query, filter=where, wanted=plan.k_per_side)
            chosen = replace(fetched, merged=replace(fetched.merged, candidates=tuple(of_side)))
            found = cut_to(asked, corpus, chosen, conditions, max_tokens=room)
            quotes = {each.doc_id: labels[each.doc_id].sentence or "" for each in found.documents}
            findings.append(
                replace(
                    found,
                    stance=side.stance,
                    quotes=quotes,
                    judged=judged,
                    shortfall=_shortfall(found, side.stance, judged),
                    warnings=(*_unjudged(judged), *found.warnings),
                )
            )
    except StoreBusy:
        raise
    except Exception as fault:
        error = in_one_line(fault)
        findings = [
            Findings(side=side.name, query=query, filter=where, wanted=plan.k_per_side, stance=side.stance, error=error)
            for side in plan.sides
        ]
    for each in findings:
        log_findings(each)
    return tuple(findings)


def _judged(plan: Plan, candidates: Sequence[Candidate], judge: StanceJudge) -> tuple[dict[str, Label], Judged]:
    """The labels by document, as far as they are needed and were given, and how that went."""
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


def _shortfall(found: Findings, stance: Stance | None, judged: Judged) -> str | None:
    """Why a side is short, where the search itself was not: that none says so is an answer."""
    if len(found.documents) >= found.wanted or stance is None:
        return None
    if not judged.examined:
        return found.shortfall
    few = f"only {len(found.documents)} with" if found.documents else "no"
    said = f"{few} {_EVIDENCE[stance]} evidence among {judged.examined} examined"
    others = [
        f"{count} {words}"
        for count, words in (
            (judged.supports if stance == "contradicts" else judged.contradicts, "on the other side"),
            (judged.neutral, "neutral"),
            (judged.unjudged, "not judged"),
        )
        if count
    ]
    return f"{said} ({', '.join(others)})" if others else said


def _unjudged(judged: Judged) -> tuple[str, ...]:
    if not judged.unjudged:
        return ()
    return (f"{judged.unjudged} of {judged.examined} documents were not judged: {'; '.join(judged.reasons)}",)
