"""Answer a plan: retrieve, grade or list links, and return JSON values (SPEC R2, R3, R6, R7)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from paper_assets.errors import InvalidInput, ModelUnavailable
from paper_assets.retrieval.findings import Caller, Findings, overlap_warnings
from paper_assets.retrieval.grading import Grader, Reranker, link_list
from paper_assets.retrieval.merge import Candidate
from paper_assets.retrieval.plan import Plan
from paper_assets.retrieval.search import Corpus
from paper_assets.retrieval.sides import findings_of, stance_findings
from paper_assets.retrieval.stance import STANCES, StanceJudge, no_judge
from paper_assets.settings import RetrievalConfig

NO_JUDGE = no_judge("no judge of stances was given")


def retrieve_balanced(
    corpus: Corpus, plan: Plan, *, caller: Caller, judge: StanceJudge = NO_JUDGE, reranker: Reranker | None = None
) -> tuple[Findings, ...]:
    """Return `k_per_side` documents for each side, in the plan's order; all sides get the same token limit.

    `judge` assigns documents to stance sides; if it cannot, there is one list. A side that fails or falls short reports
    it and does not affect the others. Raises StoreBusy, and InvalidInput for a plan without sides.
    """
    if not plan.sides:
        raise InvalidInput("the plan has no sides; name them in filters.sides, or ask for a standard retrieval")
    if plan.asks_for_stances:
        return stance_findings(corpus, plan, caller=caller, judge=judge, reranker=reranker)
    tokens_a_side = plan.max_tokens // len(plan.sides)
    found = [
        findings_of(
            corpus, plan, side, caller=caller, wanted=plan.k_per_side, max_tokens=tokens_a_side, reranker=reranker
        )
        for side in plan.sides
    ]
    return overlap_warnings(found, plan)


def retrieve_standard(corpus: Corpus, plan: Plan, *, caller: Caller, reranker: Reranker | None = None) -> Findings:
    """Return the `k` best documents that meet the plan's dates and topics, ignoring its sides. Raises StoreBusy."""
    return findings_of(corpus, plan, None, caller=caller, wanted=plan.k, max_tokens=plan.max_tokens, reranker=reranker)


LoadGrader = Callable[[], Grader]
LoadJudge = Callable[[], StanceJudge]


def balanced_answer(
    corpus: Corpus, plan: Plan, *, caller: Caller, load_grader: LoadGrader, load_judge: LoadJudge = lambda: NO_JUDGE
) -> dict[str, Any]:
    """Answer a plan side by side (see `answer_of`). Raises InvalidInput without sides, StoreBusy."""
    reranker, note = _reranker(plan, load_grader, corpus.config)
    judge = load_judge() if plan.asks_for_stances else NO_JUDGE
    found = retrieve_balanced(corpus, plan, caller=caller, judge=judge, reranker=reranker)
    answer = answer_of("balanced", plan, found, caller=caller, reranker=reranker, note=note)
    if plan.by_party:
        by_party = [{"party": side["side"], "documents": side["documents"]} for side in answer["sides"]]
        return {**answer, "documents_by_party": by_party}
    return answer


def standard_answer(corpus: Corpus, plan: Plan, *, caller: Caller, load_grader: LoadGrader) -> dict[str, Any]:
    """Answer a plan without its sides: `sides` has one entry, without a `side`, and `documents` are its documents.

    Raises StoreBusy.
    """
    reranker, note = _reranker(plan, load_grader, corpus.config)
    found = [retrieve_standard(corpus, plan, caller=caller, reranker=reranker)]
    answer = answer_of("standard", plan, found, caller=caller, reranker=reranker, note=note)
    return {**answer, "documents": answer["sides"][0]["documents"]}


def _reranker(plan: Plan, load_grader: LoadGrader, config: RetrievalConfig) -> tuple[Reranker | None, str | None]:
    """Return what grades the documents of a plan, None if nothing does, and why grading failed."""
    if not plan.generation_required:
        return None, None
    try:
        return Reranker(question=plan.question, grader=load_grader(), config=config), None
    except ModelUnavailable as fault:
        return None, f"not graded: {fault}"


def answer_of(
    kind: str,
    plan: Plan,
    found: Sequence[Findings],
    *,
    caller: Caller,
    reranker: Reranker | None = None,
    note: str | None = None,
) -> dict[str, Any]:
    """Return JSON values: the question, and for each side its documents, filter, shortfall, error, warnings and drops.

    With `generation_required` each side has `graded`, the chunks that answer the question best (None if no model can
    grade, and `note` gives the reason); otherwise it has `links`, as Markdown. `stance`: how stances were judged, None
    if the plan has no stance sides.
    """
    judged = next((side.judged for side in found if side.judged), None)
    return {
        "kind": kind,
        "question": plan.question,
        "rewritten_question": plan.rewritten_question,
        "data_type": list(plan.data_types),
        "startdate": plan.first and f"{plan.first}",
        "enddate": plan.last and f"{plan.last}",
        "as_of": caller.as_of and f"{caller.as_of}",
        "generation_required": plan.generation_required,
        "notes": [*plan.notes, *([note] if note else [])],
        "stance": {**asdict(judged), "reasons": list(judged.reasons)} if judged else None,
        "sides": [_side(plan, side, reranker) for side in found],
    }


def written_plan(plan: Plan, answer: Mapping[str, Any], *, caller: Caller) -> dict[str, Any]:
    """Return the values of `answer_of` for a plan that is answered in sentences: no sides, and the answer."""
    return {**answer_of("answer", plan, [], caller=caller), "answer": dict(answer)}


def has_failed(answer: Mapping[str, Any]) -> bool:
    """Return whether something failed for a temporary reason (a search, a judge, the writing): retrying may help."""
    parts = (answer.get("stance") or {}, answer.get("answer") or {})
    return any(side["error"] for side in answer["sides"]) or any(part.get("failed") for part in parts)


def stance_in_words(judged: Mapping[str, Any]) -> str:
    """Format the entry `stance` of an answer as a sentence: how many were examined, the judge, and the labels."""
    if judged["judge"] is None:
        return "stance was not judged"
    counts = ", ".join(
        f"{judged[name]} {words}"
        for name, words in (
            ("supports", "support"),
            ("contradicts", "contradict"),
            ("neutral", "neutral"),
            ("unjudged", "not judged"),
        )
        if judged[name] or name in STANCES
    )
    known = judged["examined"] - judged.get("unjudged", 0)  # one that was not judged was not examined
    return f"{known} documents examined by the {judged['kind']} {judged['judge']}: {counts}"


def linked_title(metadata: Mapping[str, Any]) -> str:
    """Return a document's title as a Markdown link, or the escaped title alone."""
    return link_list([Candidate("", "", metadata, 0.0, "similarity", "")]).removeprefix("- ")


def _side(plan: Plan, findings: Findings, reranker: Reranker | None) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "side": findings.side,
        "stance": findings.stance,
        "query": findings.query,
        "filter": findings.filter,
        "wanted": findings.wanted,
        "matching": findings.matching,
        "unembedded": findings.unembedded,
        "undated": findings.undated,
        "methods": list(findings.methods),
        "documents": [_document(candidate, findings) for candidate in findings.documents],
        "warnings": list(findings.warnings),
        "shortfall": findings.shortfall,
        "error": findings.error,
        "drops": [
            {"stage": drop.stage, "reason": drop.reason, "documents": len(drop.doc_ids)} for drop in findings.drops
        ],
    }
    if not plan.generation_required:
        return {**answer, "links": link_list(findings.documents)}
    return {**answer, "graded": reranker.graded(findings.documents) if reranker else None}


def _document(candidate: Candidate, findings: Findings) -> dict[str, Any]:
    metadata = {name: list(value) if isinstance(value, tuple) else value for name, value in candidate.metadata.items()}
    if day := candidate.metadata.get("date_int"):
        metadata["date"] = f"{day // 10_000:04}-{day // 100 % 100:02}-{day % 100:02}"
    return {
        "doc_id": candidate.doc_id,
        "page_content": candidate.content,
        "metadata": metadata,
        "score": candidate.score,
        "search_score": findings.search_scores.get(candidate.doc_id),
        "cut": findings.cut.get(candidate.doc_id, 0),
        "sentence": findings.quotes.get(candidate.doc_id),
    }
