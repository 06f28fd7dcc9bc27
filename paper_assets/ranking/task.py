"""A ranking still to be computed, with all that it is computed from: it may travel to another process (SPEC X4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from paper_assets.errors import ModelUnavailable
from paper_assets.profile import Profile, RankingOptions
from paper_assets.ranking.interest_modes import InterestQueries
from paper_assets.ranking.preferences import Preferences
from paper_assets.ranking.rank import Ranking, Vectors, rank
from paper_assets.ranking.verifier import Verifier
from paper_assets.settings import ScoringConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingTask:
    """What `rank` takes, read from the stores; `vectors` of the candidates and queries, None where words alone judge.

    `warnings` belong to the result.
    """

    candidates: pa.Table
    profile: Profile | None
    options: RankingOptions
    as_of: date
    scoring: ScoringConfig
    queries: InterestQueries | None
    vectors: Vectors | None
    pdf_names: tuple[str, ...] = ()
    preferences: Preferences | None = None
    warnings: tuple[str, ...] = ()


def ranking_task(
    candidates: pa.Table,
    profile: Profile | None,
    *,
    options: RankingOptions,
    as_of: date,
    scoring: ScoringConfig,
    queries: InterestQueries | None,
    vectors_of: Callable[[pa.Table, InterestQueries], Vectors],
    pdf_names: Sequence[str] = (),
    preferences: Preferences | None = None,
) -> RankingTask:
    """The task with the vectors that `vectors_of` has; where it raises ModelUnavailable words alone judge. The one path
    of the call (`gatekeeper.py`) and of the graph.
    """
    warnings, vectors = list(queries.warnings) if queries else [], None
    if queries and candidates.num_rows:
        try:
            vectors = vectors_of(candidates, queries)
        except ModelUnavailable as error:
            warnings.append(f"relevance was judged by keywords only: {error}")
    return RankingTask(
        candidates=candidates,
        profile=profile,
        options=options,
        as_of=as_of,
        scoring=scoring,
        queries=queries,
        vectors=vectors,
        pdf_names=tuple(pdf_names),
        preferences=preferences,
        warnings=tuple(warnings),
    )


def ranked(task: RankingTask, verifier: Verifier | None = None) -> Ranking:
    """The ranking of a task; reads no store. `verifier` is the LLM to ask (G5)."""
    return rank(
        task.candidates,
        task.profile,
        options=task.options,
        as_of=task.as_of,
        scoring=task.scoring,
        queries=task.queries,
        vectors=task.vectors.papers if task.vectors else None,
        query_vectors=task.vectors.queries if task.vectors else None,
        pdf_names=task.pdf_names,
        verifier=verifier,
        preferences=task.preferences,
    )
