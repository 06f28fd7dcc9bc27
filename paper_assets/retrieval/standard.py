"""Standard retrieval: the k best documents of all kinds asked for, whatever side they are on (SPEC R2)."""

from paper_assets.retrieval.findings import Caller, Findings
from paper_assets.retrieval.merge import Rerank
from paper_assets.retrieval.plan import Plan
from paper_assets.retrieval.search import Corpus
from paper_assets.retrieval.sides import findings_of


def retrieve_standard(corpus: Corpus, plan: Plan, *, caller: Caller, rerank: Rerank | None = None) -> Findings:
    """The `k` best documents that meet the plan's dates and topics; its sides do not matter. Raises StoreBusy."""
    return findings_of(corpus, plan, None, caller=caller, wanted=plan.k, max_tokens=plan.max_tokens, rerank=rerank)
