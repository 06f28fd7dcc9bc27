"""Balanced retrieval: the same question for each side under the same conditions (SPEC R3, R7)."""

from paper_assets.errors import InvalidInput
from paper_assets.retrieval.findings import Caller, Findings
from paper_assets.retrieval.merge import Rerank
from paper_assets.retrieval.plan import Plan
from paper_assets.retrieval.reader_warnings import overlap_warnings
from paper_assets.retrieval.search import Corpus
from paper_assets.retrieval.sides import findings_of
from paper_assets.retrieval.stance import StanceJudge, nobody
from paper_assets.retrieval.stance_sides import stance_findings

NOBODY = nobody("no judge of stances was given")


def retrieve_balanced(
    corpus: Corpus, plan: Plan, *, caller: Caller, judge: StanceJudge = NOBODY, rerank: Rerank | None = None
) -> tuple[Findings, ...]:
    """`k_per_side` documents for each side, in the plan's order; all sides have the same room for text.

    Sides that are stances are told apart by `judge`; where it cannot, there is one list. A side that fails or runs
    short says so and leaves the others whole. Raises StoreBusy, and InvalidInput for a plan without any side.
    """
    if not plan.sides:
        raise InvalidInput("the plan has no sides; name them in filters.sides, or ask for a standard retrieval")
    if plan.asks_for_stances:
        return stance_findings(corpus, plan, caller=caller, judge=judge, rerank=rerank)
    room = plan.max_tokens // len(plan.sides)
    found = [
        findings_of(corpus, plan, side, caller=caller, wanted=plan.k_per_side, max_tokens=room, rerank=rerank)
        for side in plan.sides
    ]
    return overlap_warnings(found, plan)
