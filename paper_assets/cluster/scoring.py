"""Scoring on a cluster: the day's snapshot out once, a ranking back for each profile, to the bit as alone (SPEC X4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.cluster.client import Connection, computed
from paper_assets.errors import PaperAssetsError
from paper_assets.ranking.rank import Ranking, rank
from paper_assets.ranking.task import RankingTask, Vectors
from paper_assets.ranking.verifier import Verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The papers of several tasks, each once, and their vectors (n, d); a row that no task has a vector for is 0."""

    papers: pa.Table
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A task without its papers, and the rows (n,) of the snapshot that they are."""

    task: RankingTask
    rows: NDArray[np.int64]
    verifier: Verifier | None


def rankings_of(
    connection: Connection, tasks: Sequence[RankingTask], *, verifier: Verifier | None
) -> Iterator[tuple[int, Ranking | PaperAssetsError]]:
    """The place and the ranking of each task, as they come; what one of them fails for stands in its place.

    `verifier` travels with them: one that asks nobody. Raises ClusterUnavailable.
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
    """What several tasks have together, and each one's rows of it."""
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
    """On a worker: the ranking of one task."""
    vectors = sent.task.vectors
    whole = replace(
        sent.task,
        candidates=snapshot.papers.take(pa.array(sent.rows)),
        vectors=Vectors(papers=snapshot.vectors[sent.rows], queries=vectors.queries) if vectors else None,
    )
    try:
        return rank(whole, verifier=sent.verifier)
    except PaperAssetsError as failure:
        return failure
