"""What the assets are handed: settings, the stores, the embedder, the clock. Plain objects of the core.

Belongs here: building them from the environment, once. Not here: anything that opens a store or a model.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import dagster as dg

from paper_assets.defs.environment import settings
from paper_assets.errors import ModelUnavailable
from paper_assets.interpreting.enrichment import PATIENCE, Enriched, enrich
from paper_assets.interpreting.reach import open_reach
from paper_assets.models.cross_encoder import load_cross_encoder
from paper_assets.models.embedder import Embedder, load_embedder
from paper_assets.paper import Paper
from paper_assets.ranking.llm_check import SecondLook, second_look
from paper_assets.retrieval.grading import Grader, load_grader
from paper_assets.rewriting.best_practices import archive_of
from paper_assets.rewriting.writing import Writer, open_writer
from paper_assets.settings import Settings
from paper_assets.stores.llm_answers import StoredAnswers, keep_answers, known_answers
from paper_assets.stores.vectors import VectorIndex
from paper_assets.stores.warehouse import Warehouse

LoadEmbedder = Callable[[], Embedder]
LoadGrader = Callable[[], Grader]
Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]
LookTwice = Callable[[], SecondLook]
EnrichPapers = Callable[[Sequence[Paper], bool], Enriched]  # the papers, and whether to ask about them
OpenWriter = Callable[[Clock], Writer]


def resources_for(
    settings: Settings, environ: Mapping[str, str], *, progress: Progress = lambda done, total: None
) -> dict[str, Any]:
    """The resources of every asset, for one set of settings. Nothing is opened yet.

    `environ` says which LLM to ask, if any (I3); `progress` is told how many texts of how many are embedded.
    """

    @cache
    def embedder() -> Embedder:
        return load_embedder(settings.embedding_model)

    @cache
    def grader() -> Grader:
        return load_grader(lambda: load_cross_encoder(settings.cross_encoder), embedder)

    def clock() -> datetime:
        return datetime.now(UTC)

    warehouse = Warehouse(settings.warehouse_path, deadline=settings.store_deadline)
    index = VectorIndex(settings.vectors_path, deadline=settings.store_deadline)

    def enrich_papers(papers: Sequence[Paper], ask: bool) -> Enriched:
        return enrich(open_reach(settings, environ, warehouse=warehouse, deadline=PATIENCE), papers, ask=ask)

    def look_twice() -> SecondLook:
        return second_look(
            environ,
            known=lambda keys: known_answers(warehouse, keys),
            keep=lambda verdicts, model: keep_answers(warehouse, verdicts, model=model),
        )

    def writer(clock: Clock) -> Writer:
        try:
            model = embedder()
        except ModelUnavailable:
            model = None
        return open_writer(
            environ,
            archive=archive_of(settings, warehouse, index, model),
            cache=StoredAnswers(warehouse),
            clock=clock,
            numbers=settings.rewriting,
        )

    return {
        "settings": settings,
        "warehouse": warehouse,
        "vector_index": index,
        "embedder": embedder,
        "grader": grader,
        "enrich_papers": enrich_papers,
        "look_twice": look_twice,
        "open_writer": writer,
        "clock": clock,
        "progress": progress,
    }


@dg.definitions
def resources() -> dg.Definitions:
    """Resources from this process's environment."""
    return dg.Definitions(resources=resources_for(settings, os.environ))
