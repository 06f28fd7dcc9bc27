"""Apply a reader's ratings to papers: a shift of the log odds that a paper is worth reading (SPEC L2, L4).

    log odds = log odds by the formula + vector · v + sum of the weights of its words + weights of its dimensions

Without ratings there is no shift, and the formula is exact to the bit. What a shift makes of a probability p,
`learned = p' - p`, is listed beside the six dimensions; it counts in the score as much as relevance does. Here a
model is applied and explained; learning/ trains it and decides how much it counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking.term_matching import Background, unit_tfidf
from paper_assets.text.bm25 import CountedWords
from paper_assets.weights import DIMENSIONS

Floats = NDArray[np.float64]

# What a reader may value more or less than the formula does. Relevance is where the model begins, and recency says when
# a paper was rated, not what it is like.
LEARNED_DIMENSIONS = tuple(name for name in DIMENSIONS if name not in ("semantic_relevance", "recency"))
_SHOWN_WORDS, _SHOWN_NEAR = 3, 2
_ROWS_AT_ONCE = 4096
_SURE = 30.0  # log odds beyond which a probability is certain


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """A trained model: the weight of each component of a vector (d,), of stems, and of LEARNED_DIMENSIONS.

    `rated` are the papers it was trained on, `vectors` (n, d) theirs, `pull` (n,) how strongly each draws papers like
    it up or down. `version` changes with any of it.
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
    """Of n papers: the shift of the log odds (n,), and for each its most telling stems (with + or -) and the rated
    papers that it is nearest to.
    """

    values: Floats
    words: tuple[tuple[str, ...], ...]
    near: tuple[tuple[str, ...], ...]


def log_odds(probability: Floats | float) -> Floats:
    """Return ln(p / (1 - p)), within ±30."""
    with np.errstate(divide="ignore"):
        found: Floats = np.clip(np.log(probability) - np.log1p(-probability), -_SURE, _SURE)
    return found


def shifted(probability: Floats, shift: Floats) -> Floats:
    """Return (n,) the probability whose log odds are `shift` higher; without a shift, the same to the last bit."""
    moved = 1.0 / (1.0 + np.exp(-(log_odds(probability) + shift)))
    return np.where(shift == 0.0, probability, moved)


def learned_features(dimensions: Floats) -> Floats:
    """Return the columns (n, 4) of the dimensions (n, 6) from which is learned: LEARNED_DIMENSIONS."""
    return dimensions[:, [DIMENSIONS.index(name) for name in LEARNED_DIMENSIONS]]


def scaled(preferences: Preferences, share: float) -> Preferences:
    """Return the model with its shifts multiplied by `share`, 0..1: how much it counts (L3)."""
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
    words: CountedWords | None,
    dimensions: Floats,
    background: Background,
) -> Shift:
    """Return what the model makes of n papers by their vectors (n, d), words and dimensions (n, 6), as far as there are
    any.

    Sums of a paper run in an order that no other paper decides, so that its bits do not depend on the others.
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


def telling_words(words: Mapping[str, float], most: int) -> tuple[list[str], list[str]]:
    """Return the stems that speak most for a paper, and most against it."""
    by_weight = sorted(words, key=lambda stem: (-words[stem], stem))
    return [stem for stem in by_weight[:most] if words[stem] > 0], [
        stem for stem in by_weight[::-1][:most] if words[stem] < 0
    ]


def _by_words(
    preferences: Preferences, words: CountedWords, background: Background
) -> tuple[Floats, list[tuple[str, ...]]]:
    held, stems = unit_tfidf(words, background=background)
    weights = np.array([preferences.words.get(stem, 0.0) for stem in stems])
    said = held.copy()
    said.data = held.data * weights[held.indices]
    rows = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
    total: Floats = np.bincount(rows, weights=said.data, minlength=held.shape[0]).astype(np.float64)
    telling = []
    for row in range(held.shape[0]):
        part = slice(said.indptr[row], said.indptr[row + 1])
        data, columns = said.data[part], said.indices[part]
        order = np.argsort(-np.abs(data), kind="stable")[:_SHOWN_WORDS]
        telling.append(tuple(f"{'+' if data[at] > 0 else '-'}{stems[columns[at]]}" for at in order if data[at]))
    return total, telling


def _by_vectors(weights: Floats, vectors: NDArray[np.float32]) -> Floats:
    """Compute row by row in float64: BLAS lets the last bits of a row depend on its neighbours."""
    found = np.zeros(len(vectors))
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        rows = np.ascontiguousarray(vectors[start : start + _ROWS_AT_ONCE], dtype=np.float64)
        found[start : start + len(rows)] = (rows * weights).sum(axis=1)
    return found


def _nearest(preferences: Preferences, vectors: NDArray[np.float32], shift: Floats) -> list[tuple[str, ...]]:
    """Return the rated papers that moved each paper most in the direction in which it was moved."""
    if not len(preferences.rated):
        return [()] * len(vectors)
    found: list[tuple[str, ...]] = []
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        pulls = (vectors[rows] @ preferences.vectors.T) * preferences.pull * np.sign(shift[rows])[:, None]
        first = np.argsort(-pulls, axis=1, kind="stable")[:, :_SHOWN_NEAR]
        found += [
            tuple(preferences.rated[at] for at in each if pulls[row, at] > 0) for row, each in enumerate(first.tolist())
        ]
    return found
