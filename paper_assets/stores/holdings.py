"""Read the documents of a data type with their vectors in batches of bounded size: all, or only the changed ones.

Documents and vectors are read separately and joined by the reader: joining them in SQL takes several times the memory.
Documents and texts are identified by 64 bits of DuckDB's hash of their id and content.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from paper_assets.stores.documents import FIELDS, DataType, Where, condition_of
from paper_assets.stores.warehouse import value_of

Keys = NDArray[np.uint64]
_VECTORS_AT_ONCE = 8_192
_MEMORY = (
    "128MB"  # memory for DuckDB in addition to the rows it returns; without a limit it takes most of the machine's
)
_NAMES = ", ".join(("doc_id", *FIELDS))
_CONTENT = f"hash({_NAMES}, text_hash)"  # in DuckDB 2.0 the order of the columns counts
_FEW_TEXTS = 64  # vectors looked up one by one; DuckDB reads the vectors of all texts for any longer list


@dataclass(frozen=True, slots=True)
class HoldingsSize:
    """Report how much there is to read: documents, bytes of their texts, length of a vector (0: no vectors)."""

    documents: int
    characters: int
    dimension: int


@dataclass(frozen=True, slots=True)
class DocumentStates:
    """Hold, for each of n documents, its key, a hash of its stored content, and whether its text has a vector."""

    keys: Keys
    contents: Keys
    embedded: NDArray[np.bool_]


def bound_memory(connection: DuckDBPyConnection) -> None:
    """Limit DuckDB's memory for reading; the rest goes to its temporary folder."""
    connection.execute(f"set memory_limit = '{_MEMORY}'")
    connection.execute("set threads = 1")  # each thread has its own buffers
    connection.execute("set preserve_insertion_order = false")
    connection.execute("set enable_progress_bar = false")  # it would be drawn on a user's terminal


def holdings_size(connection: DuckDBPyConnection, data_type: DataType, *, model: str | None) -> HoldingsSize:
    """Return the size of all documents of the type that are not withdrawn."""
    [(documents, characters)] = connection.execute(
        """
        select count(*), coalesce(sum(strlen(text)), 0)::bigint
        from retrievable
        where data_type = $data_type and not withdrawn
        """,
        {"data_type": data_type},
    ).fetchall()
    return HoldingsSize(documents, characters, vector_length(connection, model))


def vector_length(connection: DuckDBPyConnection, model: str | None) -> int:
    """Return the length of a vector of the model; 0 if there is none."""
    return value_of(connection, "select len(vector) from embeddings where model = ? limit 1", [model]) or 0


def document_states(connection: DuckDBPyConnection, data_type: DataType, *, model: str | None) -> DocumentStates:
    """Return the state of every document, to detect changes in a fraction of the time of reading them."""
    found = connection.execute(
        f"""
        select
            hash(doc_id) as key,
            {_CONTENT} as content,
            coalesce(text_hash in (select text_hash from embeddings where model = $model), false) as embedded
        from retrievable
        where data_type = $data_type and not withdrawn
        """,  # noqa: S608
        {"data_type": data_type, "model": model},
    ).fetchnumpy()
    return DocumentStates(*(np.asarray(found[name]) for name in ("key", "content", "embedded")))


def read_documents(
    connection: DuckDBPyConnection,
    data_type: DataType,
    *,
    at_once: int,
    where: Where | None = None,
    keys: Keys | None = None,
) -> Iterator[pa.Table]:
    """Yield documents in batches, unordered: key and content (as in `document_states`), text_key, text_hash, text,
    doc_id, FIELDS.

    Only those that match the filter, only those of `keys`; never withdrawn papers. A column that the caller keeps holds
    all columns of its batch in memory, texts too: keep `own_copy` of it. Raises InvalidInput.
    """
    condition = condition_of(where)
    among = ""
    if keys is not None:
        connection.register("wanted_keys", pa.table({"key": keys}))
        among = "and hash(doc_id) in (select key from wanted_keys)"
    reader = connection.sql(
        f"""
        select hash(doc_id) as key, {_CONTENT} as content, hash(text_hash) as text_key, text_hash, text, {_NAMES}
        from retrievable
        where data_type = ? and not withdrawn and {condition.sql} {among}
        """,  # noqa: S608
        params=[data_type, *condition.parameters],
    ).to_arrow_reader(at_once)
    for batch in reader:
        if len(batch):
            yield pa.Table.from_batches([batch])


def own_copy(column: pa.ChunkedArray) -> pa.Array:
    """Return the column in separate memory."""
    return pc.take(column, pa.array(np.arange(len(column)))).combine_chunks()


def read_vectors(
    connection: DuckDBPyConnection, *, model: str | None, text_keys: Keys
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float32]]]:
    """Yield which of the n texts (rows, unordered, repeated texts each) have these vectors (m, d)."""
    order = np.argsort(text_keys, kind="stable")
    ordered = text_keys[order]
    reader = connection.sql(
        "select hash(text_hash) as text_key, vector from embeddings where model = ?", params=[model]
    ).to_arrow_reader(_VECTORS_AT_ONCE)
    for batch in reader:
        if len(batch):
            held = batch["text_key"].to_numpy()
            left, right = np.searchsorted(ordered, held, "left"), np.searchsorted(ordered, held, "right")
            counts = right - left
            source = np.repeat(np.arange(len(held)), counts)
            within = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
            if len(source):
                matrix = batch["vector"].flatten().to_numpy().reshape(len(batch), -1)
                yield order[left[source] + within], matrix[source]


def few_vectors(
    connection: DuckDBPyConnection, *, model: str | None, text_hashes: Sequence[str]
) -> dict[str, NDArray[np.float32]] | None:
    """Return the stored vectors of a few texts by hash; None where they are too many to look up."""
    distinct = sorted(set(text_hashes))
    if len(distinct) > _FEW_TEXTS:
        return None
    found: dict[str, NDArray[np.float32]] = {}
    for text_hash in distinct:
        vector = value_of(
            connection, "select vector from embeddings where model = ? and text_hash = ?", [model, text_hash]
        )
        if vector is not None:
            found[text_hash] = np.asarray(vector, dtype=np.float32)
    return found
