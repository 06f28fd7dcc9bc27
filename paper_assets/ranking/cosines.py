"""Compute cosines between the vectors of papers and of a few texts, reproducible to the last bit.

The cosine of a paper does not depend on which other papers are computed with it, or in which order.
"""

import numpy as np
from numpy.typing import NDArray

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
