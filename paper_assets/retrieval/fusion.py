"""Fusion of rankings whose scores cannot be compared (SPEC M2)."""

from collections.abc import Sequence
from math import fsum


def reciprocal_rank_fusion(rankings: Sequence[Sequence[str]], *, constant: int = 60) -> dict[str, float]:
    """Score of each id: the sum of 1 / (constant + rank) over the rankings that hold it, rank from 1.

    An id that a ranking names twice counts once there, at its better place. The order of the rankings does not
    matter, to the last bit. Ids come in the order of their score, ties by id. Cormack, Clarke & Buettcher (2009).
    """
    shares: dict[str, list[float]] = {}
    for ranking in rankings:
        for place, doc_id in enumerate(dict.fromkeys(ranking), 1):
            shares.setdefault(doc_id, []).append(1.0 / (constant + place))
    fused = ((doc_id, fsum(parts)) for doc_id, parts in shares.items())
    return dict(sorted(fused, key=lambda scored: (-scored[1], scored[0])))
