"""Diversity: a paper that says again what a paper placed above it says is worth less (SPEC G11)."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.ranking.scoring import best_first

Floats = NDArray[np.float64]
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
    """(n,) which papers are lowered: those with a cosine of at least `similarity` to a chosen one.

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
    standing = np.full(len(final), -np.inf)  # of the papers looked at and not chosen
    chosen: list[int] = []
    looked = 0
    for _ in range(min(places, len(final))):
        while looked < len(final) and standing.max() <= final[order[looked]]:  # one not yet looked at may be as good
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
    """(n, m) where the cosine of a row of (n, d) to a row of (m, d) is at least `similarity`; never for a zero row.

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
    """(n,) lengths; infinite for a zero row, which makes it like none; NaN, which is never sure, for an odd one."""
    squares = np.einsum("ij,ij->i", vectors, vectors)
    low, high = _SQUARES_IN_RANGE
    lengths = np.where((squares > low) & (squares < high), np.sqrt(squares), np.float32(np.nan))
    lengths[squares == 0] = np.inf
    return lengths
