"""Papers by likeness in two dimensions, for looking at: no model is called, the vectors are stored (SPEC V5)."""

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

MOST = 300  # papers: more cover each other, and placing them takes longer than somebody waits
_NEIGHBOURS = 20  # each paper keeps its place among about so many (t-SNE's perplexity)
_STEPS = 300
_SEED = 20260313
_FEW = 3  # fewer papers have no likeness to show


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPaper:
    """A paper and its place, both coordinates 0..1."""

    paper: RankedOften
    title: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperMap:
    """The most probable papers of some days, like ones near each other; `left_out`: how many more there are."""

    papers: tuple[PlacedPaper, ...]
    left_out: int


_placed: dict[str, NDArray[np.float64]] = {}  # by what is placed; a few hundred places of 16 bytes each
_MOST_PLACED = 50


def paper_map(warehouse: Warehouse, profile: str, first: date, last: date, *, model: str) -> PaperMap:
    """The papers that were ranked for the profile on first..last. Raises NotComputed if there are too few."""
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
    """(n, 2) places in 0..1 by t-SNE (van der Maaten & Hinton 2008), the same for the same papers."""
    if key not in _placed:
        from sklearn.manifold import TSNE  # type: ignore[import-untyped]
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        with threadpool_limits(1):  # on a busy machine more threads than cores are ten times slower
            raw = TSNE(
                n_components=2,
                init="pca",
                perplexity=min(_NEIGHBOURS, (len(vectors) - 1) / 3),
                max_iter=_STEPS,
                random_state=_SEED,
            ).fit_transform(vectors)
        low, high = raw.min(axis=0), raw.max(axis=0)
        while len(_placed) >= _MOST_PLACED:
            _placed.pop(next(iter(_placed)), None)
        _placed[key] = ((raw - low) / np.maximum(high - low, 1e-12)).astype(np.float64)
    return _placed[key]
