"""A ranking still to be computed, with all that it is computed from: it may travel to another process (SPEC X4)."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from hashlib import sha256

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.errors import ModelUnavailable
from paper_assets.profile import Profile, RankingOptions
from paper_assets.ranking.interest_modes import InterestQueries
from paper_assets.ranking.preferences import Preferences
from paper_assets.settings import ScoringConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Vectors of papers (n, d), aligned with the candidates, and of the texts of the queries (t, d)."""

    papers: NDArray[np.float32]
    queries: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingTask:
    """What `rank` takes, read from the stores; `vectors` of the candidates and queries, None where words alone judge.

    `considered`: the last day whose list could have shown these papers to the same wishes; None if there is none.
    `warnings` belong to the result.
    """

    candidates: pa.Table
    profile: Profile | None
    options: RankingOptions
    as_of: date
    scoring: ScoringConfig
    queries: InterestQueries | None = None
    vectors: Vectors | None = None
    pdf_names: tuple[str, ...] = ()
    preferences: Preferences | None = None
    considered: date | None = None
    warnings: tuple[str, ...] = ()


def with_vectors(task: RankingTask, vectors_of: Callable[[pa.Table, InterestQueries], Vectors]) -> RankingTask:
    """Add the vectors that `vectors_of` returns; if it raises ModelUnavailable, add a warning instead.

    The function call (`gatekeeper.py`) and the graph both prepare their tasks here.
    """
    warnings, vectors = list(task.queries.warnings) if task.queries else [], None
    if task.queries and task.candidates.num_rows:
        try:
            vectors = vectors_of(task.candidates, task.queries)
        except ModelUnavailable as error:
            warnings.append(f"relevance was judged by keywords only: {error}")
    return replace(task, vectors=vectors, warnings=(*task.warnings, *warnings))


def candidate_fingerprint(
    profile: Profile,
    *,
    as_of: date,
    scoring: ScoringConfig,
    papers: Mapping[date, str],
    shown: frozenset[str],
    imported: frozenset[str] = frozenset(),
    code_version: str,
) -> str:
    """32 hex digits over the profile's content, the papers of the window (content hash by day), the papers shown on
    earlier days, liked papers that the profile does not name itself, the numbers of the scoring and our code's version.
    """
    numbers = {field.name: getattr(scoring, field.name) for field in fields(scoring)}
    return _hash(
        {
            "profile": profile.content_hash,
            "as_of": as_of.isoformat(),
            "scoring": {**numbers, "weights": dict(scoring.weights)},
            "papers": {day.isoformat(): papers[day] for day in papers},
            "shown": sorted(shown),
            **({"imported": sorted(imported)} if imported else {}),
            "code": code_version,
        }
    )


def ranking_fingerprint(
    candidates: str,
    *,
    options: RankingOptions,
    texts: Sequence[str],
    model: str | None,
    llm: str | None,
    code_version: str,
    preferences: str | None = None,
    considered: date | None = None,
) -> str:
    """32 hex digits over the candidates' fingerprint, the options, the texts that papers are compared with (a liked
    paper's changes with the paper), the embedding model (None: keywords), the LLM (None: not asked), our code, what
    ratings have taught (None: nothing) and the last day that considered the papers for the same wishes.
    """
    return _hash(
        {
            "candidates": candidates,
            "options": options.model_dump(mode="json"),
            "texts": list(texts),
            "model": model,
            "llm": llm if options.enable_llm_verification else None,
            "code": code_version,
            **({"preferences": preferences} if preferences else {}),
            **({"considered": considered.isoformat()} if considered else {}),
        }
    )


def wishes_fingerprint(profile: Profile) -> str:
    """32 hex digits over what decides how relevant a paper is to the profile: its interests, keywords and feed."""
    content = profile.content.model_dump(mode="json", include={"interests", "keywords", "feed"})
    return _hash({**content, "interest_mode": profile.content.ranking.interest_mode})


def _hash(parts: Mapping[str, object]) -> str:
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
