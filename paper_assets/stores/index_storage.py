"""Manage the files of a vector index and update the collection inside: only differences are written.

The first half knows an open Chroma collection, not where it is stored or who may open it. The second half knows only
files, no Chroma; the caller holds the store's lock. A store holds one copy, two during a rebuild:

    CURRENT                       name of the copy in use, replaced atomically
    index-<hex>/OPEN              exists from before Chroma opens the copy until all it wrote is on disk
    index-<hex>/manifest.json     model, partitions with their fingerprints, number of vectors, sizes of the files
    index-<hex>/database/         Chroma's files

Opening a damaged Chroma folder can crash the process or write tens of gigabytes, so a copy is checked by these
files alone. An OPEN found under the lock means that its owner was killed: such a copy is never opened, only replaced.
Reading creates the mark too, because Chroma writes to its files even when it only reads.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar
from uuid import uuid4

import numpy as np

from paper_assets.errors import IndexUnusable, InvalidInput, StoreUnwritable
from paper_assets.small_files import is_present, make_private_folder, read_json, read_text, write_file

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

Scalar = str | int | float | bool
Value = Scalar | list[str]  # placeholder of metadata; Chroma accepts no empty list
SAME = 1e-4  # two unit vectors whose cosine, or each of whose components, differ by less are the same in float32
_PARTITION = "partition"  # metadata key of the partition that owns a vector


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBatch:
    """Hold vectors of one partition: float32 (n, d), their ids (unique in the collection) and small metadata.

    `documents` are n texts stored with the vectors; a collection has them for all of its vectors or for none.
    """

    partition: str
    ids: Sequence[str]
    vectors: np.ndarray
    metadatas: Sequence[Mapping[str, Value | None]]
    documents: Sequence[str] | None = None


Batches = Callable[[Sequence[str]], Iterable[VectorBatch]]


class OpenCollection(NamedTuple):
    """Hold an open collection and the most rows that one call may carry."""

    rows: "Collection"
    limit: int


class Stored(NamedTuple):
    """Hold vectors as read from the index: float32 (n, d), metadata and documents, in the order of `ids`."""

    ids: list[str]
    vectors: np.ndarray
    metadatas: list[dict[str, Value]]
    documents: list[str | None]


class Change(NamedTuple):
    """Report how many vectors were written and removed, and the partitions that the collection now holds.

    A partition that lost a paper to another one has the fingerprint None: its content is not known exactly.
    """

    upserted: int
    removed: int
    partitions: dict[str, str | None]


class _Row(NamedTuple):
    vector: np.ndarray
    metadata: Any  # Chroma merges metadata into the stored ones: a key to be removed is set to None
    document: str | None


def stored(opened: OpenCollection, ids: Sequence[str]) -> Stored:
    """Read the rows with these ids from the collection, in their order; unknown ids are omitted."""
    found: dict[str, tuple[Any, Any, Any]] = {}
    for at in range(0, len(ids), opened.limit):
        some = list(ids[at : at + opened.limit])
        part: Any = opened.rows.get(ids=some, include=["embeddings", "metadatas", "documents"])
        rows = zip(part["embeddings"], part["metadatas"], part["documents"], strict=True)
        found.update(zip(part["ids"], rows, strict=True))
    known = [identifier for identifier in dict.fromkeys(ids) if identifier in found]
    vectors = np.array([found[identifier][0] for identifier in known], dtype=np.float32)
    texts = [found[each][2] for each in known]
    return Stored(known, vectors.reshape(len(known), -1 if known else 0), [found[each][1] for each in known], texts)


def update_collection(
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
            raise ValueError(f"batches yielded partition {batch.partition}, which was not requested")
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
    removed = sorted(leaving - owners.keys())
    for at in range(0, len(removed), opened.limit):
        opened.rows.delete(ids=removed[at : at + opened.limit])
    return Change(upserted, len(removed), {**held, **stale, **dict.fromkeys(robbed)})


def _changed(batch: VectorBatch, old: Stored) -> dict[str, _Row]:
    """Return the rows of a batch that differ from those in the collection."""
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
            raise ValueError("some vectors have a document and others do not")
        metadatas = [row.metadata for row in rows.values()]
        opened.rows.upsert(ids=list(rows), embeddings=vectors, metadatas=metadatas, documents=texts or None)


def _of_at_most(limit: int, batches: Iterable[VectorBatch]) -> Iterator[VectorBatch]:
    """Yield the batches, validated before any of them is written, and split to what one call of Chroma may carry."""
    for batch in batches:
        lengths = {len(batch.ids), len(batch.vectors), len(batch.metadatas), len(batch.documents or batch.ids)}
        if batch.vectors.ndim != 2 or len(lengths) > 1:
            raise ValueError(f"partition {batch.partition}: ids, vectors, metadatas, documents differ in length")
        if len(set(batch.ids)) != len(batch.ids):
            raise ValueError(f"partition {batch.partition}: an id occurs twice")
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


_MOST_BYTES = 50_000_000  # of a manifest; 10,000 days with their fingerprints take 1 MB
_FORMAT = 2  # 2: abstracts carry all fields that filters name
_COPY = re.compile(r"index-[0-9a-f]{12}")
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Describe the content of a copy. A partition with fingerprint None may have lost papers: sync it again."""

    model: str
    count: int
    partitions: Mapping[str, str | None]
    sizes: Mapping[str, int] = field(default_factory=dict)  # sizes of Chroma's files when it was closed


def _disk_faults_named(function: Callable[P, R]) -> Callable[P, R]:
    """Turn a fault of the disk into StoreUnwritable with the file's name."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function and convert its OSError."""
        try:
            return function(*args, **kwargs)
        except OSError as fault:
            reason = fault.strerror or str(fault)
            raise StoreUnwritable(f"cannot use {fault.filename}: {reason}; check permissions and free space") from None

    return guarded


def database(copy: Path) -> Path:
    """Return the folder that belongs to Chroma."""
    return copy / "database"


@_disk_faults_named
def current_copy(store: Path) -> tuple[Path, Manifest]:
    """Return the copy in use and its manifest. Raises IndexUnusable, without opening it, if it cannot be trusted."""
    try:
        name = read_text(store / "CURRENT").strip() if is_present(store / "CURRENT") else None
    except InvalidInput:
        name = ""
    if name is None:
        raise unusable(store, "was not built yet")
    copy = store / name
    if not _COPY.fullmatch(name) or not copy.is_dir():
        raise unusable(store, "has lost its CURRENT copy")
    if (copy / "OPEN").exists():
        raise unusable(store, "was open when the process using it ended")
    try:
        record = read_json(copy / "manifest.json", most_bytes=_MOST_BYTES)
        if not isinstance(record, dict) or record.pop("format", None) != _FORMAT:
            raise ValueError
        manifest = manifest_from(record)
    except (InvalidInput, TypeError, ValueError):
        raise unusable(store, "has no readable manifest") from None
    if not manifest.sizes or manifest.sizes != _sizes(copy):
        raise unusable(store, "does not have the files it was closed with")
    return copy, manifest


def manifest_from(record: object) -> Manifest:
    """Parse a manifest from its JSON value. Raises TypeError or ValueError for anything else."""
    if not isinstance(record, dict):
        raise TypeError
    manifest = Manifest(**record)
    partitions = manifest.partitions
    sound = isinstance(manifest.model, str) and type(manifest.count) is int and isinstance(partitions, dict)
    if not sound or not all(fingerprint is None or isinstance(fingerprint, str) for fingerprint in partitions.values()):
        raise ValueError
    return manifest


def unusable(store: Path, reason: str) -> IndexUnusable:
    """Return the error for an index that is not opened: the reason and the remedy."""
    return IndexUnusable(f"the vector index {store} {reason}; materialize the embeddings again to rebuild it")


@_disk_faults_named
def mark_open(copy: Path) -> None:
    """Create the mark that the copy is open; it is on disk when this returns."""
    (copy / "OPEN").touch()
    _flush(copy)


@_disk_faults_named
def mark_read(copy: Path, manifest: Manifest) -> None:
    """Remove the mark after Chroma has closed the copy that it read."""
    if manifest.sizes != _sizes(copy):
        mark_closed(copy, manifest)
    (copy / "OPEN").unlink(missing_ok=True)


@_disk_faults_named
def mark_closed(copy: Path, manifest: Manifest) -> None:
    """Flush the copy that Chroma wrote and closed, with its manifest, to disk, then remove the mark."""
    for file in _files(copy):
        _flush(file)
    record = {"format": _FORMAT, **asdict(replace(manifest, sizes=_sizes(copy)))}
    write_file(copy / "manifest.json", json.dumps(record, ensure_ascii=False))
    (copy / "OPEN").unlink(missing_ok=True)
    _flush(copy)


@_disk_faults_named
def new_copy(store: Path) -> Path:
    """Create an empty folder for a rebuild; the leftovers of a killed rebuild are removed first.

    The name is new each time: Chroma caches a folder that failed to open for the life of the process.
    """
    make_private_folder(store)
    remove_leftovers(store)
    copy = store / f"index-{uuid4().hex[:12]}"
    database(copy).mkdir(parents=True)
    return copy


@_disk_faults_named
def put_in_use(store: Path, copy: Path) -> None:
    """Point CURRENT to a closed copy, atomically."""
    write_file(store / "CURRENT", copy.name)
    _flush(store)


@_disk_faults_named
def remove_leftovers(store: Path) -> None:
    """Remove every copy but the one that CURRENT names."""
    try:
        in_use = read_text(store / "CURRENT").strip()
    except InvalidInput:
        in_use = ""
    for entry in store.iterdir():
        if _COPY.fullmatch(entry.name) and entry.name != in_use:
            shutil.rmtree(entry)


@_disk_faults_named
def remove_store(store: Path) -> None:
    """Remove the whole folder; CURRENT is removed first, so that a half-removed copy is never taken for a good one."""
    (store / "CURRENT").unlink(missing_ok=True)
    if store.is_dir():
        shutil.rmtree(store)


def _files(copy: Path) -> list[Path]:
    return sorted(path for path in database(copy).rglob("*") if path.is_file())


def _sizes(copy: Path) -> dict[str, int]:
    return {path.relative_to(copy).as_posix(): path.stat().st_size for path in _files(copy)}


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
