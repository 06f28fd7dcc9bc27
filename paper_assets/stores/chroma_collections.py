"""Fill the Chroma collections: documents, one collection per data type, and the archive of good rewrites.

Abstracts are synced by day (the asset knows which). Passages, rewrites and best practices are synced all at once,
spread over 256 partitions by the hash of their ids, so that one changed document touches few others. Metadata are the
fields that filters name, in Chroma's types; unknown values are omitted.

The archive's collection holds vectors of the originals, with the rewrites as documents. A collection written by another
program or an earlier warehouse is read from a copy: Chroma writes even when it only reads, and a damaged folder can
crash it.
"""

import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from paper_assets.errors import IndexUnusable, InvalidInput, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.stores import index_storage, vectors
from paper_assets.stores.best_practices import BestPractice, ids_of, with_vectors
from paper_assets.stores.documents import FIELDS, DataType
from paper_assets.stores.index_storage import OpenCollection, Scalar, VectorBatch
from paper_assets.stores.scratch import copied_batches
from paper_assets.stores.vectors import SyncReport, VectorIndex, sync
from paper_assets.stores.warehouse import Warehouse

FORM = 1  # version of the metadata; a higher one updates every index
_PARTITIONS = tuple(f"{number:02x}" for number in range(256))


def sync_documents(
    warehouse: Warehouse, index: VectorIndex, data_type: Literal["fulltext", "rewrite"], *, model: str
) -> SyncReport:
    """Update the collection to the documents of the type that have a vector of `model`.

    Nothing is opened if it is current. Raises StoreBusy, StoreUnwritable, StoreError; the next sync repairs any
    interruption.
    """
    with warehouse.reading() as connection:
        found = connection.execute(
            """
            select left(sha256(doc_id), 2) as partition, sha256(string_agg(held::varchar, chr(10) order by doc_id))[:32]
            from (select * exclude (text) from retrievable where data_type = $data_type) as held
            semi join (from embeddings where model = $model) using (text_hash)
            group by partition
            """,
            {"data_type": data_type, "model": model},
        ).fetchall()
    versions = {**dict.fromkeys(_PARTITIONS, "empty"), **{name: f"{FORM} {content}" for name, content in found}}

    def batches(partitions: Sequence[str]) -> Iterator[VectorBatch]:
        """Read the documents of the partitions."""
        return document_batches(warehouse, data_type, partitions, model=model)

    return sync(index, data_type, model=model, partitions=versions, everything=lambda: versions, batches=batches)


def document_batches(
    warehouse: Warehouse, data_type: DataType, partitions: Sequence[str], *, model: str
) -> Iterator[VectorBatch]:
    """Yield the documents of the partitions (abstracts: days like 2026-03-01) that have a vector, with metadata.

    The warehouse is released while the caller processes them.
    """
    batches = copied_batches(
        warehouse,
        """
        with placed as (
            select
                *,
                case data_type
                    when 'abstract' then strptime(lpad(date_int::varchar, 8, '0'), '%Y%m%d')::date::varchar
                    else left(sha256(doc_id), 2)
                end as partition
            from retrievable
            where data_type = $data_type
        )
        select * exclude (text, text_hash, origin, withdrawn)
        from placed
        join (select unnest($partitions::varchar[]) as partition) using (partition)
        join (from embeddings where model = $model) using (text_hash)
        """,
        {"data_type": data_type, "partitions": list(partitions), "model": model},
    )
    for batch in batches:
        yield from _by_partition(batch)


def _by_partition(batch: Any) -> Iterator[VectorBatch]:
    ids = batch["doc_id"].to_pylist()
    vectors = batch["vector"].flatten().to_numpy().reshape(len(batch), -1)
    metadatas = [{**row, "categories": row["categories"] or None} for row in batch.select(FIELDS).to_pylist()]
    names, of_row = np.unique(batch["partition"].to_numpy(zero_copy_only=False), return_inverse=True)
    order = np.argsort(of_row, kind="stable")
    for name, rows in zip(names.tolist(), np.split(order, np.cumsum(np.bincount(of_row))[:-1]), strict=True):
        yield VectorBatch(
            partition=name,
            ids=[ids[row] for row in rows],
            vectors=vectors[rows],
            metadatas=[metadatas[row] for row in rows],
        )


def sync_best_practices(warehouse: Warehouse, index: VectorIndex, collection: str, *, model: str) -> SyncReport:
    """Update the collection to the table; every original must have its vector. Nothing is opened if it is current.

    Raises StoreBusy, StoreUnwritable, StoreError; the next sync repairs any interruption.
    """
    while True:
        ids = ids_of(warehouse, collection)
        report = _sync(warehouse, index, collection, model=model, ids=ids)
        if ids_of(warehouse, collection) == ids:  # otherwise another process wrote meanwhile
            return report


def _sync(warehouse: Warehouse, index: VectorIndex, collection: str, *, model: str, ids: Sequence[str]) -> SyncReport:
    spread: Mapping[str, list[str]] = defaultdict(list)
    for identifier in ids:
        spread[_partition(identifier)].append(identifier)
    versions = {name: sha256("\n".join(spread[name]).encode()).hexdigest()[:32] for name in _PARTITIONS}

    def batches(partitions: Sequence[str]) -> Iterator[VectorBatch]:
        # Only the ids in the fingerprints: anything added since has another fingerprint.
        """Read the best practices of the partitions."""
        ids = [identifier for name in partitions for identifier in spread[name]]
        practices, vectors = with_vectors(warehouse, collection, ids, model=model)
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

    return sync(index, collection, model=model, partitions=versions, everything=lambda: versions, batches=batches)


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


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+[A-Za-z0-9]")
_OWN_FILES = re.compile(r"chroma\.sqlite3.*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # files that Chroma writes
_MOST_BYTES = 20_000_000_000  # ten million vectors of our size; anything larger is not a collection of rewrites


class ForeignRow(NamedTuple):
    """Represent one entry as it was read."""

    id: str
    document: str | None
    metadata: dict[str, Any]


def foreign_rows(
    index: VectorIndex, collection: str, *, folder: Path | None = None, at_once: int
) -> Iterator[list[ForeignRow]]:
    """Read the entries of a collection in a Chroma folder, or in our index (folder None), ascending by id, in batches.

    Raises InvalidInput for a name that Chroma does not accept, IndexUnusable if there is no such collection or it
    cannot be read.
    """
    if not _NAME.fullmatch(collection):
        raise InvalidInput(f"{collection!r} cannot name a collection: at least 3 letters, digits, dots, - or _")
    with _opened(index, collection, folder) as opened:
        ids = sorted(opened.rows.get(include=[])["ids"])
        for at in range(0, len(ids), min(at_once, opened.limit)):
            part = ids[at : at + min(at_once, opened.limit)]
            found: Any = opened.rows.get(ids=part, include=["documents", "metadatas"])
            rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
            yield sorted(ForeignRow(identifier, text, dict(metadata or {})) for identifier, text, metadata in rows)


@contextmanager
def _opened(index: VectorIndex, collection: str, folder: Path | None) -> Iterator[OpenCollection]:
    if folder is None and isinstance(index.place, str):
        with vectors.on_server(index.place) as client:
            yield vectors.of_server(client, collection)
        return
    place = Path(index.place) if folder is None else folder
    scratch = Path(tempfile.gettempdir()) if not place.parent.is_dir() else place.parent
    with tempfile.TemporaryDirectory(prefix=".chroma-copy-", dir=scratch, ignore_cleanup_errors=True) as copy:
        _copy_database(place, collection, Path(copy), deadline=index.deadline)
        with vectors.found_on_disk(Path(copy), collection) as opened:
            yield opened


def _copy_database(place: Path, collection: str, copy: Path, *, deadline: float) -> None:
    """Copy Chroma's files of the collection: those of our index of this name, or those of the folder."""
    try:
        if (place / collection).is_dir():
            with store_lock(place / collection, deadline=deadline):
                shutil.copytree(
                    index_storage.database(index_storage.current_copy(place / collection)[0]), copy, dirs_exist_ok=True
                )
            return
        if not (place / "chroma.sqlite3").is_file():
            raise IndexUnusable(f"{place} has no collection {collection}; name its folder with --chroma")
        entries = [entry for entry in place.iterdir() if _OWN_FILES.fullmatch(entry.name)]
        size = sum(_bytes(entry) for entry in entries)
        if size > _MOST_BYTES:
            raise IndexUnusable(
                f"{place} holds {size / 1e9:,.0f} GB, of which at most {_MOST_BYTES / 1e9:.0f} are read; is it damaged?"
            )
        if size > (free := shutil.disk_usage(copy).free):
            raise StoreUnwritable(
                f"{place} cannot be copied: it holds {size / 1e9:,.1f} GB, beside it {free / 1e9:,.1f} are free"
            )
        for entry in entries:
            (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, copy / entry.name)
    except OSError as fault:
        raise StoreUnwritable(f"{place} cannot be copied: {fault.strerror or fault}; free space on its disk") from None


def _bytes(entry: Path) -> int:
    files = entry.rglob("*") if entry.is_dir() else (entry,)
    return sum(each.stat().st_size for each in files if each.is_file())
