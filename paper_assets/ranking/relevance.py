"""Semantic relevance: how near a paper is to a profile's interests by meaning (SPEC G4) or by keywords (G6)."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.profile import Interests
from paper_assets.ranking.keywords import distinct, keywords_in
from paper_assets.text.forward_index import IndexedTexts
from paper_assets.text.words import SMALL_WORDS, normal_form

_ROWS_AT_ONCE = 256  # 0.8 MB of float64 at 384 dimensions, and as much of products: they stay in the cache


def interest_text(interests: Interests, *, repeats: Sequence[int]) -> str:
    """The text that stands for a profile: primary interests `repeats[0]` times, secondary and exploratory as often.

    Written in rounds, all interests first, because the model reads only the first 256 word pieces: what is
    cut is then a repetition and not an interest.
    """
    lanes = _lanes(interests)
    return ". ".join(
        interest
        for round_ in range(max(repeats))
        for times, lane in zip(repeats, lanes, strict=True)
        if round_ < times
        for interest in lane
    )


def cosines(vectors: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n, t) cosine of each row of (n, d) to each row of (t, d), clamped to 0..1; a zero vector is 0.

    Row by row in float64, not by a matrix product: BLAS lets the last bits of a row depend on its neighbours, and
    a score must not depend on the order of the papers.
    """
    queries = np.ascontiguousarray(texts, dtype=np.float64)
    norms = [np.sqrt((query * query).sum()) for query in queries]
    found = np.zeros((len(queries), len(vectors)))
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        rows = np.ascontiguousarray(vectors[start : start + _ROWS_AT_ONCE], dtype=np.float64)
        room = np.empty_like(rows)
        lengths = np.sqrt(np.multiply(rows, rows, out=room).sum(axis=1))
        for number, query in enumerate(queries):
            products, both = np.multiply(rows, query, out=room).sum(axis=1), lengths * norms[number]
            np.divide(products, both, out=found[number, start : start + len(rows)], where=both > 0)
    return np.clip(np.nan_to_num(found), 0.0, 1.0).T


def keyword_relevance(
    texts: pa.ChunkedArray | IndexedTexts, interests: Interests, *, repeats: Sequence[int]
) -> NDArray[np.float64]:
    """Without a model: the mean, weighted as in `interest_text`, of the share of each interest's words in the text."""
    asked = [
        (times, _words(interest))
        for times, lane in zip(repeats, _lanes(interests), strict=True)
        for interest in lane
        if times and _words(interest)
    ]
    relevance = np.zeros(len(texts))
    if not asked:
        return relevance
    vocabulary = list(dict.fromkeys(word for _, words in asked for word in words))
    found = keywords_in(texts, vocabulary)
    column = {word: position for position, word in enumerate(vocabulary)}
    for times, words in asked:
        relevance += times * (found[:, [column[word] for word in words]].sum(axis=1) / len(words))
    return relevance / sum(times for times, _ in asked)


def _lanes(interests: Interests) -> tuple[list[str], list[str], list[str]]:
    return interests.primary, interests.secondary, interests.exploratory


def _words(interest: str) -> list[str]:
    words = distinct(normal_form(interest).split())
    return [word for word in words if word not in SMALL_WORDS] or words
