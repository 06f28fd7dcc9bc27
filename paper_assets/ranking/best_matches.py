"""Pseudo-relevance feedback: the papers that match an interest best say what else belongs to it.

An interest names its topic in a few words, papers in many others. What a paper shares with the best matches counts for
it too (Rocchio's feedback, without a reader's judgement).
"""

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking.cosines import signed_cosines

Floats = NDArray[np.float64]

_DECIMALS = 9  # beyond them logits are equal: they differ by rounding only


def likeness_to_best(vectors: NDArray[np.float32], logits: Floats, *, most: int, otherwise: float) -> Floats:
    """Return (i, n) the mean cosine of each of n papers (n, d) to the `most` that match an interest best, itself and
    its copies left out; `otherwise` where none of them is left.

    `logits` (i, n): how well papers match each interest. The best count by their probability.
    """
    if not logits.size:
        return np.zeros_like(logits)
    best = [_best(vectors, row, most) for row in logits]
    units = [_units(vectors[rows]) for rows in best]
    weights = [_relative_probability(row[rows]) for row, rows in zip(logits, best, strict=True)]
    sums = np.stack([weight @ unit for weight, unit in zip(weights, units, strict=True)])
    found = np.ascontiguousarray((signed_cosines(vectors, sums) * np.sqrt((sums * sums).sum(axis=1))).T)
    for row, rows, weight in zip(found, best, weights, strict=True):
        others = np.full(len(row), weight.sum())
        left = np.full(len(row), len(rows))
        for paper, counted in zip(rows, weight, strict=True):
            copies = _copies(vectors, paper)
            row[copies] -= counted if vectors[paper].any() else 0.0  # its cosine to itself is 1
            others[copies] -= counted
            left[copies] -= 1
        row[:] = np.where(left > 0, row / np.where(left > 0, others, 1.0), otherwise)
    return found


def _best(vectors: NDArray[np.float32], logits: Floats, most: int) -> NDArray[np.intp]:
    """Return the numbers of the best, which do not depend on the order of the papers: of equals, the vectors decide."""
    found: NDArray[np.intp] = np.lexsort((vectors[:, 0], -np.round(logits, _DECIMALS)))[:most]
    return found


def _copies(vectors: NDArray[np.float32], paper: np.intp) -> NDArray[np.intp]:
    """Return the numbers of the papers with the same vector, the paper's own among them."""
    alike = np.flatnonzero(vectors[:, 0] == vectors[paper, 0])
    found: NDArray[np.intp] = alike[(vectors[alike] == vectors[paper]).all(axis=1)]
    return found


def _units(vectors: NDArray[np.float32]) -> Floats:
    rows = np.nan_to_num(vectors.astype(np.float64))
    lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _relative_probability(logits: Floats) -> Floats:
    """Return probabilities as shares of the highest, and at least a millionth of it: how much is expected of all of
    them does not matter.
    """
    falling = np.log1p(np.exp(-np.abs(logits))) + np.maximum(-logits, 0.0)  # -ln of the probability
    return np.maximum(np.exp(falling.min() - falling), 1e-6)
