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
class Compared:
    """Access to m matching documents by position from 0, wherever they are stored.

    `undated`: how many more lack only a date. `times`: counts of q words (q, m) and lengths (m,). `rough`: cosines (m,)
    and their error bound. `exact`: the vectors of some; None if the cosines are exact already.
    """

    embedded: NDArray[np.bool_]
    undated: int
    times: Callable[[Sequence[QueryWord]], tuple[NDArray[np.integer], NDArray[np.integer]]]
    rough: Callable[[NDArray[np.float32]], tuple[NDArray[np.float64], float]]
    exact: Callable[[Positions], NDArray[np.float32]] | None
    doc_ids: Callable[[Positions], list[str]]
    documents: Callable[[Positions], list[dict[str, Any]]]


def method_of(asked: Method, embedded: NDArray[np.bool_], *, model: bool, config: RetrievalConfig) -> Method:
    """Return the method to use: words alone without a model, or if most documents have no vector."""
    bare = len(embedded) - int(np.count_nonzero(embedded))
    if not model or bare > config.most_unembedded * len(embedded):
        return "lexical"
    return asked


def best_of(
    compared: Compared,
    question: str,
    asked: NDArray[np.float32] | None,
    *,
    method: Method,
    k: int,
    config: RetrievalConfig,
) -> tuple[Positions, list[float]]:
    """Return the positions of the k best and their scores, best first; `asked` is the query vector, if there is one.

    The score is (1 - share) * cosine + share * words. A document without a vector gets the cosine that documents with
    as many of the words usually have, and is left out if it shares no word. If words alone are compared although there
    is a query vector, documents that share no word come last, by cosine.
    """
    embedded = compared.embedded
    words = np.zeros(len(embedded))
    if len(embedded) and (method != "vector" or not embedded.all()):
        terms = query_words(question)
        words = shares_of(terms, *compared.times(terms), k1=config.bm25_k1, b=config.bm25_b)
    if method == "lexical" or asked is None:
        missing = k - int(np.count_nonzero(words))
        silent = np.flatnonzero(embedded & (words == 0))
        if asked is not None and missing > 0 and len(silent):
            rough, tolerance = compared.rough(asked)
            silent = _may_be_best(silent, rough[silent], missing, tolerance)
            words[silent] = _FACTOR_WITHOUT_WORDS * _cosines(compared, asked, silent, rough).clip(0.0, 1.0)
        return _best(compared, words, np.flatnonzero(words > 0), k)
    share = config.lexical_share if method == "hybrid" else 0.0
    possible = np.flatnonzero(embedded | (words > 0))
    cosines = np.minimum(config.assumed_cosine + words, 1.0)
    if embedded.any():
        rough, tolerance = compared.rough(asked)
        cosines[embedded] = rough[embedded]
        scores = (1 - share) * cosines + share * words
        possible = _may_be_best(possible, scores[possible], k, (1 - share) * tolerance)
        meant = possible[embedded[possible]]
        cosines[meant] = _cosines(compared, asked, meant, rough).clip(-1.0, 1.0)
    return _best(compared, (1 - share) * cosines + share * words, possible, k)


def _may_be_best(positions: Positions, scores: NDArray[np.float64], k: int, tolerance: float) -> Positions:
    """Return the positions that may be among the k best, given the error bound of the scores."""
    if len(positions) <= k:
        return positions
    kept: Positions = positions[scores >= np.partition(scores, len(scores) - k)[len(scores) - k] - 2 * tolerance]
    return kept


def _cosines(
    compared: Compared, asked: NDArray[np.float32], positions: Positions, rough: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return exact cosines of some documents, in float64."""
    if compared.exact is None:
        return rough[positions]
    found = np.zeros(len(positions))
    for start in range(0, len(positions), _AT_ONCE):
        vectors = compared.exact(positions[start : start + _AT_ONCE])
        found[start : start + _AT_ONCE] = (vectors.astype(np.float64) * asked.astype(np.float64)).sum(axis=1)
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
    compared: Compared, scores: NDArray[np.float64], possible: Positions, k: int
) -> tuple[Positions, list[float]]:
    """Return the k possible positions with the highest scores, and these; ties by id."""
    if len(possible) > k:
        among = scores[possible]
        possible = possible[among >= np.partition(among, len(among) - k)[len(among) - k]]
    ids = compared.doc_ids(possible)
    order = sorted(range(len(possible)), key=lambda at: (-scores[possible[at]], ids[at]))[:k]
    best = possible[order] if order else possible[:0]
    return best, scores[best].tolist()
