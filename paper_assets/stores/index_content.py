"""What a collection of vectors holds, and how it is brought up to date: only what differs is written.

Knows an open Chroma collection; where it lies and who may open it is not its business.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

Scalar = str | int | float | bool
Value = Scalar | list[str]  # of metadata; Chroma takes no empty list

SAME = 1e-4  # two unit vectors whose cosine, or each of whose components, differ by less are the same in float32
_PARTITION = "partition"  # metadata key under which each vector says whose it is


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBatch:
    """Some vectors of one partition: float32 (n, d), their ids (unique in the whole collection) and small metadata.

    `documents` are n texts to lie beside the vectors; a collection has them for all of its vectors or for none.
    """

    partition: str
    ids: Sequence[str]
    vectors: np.ndarray
    metadatas: Sequence[Mapping[str, Value | None]]
    documents: Sequence[str] | None = None


Batches = Callable[[Sequence[str]], Iterable[VectorBatch]]


class OpenCollection(NamedTuple):
    """A collection while it is open, and the most rows that one call may carry."""

    rows: "Collection"
    limit: int


class Stored(NamedTuple):
    """Vectors as the index holds them: float32 (n, d), metadata and documents, in the order of `ids`."""

    ids: list[str]
    vectors: np.ndarray
    metadatas: list[dict[str, Value]]
    documents: list[str | None]


class Change(NamedTuple):
    """How many vectors were written and removed, and the partitions that the collection now holds.

    The fingerprint of a partition that lost a paper to another one is None: it no longer tells what is there.
    """

    upserted: int
    removed: int
    partitions: dict[str, str | None]


class _Row(NamedTuple):
    vector: np.ndarray
    metadata: Any  # Chroma merges it into what is there: a key that must go stands in it as None
    document: str | None


def stored(opened: OpenCollection, ids: Sequence[str]) -> Stored:
    """What the collection holds of these ids, in their order; unknown ids are left out."""
    found: dict[str, tuple[Any, Any, Any]] = {}
    for at in range(0, len(ids), opened.limit):
        asked = list(ids[at : at + opened.limit])
        part: Any = opened.rows.get(ids=asked, include=["embeddings", "metadatas", "documents"])
        rows = zip(part["embeddings"], part["metadatas"], part["documents"], strict=True)
        found.update(zip(part["ids"], rows, strict=True))
    known = [identifier for identifier in dict.fromkeys(ids) if identifier in found]
    vectors = np.array([found[identifier][0] for identifier in known], dtype=np.float32)
    texts = [found[each][2] for each in known]
    return Stored(known, vectors.reshape(len(known), -1 if known else 0), [found[each][1] for each in known], texts)


def bring_up_to_date(
    opened: OpenCollection, held: Mapping[str, str | None], stale: Mapping[str, str], batches: Batches
) -> Change:
    """Make the `stale` partitions (name -> new fingerprint) equal to their batches; `held` are all known so far."""
    empty = opened.rows.count() == 0
    leaving: set[str] = set()
    if not empty:
        theirs: Any = {_PARTITION: {"$in": list(stale)}}
        leaving.update(opened.rows.get(where=theirs, include=[])["ids"])
    owners: dict[str, str] = {}
    robbed: set[str] = set()
    upserted = 0
    # Days are small and each writing call makes Chroma save its whole list of labels: write many days at once.
    waiting: dict[str, _Row] = {}
    for batch in _of_at_most(opened.limit, batches(list(stale))):
        if batch.partition not in stale:
            raise ValueError(f"batches yielded partition {batch.partition}, which was not asked for")
        old = Stored([], np.empty((0, 0)), [], []) if empty else stored(opened, batch.ids)
        robbed |= {str(metadata[_PARTITION]) for metadata in old.metadatas} - stale.keys()
        robbed |= {owners.get(identifier, batch.partition) for identifier in batch.ids} - {batch.partition}
        owners.update(dict.fromkeys(batch.ids, batch.partition))
        changed = _changed(batch, old)
        if len(waiting) + len(changed) > opened.limit:
            _write(opened, waiting)
            waiting = {}
        waiting |= changed
        upserted += len(changed)
    _write(opened, waiting)
    gone = sorted(leaving - owners.keys())
    for at in range(0, len(gone), opened.limit):
        opened.rows.delete(ids=gone[at : at + opened.limit])
    return Change(upserted, len(gone), {**held, **stale, **dict.fromkeys(robbed)})


def _changed(batch: VectorBatch, old: Stored) -> dict[str, _Row]:
    """The rows of a batch that the collection does not hold already as they are."""
    place = {identifier: at for at, identifier in enumerate(old.ids)}
    changed: dict[str, _Row] = {}
    texts: Sequence[str | None] = batch.documents or [None] * len(batch.ids)
    for identifier, vector, given, text in zip(batch.ids, batch.vectors, batch.metadatas, texts, strict=True):
        metadata = {key: value for key, value in given.items() if value is not None} | {_PARTITION: batch.partition}
        before: Mapping[str, Value] = {}
        if (at := place.get(identifier)) is not None:
            before = old.metadatas[at]
            same = before == metadata and old.documents[at] == text
            if same and np.abs(old.vectors[at] - vector).max() <= SAME:
                continue
        changed[identifier] = _Row(vector, {**dict.fromkeys(before), **metadata}, text)
    return changed


def _write(opened: OpenCollection, rows: Mapping[str, _Row]) -> None:
    if rows:
        vectors = np.array([row.vector for row in rows.values()], dtype=np.float32)
        texts = [row.document for row in rows.values() if row.document is not None]
        if texts and len(texts) < len(rows):
            raise ValueError("some vectors have a document and some have none")
        metadatas = [row.metadata for row in rows.values()]
        opened.rows.upsert(ids=list(rows), embeddings=vectors, metadatas=metadatas, documents=texts or None)


def _of_at_most(limit: int, batches: Iterable[VectorBatch]) -> Iterator[VectorBatch]:
    """The batches, checked before anything is written of them and cut to what one call of Chroma may carry."""
    for batch in batches:
        lengths = {len(batch.ids), len(batch.vectors), len(batch.metadatas), len(batch.documents or batch.ids)}
        if batch.vectors.ndim != 2 or len(lengths) > 1:
            raise ValueError(f"partition {batch.partition}: ids, vectors, metadatas, documents are not of one length")
        if len(set(batch.ids)) != len(batch.ids):
            raise ValueError(f"partition {batch.partition}: an id stands there twice")
        if not np.isfinite(batch.vectors).all():
            raise ValueError(f"partition {batch.partition}: a vector is not finite")
        for at in range(0, len(batch.ids), limit):
            part = slice(at, at + limit)
            yield replace(
                batch,
                ids=batch.ids[part],
                vectors=batch.vectors[part],
                metadatas=batch.metadatas[part],
                documents=batch.documents[part] if batch.documents is not None else None,
            )
