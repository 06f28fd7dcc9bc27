"""Standard retrieval: the k best documents of all kinds asked for, whatever side they are on (SPEC R2)."""

from paper_assets.retrieval.evidence import Caller, Evidence, evidence_of
from paper_assets.retrieval.plan import Plan
from paper_assets.retrieval.search import Corpus


def retrieve_standard(corpus: Corpus, plan: Plan, *, caller: Caller) -> Evidence:
    """The `k` best documents that meet the plan's dates and topics; its sides do not matter. Raises StoreBusy."""
    return evidence_of(corpus, plan, None, caller=caller, wanted=plan.k, max_tokens=plan.max_tokens)
