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

_FIRST_LOOK = 128  # papers compared at first; more follow if the best of them are lowered
_SQUARES_IN_RANGE = (1e-18, 1e18)  # squared lengths that float32 represents well
_ROWS_AT_ONCE = 4096  # 25 MB of float64 at 384 dimensions


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
    resulting scores gives the greedy order. For the same reason only papers whose `final` is at least the best current
    score need to be compared; they are read in blocks, from the highest `final` down.
    """
    order = np.argsort(-final, kind="stable")
    repeat = np.zeros(len(final), dtype=bool)
    current = np.full(len(final), -np.inf)  # current scores of the papers that were compared and not chosen
    chosen: list[int] = []
    compared = 0
    for _ in range(min(places, len(final))):
        while compared < len(final) and current.max() <= final[order[compared]]:  # the next one may be as good
            block = order[compared : max(_FIRST_LOOK, 2 * compared)]
            repeat[block] = alike(vectors[block], vectors[chosen], similarity).any(axis=1)
            current[block] = np.where(repeat[block], lowered[block], final[block])
            compared += len(block)
        equal = np.flatnonzero(current == current.max())
        best = int(equal[best_first(current[equal], days[equal], paper_ids.take(equal))[0]])
        chosen.append(best)
        current[best] = -np.inf
        others = np.flatnonzero(np.isfinite(current) & ~repeat)
        lowered_now = others[alike(vectors[others], vectors[[best]], similarity)[:, 0]]
        repeat[lowered_now] = True
        current[lowered_now] = lowered[lowered_now]
    rest = np.ones(len(final), dtype=bool)
    rest[order[:compared]] = False
    return repeat | (rest & alike(vectors, vectors[chosen], similarity).any(axis=1))


def alike(one: Vectors, other: Vectors, similarity: float) -> Bools:
    """Return (n, m) whether the cosine of each row of (n, d) to each row of (m, d) is at least `similarity`.

    It is never true for a row of zeros. A matrix product in float32 decides all but the close cases. These are computed
    row by row in float64, because the last bits of a matrix product depend on the other rows, and the result must not
    depend on the order of the papers.
    """
    lengths_one, lengths_other = _lengths(one), _lengths(other)
    with np.errstate(all="ignore"):
        rough = (one @ other.T) / lengths_one[:, None] / lengths_other
        # The error of a float32 sum of d products of unit vectors is below d / 2 eps; the divisions add a few eps.
        sure = np.abs(rough - similarity) > (one.shape[1] + 8) * np.finfo(np.float32).eps
        result: Bools = sure & (rough > similarity)
        rows, columns = np.nonzero(~sure)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            a, b = one[rows[part]].astype(np.float64), other[columns[part]].astype(np.float64)
            cosines = (a * b).sum(axis=1) / (np.sqrt((a * a).sum(axis=1)) * np.sqrt((b * b).sum(axis=1)))
            result[rows[part], columns[part]] = cosines >= similarity
    return result


def _lengths(vectors: Vectors) -> Vectors:
    """Return (n,) the lengths of vectors (n, d).

    Infinite for a row of zeros, so that its cosines are 0; NaN where float32 is not exact enough, so that the rough
    comparison in `alike` does not decide.
    """
    squares = np.einsum("ij,ij->i", vectors, vectors)
    low, high = _SQUARES_IN_RANGE
    lengths = np.where((squares > low) & (squares < high), np.sqrt(squares), np.float32(np.nan))
    lengths[squares == 0] = np.inf
    return lengths
