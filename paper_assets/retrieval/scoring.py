"""Score the documents that meet a filter by meaning, by words or both, and select the k best (SPEC R2, R5, R8).

Approximate cosines select; float64 cosines of the few that may be among the best decide. Equal vectors get equal scores
whatever the other documents are, and ties are broken by id.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paper_assets.settings import RetrievalConfig
from paper_assets.text.bm25 import QueryWord, query_words, shares_of

Method = Literal["vector", "lexical", "hybrid"]
Positions = NDArray[np.intp]

_FACTOR_WITHOUT_WORDS = 1e-6  # factor of the cosine for documents that share no word, when words decide
_AT_ONCE = 4_096  # vectors converted to float64 at once


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingDocuments:
    """Access to m matching documents by position from 0, wherever they are stored.

    `undated`: how many more lack only a date. `word_counts`: counts of q words (q, m) and text lengths (m,).
    `approximate_cosines`: cosines (m,) and their error bound. `exact_vectors`: the vectors of some; None if the cosines
    are exact already.
    """

    embedded: NDArray[np.bool_]
    undated: int
    word_counts: Callable[[Sequence[QueryWord]], tuple[NDArray[np.integer], NDArray[np.integer]]]
    approximate_cosines: Callable[[NDArray[np.float32]], tuple[NDArray[np.float64], float]]
    exact_vectors: Callable[[Positions], NDArray[np.float32]] | None
    doc_ids: Callable[[Positions], list[str]]
    documents: Callable[[Positions], list[dict[str, Any]]]


def method_of(method: Method, embedded: NDArray[np.bool_], *, model: bool, config: RetrievalConfig) -> Method:
    """Return the method to use: words alone without a model, or if most documents have no vector."""
    bare = len(embedded) - int(np.count_nonzero(embedded))
    if not model or bare > config.most_unembedded * len(embedded):
        return "lexical"
    return method


def best_of(
    matching: MatchingDocuments,
    question: str,
    query_vector: NDArray[np.float32] | None,
    *,
    method: Method,
    k: int,
    config: RetrievalConfig,
) -> tuple[Positions, list[float]]:
    """Return the positions of the k best and their scores, best first.

    The score is (1 - share) * cosine + share * words. A document without a vector gets the cosine that documents with
    as many of the words usually have, and is left out if it shares no word. If words alone are compared although there
    is a query vector, documents that share no word come last, by cosine.
    """
    embedded = matching.embedded
    words = np.zeros(len(embedded))
    if len(embedded) and (method != "vector" or not embedded.all()):
        terms = query_words(question)
        words = shares_of(terms, *matching.word_counts(terms), k1=config.bm25_k1, b=config.bm25_b)
    if method == "lexical" or query_vector is None:
        missing = k - int(np.count_nonzero(words))
        without_words = np.flatnonzero(embedded & (words == 0))
        if query_vector is not None and missing > 0 and len(without_words):
            approximate, tolerance = matching.approximate_cosines(query_vector)
            without_words = _may_be_best(without_words, approximate[without_words], missing, tolerance)
            cosines = _cosines(matching, query_vector, without_words, approximate).clip(0.0, 1.0)
            words[without_words] = _FACTOR_WITHOUT_WORDS * cosines
        return _best(matching, words, np.flatnonzero(words > 0), k)
    share = config.lexical_share if method == "hybrid" else 0.0
    possible = np.flatnonzero(embedded | (words > 0))
    cosines = np.minimum(config.assumed_cosine + words, 1.0)
    if embedded.any():
        approximate, tolerance = matching.approximate_cosines(query_vector)
        cosines[embedded] = approximate[embedded]
        scores = (1 - share) * cosines + share * words
        possible = _may_be_best(possible, scores[possible], k, (1 - share) * tolerance)
        with_vector = possible[embedded[possible]]
        cosines[with_vector] = _cosines(matching, query_vector, with_vector, approximate).clip(-1.0, 1.0)
    return _best(matching, (1 - share) * cosines + share * words, possible, k)


def _may_be_best(positions: Positions, scores: NDArray[np.float64], k: int, tolerance: float) -> Positions:
    """Return the positions that may be among the k best, given the error bound of the scores."""
    if len(positions) <= k:
        return positions
    kept: Positions = positions[scores >= np.partition(scores, len(scores) - k)[len(scores) - k] - 2 * tolerance]
    return kept


def _cosines(
    matching: MatchingDocuments,
    query_vector: NDArray[np.float32],
    positions: Positions,
    approximate: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return exact cosines of some documents, in float64."""
    if matching.exact_vectors is None:
        return approximate[positions]
    found = np.zeros(len(positions))
    for start in range(0, len(positions), _AT_ONCE):
        vectors = matching.exact_vectors(positions[start : start + _AT_ONCE])
        found[start : start + _AT_ONCE] = (vectors.astype(np.float64) * query_vector.astype(np.float64)).sum(axis=1)
    return found


def rows_in_blocks(rows: Positions, sizes: Sequence[int]) -> Iterator[tuple[int, Positions]]:
    """Split ascending rows over consecutive blocks: each block with any of them, and the rows within it."""
    ends = np.cumsum(sizes)
    places = np.searchsorted(rows, [0, *ends])
    for number, end in enumerate(ends):
        within = rows[places[number] : places[number + 1]]
        if len(within):
            yield number, within - (end - sizes[number])


def _best(
    matching: MatchingDocuments, scores: NDArray[np.float64], possible: Positions, k: int
) -> tuple[Positions, list[float]]:
    """Return the k possible positions with the highest scores, and these; ties by id."""
    if len(possible) > k:
        among = scores[possible]
        possible = possible[among >= np.partition(among, len(among) - k)[len(among) - k]]
    ids = matching.doc_ids(possible)
    order = sorted(range(len(possible)), key=lambda at: (-scores[possible[at]], ids[at]))[:k]
    best = possible[order] if order else possible[:0]
    return best, scores[best].tolist()
