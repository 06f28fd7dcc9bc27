"""Choose papers whose rating would teach most (SPEC L5): questions for a day, and a first set for a new reader.

A rating moves the log odds of similar papers. The model's prior says by how much: the covariance of two papers' shifts
is the most cautious model's text variance times their cosine. The next paper to ask about is the one whose answer is
expected to reduce the variance of the shifts most, summed over the papers near the reader's interests and weighted by
their probability of being worth reading. Each chosen paper counts as answered for the next choice, so that the choices
are spread. The first set is simpler: the most probable papers, less what they repeat of each other.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.learning.preference_model import TEXT_VARIANCES
from paper_assets.ranking.levels import probability_of

Floats = NDArray[np.float64]

MOST = 3  # questions a day
FIRST_SET = 12  # papers of the view for a new reader
FEW_RATINGS = 10  # with fewer the reader is new
REPETITION = 0.5  # of probability, that a paper loses in the first set for being the same as a chosen one
_NEIGHBOURHOOD = 300  # papers, the most probable ones
_NOT_SURE = 0.05, 0.95  # outside, the answer is known well enough
_TEXT_VARIANCE = TEXT_VARIANCES[0]
_NOISE = 4.0  # variance of one rating as a measurement of log odds, 1 / (p (1 - p)) at p = 0.5


def questions(
    rows: Sequence[Mapping[str, Any]],
    rated: Collection[str],
    *,
    vectors: Mapping[str, NDArray[np.float32]],
    count: int = MOST,
) -> list[str]:
    """Return the ids of the papers to ask about, out of the rows of a ranking with a threshold.

    Papers without a vector are left out, and shown ones, which can be rated in the list.
    """
    near = _most_probable(rows, vectors)
    if not near:
        return []
    rated_vectors = [vectors[paper_id] for paper_id in sorted(rated) if paper_id in vectors]
    probability = np.array([probability_of(row) for row in near])
    allowed = np.array(
        [
            row["paper_id"] not in rated and not row["shown"] and _NOT_SURE[0] <= probability_of(row) <= _NOT_SURE[1]
            for row in near
        ]
    )
    chosen = most_informative(
        np.array([vectors[row["paper_id"]] for row in near]),
        probability,
        allowed,
        known=np.array(rated_vectors),
        count=count,
    )
    return [near[at]["paper_id"] for at in chosen]


def first_set(
    rows: Sequence[Mapping[str, Any]], rated: Collection[str], *, vectors: Mapping[str, NDArray[np.float32]]
) -> list[str]:
    """Return the ids of the `FIRST_SET` papers that a new reader is to rate first, out of the rows of a ranking.

    Maximal marginal relevance (Carbonell & Goldstein 1998): each next paper has the highest probability, less
    `REPETITION` times its cosine to the most similar chosen or rated one. Papers without a vector are left out.
    """
    near = [row for row in _most_probable(rows, vectors) if row["paper_id"] not in rated]
    if not near:
        return []
    probability = np.array([probability_of(row) for row in near])
    unit = np.array([vectors[row["paper_id"]] for row in near], dtype=np.float64)
    repeated, chosen = np.full(len(near), -1.0), list[int]()
    for paper_id in rated:
        if paper_id in vectors:
            repeated = np.maximum(repeated, unit @ vectors[paper_id])
    while len(chosen) < min(FIRST_SET, len(near)):
        worth = probability - REPETITION * repeated
        worth[chosen] = -np.inf
        best = int(np.argmax(worth))
        repeated = np.maximum(repeated, unit @ unit[best])
        chosen.append(best)
    return [near[at]["paper_id"] for at in chosen]


def _most_probable(
    rows: Sequence[Mapping[str, Any]], vectors: Mapping[str, NDArray[np.float32]]
) -> list[Mapping[str, Any]]:
    embedded = (row for row in rows if row["paper_id"] in vectors)
    return sorted(embedded, key=lambda row: (-probability_of(row), row["rank"]))[:_NEIGHBOURHOOD]


def most_informative(
    vectors: NDArray[np.float32],
    probability: Floats,
    allowed: NDArray[np.bool_],
    *,
    known: NDArray[np.float32],
    count: int,
) -> list[int]:
    """Return up to `count` of n allowed papers, the most informative first.

    `vectors` (n, d) are unit vectors, `probability` (n,) of being worth reading, `known` (k, d) those of rated papers.
    """
    unit = vectors.astype(np.float64)
    covariance = _TEXT_VARIANCE * (unit @ unit.T)
    if len(known):
        rated = known.astype(np.float64)
        cross = _TEXT_VARIANCE * (unit @ rated.T)
        among = _TEXT_VARIANCE * (rated @ rated.T) + _NOISE * np.eye(len(rated))
        covariance -= cross @ np.linalg.solve(among, cross.T)
    noise = 1.0 / np.clip(probability * (1.0 - probability), 0.01, None)
    left, chosen = allowed.copy(), list[int]()
    while len(chosen) < count and left.any():
        spread = covariance.diagonal() + noise
        gain = np.where(left, (probability @ covariance**2) / spread, -np.inf)
        best = int(np.argmax(gain))
        chosen.append(best)
        left[best] = False
        covariance = covariance - np.outer(covariance[:, best], covariance[best]) / spread[best]
    return chosen
