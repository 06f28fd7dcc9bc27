"""Answers: what was retrieved for a plan, graded or as links, as JSON values (SPEC R2, R3, R6)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paper_assets.errors import ModelUnavailable
from paper_assets.retrieval.balanced import retrieve_balanced
from paper_assets.retrieval.candidates import Candidate
from paper_assets.retrieval.evidence import Caller, Evidence
from paper_assets.retrieval.grading import Grader, grade, link_list
from paper_assets.retrieval.plan import Plan
from paper_assets.retrieval.search import Corpus
from paper_assets.retrieval.standard import retrieve_standard
from paper_assets.settings import Retrieving

LoadGrader = Callable[[], Grader]


def balanced_answer(corpus: Corpus, plan: Plan, *, caller: Caller, load_grader: LoadGrader) -> dict[str, Any]:
    """The answer to a plan, side by side (see `answer_of`). Raises InvalidInput without sides, StoreBusy."""
    found = retrieve_balanced(corpus, plan, caller=caller)
    return answer_of("balanced", plan, found, caller=caller, load_grader=load_grader, numbers=corpus.numbers)


def standard_answer(corpus: Corpus, plan: Plan, *, caller: Caller, load_grader: LoadGrader) -> dict[str, Any]:
    """The answer to a plan with its sides left aside: `sides` has one entry, whose `side` is None. Raises StoreBusy."""
    found = [retrieve_standard(corpus, plan, caller=caller)]
    return answer_of("standard", plan, found, caller=caller, load_grader=load_grader, numbers=corpus.numbers)


def answer_of(
    kind: str,
    plan: Plan,
    found: Sequence[Evidence],
    *,
    caller: Caller,
    load_grader: LoadGrader,
    numbers: Retrieving,
) -> dict[str, Any]:
    """JSON values: what was asked, and for each side its documents, filter, shortfall, error and drops.

    With `generation_required` each side has `graded`: the chunks that answer the question best (None, and a note, if
    no model can grade); else it has `links`, as Markdown. The grader is loaded only where it is needed.
    """
    notes, grader = list(plan.notes), None
    if plan.generation_required and any(side.documents for side in found):
        try:
            grader = load_grader()
        except ModelUnavailable as fault:
            notes.append(f"not graded: {fault}")
    return {
        "kind": kind,
        "question": plan.question,
        "rewritten_question": plan.rewritten_question,
        "method": plan.method,
        "data_type": list(plan.data_types),
        "startdate": plan.first and f"{plan.first}",
        "enddate": plan.last and f"{plan.last}",
        "as_of": caller.as_of and f"{caller.as_of}",
        "generation_required": plan.generation_required,
        "notes": notes,
        "sides": [_side(plan, side, grader, numbers) for side in found],
    }


def has_failed(answer: Mapping[str, Any]) -> bool:
    """Whether a side of the answer could not be searched, so that asking again may give more."""
    return any(side["error"] for side in answer["sides"])


def linked_title(metadata: Mapping[str, Any]) -> str:
    """A document's title as a Markdown link to its address, or the title alone; nothing in it is markup."""
    return link_list([Candidate("", "", metadata, 0.0, "similarity", "")]).removeprefix("- ")


def _side(plan: Plan, evidence: Evidence, grader: Grader | None, numbers: Retrieving) -> dict[str, Any]:
    told: dict[str, Any] = {
        "side": evidence.side,
        "query": evidence.query,
        "filter": evidence.filter,
        "wanted": evidence.wanted,
        "matching": evidence.matching,
        "unembedded": evidence.unembedded,
        "methods": list(evidence.methods),
        "documents": [_document(candidate) for candidate in evidence.documents],
        "shortfall": evidence.shortfall,
        "error": evidence.error,
        "drops": [
            {"stage": drop.stage, "reason": drop.reason, "documents": len(drop.doc_ids)} for drop in evidence.drops
        ],
    }
    if not plan.generation_required:
        return {**told, "links": link_list(evidence.documents)}
    if grader is None:
        return {**told, "graded": None}
    graded = grade(
        plan.question,
        evidence.documents,
        grader=grader,
        best=numbers.best_chunks,
        size=numbers.chunk_characters,
        overlap=numbers.chunk_overlap,
    )
    return {**told, "graded": graded.to_mapping()}


def _document(candidate: Candidate) -> dict[str, Any]:
    metadata = {name: list(value) if isinstance(value, tuple) else value for name, value in candidate.metadata.items()}
    return {
        "doc_id": candidate.doc_id,
        "page_content": candidate.content,
        "metadata": metadata,
        "score": candidate.score,
    }
