"""The Chroma collection of the archive (B1), made from the table: vectors of the originals, rewrites as documents.

Ids are spread over 256 partitions by their hash, so that one best practice more or less touches a few dozen others.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from paper_assets.stores.best_practices import BestPractice, ids_of, with_vectors
from paper_assets.stores.index_content import Scalar, VectorBatch
from paper_assets.stores.vectors import SyncReport, VectorIndex, sync
from paper_assets.stores.warehouse import Warehouse

_PARTITIONS = tuple(f"{number:02x}" for number in range(256))


def sync_best_practices(warehouse: Warehouse, index: VectorIndex, collection: str, *, model: str) -> SyncReport:
    """Make the collection hold what the table holds; nothing is opened if it does. Every original has its vector.

    Raises StoreBusy, StoreUnwritable, StoreError; the next sync puts all right.
    """
    while True:
        ids = ids_of(warehouse, collection)
        report = _sync(warehouse, index, collection, model=model, ids=ids)
        if ids_of(warehouse, collection) == ids:  # else somebody wrote, and may have synced, while we did
            return report


def _sync(warehouse: Warehouse, index: VectorIndex, collection: str, *, model: str, ids: Sequence[str]) -> SyncReport:
    spread: Mapping[str, list[str]] = defaultdict(list)
    for identifier in ids:
        spread[_partition(identifier)].append(identifier)
    versions = {name: sha256("\n".join(spread[name]).encode()).hexdigest()[:32] for name in _PARTITIONS}

    def batches(partitions: Sequence[str]) -> Iterator[VectorBatch]:
        # Only the ids that the fingerprints were made of: what came since has another fingerprint.
        wanted = [identifier for name in partitions for identifier in spread[name]]
        practices, vectors = with_vectors(warehouse, collection, wanted, model=model)
        rows: Mapping[str, list[int]] = defaultdict(list)
        for row, practice in enumerate(practices):
            rows[_partition(practice.id)].append(row)
        for name, mine in rows.items():
            yield VectorBatch(
                partition=name,
                ids=[practices[row].id for row in mine],
                vectors=vectors[mine],
                metadatas=[_metadata(practices[row]) for row in mine],
                documents=[practices[row].text for row in mine],
            )

    return sync(index, collection, model=model, wanted=versions, everything=lambda: versions, batches=batches)


def _partition(identifier: str) -> str:
    return sha256(identifier.encode()).hexdigest()[:2]


def _metadata(practice: BestPractice) -> dict[str, Scalar | None]:
    return {
        "original_text": practice.original_text,
        "score": practice.score,
        "target_level": practice.target_level,
        "keywords": ", ".join(practice.keywords),
        "timestamp": practice.made_at.isoformat(),
        "model_version": practice.model_version,
        "paper_id": practice.paper_id,
        "category": practice.category,
    }
