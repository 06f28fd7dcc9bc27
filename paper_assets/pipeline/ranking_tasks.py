"""A profile's day as a task for the ranking core: papers, vectors and options from the stores, and what to warn of."""

from datetime import date, timedelta
from functools import partial

import pyarrow as pa

from paper_assets.errors import ModelUnavailable, NotComputed
from paper_assets.models.embedder import FEW, Embedder
from paper_assets.paper import embedded_text, papers_from_table
from paper_assets.pipeline.queries import query_vectors
from paper_assets.profile import Profile
from paper_assets.ranking.interest_modes import InterestQueries
from paper_assets.ranking.preferences import Preferences
from paper_assets.ranking.task import RankingTask, Vectors, with_vectors
from paper_assets.ranking.unmatched import DAYS, preferences_of, sentences, unmet
from paper_assets.settings import Settings
from paper_assets.stores.embeddings import vectors_of
from paper_assets.stores.papers import columns_between, papers_by_id
from paper_assets.stores.warehouse import Warehouse


def day_task(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    judged: pa.Table,
    *,
    queries: InterestQueries,
    embedder: Embedder | None,
    preferences: Preferences | None,
    settings: Settings,
) -> RankingTask:
    """The task to score and order the `judged` papers that passed. Raises NotComputed if vectors are missing."""
    return with_vectors(
        RankingTask(
            candidates=papers_by_id(warehouse, judged.filter(judged.column("passed")).column("paper_id").to_pylist()),
            profile=profile,
            options=profile.content.ranking,
            as_of=as_of,
            scoring=settings.scoring,
            queries=queries,
            pdf_names=profile.pdf_names,
            preferences=preferences,
        ),
        partial(_vectors, warehouse, profile, embedder),
    )


def warnings_of(warehouse: Warehouse, profile: Profile, task: RankingTask) -> list[str]:
    """The task's own, and one for each preference that matches nothing: asked of its papers, then of the month."""
    left = unmet(preferences_of(profile.content), task.candidates)
    if not left:
        return list(task.warnings)
    first, categories = task.as_of - timedelta(days=DAYS - 1), profile.content.feed.categories
    month = columns_between(warehouse, first, task.as_of, left.columns, categories=categories)
    return [*task.warnings, *sentences(left, month)]


def _vectors(
    warehouse: Warehouse, profile: Profile, embedder: Embedder | None, papers: pa.Table, queries: InterestQueries
) -> Vectors:
    """The papers' stored vectors and those of `queries.texts`.

    Raises NotComputed if vectors are missing, ModelUnavailable if the model fails (then it may be why they are).
    """
    if embedder is None:
        raise ModelUnavailable("the embedding model cannot be loaded")
    vectors, found = vectors_of(warehouse, papers.column("paper_id").to_pylist(), model=embedder.name)
    if not found.all():
        unembedded = papers_from_table(papers.filter(~found).slice(0, FEW))
        embedder.encode([embedded_text(paper.title, paper.abstract) for paper in unembedded])
        days = sorted({paper.day for paper in papers_from_table(papers.filter(~found)) if paper.day})
        raise NotComputed(
            f"{int((~found).sum())} candidates of {profile.name!r} have no vector; "
            f"materialize paper_embeddings for {days[0]} to {days[-1]}"
        )
    return Vectors(papers=vectors, queries=query_vectors(warehouse, profile, queries, embedder))
