"""Keep one Chroma folder beside the database, for searches without a filter and for any other program (SPEC R9, R10).

`chromadb.PersistentClient("<data>/chroma")` opens it. Its collections are `abstract`, `fulltext`, `rewrite` and the
archive of best practices; private documents are not in it. DuckDB is the truth: `update` compares what Chroma holds
(the table `indexed`) with what is stored and writes the difference, so that one changed paper costs one paper.

On any doubt (a mark of a killed process, another model, another number of entries, an error) the folder is removed and
filled again. `nearest` waits for no other process: it returns a reason instead, and the search uses SQL.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from paper_assets.errors import IndexUnusable, StoreBusy, StoreError, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.small_files import StateCache
from paper_assets.stores.chroma import (
    AT_ONCE,
    VectorIndex,
    check_name,
    client_of,
    collection_of,
    flush,
    is_marked,
    kept_client,
    new_collection,
    opened,
    reason_in,
    remove_folder,
    set_mark,
    unusable,
)
from paper_assets.stores.documents import DOCUMENT_TYPES
from paper_assets.stores.warehouse import Warehouse

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_LARGEST = 300_000  # entries up to which a search opens the folder: Chroma loads all of them, 2 kB each
_MOST_REPEATS = 40  # with 300 equal vectors the graph loses others: recall@10 .6 to 1.0; with 100 it is 1.0


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
        with kept_client(index) as client:
            rows = _checked(client, collection, state)
            question = np.ascontiguousarray(vector[None], dtype=np.float32)
            answer: Any = rows.query(query_embeddings=question, n_results=k, where=where, include=["distances"])
            if where is None and len(answer["ids"][0]) != min(k, state.entries):
                return Nearest([], [], "the Chroma folder has lost entries")
            return Nearest(answer["ids"][0], answer["distances"][0])
    except StoreBusy:
        return Nearest([], [], "the Chroma folder is in use by another process")
    except StoreError as fault:
        return Nearest([], [], reason_in(fault))


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
        doubt = "was in use when a process was killed" if is_marked(index) else None
        if doubt is None:
            try:
                return _update(index, warehouse, collections, model=model)
            except IndexUnusable as fault:
                doubt = reason_in(fault)
        everything = sorted({*collections, *_remove_all(index, warehouse)})
        try:
            report = _update(index, warehouse, everything, model=model)
        except IndexUnusable as fault:
            raise StoreUnwritable(f"{reason_in(fault)} while it was filled again; check the free disk space") from None
        return SyncReport(upserted=report.upserted, removed=report.removed, rebuilt=doubt)


def self_check(
    index: VectorIndex, collection: str, ids: Sequence[str], vectors: NDArray[np.float32], *, near: float = 1e-4
) -> list[str]:
    """Return the ids of which the index does not hold this vector (n, d), or which a search for it does not find.

    Finding another id with an equal vector counts: equal texts have equal vectors. Raises StoreError.
    """
    if not ids:
        return []
    with opened(index) as client:
        rows = collection_of(client, collection)
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
        with opened(index) as client:
            for each in client.list_collections():
                client.delete_collection(each.name)
    else:
        with store_lock(Path(index.place), deadline=index.deadline):
            set_mark(index)


def drop(index: VectorIndex, collection: str) -> None:
    """Remove a collection, if there is one. Raises StoreError."""
    from chromadb.errors import NotFoundError

    with opened(index) as client, suppress(NotFoundError):
        client.delete_collection(collection)


def _update(index: VectorIndex, warehouse: Warehouse, collections: Iterable[str], *, model: str) -> SyncReport:
    """Write the differences of each collection. Raises IndexUnusable if Chroma does not hold what the database says."""
    with warehouse.reading() as connection:
        states = _states(connection)
        changes = {name: _changes(connection, name, model=model) for name in collections}
    if not states:
        remove_folder(index)  # of an unknown content
    if changing := any(new or gone for new, gone in changes.values()):
        set_mark(index)
    upserted = removed = 0
    with client_of(index.place) as client:
        for name, (new, gone) in changes.items():
            state = states.get(name)
            if state and state.model != model:
                raise unusable(index, f"holds vectors of {state.model}, not of {model}")
            rows = _checked(client, name, state) if state else new_collection(client, name)
            if state and not new and not gone:
                continue
            written = [pa.table({"id": pa.array([], pa.string()), "content": pa.array([], pa.uint64())})]
            for start in range(0, len(new), AT_ONCE):
                with warehouse.reading() as connection:
                    batch = _entries(connection, name, new[start : start + AT_ONCE], model=model)
                if len(batch):
                    _upsert(rows, batch)
                    written.append(batch.select(["id", "content"]))
            for start in range(0, len(gone), AT_ONCE):
                rows.delete(ids=gone[start : start + AT_ONCE])
            entries = pa.concat_tables(written)
            with warehouse.writing() as connection:
                content = _remember(connection, name, entries, gone, model=model)
            rows.modify(metadata={"model": model, "content": content})
            upserted, removed = upserted + len(entries), removed + len(gone)
    if changing and index.mark:
        flush(index)
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
    set_mark(index)
    with warehouse.writing() as connection:
        names = list(_states(connection))
        connection.execute("delete from indexed")
        connection.execute("delete from indexed_collections")
    if isinstance(index.place, str):
        from chromadb.errors import NotFoundError

        with client_of(index.place) as client:
            for name in {*names, *(each.name for each in client.list_collections())}:
                with suppress(NotFoundError):
                    client.delete_collection(name)
    remove_folder(index)
    return names


def _checked(client: "ClientAPI", name: str, state: _State) -> "Collection":
    """Return a collection that holds what the database says. Raises IndexUnusable for any other."""
    rows = collection_of(client, name)
    if (rows.metadata or {}).get("content") != f"{state.content:016x}" or rows.count() != state.entries:
        raise IndexUnusable(f"Chroma's collection {name} does not hold what was written; `paper-assets run` fills it")
    return rows
