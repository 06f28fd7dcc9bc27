"""Compute final scores from dimensions, and order papers by them (SPEC G8, G9, G10, G11).

    final = sum of weight * dimension + weight of relevance * learned + bonus + soft penalty + diversity penalty

limited to `final_floor` and `final_ceiling` of the settings. Sums run in the order of DIMENSIONS, one column after the
other, so that a stored score can be recomputed from its stored parts to the last bit. `repeating` finds the papers that
get the diversity penalty, because they are similar to a paper above them.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paper_assets.ranking.similarity import signed_cosines
from paper_assets.settings import ScoringConfig
from paper_assets.weights import DIMENSIONS, Weights

Floats = NDArray[np.float64]

REWARDED = {"novelty": "recency", "practicality": "practicality"}  # G9: the dimension that a ranking mode rewards
PROFILE_FREE_DIMENSIONS = ("recency", "practicality")  # G10: the two that do not depend on a profile


def weights_for(
    purpose: str, scoring: ScoringConfig, *, chosen: Weights | None = None, profile_free: bool = False
) -> tuple[float, ...]:
    """Return the weights of a ranking in the order of DIMENSIONS.

    `chosen` are the weights of `RankingOptions` (from the run config, else from the profile), which apply to every
    purpose. Without them the weights of the purpose apply, from `scoring` (the environment, else the default). Without
    a profile only recency and practicality have weights, which are scaled to a sum of 1.
    """
    weights = chosen.in_order if chosen else scoring.weights[purpose]
    if not profile_free:
        return weights
    is_kept = [name in PROFILE_FREE_DIMENSIONS for name in DIMENSIONS]
    shares = [weight if count else 0.0 for weight, count in zip(weights, is_kept, strict=True)]
    if not any(shares):  # a configuration may set both to 0
        shares = [1.0 if count else 0.0 for count in is_kept]
    return tuple(weight / sum(shares) for weight in shares)


def mode_bonus(dimensions: Floats, ranking_mode: str, scoring: ScoringConfig) -> Floats:
    """Return (n,) the bonus of the ranking mode: for recency in novelty, for practicality in practicality, else 0."""
    rewarded = REWARDED.get(ranking_mode)
    if rewarded is None:
        return np.zeros(len(dimensions))
    return scoring.mode_bonus * dimensions[:, DIMENSIONS.index(rewarded)]


def soft_penalty(matches: NDArray[np.bool_], scoring: ScoringConfig) -> Floats:
    """Return (n,) the penalty, 0 or less, for the soft keywords that were found (n, k)."""
    return np.maximum(scoring.soft_penalty * matches.sum(axis=1), scoring.soft_penalty_floor) + 0.0  # no -0.0


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
    """Return final scores (n,) from dimensions (n, 6), by the formula of the module's docstring.

    `learned` (n,) is by how much ratings change relevance (None: 0); the other arrays are (n,) too.
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
    """Return the row numbers (n,) from the best to the last.

    Papers are ordered by each of the keys `before`, then by final score, the highest first; ties go to the newer day
    (unknown days last), then to the smaller paper_id.
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


Vectors = NDArray[np.float32]
Bools = NDArray[np.bool_]


def repeating(
    final: Floats,
    lowered: Floats,
    vectors: Vectors,
    *,
    days: Floats,
    paper_ids: pa.ChunkedArray,
    places: int,
    similarity: float,
) -> Bools:
    """Return (n,) which papers are lowered: those with a cosine of at least `similarity` to a chosen paper.

    The choice is greedy. The best paper is chosen; papers similar to it change, once, from their `final` to their
    `lowered` score; the best of the rest is chosen, and so on until all `places` are filled. A chosen paper is compared
    with those chosen before it, any other paper with all chosen ones. Ties as in `best_first`. A paper without a vector
    (a row of zeros) is similar to none.

    Scores only fall during the choice, so no paper can overtake one that was chosen before: `best_first` of the
    resulting scores gives the greedy order.
    """
    current, repeat = final.copy(), np.zeros(len(final), dtype=bool)
    left = np.ones(len(final), dtype=bool)  # not chosen
    for _ in range(min(places, len(final))):
        equal = np.flatnonzero(left & (current == current[left].max()))
        best = int(equal[best_first(current[equal], days[equal], paper_ids.take(equal))[0]])
        left[best] = False
        near = left & ~repeat & alike(vectors, vectors[[best]], similarity)[:, 0]
        repeat |= near
        current[near] = lowered[near]
    return repeat


def alike(one: Vectors, other: Vectors, similarity: float) -> Bools:
    """Return (n, m) whether the cosine of each row of (n, d) to each row of (m, d) is at least `similarity`.

    It is never true for a row of zeros.
    """
    return signed_cosines(one, other) >= similarity
