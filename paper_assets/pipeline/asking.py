"""A question asked at once, as the profile that asks: what the daily answers do, stored nowhere (SPEC V2, R3)."""

from datetime import date
from typing import Any

from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.retrieval.answers import balanced_answer
from paper_assets.retrieval.findings import Caller
from paper_assets.retrieval.plan import categories_of, parse_plan
from paper_assets.retrieval.search import Corpus


def ask(workspace: Workspace, profile: Profile, record: dict[str, Any], *, as_of: date) -> dict[str, Any]:
    """The answer (`retrieval.answers.answer_of`) to a plan (R1) from what was there on the day.

    Raises InvalidInput naming the key that is wrong, StoreBusy.
    """
    settings = workspace.settings
    plan = parse_plan(
        record,
        source="the question",
        default_sides=categories_of(profile, settings),
        config=settings.retrieval,
    )
    corpus = Corpus(warehouse=workspace.warehouse, embedder=workspace.embedder(), config=settings.retrieval)
    caller = Caller(owner=profile.name, as_of=as_of)
    return balanced_answer(corpus, plan, caller=caller, load_grader=workspace.load_grader)
