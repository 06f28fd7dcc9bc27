"""Vectors for searching by meaning: a Chroma index over the vectors that the database holds, for other tools.

The desk itself searches DuckDB's vectors exactly (retrieval/); here nothing is asked but whether the index is whole.

The database is the truth and the index can be made again from it at any time, so nothing is ever repaired in
place. Chroma is not safe between processes and can be damaged for good by a kill: it is opened and closed inside
the lock of its store, and index_folder.py decides, without opening it, whether it may be opened. One collection
is one store. With the address of a Chroma server instead of a folder, the server takes care of that.

Never call this while holding a database connection that `batches` or `everything` also needs.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paper_assets.errors import IndexUnusable, StoreUnwritable
from paper_assets.stores import chroma_opening, index_folder
from paper_assets.stores.index_content import SAME, Batches, OpenCollection, Stored, bring_up_to_date, stored
from paper_assets.stores.index_folder import Manifest
from paper_assets.stores.lock import store_lock

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+[A-Za-z0-9]")  # Chroma's rule, and safe as the name of a folder


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """Where the vectors lie: a folder, or the address of a Chroma server (`http://host:port`)."""

    place: Path | str
    _: KW_ONLY
    deadline: float  # seconds to wait while another process has the index open


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What `sync` did; `rebuilt` is the reason why everything was made again, if it was."""

    upserted: int = 0
    removed: int = 0
    rebuilt: str | None = None


def sync(
    index: VectorIndex,
    collection: str,
    *,
    model: str,
    wanted: Mapping[str, str],
    everything: Callable[[], Mapping[str, str]],
    batches: Batches,
) -> SyncReport:
    """Make the `wanted` partitions (name -> fingerprint of their content) equal to what `batches` yields for them.

    Nothing is opened if the index already has these fingerprints. If it is missing, damaged, was left open by a
    killed process or holds another model's vectors, it is made again from `everything` (all partitions with their
    fingerprints). Ids are unique in the whole collection: the partition that yielded an id last owns it. Raises
    StoreBusy, StoreUnwritable, StoreError; after any error, also one of `batches`, the next sync puts all right.
    """
    if isinstance(index.place, str):
        return _sync_server(index.place, collection, model, wanted, everything, batches)
    store = _store(index.place, collection)
    with store_lock(store, deadline=index.deadline):
        try:
            copy, manifest = index_folder.current_copy(store)
            if manifest.model != model:
                raise index_folder.unusable(store, f"holds vectors of {manifest.model}, not of {model}")
            stale = _stale(manifest, wanted)
            return _update(copy, collection, manifest, stale, batches) if stale else SyncReport()
        except IndexUnusable as fault:
            reason = _reason(fault)
        return _rebuild(store, collection, model, {**everything(), **wanted}, batches, reason)


def self_check(index: VectorIndex, collection: str, ids: Sequence[str], vectors: np.ndarray) -> list[str]:
    """The ids that are not in the index with this vector (n, d), or that a search for their vector does not find.

    Finding another id with an equal vector is as good: equal texts have equal vectors.
    """
    if not ids:
        return []
    with _reading(index, collection) as opened:
        found = stored(opened, ids)
        best = _best_similarities(opened, vectors)
    there = dict(zip(found.ids, found.vectors, strict=True))
    return [
        identifier
        for identifier, vector, similarity in zip(ids, vectors, best, strict=True)
        if not similarity >= 1.0 - SAME or identifier not in there or np.abs(there[identifier] - vector).max() > SAME
    ]


def fetch(index: VectorIndex, collection: str, ids: Sequence[str]) -> Stored:
    """What the index holds of these ids, in their order; unknown ids are left out. Raises IndexUnusable."""
    with _reading(index, collection) as opened:
        return stored(opened, ids)


def count(index: VectorIndex, collection: str) -> int:
    """Number of vectors in the collection. Raises IndexUnusable."""
    with _reading(index, collection) as opened:
        return opened.rows.count()


def distrust(index: VectorIndex, collection: str) -> None:
    """Have the next sync make the whole collection again, for instance after a failed self_check."""
    if isinstance(index.place, str):
        return drop(index, collection)
    store = _store(index.place, collection)
    with store_lock(store, deadline=index.deadline):
        try:
            copy, _ = index_folder.current_copy(store)
        except IndexUnusable:
            return None
        return index_folder.mark_open(copy)


def drop(index: VectorIndex, collection: str) -> None:
    """Remove the collection, if there is one."""
    if isinstance(index.place, str):
        with chroma_opening.on_server(index.place) as client:
            return chroma_opening.remove_from_server(client, collection)
    store = _store(index.place, collection)
    with store_lock(store, deadline=index.deadline):
        return index_folder.remove_store(store)


def _update(copy: Path, collection: str, manifest: Manifest, stale: Mapping[str, str], batches: Batches) -> SyncReport:
    """Write the stale partitions into the copy in use; whatever interrupts it leaves the mark."""
    index_folder.remove_leftovers(copy.parent)
    index_folder.mark_open(copy)
    with chroma_opening.on_disk(index_folder.database(copy), collection, count=manifest.count) as opened:
        report, manifest = _change(opened, manifest, stale, batches)
    index_folder.mark_closed(copy, manifest)
    return report


def _rebuild(
    store: Path, collection: str, model: str, partitions: Mapping[str, str], batches: Batches, reason: str
) -> SyncReport:
    """Fill a new copy and switch to it; nobody sees it before it is whole."""
    copy = index_folder.new_copy(store)
    nothing = Manifest(model=model, count=0, partitions={})
    try:
        with chroma_opening.on_disk(index_folder.database(copy), collection, count=None) as opened:
            report, manifest = _change(opened, nothing, partitions, batches, rebuilt=reason)
        index_folder.mark_closed(copy, manifest)
        index_folder.put_in_use(store, copy)
    except IndexUnusable as fault:
        raise StoreUnwritable(f"{_reason(fault)} while it was rebuilt; check the free disk space") from None
    finally:
        index_folder.remove_leftovers(store)
    return report


def _change(
    opened: OpenCollection,
    manifest: Manifest,
    stale: Mapping[str, str],
    batches: Batches,
    *,
    rebuilt: str | None = None,
) -> tuple[SyncReport, Manifest]:
    change = bring_up_to_date(opened, manifest.partitions, stale, batches)
    after = Manifest(model=manifest.model, count=opened.rows.count(), partitions=change.partitions)
    return SyncReport(upserted=change.upserted, removed=change.removed, rebuilt=rebuilt), after


def _best_similarities(opened: OpenCollection, vectors: np.ndarray) -> np.ndarray:
    """The cosine of each vector (n, d) to the nearest one that the index finds, float32 (n,)."""
    questions = np.ascontiguousarray(vectors, dtype=np.float32)
    similarities = np.full(len(questions), np.nan, dtype=np.float32)
    for at in range(0, len(questions), opened.limit):
        part = questions[at : at + opened.limit]
        found: Any = opened.rows.query(query_embeddings=part, n_results=1, include=["distances"])
        for row, distances in enumerate(found["distances"], start=at):
            similarities[row : row + len(distances)] = 1.0 - np.asarray(distances, dtype=np.float32)
    return similarities


def _stale(manifest: Manifest, wanted: Mapping[str, str]) -> dict[str, str]:
    return {name: content for name, content in wanted.items() if manifest.partitions.get(name) != content}


def _reason(fault: IndexUnusable) -> str:
    return str(fault).split(";")[0]


def _store(place: Path, collection: str) -> Path:
    if not _NAME.fullmatch(collection):
        raise ValueError(f"{collection!r} cannot name a collection: at least 3 letters, digits, dots, - or _")
    return place / collection


@contextmanager
def _reading(index: VectorIndex, collection: str) -> Iterator[OpenCollection]:
    """The collection, open for reading."""
    if isinstance(index.place, str):
        with chroma_opening.on_server(index.place) as client:
            yield chroma_opening.of_server(client, collection)
        return
    store = _store(index.place, collection)
    with store_lock(store, deadline=index.deadline):
        copy, manifest = index_folder.current_copy(store)
        index_folder.mark_open(copy)
        try:
            with chroma_opening.on_disk(index_folder.database(copy), collection, count=manifest.count) as opened:
                yield opened
        except IndexUnusable:
            raise  # the mark stays, and the next sync rebuilds
        except (Exception, KeyboardInterrupt):  # the question was wrong, not the index
            index_folder.mark_read(copy, manifest)
            raise
        index_folder.mark_read(copy, manifest)


def _sync_server(
    address: str,
    collection: str,
    model: str,
    wanted: Mapping[str, str],
    everything: Callable[[], Mapping[str, str]],
    batches: Batches,
) -> SyncReport:
    """The same on a server, which keeps the manifest as metadata of the collection."""
    with chroma_opening.on_server(address) as client:
        try:
            opened = chroma_opening.of_server(client, collection)
            manifest = index_folder.manifest_from(json.loads(str((opened.rows.metadata or {}).get("manifest"))))
            reason = None if manifest.model == model else f"it holds vectors of {manifest.model}, not of {model}"
        except (IndexUnusable, TypeError, ValueError):
            reason = "the server has no finished collection"
        if reason is None:
            stale = _stale(manifest, wanted)
            if not stale:
                return SyncReport()
        else:
            opened = chroma_opening.new_on_server(client, collection)
            manifest, stale = Manifest(model=model, count=0, partitions={}), {**everything(), **wanted}
        report, manifest = _change(opened, manifest, stale, batches, rebuilt=reason)
        opened.rows.modify(metadata={"manifest": json.dumps(asdict(manifest))})
        return report
