"""Invented readers: papers on two topics as vectors and words, and whether a reader likes them."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from paper_assets.learning.preference_model import RatedPapers

STEMS = ("graph", "speech", "road", "voice", "model")


def reader(count: int, *, seed: int, lots: float | None = None, odds: float = 2.0, likes: str = "graph") -> RatedPapers:
    """Half of the papers are about graphs, half about speech, and the formula holds all to be `odds` probable, give or
    take. The reader likes one of the topics; with `lots`, that share of the papers by lot.
    """
    chance = np.random.default_rng(seed)
    graphs = chance.random(count) < 0.5
    vectors = np.where(graphs[:, None], [1.0, 0.0, 0.3], [0.0, 1.0, 0.3]) + 0.2 * chance.normal(size=(count, 3))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    words = np.where(graphs[:, None], [1, 0, 1, 0, 1], [0, 1, 0, 1, 1]) * chance.uniform(0.5, 1, (count, len(STEMS)))
    words /= np.linalg.norm(words, axis=1)[:, None]
    liked: NDArray[np.bool_] = graphs if likes == "graph" else ~graphs
    return RatedPapers(
        ids=tuple(f"2603.{number:05}" for number in range(count)),
        liked=liked if lots is None else chance.random(count) < lots,
        odds=odds + chance.normal(size=count),
        vectors=vectors.astype(np.float32),
        words=csr_array(words),
        stems=STEMS,
        dimensions=np.zeros((count, 4)),
    )
