"""Plain, slow reference of diversity: at each step every paper that is left is compared with every chosen one.

The reference for `ranking/scoring.py`, in its tests and in `benchmarks/diversity_contrast.py`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Cosine of two vectors; 0 if one of them is zero."""
    lengths = np.sqrt(one @ one) * np.sqrt(other @ other)
    return float(one @ other / lengths) if lengths else 0.0


def greedy(
    final: Sequence[float],
    lowered: Sequence[float],
    vectors: NDArray[np.float64],
    ties: Sequence[tuple[float, str]],
    *,
    places: int,
    similarity: float,
) -> tuple[list[int], list[bool]]:
    """The order of all papers, the chosen ones first, and which of them were lowered. The lower tie comes first."""
    left = list(range(len(final)))
    chosen: list[int] = []
    lost = [False] * len(final)

    def standing(row: int) -> tuple[float, tuple[float, str]]:
        return -(lowered[row] if lost[row] else final[row]), ties[row]

    def measure() -> None:
        for row in left:
            lost[row] = any(cosine(vectors[row], vectors[other]) >= similarity for other in chosen)

    for _ in range(min(places, len(final))):
        measure()
        chosen.append(min(left, key=standing))
        left.remove(chosen[-1])
    measure()
    return chosen + sorted(left, key=standing), lost
