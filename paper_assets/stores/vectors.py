"""Open Chroma and keep a search index by meaning for other tools, built from the vectors in the database.

Retrieval in this program searches DuckDB's vectors exactly (retrieval/); the index is only checked for completeness.

The database is the source of truth and the index can be rebuilt from it at any time, so nothing is repaired in place.
Chroma is not safe between processes and a kill can damage it permanently: it is opened and closed inside the lock of
its store, and index_storage.py decides, without opening it, whether it may be opened. One collection is one store. With
the URL of a Chroma server instead of a folder, the server is responsible for that. Cosine space, telemetry off.
`client.close()` also frees the folder within the process: a client opened later sees what others wrote in between.

Never call this while holding a database connection that `batches` or `everything` also needs.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from paper_assets.errors import IndexUnusable, StoreError, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.stores import index_storage
from paper_assets.stores.index_storage import (
    SAME,
    Batches,
    Manifest,
    OpenCollection,
    Stored,
    stored,
    unusable,
    update_collection,
)

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+[A-Za-z0-9]")  # Chroma's rule, and safe as the name of a folder


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """Locate the vectors: a folder, or the URL of a Chroma server (`http://host:port`)."""

    place: Path | str
    _: KW_ONLY
    deadline: float  # seconds to wait while another process has the index open


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """Report what `sync` did; `rebuilt` is the reason for a rebuild, if there was one."""

    upserted: int = 0
    removed: int = 0
    rebuilt: str | None = None


def sync(
    index: VectorIndex,
    collection: str,
    *,
    model: str,
    partitions: Mapping[str, str],
    everything: Callable[[], Mapping[str, str]],
    batches: Batches,
) -> SyncReport:
    """Make `partitions` (name -> fingerprint of their content) of the index equal to what `batches` yields for them.

    Nothing is opened if the index already has these fingerprints. If it is missing, damaged, was left open by a killed
    process or holds another model's vectors, it is rebuilt from `everything` (all partitions with their fingerprints).
    Ids are unique in the whole collection: the partition that yielded an id last owns it. Raises StoreBusy,
    StoreUnwritable, StoreError; after any error, including one of `batches`, the next sync repairs the index.
    """
    if isinstance(index.place, str):
        return _sync_server(index.place, collection, model, partitions, everything, batches)
    store = _store(index.place, collection)
    with store_lock(store, deadline=index.deadline):
        try:
            copy, manifest = index_storage.current_copy(store)
            if manifest.model != model:
                raise index_storage.unusable(store, f"holds vectors of {manifest.model}, not of {model}")
            stale = _stale(manifest, partitions)
            return _update(copy, collection, manifest, stale, batches) if stale else SyncReport()
        except IndexUnusable as fault:
            reason = _reason(fault)
        return _rebuild(store, collection, model, {**everything(), **partitions}, batches, reason)


def self_check(index: VectorIndex, collection: str, ids: Sequence[str], vectors: np.ndarray) -> list[str]:
    """Return the ids that are not in the index with this vector (n, d), or that a search for their vector misses.

    Finding another id with an equal vector counts as found: equal texts have equal vectors.
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
    """Read the rows with these ids from the index, in their order; unknown ids are omitted. Raises IndexUnusable."""
    with _reading(index, collection) as opened:
        return stored(opened, ids)


def count(index: VectorIndex, collection: str) -> int:
    """Return the number of vectors in the collection. Raises IndexUnusable."""
    with _reading(index, collection) as opened:
        return opened.rows.count()


def mark_for_rebuild(index: VectorIndex, collection: str) -> None:
    """Mark the collection so that the next sync rebuilds all of it, for example after a failed self_check."""
    if isinstance(index.place, str):
        return drop(index, collection)
    store = _store(index.place, collection)
    with store_lock(store, deadline=index.deadline):
        try:
            copy, _ = index_storage.current_copy(store)
        except IndexUnusable:
            return None
        return index_storage.mark_open(copy)


def drop(index: VectorIndex, collection: str) -> None:
    """Remove the collection, if there is one."""
    if isinstance(index.place, str):
        with on_server(index.place) as client:
            return remove_from_server(client, collection)
    store = _store(index.place, collection)
    with store_lock(store, deadline=index.deadline):
        return index_storage.remove_store(store)


def _update(copy: Path, collection: str, manifest: Manifest, stale: Mapping[str, str], batches: Batches) -> SyncReport:
    """Write the stale partitions into the copy in use; an interruption leaves the mark."""
    index_storage.remove_leftovers(copy.parent)
    index_storage.mark_open(copy)
    with on_disk(index_storage.database(copy), collection, count=manifest.count) as opened:
        report, manifest = _change(opened, manifest, stale, batches)
    index_storage.mark_closed(copy, manifest)
    return report


def _rebuild(
    store: Path, collection: str, model: str, partitions: Mapping[str, str], batches: Batches, reason: str
) -> SyncReport:
    """Fill a new copy and switch to it when it is complete."""
    copy = index_storage.new_copy(store)
    nothing = Manifest(model=model, count=0, partitions={})
    try:
        with on_disk(index_storage.database(copy), collection, count=None) as opened:
            report, manifest = _change(opened, nothing, partitions, batches, rebuilt=reason)
        index_storage.mark_closed(copy, manifest)
        index_storage.put_in_use(store, copy)
    except IndexUnusable as fault:
        raise StoreUnwritable(f"{_reason(fault)} while it was rebuilt; check the free disk space") from None
    finally:
        index_storage.remove_leftovers(store)
    return report


def _change(
    opened: OpenCollection,
    manifest: Manifest,
    stale: Mapping[str, str],
    batches: Batches,
    *,
    rebuilt: str | None = None,
) -> tuple[SyncReport, Manifest]:
    change = update_collection(opened, manifest.partitions, stale, batches)
    after = Manifest(model=manifest.model, count=opened.rows.count(), partitions=change.partitions)
    return SyncReport(upserted=change.upserted, removed=change.removed, rebuilt=rebuilt), after


def _best_similarities(opened: OpenCollection, vectors: np.ndarray) -> np.ndarray:
    """Return the cosine of each vector (n, d) to the nearest one that the index finds, float32 (n,)."""
    questions = np.ascontiguousarray(vectors, dtype=np.float32)
    similarities = np.full(len(questions), np.nan, dtype=np.float32)
    for at in range(0, len(questions), opened.limit):
        part = questions[at : at + opened.limit]
        found: Any = opened.rows.query(query_embeddings=part, n_results=1, include=["distances"])
        for row, distances in enumerate(found["distances"], start=at):
            similarities[row : row + len(distances)] = 1.0 - np.asarray(distances, dtype=np.float32)
    return similarities


def _stale(manifest: Manifest, partitions: Mapping[str, str]) -> dict[str, str]:
    return {name: content for name, content in partitions.items() if manifest.partitions.get(name) != content}


def _reason(fault: IndexUnusable) -> str:
    return str(fault).split(";")[0]


def _store(place: Path, collection: str) -> Path:
    if not _NAME.fullmatch(collection):
        raise ValueError(f"{collection!r} cannot name a collection: at least 3 letters, digits, dots, - or _")
    return place / collection


@contextmanager
def _reading(index: VectorIndex, collection: str) -> Iterator[OpenCollection]:
    """Open the collection for reading."""
    if isinstance(index.place, str):
        with on_server(index.place) as client:
            yield of_server(client, collection)
        return
    store = _store(index.place, collection)
    with store_lock(store, deadline=index.deadline):
        copy, manifest = index_storage.current_copy(store)
        index_storage.mark_open(copy)
        try:
            with on_disk(index_storage.database(copy), collection, count=manifest.count) as opened:
                yield opened
        except IndexUnusable:
            raise  # the mark remains, and the next sync rebuilds
        except (Exception, KeyboardInterrupt):  # the query was invalid, not the index
            index_storage.mark_read(copy, manifest)
            raise
        index_storage.mark_read(copy, manifest)


def _sync_server(
    address: str,
    collection: str,
    model: str,
    partitions: Mapping[str, str],
    everything: Callable[[], Mapping[str, str]],
    batches: Batches,
) -> SyncReport:
    """Sync on a server, which stores the manifest as metadata of the collection."""
    with on_server(address) as client:
        try:
            opened = of_server(client, collection)
            manifest = index_storage.manifest_from(json.loads(str((opened.rows.metadata or {}).get("manifest"))))
            reason = None if manifest.model == model else f"it holds vectors of {manifest.model}, not of {model}"
        except (IndexUnusable, TypeError, ValueError):
            reason = "the server has no finished collection"
        if reason is None:
            stale = _stale(manifest, partitions)
            if not stale:
                return SyncReport()
        else:
            opened = new_on_server(client, collection)
            manifest, stale = Manifest(model=model, count=0, partitions={}), {**everything(), **partitions}
        report, manifest = _change(opened, manifest, stale, batches, rebuilt=reason)
        opened.rows.modify(metadata={"manifest": json.dumps(asdict(manifest))})
        return report


# Chroma keeps what is newer than sync_threshold in a log and replays it at each opening: at its default of 1,000
# up to 0.9 s, at 100 a negligible time, and writing is not slower. At its default of 16 neighbours a search for
# their own vector did not find 10 of 40,000, at 32 it found all, and building took no longer.
_CONFIGURATION: Any = {"hnsw": {"space": "cosine", "max_neighbors": 32, "batch_size": 100, "sync_threshold": 100}}


@contextmanager
def on_disk(database: Path, collection: str, *, count: int | None) -> Iterator[OpenCollection]:
    """Open the collection in a Chroma folder; it must hold `count` vectors. `count` None: create it.

    The caller holds the lock and has set the mark. Raises IndexUnusable for anything that Chroma cannot do with its
    files.
    """
    import chromadb
    from chromadb.errors import InternalError, NotFoundError

    try:
        client: Any = chromadb.PersistentClient(database, settings=_settings())
    except Exception as fault:
        raise unusable(database, f"does not open ({_first_line(fault)})") from None
    try:
        if count is None:
            rows = client.create_collection(collection, embedding_function=None, configuration=_CONFIGURATION)
        else:
            rows = client.get_collection(collection, embedding_function=None)
            if rows.count() != count:
                raise unusable(database, f"does not hold the {count} vectors that were written")
        yield OpenCollection(rows, client.get_max_batch_size())
    except (InternalError, NotFoundError) as fault:
        raise unusable(database, f"failed ({_first_line(fault)})") from None
    finally:
        client.close()


@contextmanager
def found_on_disk(database: Path, collection: str) -> Iterator[OpenCollection]:
    """Open a collection that another program has written; raises IndexUnusable if it is missing or cannot be read."""
    import chromadb
    from chromadb.errors import InternalError, NotFoundError

    try:
        client: Any = chromadb.PersistentClient(database, settings=_settings())
    except Exception as fault:
        raise IndexUnusable(f"the Chroma folder does not open ({_first_line(fault)}); is it whole?") from None
    try:
        rows = client.get_collection(collection, embedding_function=None)
        yield OpenCollection(rows, client.get_max_batch_size())
    except (InternalError, NotFoundError) as fault:
        raise IndexUnusable(f"no collection {collection} can be read ({_first_line(fault)}); check its name") from None
    finally:
        client.close()


@contextmanager
def on_server(address: str) -> Iterator["ClientAPI"]:
    """Connect to the Chroma server at `http://host:port`; its failures raise StoreError."""
    import chromadb
    import httpx
    from chromadb.errors import InternalError

    parts = urlsplit(address)
    try:
        client: Any = chromadb.HttpClient(
            host=parts.hostname or "", port=parts.port or 8000, ssl=parts.scheme == "https", settings=_settings()
        )
    except ValueError:
        raise StoreError(f"no Chroma server answers at {address}; start it, or set a folder instead") from None
    try:
        yield client
    except (httpx.HTTPError, InternalError) as fault:
        raise StoreError(f"the Chroma server at {address} failed: {_first_line(fault)}; see its log") from None
    finally:
        client.close()


def of_server(client: "ClientAPI", collection: str) -> OpenCollection:
    """Open a collection of a server. Raises IndexUnusable if there is none."""
    from chromadb.errors import NotFoundError

    try:
        rows = client.get_collection(collection, embedding_function=None)
    except NotFoundError:
        message = f"the Chroma server has no collection {collection}; materialize the embeddings to fill it"
        raise IndexUnusable(message) from None
    return OpenCollection(rows, client.get_max_batch_size())


def new_on_server(client: "ClientAPI", collection: str) -> OpenCollection:
    """Create an empty collection on a server, replacing an existing one."""
    remove_from_server(client, collection)
    rows = client.create_collection(collection, embedding_function=None, configuration=_CONFIGURATION)
    return OpenCollection(rows, client.get_max_batch_size())


def remove_from_server(client: "ClientAPI", collection: str) -> None:
    """Remove a collection, if there is one."""
    from chromadb.errors import NotFoundError

    try:
        client.delete_collection(collection)
    except NotFoundError:
        return


def _settings() -> Any:
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def _first_line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0].replace(";", ",")[:200]
