"""What the assets are handed: settings, the stores, the embedder, the clock. Plain objects of the core.

Belongs here: building them from the environment, once. Not here: anything that opens a store or a model.
"""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import dagster as dg

from paper_assets.defs.environment import settings
from paper_assets.models.embedder import Embedder, load_embedder
from paper_assets.ranking.llm_check import SecondLook, second_look
from paper_assets.settings import Settings
from paper_assets.stores.llm_answers import keep_answers, known_answers
from paper_assets.stores.vectors import VectorIndex
from paper_assets.stores.warehouse import Warehouse

LoadEmbedder = Callable[[], Embedder]
Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]
LookTwice = Callable[[], SecondLook]


def resources_for(
    settings: Settings, environ: Mapping[str, str], *, progress: Progress = lambda done, total: None
) -> dict[str, Any]:
    """The resources of every asset, for one set of settings. Nothing is opened yet.

    `environ` says which LLM to ask, if any (I3); `progress` is told how many texts of how many are embedded.
    """

    @cache
    def embedder() -> Embedder:
        return load_embedder(settings.embedding_model)

    def clock() -> datetime:
        return datetime.now(UTC)

    warehouse = Warehouse(settings.warehouse_path, deadline=settings.store_deadline)

    def look_twice() -> SecondLook:
        return second_look(
            environ,
            known=lambda keys: known_answers(warehouse, keys),
            keep=lambda verdicts, model: keep_answers(warehouse, verdicts, model=model),
        )

    return {
        "settings": settings,
        "warehouse": warehouse,
        "vector_index": VectorIndex(settings.vectors_path, deadline=settings.store_deadline),
        "embedder": embedder,
        "look_twice": look_twice,
        "clock": clock,
        "progress": progress,
    }


@dg.definitions
def resources() -> dg.Definitions:
    """Resources from this process's environment."""
    return dg.Definitions(resources=resources_for(settings, os.environ))
