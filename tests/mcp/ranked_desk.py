"""A desk that has ranked two days for two profiles, by keywords: no model is loaded for it."""

from datetime import UTC, date, datetime
from pathlib import Path

from paper_assets.errors import LLMConfigError
from paper_assets.paper import paper_from_mapping
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.profile import load_profile
from paper_assets.ranking.verifier import Verifier, unavailable
from paper_assets.stores.paper_merging import merge_papers
from tests.desk import GRAPHS, SPEECH, Desk, week

DAYS = ("2026-03-02", "2026-03-03")
NOBODY = Verifier(ask=unavailable(LLMConfigError("no language model")), model=None)


def ranked_desk(folder: Path, *, papers_a_day: int = 6, top_k: int = 2) -> Desk:
    """Papers of two days, of which `traffic` and `speech` are each shown `top_k` a day."""
    desk = Desk(folder)
    settings = desk.settings
    merge_papers(desk.warehouse, [paper_from_mapping(record) for record in week(DAYS, each=papers_a_day)])
    for name, content in (("traffic", GRAPHS), ("speech", SPEECH)):
        profile = load_profile(desk.profile(name, {**content, "ranking": {"top_k": top_k, "threshold": 0}}).parent)
        for day in map(date.fromisoformat, DAYS):
            inputs = profile_day(desk.warehouse, profile, day, settings=settings)
            keep_candidates(desk.warehouse, inputs, settings=settings)
            keep_ranking(
                desk.warehouse,
                profile,
                day,
                embedder=None,
                verifier=NOBODY,
                settings=settings,
                now=datetime(2026, 3, 5, tzinfo=UTC),
            )
    return desk
