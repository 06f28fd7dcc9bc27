"""Balanced retrieval: the same question for each side under the same conditions (SPEC R3)."""

from paper_assets.errors import InvalidInput
from paper_assets.retrieval.evidence import Caller, Evidence, evidence_of
from paper_assets.retrieval.plan import Plan
from paper_assets.retrieval.search import Corpus


def retrieve_balanced(corpus: Corpus, plan: Plan, *, caller: Caller) -> tuple[Evidence, ...]:
    """`k_per_side` documents for each side, in the plan's order; all sides have the same room for text.

    A side that fails or runs short says so and leaves the others whole. Raises StoreBusy, and InvalidInput for a
    plan without any side.
    """
    if not plan.sides:
        raise InvalidInput("the plan has no sides; name them in filters.sides, or ask for a standard retrieval")
    room = plan.max_tokens // len(plan.sides)
    return tuple(
        evidence_of(corpus, plan, side, caller=caller, wanted=plan.k_per_side, max_tokens=room) for side in plan.sides
    )
