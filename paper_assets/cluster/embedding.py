"""Embedding on a cluster: texts out, vectors back, to the bit those of this process alone (SPEC X4)."""

from dataclasses import replace

import numpy as np

from paper_assets.cluster.client import Cluster, computed, connected
from paper_assets.models.embedder import Batches, Embedder, load_embedder

# Texts of a call from which on they are sent; below, connecting takes as long as computing: docs/scaling.md.
FEWEST = 256


def spread(embedder: Embedder, cluster: Cluster, *, model: str, fewest: int = FEWEST) -> Embedder:
    """The same embedder, whose calls of at least `fewest` texts are computed by the cluster. `model` is what the
    workers load it by.

    Texts are cut into batches here as they would be alone, and a worker computes whole batches: what a vector's last
    bits depend on, its neighbours and the padding, is the same. Raises ClusterUnavailable when it is used.
    """
    cut, alone = embedder.batches_of, embedder._many
    if cut is None:
        return embedder

    def many(texts: list[str]) -> Batches:
        if len(texts) < fewest:
            yield from alone(texts)
            return
        batches = cut(texts)
        tasks = [(model, [texts[i] for i in batch]) for batch in batches]
        with connected(cluster, model=model) as connection:
            for place, rows in computed(connection, embed_batch, tasks):
                yield batches[place], rows

    return replace(embedder, _many=many)


def embed_batch(task: tuple[str, list[str]]) -> np.ndarray:
    """On a worker: the vectors (texts, d) of one batch, some tenths of a second of one core."""
    model, texts = task
    of_batch = load_embedder(model).of_batch
    assert of_batch is not None  # noqa: S101  # whoever sends batches has cut them by this model
    return of_batch(texts)
