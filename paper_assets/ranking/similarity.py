"""Compare vectors of papers with a few texts, and with the papers that match an interest best.

Cosines are reproducible to the last bit: that of a paper does not depend on which other papers are computed with it, or
in which order.

An interest names its topic in a few words, and papers use many other words for it. The papers that match the interest
best are assumed to be on its topic, and similarity to them counts for a paper: Rocchio's relevance feedback, without
the judgement of a reader (pseudo-relevance feedback). `calibration.py` standardizes the result and adds it to the
logit.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROWS_AT_ONCE = 256  # 0.8 MB of float64 at 384 dimensions, and the same for products: both fit in the cache


def cosines(vectors: NDArray[np.float32], texts: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n, t) cosine of each row of (n, d) to each row of (t, d), clamped to 0..1; a zero vector is 0."""
    return np.clip(signed_cosines(vectors, texts), 0.0, 1.0)


def signed_cosines(
    vectors: NDArray[np.float32], texts: NDArray[np.float32] | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return (n, t) cosine of each row of (n, d) to each row of (t, d), from -1 to 1; a zero vector is 0.

    Row by row in float64, not by a matrix product: BLAS lets the last bits of a row depend on its neighbours, and
    a score must not depend on the order of the papers.
    """
    queries = np.ascontiguousarray(texts, dtype=np.float64)
    norms = [np.sqrt((query * query).sum()) for query in queries]
    result = np.zeros((len(queries), len(vectors)))
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        rows = np.ascontiguousarray(vectors[start : start + _ROWS_AT_ONCE], dtype=np.float64)
        buffer = np.empty_like(rows)
        lengths = np.sqrt(np.multiply(rows, rows, out=buffer).sum(axis=1))
        for number, query in enumerate(queries):
            products, lengths_product = np.multiply(rows, query, out=buffer).sum(axis=1), lengths * norms[number]
            np.divide(
                products, lengths_product, out=result[number, start : start + len(rows)], where=lengths_product > 0
            )
    return np.nan_to_num(result).T


_DECIMALS = 9  # logits that are equal to this many decimals differ by rounding only


def similarity_to_best(vectors: NDArray[np.float32], logits: Floats, *, most: int, otherwise: float) -> Floats:
    """Return similarity (i, n): the mean cosine of each of n papers to the best matches of each of i interests.

    `vectors` (n, d) are those of the papers, `logits` (i, n) how well papers match each interest. The best matches are
    the `most` papers with the highest logits; in the mean each has its probability as weight. A paper is not compared
    with itself and its copies (papers with the same vector); if no best match is left, its similarity is `otherwise`.
    """
    if not logits.size:
        return np.zeros_like(logits)
    best = [_best(vectors, row, most) for row in logits]
    units = [_units(vectors[rows]) for rows in best]
    weights = [_relative_probability(row[rows]) for row, rows in zip(logits, best, strict=True)]
    sums = np.stack([weights_of_best @ unit for weights_of_best, unit in zip(weights, units, strict=True)])
    similarity = np.ascontiguousarray((signed_cosines(vectors, sums) * np.sqrt((sums * sums).sum(axis=1))).T)
    for row, rows, weights_of_best in zip(similarity, best, weights, strict=True):
        weight_left = np.full(len(row), weights_of_best.sum())
        count_left = np.full(len(row), len(rows))
        for paper, own_weight in zip(rows, weights_of_best, strict=True):
            copies = _copies(vectors, paper)
            row[copies] -= own_weight if vectors[paper].any() else 0.0  # its cosine to itself is 1
            weight_left[copies] -= own_weight
            count_left[copies] -= 1
        row[:] = np.where(count_left > 0, row / np.where(count_left > 0, weight_left, 1.0), otherwise)
    return similarity


def _best(vectors: NDArray[np.float32], logits: Floats, most: int) -> NDArray[np.intp]:
    """Return the rows of the `most` highest logits (n,); equal ones are ordered by vector, not by position."""
    return np.lexsort((vectors[:, 0], -np.round(logits, _DECIMALS)))[:most]


def _copies(vectors: NDArray[np.float32], paper: np.intp) -> NDArray[np.intp]:
    """Return the rows of the papers with the same vector as row `paper`, including that row."""
    alike = np.flatnonzero(vectors[:, 0] == vectors[paper, 0])
    return alike[(vectors[alike] == vectors[paper]).all(axis=1)]


def _units(vectors: NDArray[np.float32]) -> Floats:
    """Return vectors (n, d) scaled to length 1; a zero vector stays zero."""
    rows = np.nan_to_num(vectors.astype(np.float64))
    lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _relative_probability(logits: Floats) -> Floats:
    """Return probabilities (n,) divided by the highest of them, and at least 1e-6.

    Only their ratios matter for a weighted mean, and this form is exact also if all of them are very small.
    """
    falling = np.log1p(np.exp(-np.abs(logits))) + np.maximum(-logits, 0.0)  # -ln of the probability
    return np.maximum(np.exp(falling.min() - falling), 1e-6)
