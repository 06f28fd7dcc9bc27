"""Embed and score on a cluster, with results equal to the bit to those of this process alone (SPEC X4).

Embedding sends texts and receives vectors. Scoring sends the day's snapshot once and receives a ranking per profile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.cluster.client import Cluster, Connection, computed, connected
from paper_assets.errors import PaperAssetsError
from paper_assets.models.embedder import Batches, Embedder, load_embedder
from paper_assets.ranking.rank import Ranking, RankingTask, rank
from paper_assets.ranking.verifier import Verifier

# Calls with at least this many texts are sent; below, connecting takes as long as computing: docs/scaling.md.
FEWEST = 256


def spread(embedder: Embedder, cluster: Cluster, *, model: str, fewest: int = FEWEST) -> Embedder:
    """Return the same embedder, whose calls of at least `fewest` texts are computed by the cluster.

    `model` is the name by which the workers load it. Texts are split into batches here exactly as without a cluster,
    and a worker computes whole batches: what determines a vector's last bits, its neighbours and the padding, is the
    same. Raises ClusterUnavailable when it is used.
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
    """Compute on a worker the vectors (texts, d) of one batch: some tenths of a second of one core."""
    model, texts = task
    of_batch = load_embedder(model).of_batch
    assert of_batch is not None  # noqa: S101  # the sender has split batches for this model
    return of_batch(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The papers of several tasks, each once, and their vectors (n, d); a row without a vector is 0."""

    papers: pa.Table
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A task without its papers, and their rows (n,) in the snapshot."""

    task: RankingTask
    rows: NDArray[np.int64]
    verifier: Verifier | None


def rankings_of(
    connection: Connection, tasks: Sequence[RankingTask], *, verifier: Verifier | None
) -> Iterator[tuple[int, Ranking | PaperAssetsError]]:
    """Yield position and ranking of each task, as they complete; the error of a failed task takes its place.

    `verifier` is sent along: one that sends no requests. Raises ClusterUnavailable.
    """
    papers, rows = snapshot_of(tasks)
    sent = [
        _Sent(
            task=replace(
                task,
                candidates=task.candidates.slice(0, 0),
                vectors=replace(task.vectors, papers=task.vectors.papers[:0]) if task.vectors else None,
            ),
            rows=own,
            verifier=verifier,
        )
        for task, own in zip(tasks, rows, strict=True)
    ]
    yield from computed(connection, rank_sent, sent, shared=papers)


def snapshot_of(tasks: Sequence[RankingTask]) -> tuple[Snapshot, list[NDArray[np.int64]]]:
    """Return what several tasks share, and each one's rows of it."""
    places: dict[str, int] = {}
    rows, tables = [], []
    for task in tasks:
        ids = task.candidates.column("paper_id").to_pylist()
        new = [at for at, paper_id in enumerate(ids) if paper_id not in places]
        places |= {ids[at]: len(places) + number for number, at in enumerate(new)}
        tables.append(task.candidates.take(pa.array(new, type=pa.int64())))
        rows.append(np.array([places[paper_id] for paper_id in ids], dtype=np.int64))
    width = max((task.vectors.papers.shape[1] for task in tasks if task.vectors), default=0)
    vectors = np.zeros((len(places), width), dtype=np.float32)
    for task, own in zip(tasks, rows, strict=True):
        if task.vectors:
            vectors[own] = task.vectors.papers
    return Snapshot(papers=pa.concat_tables(tables).combine_chunks(), vectors=vectors), rows


def rank_sent(sent: _Sent, snapshot: Snapshot) -> Ranking | PaperAssetsError:
    """Compute on a worker the ranking of one task."""
    vectors = sent.task.vectors
    whole = replace(
        sent.task,
        candidates=snapshot.papers.take(pa.array(sent.rows)),
        vectors=replace(vectors, papers=snapshot.vectors[sent.rows]) if vectors else None,
    )
    try:
        return rank(whole, verifier=sent.verifier)
    except PaperAssetsError as failure:
        return failure
