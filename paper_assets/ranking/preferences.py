"""Apply what a reader's ratings have taught: shift the log odds that a paper is worth reading (SPEC L2, L4).

    log odds of p' = log odds of p + (weights of the vector · the paper's unit vector)
                     + (weights of stems · the paper's TF-IDF) + (weights of LEARNED_DIMENSIONS · the paper's values)

p is the probability by the formula of `calibration.py`. Without ratings p' is p to the last bit. The difference
`learned = p' - p` is shown beside the six dimensions, and has the weight of relevance in the final score. This module
applies and explains a model; `learning/` trains it and decides how much it counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking.term_matching import Background, unit_tfidf
from paper_assets.text.forward_index import IndexedTexts
from paper_assets.weights import DIMENSIONS

Floats = NDArray[np.float64]

# The dimensions whose importance is learned. Relevance is not among them because the shift is added to it, and recency
# is not because it depends on when a paper was rated.
LEARNED_DIMENSIONS = tuple(name for name in DIMENSIONS if name not in ("semantic_relevance", "recency"))
_SHOWN_WORDS, _SHOWN_NEAR = 3, 2
_ROWS_AT_ONCE = 4096
_SURE = 30.0  # log odds are limited to this absolute value


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """A trained model.

    Attributes:
        vector: (d,) weights of the components of a paper's vector.
        words: weights of stems.
        dimensions: (4,) weights of LEARNED_DIMENSIONS.
        rated: ids of the r papers that it was trained on.
        vectors: (r, d) vectors of these papers.
        pull: (r,) how strongly each raises (or lowers, if negative) papers similar to it.
        version: a hash of all of this.
    """

    vector: Floats
    words: Mapping[str, float]
    dimensions: Floats
    rated: tuple[str, ...]
    vectors: NDArray[np.float32]
    pull: Floats
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """What a model changes for n papers, and why.

    `values` (n,) are the shifts of the log odds. `words` are for each paper the stems that contribute most, with + or
    -; `near` the rated papers that contribute most.
    """

    values: Floats
    words: tuple[tuple[str, ...], ...]
    near: tuple[tuple[str, ...], ...]


def log_odds(probability: Floats | float) -> Floats:
    """Return ln(p / (1 - p)), within ±30."""
    with np.errstate(divide="ignore"):
        odds: Floats = np.clip(np.log(probability) - np.log1p(-probability), -_SURE, _SURE)
    return odds


def shifted(probability: Floats, shift: Floats) -> Floats:
    """Return (n,) the probabilities with `shift` (n,) added to their log odds; exactly the same where it is 0."""
    moved = 1.0 / (1.0 + np.exp(-(log_odds(probability) + shift)))
    return np.where(shift == 0.0, probability, moved)


def learned_features(dimensions: Floats) -> Floats:
    """Return the columns LEARNED_DIMENSIONS (n, 4) of the dimensions (n, 6)."""
    return dimensions[:, [DIMENSIONS.index(name) for name in LEARNED_DIMENSIONS]]


def scaled(preferences: Preferences, share: float) -> Preferences:
    """Return the model with all shifts multiplied by `share`, from 0 to 1: how much the model counts (L3)."""
    return replace(
        preferences,
        vector=share * preferences.vector,
        words={stem: share * weight for stem, weight in preferences.words.items()},
        dimensions=share * preferences.dimensions,
        pull=share * preferences.pull,
    )


def shift_of(
    preferences: Preferences,
    *,
    vectors: NDArray[np.float32] | None,
    words: IndexedTexts | None,
    dimensions: Floats,
    background: Background,
) -> Shift:
    """Apply the model to n papers: their vectors (n, d), words and dimensions (n, 6); None if not available.

    The result of a paper does not depend on the other papers, to the last bit.
    """
    count = len(dimensions)
    # A model trained before a dimension was added has fewer weights: dimensions are only ever appended.
    learned = learned_features(dimensions)[:, : len(preferences.dimensions)]
    values = (learned * preferences.dimensions).sum(axis=1)
    telling: list[tuple[str, ...]] = [()] * count
    if words is not None:
        by_words, telling = _by_words(preferences, words, background)
        values = values + by_words
    near: list[tuple[str, ...]] = [()] * count
    if vectors is not None:
        values = values + _by_vectors(preferences.vector, vectors)
        near = _nearest(preferences, vectors, values)
    return Shift(values=values, words=tuple(telling), near=tuple(near))


def strongest_stems(words: Mapping[str, float], most: int) -> tuple[list[str], list[str]]:
    """Return the `most` stems with the highest positive weights, and the `most` with the lowest negative ones."""
    by_weight = sorted(words, key=lambda stem: (-words[stem], stem))
    return [stem for stem in by_weight[:most] if words[stem] > 0], [
        stem for stem in by_weight[::-1][:most] if words[stem] < 0
    ]


def _by_words(
    preferences: Preferences, words: IndexedTexts, background: Background
) -> tuple[Floats, list[tuple[str, ...]]]:
    tfidf, stems = unit_tfidf(words, background=background)
    weights = np.array([preferences.words.get(stem, 0.0) for stem in stems])
    contributions = tfidf.copy()
    contributions.data = tfidf.data * weights[tfidf.indices]
    rows = np.repeat(np.arange(tfidf.shape[0]), np.diff(tfidf.indptr))
    total: Floats = np.bincount(rows, weights=contributions.data, minlength=tfidf.shape[0]).astype(np.float64)
    telling = []
    for row in range(tfidf.shape[0]):
        part = slice(contributions.indptr[row], contributions.indptr[row + 1])
        data, columns = contributions.data[part], contributions.indices[part]
        order = np.argsort(-np.abs(data), kind="stable")[:_SHOWN_WORDS]
        telling.append(tuple(f"{'+' if data[at] > 0 else '-'}{stems[columns[at]]}" for at in order if data[at]))
    return total, telling


def _by_vectors(weights: Floats, vectors: NDArray[np.float32]) -> Floats:
    """Return the products (n,) of vectors (n, d) and weights (d,).

    They are computed row by row in float64: with BLAS the last bits of a row would depend on the other rows.
    """
    products = np.zeros(len(vectors))
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        rows = np.ascontiguousarray(vectors[start : start + _ROWS_AT_ONCE], dtype=np.float64)
        products[start : start + len(rows)] = (rows * weights).sum(axis=1)
    return products


def _nearest(preferences: Preferences, vectors: NDArray[np.float32], shift: Floats) -> list[tuple[str, ...]]:
    """Return for each paper the rated papers that contribute most to its shift (n,), in the direction of the shift."""
    if not len(preferences.rated):
        return [()] * len(vectors)
    nearest: list[tuple[str, ...]] = []
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        pulls = (vectors[rows] @ preferences.vectors.T) * preferences.pull * np.sign(shift[rows])[:, None]
        first = np.argsort(-pulls, axis=1, kind="stable")[:, :_SHOWN_NEAR]
        nearest += [
            tuple(preferences.rated[at] for at in columns if pulls[row, at] > 0)
            for row, columns in enumerate(first.tolist())
        ]
    return nearest
