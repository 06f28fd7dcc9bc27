"""Exact search over the documents that meet a filter: by meaning, by words, or both together (SPEC R2, R5).

Every document that meets the filter is scored, none is approximated away. Cosines are taken in float32 to choose, and
again in float64 of the few that may be among the best: equal vectors get equal scores, whatever lies around them, and
ties are broken by id.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput
from paper_assets.models.embedder import Embedder
from paper_assets.retrieval.candidates import Candidate
from paper_assets.retrieval.lexical import bm25
from paper_assets.retrieval.snapshot import Snapshot, snapshot_of
from paper_assets.settings import Retrieving
from paper_assets.stores.document_filters import Where, condition_of
from paper_assets.stores.documents import DataType, count_documents
from paper_assets.stores.warehouse import Warehouse

Method = Literal["vector", "lexical", "hybrid"]

_BLOCK = 4_096  # vectors widened to float64 at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """What is searched; without an embedder only words are compared."""

    warehouse: Warehouse
    embedder: Embedder | None
    numbers: Retrieving = field(default_factory=Retrieving)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Candidates, best first, and how many documents meet the filter.

    `method` is the one used: lexical without an embedder, whatever was asked. `unembedded` of the matching documents
    have no vector, so that only words find them. Scores are similarities: the cosine; BM25 as a share (`lexical`); or
    the two weighed (`hybrid`). A document that shares no word has no lexical score and is no candidate by words alone.
    """

    candidates: tuple[Candidate, ...]
    matching: int
    method: Method
    unembedded: int


def search(corpus: Corpus, question: str, *, data_type: DataType, where: Where | None, k: int, method: Method) -> Found:
    """The k best documents of a type among those that meet the filter, as they are stored now; ties by doc_id.

    Raises InvalidInput (the filter, an empty question, k), StoreError.
    """
    condition_of(where)  # a bad filter is told before anything is opened
    if not question.strip() or k < 1:
        raise InvalidInput(f"a search needs a question and k from 1, got {question[:60]!r} and {k}")
    numbers, embedder = corpus.numbers, corpus.embedder
    used: Method = method if embedder else "lexical"
    snapshot = snapshot_of(
        corpus.warehouse,
        data_type,
        model=embedder.name if embedder else None,
        where=where,
        most_bytes=numbers.memory,
    )
    rows = snapshot.matching(where)
    has_vector = snapshot.embedded[rows]
    words = np.zeros(len(rows))
    if used != "vector" and len(rows):
        words = bm25(snapshot.words, question, rows=rows)
    if used == "lexical" or embedder is None:
        best, scores = _best(words, np.flatnonzero(words > 0), k)
    else:
        share = numbers.lexical_share if used == "hybrid" else 0.0
        asked = embedder.encode([question])[0]
        best, scores = _nearest(snapshot, rows, asked, words=words, share=share, k=k)
    return Found(
        candidates=_candidates(snapshot, rows[best], scores),
        matching=len(rows),
        method=used,
        unembedded=len(rows) - int(has_vector.sum()),
    )


def count_matching(corpus: Corpus, *, data_type: DataType, where: Where | None) -> int:
    """Number of documents of a type that meet the filter. Raises InvalidInput, StoreError."""
    return count_documents(corpus.warehouse, data_type, where)


def _nearest(
    snapshot: Snapshot,
    rows: NDArray[np.intp],
    asked: NDArray[np.float32],
    *,
    words: NDArray[np.float64],
    share: float,
    k: int,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Positions in `rows` of the k best by (1 - share) * cosine + share * words, and these scores.

    A document without a vector has the cosine 0, and is left out if it shares no word either.
    """
    vectors, has_vector = snapshot.vectors, snapshot.embedded[rows]
    possible = np.flatnonzero(has_vector | (words > 0))
    if not has_vector.any():
        return _best(share * words, possible, k)
    cosines = (vectors @ asked)[rows] if 4 * len(rows) > len(vectors) else vectors[rows] @ asked
    rough = ((1 - share) * cosines.astype(np.float64) + share * words)[possible]
    if len(possible) > k:
        # No two float32 sums of d products of unit vectors are further from the truth than this.
        tolerance = 2 * vectors.shape[1] * float(np.finfo(np.float32).eps)
        possible = possible[rough >= np.partition(rough, len(rough) - k)[len(rough) - k] - tolerance]
    scores = np.zeros(len(rows))
    for start in range(0, len(possible), _BLOCK):
        part = possible[start : start + _BLOCK]
        exact = (vectors[rows[part]].astype(np.float64) * asked.astype(np.float64)).sum(axis=1)
        scores[part] = (1 - share) * exact.clip(-1.0, 1.0) + share * words[part]
    return _best(scores, possible, k)


def _best(
    scores: NDArray[np.float64], possible: NDArray[np.intp], k: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The k positions with the highest scores among the possible ones, and these; ties by position."""
    best = possible[np.lexsort((possible, -scores[possible]))[:k]]
    return best, scores[best]


def _candidates(snapshot: Snapshot, rows: NDArray[np.intp], scores: NDArray[np.float64]) -> tuple[Candidate, ...]:
    found: list[dict[str, Any]] = snapshot.documents.take(rows).to_pylist()
    return tuple(
        Candidate(
            doc_id=fields.pop("doc_id"),
            content=fields.pop("text"),
            metadata=fields,
            score=score,
            score_type="similarity",
            source_id=fields["paper_id"],
        )
        for fields, score in zip(found, scores.tolist(), strict=True)
    )
