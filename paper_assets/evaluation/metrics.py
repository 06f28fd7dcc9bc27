"""How good one ranking is: nDCG, precision, recall and interest coverage, on arrays in ranked order.

A grade is a number from 0; everything above 0 is relevant. `nan` means that the question does not arise
(nothing relevant is known), and such a query is left out of means.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def ndcg(ranked: Floats, known: Floats, *, k: int) -> float:
    """Normalised discounted cumulated gain of the first k places (Järvelin & Kekäläinen, TOIS 20(4), 2002).

    `ranked`: grades (n,) of the ranked documents, best place first, 0 where unjudged; `known`: all grades of the
    query in any order, found or not. DCG = Σ grade / log2(place + 1), places from 1, linear gain as in trec_eval
    and BEIR (not 2^grade - 1), divided by the DCG of the best order there is.
    """
    best = _dcg(-np.sort(-np.maximum(known, 0.0)), k)
    return _dcg(np.maximum(ranked, 0.0), k) / best if best > 0 else float("nan")


def recall(ranked: Floats, known: Floats, *, k: int) -> float:
    """Relevant documents in the first k places by all relevant ones, as recall_k of trec_eval.

    The divisor is not capped at k: with more than k relevant documents the most one can reach is under 1.
    """
    relevant = int((known > 0).sum())
    return float((ranked[:k] > 0).sum() / relevant) if relevant else float("nan")


def precision(relevant: Bools, *, k: int) -> float:
    """Share of relevant documents in the first k places; a list that is too short for k leaves places empty."""
    return float(relevant[:k].sum() / k)


def exponential_gain(grades: Floats) -> Floats:
    """2^grade - 1, the gain that prefers one paper to be read today to two that are clearly relevant (Burges 2005)."""
    gain: Floats = np.exp2(np.maximum(grades, 0.0)) - 1.0
    return gain


def interest_coverage(ranked: Bools, *, answerable: Bools, k: int) -> float:
    """Share of a profile's interests with at least one relevant document in the first k places.

    `ranked`: (n, interests), whether each ranked document is relevant to each interest; `answerable`: (interests,),
    whether the set holds a relevant document at all: interests without one are not counted. This is subtopic recall
    (Zhai, Cohen & Lafferty, SIGIR 2003) with interests as subtopics.
    """
    if not answerable.any():
        return float("nan")
    return float(np.logical_or.reduce(ranked[:k], axis=0)[answerable].mean())


def _dcg(grades: Floats, k: int) -> float:
    top = grades[:k]
    return float((top / np.log2(np.arange(2, len(top) + 2))).sum())
