"""Who judges stances: an NLI cross-encoder where one is set, else the language model, else nobody (SPEC R7)."""

from collections.abc import Callable, Mapping

from paper_assets.models.nli import load_nli
from paper_assets.retrieval.stance import StanceJudge
from paper_assets.retrieval.stance_by_llm import open_llm_judge
from paper_assets.retrieval.stance_by_nli import open_nli_judge
from paper_assets.settings import Settings
from paper_assets.stores.llm_answers import keep_answers, known_answers
from paper_assets.stores.warehouse import Warehouse


def open_judge(
    settings: Settings,
    environ: Mapping[str, str],
    warehouse: Warehouse,
    *,
    deadline: Callable[[], float | None] = lambda: None,
) -> StanceJudge:
    """The judge of one run, which keeps what a language model says in the warehouse; nothing is loaded or asked yet.

    `deadline`: the seconds left for a question to the language model, None for its own limit.
    """
    if settings.stance_model:
        return open_nli_judge(settings.stance_model, load_nli)
    return open_llm_judge(
        environ,
        known=lambda keys: known_answers(warehouse, keys),
        keep=lambda answers, model: keep_answers(warehouse, answers, model=model),
        deadline=deadline,
    )
