"""Place papers by similarity in two dimensions, for display: no model is called, the vectors are stored (V5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from paper_assets.errors import NotComputed
from paper_assets.stores.embeddings import vectors_of
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import RankedOften, ranked_between
from paper_assets.stores.warehouse import Warehouse

MOST = 300  # papers: more cover each other, and placing them takes longer than a reader waits
_NEIGHBOURS = 20  # each paper keeps its place among about this many (t-SNE's perplexity)
_STEPS, _EXAGGERATED = 300, 100  # steps of gradient descent, and how many of them exaggerate the probabilities
_EXAGGERATION = 12.0
_FEW = 3  # fewer papers make no map


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPaper:
    """A paper and its position, both coordinates in 0..1."""

    paper: RankedOften
    title: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperMap:
    """The most probable papers of some days, similar ones near each other; `left_out`: how many more there are."""

    papers: tuple[PlacedPaper, ...]
    left_out: int


_placed: dict[str, NDArray[np.float64]] = {}  # by what is placed; a few hundred places of 16 bytes each
_MOST_PLACED = 50


def paper_map(warehouse: Warehouse, profile: str, first: date, last: date, *, model: str) -> PaperMap:
    """Place the papers that were ranked for the profile on first..last. Raises NotComputed if there are too few."""
    ranked = ranked_between(warehouse, profile, first, last)
    chosen = sorted(ranked, key=lambda paper: (not paper.shown, -paper.relevance, paper.paper_id))[:MOST]
    vectors, found = vectors_of(warehouse, [paper.paper_id for paper in chosen], model=model)
    chosen = [paper for paper, has in zip(chosen, found, strict=True) if has]
    if len(chosen) < _FEW:
        raise NotComputed(f"too few papers of {first} to {last} were ranked for {profile!r} to draw a map of them")
    places = _places(
        vectors[found], key=sha256(repr([model, [paper.paper_id for paper in chosen]]).encode()).hexdigest()
    )
    titles = _titles(warehouse, chosen)
    return PaperMap(
        papers=tuple(
            PlacedPaper(paper=paper, title=titles.get(paper.paper_id, paper.paper_id), x=float(x), y=float(y))
            for paper, (x, y) in zip(chosen, places, strict=True)
        ),
        left_out=len(ranked) - len(chosen),
    )


def _titles(warehouse: Warehouse, papers: list[RankedOften]) -> Mapping[str, str]:
    rows = papers_by_id(warehouse, [paper.paper_id for paper in papers])
    return dict(zip(rows.column("paper_id").to_pylist(), rows.column("title").to_pylist(), strict=True))


def _places(vectors: NDArray[np.float32], *, key: str) -> NDArray[np.float64]:
    """Place the vectors by t-SNE (van der Maaten & Hinton 2008), (n, 2) in 0..1; equal papers give equal places."""
    if key not in _placed:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # on a busy machine more threads than cores are ten times slower
            raw = _tsne(vectors, perplexity=min(_NEIGHBOURS, (len(vectors) - 1) / 3))
        low, high = raw.min(axis=0), raw.max(axis=0)
        while len(_placed) >= _MOST_PLACED:
            _placed.pop(next(iter(_placed)), None)
        _placed[key] = ((raw - low) / np.maximum(high - low, 1e-12)).astype(np.float64)
    return _placed[key]


def _tsne(vectors: NDArray[np.float32], *, perplexity: float) -> NDArray[np.float64]:
    """Place the vectors in two dimensions by exact t-SNE from their principal components; (n, 2), deterministic.

    For a few hundred vectors this takes about a second; scikit-learn's needs longer to be imported.
    """
    wanted = _neighbour_probabilities(vectors, perplexity=max(perplexity, 1.01))
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    places = left[:, :2] * scale[:2]
    places *= 1e-4 / max(float(places[:, 0].std()), 1e-12)
    speed, gains = np.zeros_like(places), np.ones_like(places)
    rate = max(len(vectors) / _EXAGGERATION / 4, 50.0)
    for step in range(_STEPS):
        early = step < _EXAGGERATED
        near = 1 / (1 + _squared_distances(places))
        np.fill_diagonal(near, 0)
        pull = ((_EXAGGERATION if early else 1.0) * wanted - near / near.sum()) * near
        gradient = 4 * (pull.sum(axis=1)[:, None] * places - pull @ places)
        gains = np.maximum(np.where((gradient > 0) == (speed > 0), gains * 0.8, gains + 0.2), 0.01)
        speed = (0.5 if early else 0.8) * speed - rate * gains * gradient
        places = places + speed
        places -= places.mean(axis=0)
    return places


def _neighbour_probabilities(vectors: NDArray[np.float32], *, perplexity: float) -> NDArray[np.float64]:
    """Compute how probably each vector is a neighbour of each other one: symmetric, sums to 1 (van der Maaten &
    Hinton).
    """
    distances = _squared_distances(vectors.astype(np.float64))
    np.fill_diagonal(distances, np.inf)
    distances -= distances.min(axis=1)[:, None]  # changes no probability, and keeps the sums above zero
    finite = np.where(np.isfinite(distances), distances, 0)
    low, high, width = np.zeros(len(vectors)), np.full(len(vectors), np.inf), np.ones(len(vectors))
    for _ in range(50):  # halving: the width at which each vector has the requested number of neighbours
        weights = np.exp(-distances * width[:, None])
        total = weights.sum(axis=1)
        near = weights / total[:, None]
        wide = np.log(total) + width * (finite * near).sum(axis=1) > np.log(perplexity)
        low, high = np.where(wide, width, low), np.where(wide, high, width)
        width = np.where(np.isinf(high), np.minimum(width * 2, 1e9), (low + high) / 2)
    return np.maximum((near + near.T) / (2 * len(vectors)), 1e-12)


def _squared_distances(points: NDArray[np.float64]) -> NDArray[np.float64]:
    squared = (points**2).sum(axis=1)
    return np.maximum(squared[:, None] + squared - 2 * points @ points.T, 0)
