"""From dimensions to an order: weights, bonus, penalty, final score, ties (SPEC G8, G9, G10).

All sums run in the order of DIMENSIONS, one column after the other, so that a stored score can be
recomputed from its stored parts to the last bit.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paper_assets.settings import ScoringConfig
from paper_assets.weights import DIMENSIONS, Weights

Floats = NDArray[np.float64]

REWARDED = {"novelty": "recency", "practicality": "practicality"}  # G9: the dimension that a mode adds to
PROFILE_FREE_DIMENSIONS = ("recency", "practicality")  # G10: the two that ask nothing about a person


def weights_for(
    purpose: str, scoring: ScoringConfig, *, chosen: Weights | None = None, profile_free: bool = False
) -> tuple[float, ...]:
    """The weights that count, in the order of DIMENSIONS; without a profile recency and practicality share it all.

    `chosen` are those of `RankingOptions`: the run config's, else the profile's, whatever the purpose. Without them the
    purpose's hold: the environment's, else the default, as `Settings.scoring` has them.
    """
    weights = chosen.in_order if chosen else scoring.weights[purpose]
    if not profile_free:
        return weights
    counts = [name in PROFILE_FREE_DIMENSIONS for name in DIMENSIONS]
    kept = [weight if count else 0.0 for weight, count in zip(weights, counts, strict=True)]
    if not any(kept):  # weights are configuration: both may have been set to nothing
        kept = [1.0 if count else 0.0 for count in counts]
    return tuple(weight / sum(kept) for weight in kept)


def mode_bonus(dimensions: Floats, ranking_mode: str, scoring: ScoringConfig) -> Floats:
    """(n,) what the mode adds: novelty by recency, practicality by practicality, the others nothing."""
    rewarded = REWARDED.get(ranking_mode)
    if rewarded is None:
        return np.zeros(len(dimensions))
    return scoring.mode_bonus * dimensions[:, DIMENSIONS.index(rewarded)]


def soft_penalty(found: NDArray[np.bool_], scoring: ScoringConfig) -> Floats:
    """(n,) what the soft keywords found (n, k) take away, as a number from 0 down."""
    return np.maximum(scoring.soft_penalty * found.sum(axis=1), scoring.soft_penalty_floor) + 0.0  # no -0.0


def final_scores(
    dimensions: Floats,
    weights: Sequence[float],
    *,
    bonus: Floats,
    penalty: Floats,
    diversity_penalty: Floats,
    scoring: ScoringConfig,
    learned: Floats | None = None,
) -> Floats:
    """(n,) weighted sum of (n, 6) plus bonus and the two penalties, clamped. `learned` (n,), by how much the reader's
    ratings moved relevance, has the weight of relevance.
    """
    total = np.zeros(len(dimensions))
    for column, weight in enumerate(weights):
        total = total + weight * dimensions[:, column]
    if learned is not None:
        total = total + weights[DIMENSIONS.index("semantic_relevance")] * learned
    return np.clip(total + bonus + penalty + diversity_penalty, scoring.final_floor, scoring.final_ceiling)


def best_first(
    final: Floats, days: Floats, paper_ids: pa.ChunkedArray, *, before: Sequence[Floats] = ()
) -> NDArray[np.int64]:
    """Row numbers from the best to the last: by the keys of `before`, the highest first, then by final score; ties by
    newer day (unknown last), then by paper_id.
    """
    known = np.where(np.isnan(days), -np.inf, days)
    keys = {f"key {place}": key for place, key in enumerate(before)} | {"final": final, "day": known}
    rows = pa.table({**keys, "paper_id": paper_ids})
    order: NDArray[np.int64] = (
        pc.sort_indices(rows, sort_keys=[*((name, "descending") for name in keys), ("paper_id", "ascending")])
        .to_numpy()
        .astype(np.int64)
    )
    return order
