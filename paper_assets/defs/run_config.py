"""What a run may be told in the UI: options that go before a profile's own (G1: run config > profile > default)."""

from typing import Any

import dagster as dg
from pydantic import Field

from paper_assets.pipeline.papers import ACCEPT_FEWER


class RankingRunConfig(dg.Config):
    """Ranking options of one run. What is left empty is the profile's, else the default."""

    top_k: int | None = Field(default=None, description="Papers in the list.")
    purpose: str | None = Field(
        default=None, description="general, literature_review, implementation or idea_generation."
    )
    ranking_mode: str | None = Field(default=None, description="balanced, novelty, practicality or diversity.")
    include_contrastive: bool | None = Field(
        default=None, description="Whether the last place goes to a paper that differs from the others."
    )
    contrastive_type: str | None = Field(default=None, description="method, assumption or domain.")
    enable_llm_verification: bool | None = Field(
        default=None, description="Whether a language model is asked about papers of middling relevance."
    )
    interest_mode: str | None = Field(default=None, description="seed, lanes, library or hybrid.")
    weights: dict[str, float] | None = Field(
        default=None, description="The weight of each dimension by name; they sum to 1."
    )

    def options(self) -> dict[str, Any]:
        """The options that were given."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


class PapersRunConfig(dg.Config):
    """How the answers of one run are taken."""

    accept_fewer: bool = Field(
        default=False,
        description="Believe an answer with far fewer papers than are stored of the day, and remove those it lacks.",
    )

    def options(self) -> dict[str, Any]:
        """The options that were given."""
        return {ACCEPT_FEWER: True} if self.accept_fewer else {}


RUN_CONFIG: dict[str, type[RankingRunConfig] | type[PapersRunConfig]] = {
    "gatekeeper": RankingRunConfig,
    "arxiv_papers": PapersRunConfig,
}
