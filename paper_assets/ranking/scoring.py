"""From dimensions to an order: weights, bonus, penalty, final score, ties, diversity (SPEC G8, G9, G10, G11).

All sums run in the order of DIMENSIONS, one column after the other, so that a stored score can be recomputed from its
stored parts to the last bit. By diversity, a paper that repeats what a paper placed above it says is worth less.
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
    """Return the weights that apply, in the order of DIMENSIONS; without a profile recency and practicality share the
    total.

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
    """Return (n,) what the mode adds: recency for novelty, practicality for practicality, otherwise nothing."""
    rewarded = REWARDED.get(ranking_mode)
    if rewarded is None:
        return np.zeros(len(dimensions))
    return scoring.mode_bonus * dimensions[:, DIMENSIONS.index(rewarded)]


def soft_penalty(found: NDArray[np.bool_], scoring: ScoringConfig) -> Floats:
    """Return (n,) what the soft keywords found (n, k) take away, as a number from 0 down."""
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
    """Return (n,) weighted sum of (n, 6) plus bonus and the two penalties, clamped. `learned` (n,), by how much the
    reader's ratings moved relevance, has the weight of relevance.
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
    """Return the row numbers from the best to the last: by the keys of `before`, the highest first, then by final
    score; ties by newer day (unknown last), then by paper_id.
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

_FIRST_LOOK = 128  # papers; more only where the best of them fall
_SQUARES_IN_RANGE = (1e-18, 1e18)  # squared lengths that float32 holds well
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
    """Return (n,) which papers are lowered: those with a cosine of at least `similarity` to a chosen one.

    Greedy: the best paper is chosen; those like it fall, once, from their `final` to their `lowered` score; the best
    of the rest is chosen, and so on for all `places`. A chosen paper is held only against those chosen before it, any
    other against all of them. Ties go as in `best_first`: newer day, then paper_id. A paper without vector (zeros)
    is like none.

    `best_first` of the scores that result is the greedy order, the chosen first: while papers are chosen scores only
    fall, so none can overtake a paper that was chosen before it. For the same reason the choice need not look below
    the papers whose `final` reaches the best standing score; those are met in blocks, from the top.
    """
    order = np.argsort(-final, kind="stable")
    repeats = np.zeros(len(final), dtype=bool)
    standing = np.full(len(final), -np.inf)  # of the papers examined and not chosen
    chosen: list[int] = []
    looked = 0
    for _ in range(min(places, len(final))):
        while looked < len(final) and standing.max() <= final[order[looked]]:  # one not yet examined may be as good
            block = order[looked : max(_FIRST_LOOK, 2 * looked)]
            repeats[block] = alike(vectors[block], vectors[chosen], similarity).any(axis=1)
            standing[block] = np.where(repeats[block], lowered[block], final[block])
            looked += len(block)
        equal = np.flatnonzero(standing == standing.max())
        best = int(equal[best_first(standing[equal], days[equal], paper_ids.take(equal))[0]])
        chosen.append(best)
        standing[best] = -np.inf
        others = np.flatnonzero(np.isfinite(standing) & ~repeats)
        fall = others[alike(vectors[others], vectors[[best]], similarity)[:, 0]]
        repeats[fall] = True
        standing[fall] = lowered[fall]
    rest = np.ones(len(final), dtype=bool)
    rest[order[:looked]] = False
    return repeats | (rest & alike(vectors, vectors[chosen], similarity).any(axis=1))


def alike(one: Vectors, other: Vectors, similarity: float) -> Bools:
    """Return (n, m) where the cosine of a row of (n, d) to a row of (m, d) is at least `similarity`; never for a zero
    row.

    A matrix product in float32 decides all but the close cases, which are summed row by row in float64: the last bits
    of a product depend on its neighbours, and who is alike must not depend on the order of the papers.
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
    """Return (n,) lengths; infinite for a zero row, which makes it like none; NaN, which is never sure, for an odd
    one.
    """
    squares = np.einsum("ij,ij->i", vectors, vectors)
    low, high = _SQUARES_IN_RANGE
    lengths = np.where((squares > low) & (squares < high), np.sqrt(squares), np.float32(np.nan))
    lengths[squares == 0] = np.inf
    return lengths
