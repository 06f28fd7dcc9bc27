"""Keep one Chroma folder beside the database, for searches without a filter and for any other program (SPEC R9, R10).

`chromadb.PersistentClient("<data>/chroma")` opens it. Its collections are `abstract`, `fulltext`, `rewrite` and the
archive of best practices; private documents are not in it. DuckDB is the truth: `update` compares what Chroma holds
(the table `indexed`) with what is stored and writes the difference, so that one changed paper costs one paper.

Chroma is not safe between processes, and a killed writer can damage the folder so that opening it crashes. So:

1. A client is used inside the lock of the folder only. Writers wait for the lock, a search does not (`nearest` returns
   a reason instead, and the search uses SQL).
2. While a process opens the folder or writes to it, a mark is beside it (`chroma.unfinished`), which stays if it is
   killed.
3. On any doubt (a mark, another model, another number of entries, an error) the folder is removed and filled again.
4. Opening and loading takes a hundred times as long as a query. So a process keeps the client of its last search, which
   reads no file any more, and uses it again inside the lock as long as no file of the folder has changed: a client
   answers from what it has loaded, whatever others write. Its own writers close it first.

With the URL of a Chroma server instead of a folder the same code talks to the server, which needs no lock and no mark.
"""

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from paper_assets.errors import IndexUnusable, InvalidInput, StoreBusy, StoreError, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.small_files import StateCache, file_state, make_private_folder
from paper_assets.stores.documents import DOCUMENT_TYPES
from paper_assets.stores.warehouse import Warehouse

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+[A-Za-z0-9]")  # Chroma's rule
_MOST_BYTES = 20_000_000_000  # of another program's folder; anything larger is not a collection of rewrites
_AT_ONCE = 2_000  # entries written by one call; Chroma takes at most 5,461
_LARGEST = 300_000  # entries up to which a search opens the folder: Chroma loads all of them, 2 kB each
_LONGEST_TURN = 1.0  # seconds that a search waits for another thread's, which takes some milliseconds
_MOST_REPEATS = 40  # with 300 equal vectors the graph loses others: recall@10 .6 to 1.0; with 100 it is 1.0
# Chroma keeps the newest changes, up to sync_threshold, in a log that it replays each time it is opened. With one
# thread the graph depends on the order of the entries alone. ef_search: candidates of a query; recall@10 on
# 100,000 mixtures of real vectors was .965 at 200, .992 at 400, .998 at 800 and 1.0 at 1,600, in 2 to 7 ms.
_CONFIGURATION: Any = {
    "hnsw": {
        "space": "cosine",
        "max_neighbors": 32,
        "ef_search": 1_600,
        "batch_size": 100,
        "sync_threshold": 100,
        "num_threads": 1,
    }
}


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """Locate Chroma: a folder, or the URL of a server (`http://host:port`)."""

    place: Path | str
    _: KW_ONLY
    deadline: float  # seconds that a writer waits for another process

    @property
    def mark(self) -> Path | None:
        """Return the file that exists while a process has the folder open; None for a server."""
        return None if isinstance(self.place, str) else self.place.with_name(f"{self.place.name}.unfinished")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """Report what `update` did; `rebuilt` is the reason for filling everything again, if there was one."""

    upserted: int = 0
    removed: int = 0
    rebuilt: str | None = None


class Nearest(NamedTuple):
    """The ids nearest to a vector and their cosine distances, nearest first; or the `reason` why there is no answer."""

    ids: list[str]
    distances: list[float]
    reason: str | None = None


class _Reader(NamedTuple):
    """A client that stays open between two searches, and the state of the folder's files after it had loaded them."""

    client: Any  # a ClientAPI; the protocol lacks `close`
    files: str


_readers: dict[Path, _Reader] = {}  # of this process, at most one
_turn = threading.Lock()  # of the threads that search
_stored_at = StateCache()  # what `_stored` returned, by the state of the database's files


class _State(NamedTuple):
    """What a collection holds, according to the database."""

    model: str
    entries: int
    repeats: int  # how often the most frequent text occurs
    content: int  # hashes of all entries, joined by bit_xor


def nearest(
    index: VectorIndex,
    connection: DuckDBPyConnection,
    collection: str,
    vector: NDArray[np.float32],
    *,
    k: int,
    model: str,
    where: dict[str, Any] | None = None,
    as_of: str | None = None,
) -> Nearest:
    """Ask Chroma for the k entries nearest to the vector. Waits for no other process and raises for no fault of Chroma.

    `as_of`: the state of the database's files, if it is known; what they hold is then computed once for each state.
    """
    state = _states(connection).get(collection)
    if state is None or state.model != model:
        return Nearest([], [], "the Chroma folder is not filled yet")
    stored = _stored_at.get(f"{collection} {model}", lambda: _stored(connection, collection, model=model), as_of)
    if (state.entries, state.content) != stored:
        return Nearest([], [], "the Chroma folder does not hold the newest changes yet")
    if state.repeats > _MOST_REPEATS:
        return Nearest([], [], f"one text is stored {state.repeats} times, among which Chroma's search gets lost")
    if state.entries > _LARGEST and not isinstance(index.place, str):
        return Nearest([], [], f"a Chroma folder of more than {_LARGEST:,} entries is too large for memory")
    try:
        with _reader_of(index) as client:
            rows = _checked(client, collection, state)
            question = np.ascontiguousarray(vector[None], dtype=np.float32)
            answer: Any = rows.query(query_embeddings=question, n_results=k, where=where, include=["distances"])
            if where is None and len(answer["ids"][0]) != min(k, state.entries):
                return Nearest([], [], "the Chroma folder has lost entries")
            return Nearest(answer["ids"][0], answer["distances"][0])
    except StoreBusy:
        return Nearest([], [], "the Chroma folder is in use by another process")
    except StoreError as fault:
        return Nearest([], [], _reason(fault))


def update(index: VectorIndex, warehouse: Warehouse, collections: Sequence[str], *, model: str) -> SyncReport:
    """Make the collections hold exactly what the database holds of them with vectors of `model`.

    If the folder cannot be trusted, it is removed and all collections are filled again. An interrupted update is
    noticed and repaired by the next one. Raises StoreBusy, StoreUnwritable, StoreError.
    """
    for name in collections:
        check_name(name)
    with ExitStack() as held:
        if not isinstance(index.place, str):
            held.enter_context(store_lock(index.place, deadline=index.deadline))
        doubt = "was in use when a process was killed" if _is_marked(index) else None
        if doubt is None:
            try:
                return _update(index, warehouse, collections, model=model)
            except IndexUnusable as fault:
                doubt = _reason(fault)
        everything = sorted({*collections, *_remove_all(index, warehouse)})
        try:
            report = _update(index, warehouse, everything, model=model)
        except IndexUnusable as fault:
            raise StoreUnwritable(f"{_reason(fault)} while it was filled again; check the free disk space") from None
        return SyncReport(upserted=report.upserted, removed=report.removed, rebuilt=doubt)


def self_check(
    index: VectorIndex, collection: str, ids: Sequence[str], vectors: NDArray[np.float32], *, near: float = 1e-4
) -> list[str]:
    """Return the ids of which the index does not hold this vector (n, d), or which a search for it does not find.

    Finding another id with an equal vector counts: equal texts have equal vectors. Raises StoreError.
    """
    if not ids:
        return []
    with _opened(index, deadline=index.deadline) as client:
        rows = _collection(client, collection)
        found: Any = rows.get(ids=list(ids), include=["embeddings"])
        best: Any = rows.query(query_embeddings=vectors, n_results=1, include=["distances"])["distances"]
    held = dict(zip(found["ids"], found["embeddings"], strict=True))
    return [
        identifier
        for identifier, vector, distances in zip(ids, vectors, best, strict=True)
        if identifier not in held or np.abs(held[identifier] - vector).max() > near or not distances[0] <= near
    ]


def mark_for_rebuild(index: VectorIndex) -> None:
    """Make the next update fill everything again, for example after a failed `self_check`."""
    if index.mark is None:
        with _opened(index, deadline=index.deadline) as client:
            for each in client.list_collections():
                client.delete_collection(each.name)
    else:
        with store_lock(Path(index.place), deadline=index.deadline):
            _set_mark(index)


def drop(index: VectorIndex, collection: str) -> None:
    """Remove a collection, if there is one. Raises StoreError."""
    from chromadb.errors import NotFoundError

    with _opened(index, deadline=index.deadline) as client, suppress(NotFoundError):
        client.delete_collection(collection)


def check_name(collection: str) -> None:
    """Raise InvalidInput for a name that Chroma does not accept."""
    if not _NAME.fullmatch(collection):
        raise InvalidInput(f"{collection!r} cannot name a collection: at least 3 letters, digits, dots, - or _")


class ForeignRow(NamedTuple):
    """Represent one entry as it was read."""

    id: str
    document: str | None
    metadata: dict[str, Any]


def foreign_rows(
    index: VectorIndex, collection: str, *, folder: Path | None = None, at_once: int
) -> Iterator[list[ForeignRow]]:
    """Read the entries of a collection that another program wrote, ascending by id, in batches.

    `folder`: a Chroma folder, which is read from a copy, because Chroma writes even when it only reads; None: our own.
    Raises InvalidInput, IndexUnusable, StoreUnwritable.
    """
    check_name(collection)
    with ExitStack() as opened:
        place = index.place if folder is None else folder
        if not isinstance(place, str):
            if not (place / "chroma.sqlite3").is_file():
                raise IndexUnusable(f"{place} has no collection {collection}; name its folder with --chroma")
            copy = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="chroma-", ignore_cleanup_errors=True)))
            try:
                size, free = sum(file.stat().st_size for file in _files(place)), shutil.disk_usage(copy).free
                if size > min(_MOST_BYTES, free):
                    raise IndexUnusable(
                        f"{place} holds {size / 1e9:,.0f} GB, of which at most {min(_MOST_BYTES, free) / 1e9:.0f} are "
                        "read; is it damaged?"
                    )
                shutil.copytree(place, copy, dirs_exist_ok=True)
            except OSError as fault:
                raise StoreUnwritable(f"{place} cannot be copied: {fault.strerror or fault}") from None
            place = copy
        client = opened.enter_context(_client(place))
        rows = _collection(client, collection)
        ids: list[str] = []
        while part := rows.get(include=[], limit=_AT_ONCE, offset=len(ids))["ids"]:
            ids += part
        ids.sort()
        for start in range(0, len(ids), at_once):
            found: Any = rows.get(ids=ids[start : start + at_once], include=["documents", "metadatas"])
            entries = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
            yield sorted(ForeignRow(identifier, text, dict(metadata or {})) for identifier, text, metadata in entries)


def _update(index: VectorIndex, warehouse: Warehouse, collections: Iterable[str], *, model: str) -> SyncReport:
    """Write the differences of each collection. Raises IndexUnusable if Chroma does not hold what the database says."""
    with warehouse.reading() as connection:
        states = _states(connection)
        changes = {name: _changes(connection, name, model=model) for name in collections}
    if not states:
        _remove_folder(index)  # of an unknown content
    if changing := any(new or gone for new, gone in changes.values()):
        _set_mark(index)
    upserted = removed = 0
    with _client(index.place) as client:
        for name, (new, gone) in changes.items():
            state = states.get(name)
            if state and state.model != model:
                raise _unusable(index, f"holds vectors of {state.model}, not of {model}")
            rows = _checked(client, name, state) if state else _new_collection(client, name)
            if state and not new and not gone:
                continue
            written = [pa.table({"id": pa.array([], pa.string()), "content": pa.array([], pa.uint64())})]
            for start in range(0, len(new), _AT_ONCE):
                with warehouse.reading() as connection:
                    batch = _entries(connection, name, new[start : start + _AT_ONCE], model=model)
                if len(batch):
                    _upsert(rows, batch)
                    written.append(batch.select(["id", "content"]))
            for start in range(0, len(gone), _AT_ONCE):
                rows.delete(ids=gone[start : start + _AT_ONCE])
            entries = pa.concat_tables(written)
            with warehouse.writing() as connection:
                content = _remember(connection, name, entries, gone, model=model)
            rows.modify(metadata={"model": model, "content": content})
            upserted, removed = upserted + len(entries), removed + len(gone)
    if changing and index.mark:
        _flush(index)
        index.mark.unlink()
    return SyncReport(upserted=upserted, removed=removed)


def _states(connection: DuckDBPyConnection) -> dict[str, _State]:
    rows = connection.execute("select collection, model, entries, repeats, content from indexed_collections").fetchall()
    return {collection: _State(*state) for collection, *state in rows}


def _stored(connection: DuckDBPyConnection, collection: str, *, model: str) -> tuple[int, int]:
    """Return the number and the content of the entries that the collection should hold."""
    [(entries, content)] = connection.execute(
        """
        select count(*), coalesce(bit_xor(content), 0)
        from indexable
        where collection = $collection and text_hash in (select text_hash from embeddings where model = $model)
        """,
        {"collection": collection, "model": model},
    ).fetchall()
    return entries, content


def _changes(connection: DuckDBPyConnection, collection: str, *, model: str) -> tuple[list[str], list[str]]:
    """Return the ids of new or changed entries, and of those that are no longer stored."""
    rows = connection.execute(
        """
        with
        wanted as (
            select id, content
            from indexable
            where collection = $collection and text_hash in (select text_hash from embeddings where model = $model)
        ),
        held as (select id, content from indexed where collection = $collection)
        select coalesce(wanted.id, held.id), wanted.id is null
        from wanted
        full join held using (id)
        where wanted.content is distinct from held.content
        order by 1
        """,
        {"collection": collection, "model": model},
    ).fetchall()
    return [each for each, gone in rows if not gone], [each for each, gone in rows if gone]


def _entries(connection: DuckDBPyConnection, collection: str, ids: list[str], *, model: str) -> pa.Table:
    """Return id, content, vector, metadata and for best practices the document of those that are still stored."""
    connection.register("asked_ids", pa.table({"id": pa.array(ids, pa.string())}))
    documents = """
        select
            doc_id as id, content, vector, null::varchar as document,
            retrievable.* exclude (doc_id, text, text_hash, origin, withdrawn)
        from retrievable
        join (from indexable where collection = $collection) as entries on doc_id = id
        join embeddings on embeddings.text_hash = retrievable.text_hash and model = $model
        where data_type = $collection and doc_id in (from asked_ids)
        order by id
    """
    practices = """
        select
            id, content, vector, text as document, original_text, score, target_level,
            array_to_string(keywords, ', ') as keywords,
            replace(strftime(made_at, '%Y-%m-%dT%H:%M:%S.%f+00:00'), '.000000', '') as timestamp,
            model_version, paper_id, category
        from best_practices
        join (select id, content from indexable where collection = $collection) using (id)
        join embeddings on embeddings.text_hash = best_practices.text_hash and model = $model
        where collection = $collection and id in (from asked_ids)
        order by id
    """
    query = documents if collection in DOCUMENT_TYPES else practices
    return connection.sql(query, params={"collection": collection, "model": model}).to_arrow_table()


def _upsert(rows: "Collection", batch: pa.Table) -> None:
    metadata = batch.drop_columns(["id", "content", "vector", "document"]).to_pylist()
    texts = batch["document"].to_pylist()
    vectors = batch["vector"].combine_chunks().flatten().to_numpy().reshape(len(batch), -1)
    rows.upsert(
        ids=batch["id"].to_pylist(),
        embeddings=vectors,
        # Chroma adds metadata to those it has: None removes a key. It accepts no empty list.
        metadatas=[{name: value if value != [] else None for name, value in each.items()} for each in metadata],
        documents=texts if texts[0] is not None else None,
    )


def _remember(
    connection: DuckDBPyConnection,
    collection: str,
    entries: pa.Table,
    gone: Sequence[str],
    *,
    model: str,
) -> str:
    """Store what the collection holds now; return its content as hexadecimal digits."""
    connection.register("left_entries", pa.table({"id": pa.array([*gone, *entries["id"].to_pylist()], pa.string())}))
    connection.register("written_entries", entries)
    names = {"collection": collection}
    connection.execute("delete from indexed where collection = $collection and id in (from left_entries)", names)
    connection.execute("insert into indexed select $collection, id, content from written_entries", names)
    connection.execute("delete from indexed_collections where collection = $collection", names)
    connection.execute(
        """
        insert into indexed_collections
        select $collection, $model, count(*), coalesce(max(times), 0), coalesce(bit_xor(content), 0)
        from (
            select indexed.content, count(*) over (partition by text_hash) as times
            from indexed
            join indexable using (collection, id)
            where collection = $collection
        )
        """,
        {**names, "model": model},
    )
    return f"{_states(connection)[collection].content:016x}"


def _remove_all(index: VectorIndex, warehouse: Warehouse) -> list[str]:
    """Remove the folder (or the server's collections) and what the database knows of it; return the collections."""
    _set_mark(index)
    with warehouse.writing() as connection:
        names = list(_states(connection))
        connection.execute("delete from indexed")
        connection.execute("delete from indexed_collections")
    if isinstance(index.place, str):
        from chromadb.errors import NotFoundError

        with _client(index.place) as client:
            for name in {*names, *(each.name for each in client.list_collections())}:
                with suppress(NotFoundError):
                    client.delete_collection(name)
    _remove_folder(index)
    return names


def _remove_folder(index: VectorIndex) -> None:
    if not isinstance(index.place, str) and index.place.exists():
        _close_reader(index.place)
        try:
            shutil.rmtree(index.place)
        except OSError as fault:
            raise StoreUnwritable(f"{fault.filename} cannot be removed: {fault.strerror}; check permissions") from None


@contextmanager
def _opened(index: VectorIndex, *, deadline: float) -> Iterator["ClientAPI"]:
    """Open Chroma to read it, inside the lock. Raises StoreBusy, IndexUnusable, StoreError."""
    if isinstance(index.place, str):
        with _client(index.place) as client:
            yield client
        return
    with store_lock(index.place, deadline=deadline), _marked(index), _client(index.place) as client:
        yield client


@contextmanager
def _reader_of(index: VectorIndex) -> Iterator["ClientAPI"]:
    """Return the client that this process keeps, inside the lock, after opening it if the folder has changed.

    Raises StoreBusy, IndexUnusable, StoreError.
    """
    if isinstance(index.place, str):
        with _client(index.place) as server:
            yield server
        return
    if not _turn.acquire(timeout=_LONGEST_TURN):
        raise StoreBusy(f"{index.place} is in use by another search")
    try:
        with store_lock(index.place, deadline=0), ExitStack() as opened:
            reader = _readers.pop(index.place, None)
            if reader and (_is_marked(index) or reader.files != file_state([index.place])):
                reader.client.close()
                reader = None
            if reader is None:
                for place in list(_readers):
                    _close_reader(place)
                opened.enter_context(_marked(index))
            client = reader.client if reader else _connect(index.place)
            try:
                with _explained(index.place):
                    yield client
                files = reader.files if reader else file_state([index.place])
            except BaseException:
                client.close()
                raise
            if files is None:
                client.close()
            else:
                _readers[index.place] = _Reader(client, files)
    finally:
        _turn.release()


@contextmanager
def _marked(index: VectorIndex) -> Iterator[None]:
    """Mark the folder while it is being opened to read it: Chroma writes to its files even then, and a damaged one can
    crash the process. Raises IndexUnusable if there is no folder or a mark.
    """
    if not (Path(index.place) / "chroma.sqlite3").is_file():
        raise _unusable(index, "does not exist yet")
    if _is_marked(index):
        raise _unusable(index, "was in use when a process was killed")
    _set_mark(index)
    try:
        yield
    finally:
        if index.mark:
            index.mark.unlink(missing_ok=True)


def _is_marked(index: VectorIndex) -> bool:
    return index.mark is not None and index.mark.exists()


def _close_reader(place: Path) -> None:
    """Close the client that this process keeps of a folder, if any; the system behind it is shared with new clients."""
    if reader := _readers.pop(place, None):
        reader.client.close()


@contextmanager
def _client(place: Path | str) -> Iterator["ClientAPI"]:
    """Open and close a client. Raises IndexUnusable for a fault of Chroma, StoreError for a missing server."""
    if not isinstance(place, str):
        _close_reader(place)
    client = _connect(place)
    try:
        with _explained(place):
            yield client
    finally:
        client.close()


def _connect(place: Path | str) -> Any:
    """Return a client. Raises IndexUnusable, StoreUnwritable, StoreError."""
    import chromadb
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    if isinstance(place, str):
        parts = urlsplit(place)
        try:
            return chromadb.HttpClient(
                host=parts.hostname or "", port=parts.port or 8000, ssl=parts.scheme == "https", settings=settings
            )
        except ValueError:
            raise StoreError(f"no Chroma server answers at {place}; start it, or set a folder instead") from None
    try:
        make_private_folder(place)
        return chromadb.PersistentClient(place, settings=settings)
    except OSError as fault:
        raise StoreUnwritable(f"cannot use {place}: {fault.strerror}; check permissions and free space") from None
    except Exception as fault:
        raise IndexUnusable(f"the Chroma folder {place} does not open ({_first_line(fault)})") from None


@contextmanager
def _explained(place: Path | str) -> Iterator[None]:
    """Turn a fault of Chroma into IndexUnusable, that of a server into StoreError."""
    import httpx
    from chromadb.errors import InternalError, NotFoundError

    try:
        yield
    except httpx.HTTPError as fault:
        raise StoreError(f"the Chroma server at {place} failed: {_first_line(fault)}; see its log") from None
    except (InternalError, NotFoundError) as fault:
        raise IndexUnusable(f"Chroma at {place} failed ({_first_line(fault)})") from None


def _collection(client: "ClientAPI", name: str) -> "Collection":
    """Return a collection. Raises IndexUnusable if there is none."""
    from chromadb.errors import NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        raise IndexUnusable(f"Chroma has no collection {name}; check its name, or materialize the embeddings") from None


def _new_collection(client: "ClientAPI", name: str) -> "Collection":
    """Create an empty collection; one that the database does not know is removed."""
    from chromadb.errors import NotFoundError

    with suppress(NotFoundError):
        client.delete_collection(name)
    return client.create_collection(name, embedding_function=None, configuration=_CONFIGURATION)


def _checked(client: "ClientAPI", name: str, state: _State) -> "Collection":
    """Return a collection that holds what the database says. Raises IndexUnusable for any other."""
    rows = _collection(client, name)
    if (rows.metadata or {}).get("content") != f"{state.content:016x}" or rows.count() != state.entries:
        raise IndexUnusable(f"Chroma's collection {name} does not hold what was written; `paper-assets run` fills it")
    return rows


def _unusable(index: VectorIndex, reason: str) -> IndexUnusable:
    return IndexUnusable(f"the Chroma folder {index.place} {reason}; `paper-assets run` fills it again")


def _reason(fault: StoreError) -> str:
    return str(fault).split(";")[0]


def _first_line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0].replace(";", ",")[:200]


def _set_mark(index: VectorIndex) -> None:
    """Create the mark; it is on disk when this returns. Raises StoreUnwritable."""
    if index.mark is None:
        return
    try:
        make_private_folder(index.mark.parent)
        index.mark.touch()
        _flush_file(index.mark.parent)
    except OSError as fault:
        raise StoreUnwritable(f"cannot write {index.mark}: {fault.strerror}; free space or check permissions") from None


def _flush(index: VectorIndex) -> None:
    """Write what Chroma wrote to the disk, before the mark goes."""
    if not isinstance(index.place, str):
        for file in _files(index.place):
            _flush_file(file)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _flush_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
