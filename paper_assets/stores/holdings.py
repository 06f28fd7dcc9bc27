"""All documents of a data type at once, with their vectors, for searching in memory."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paper_assets.stores.document_filters import Where, condition_of
from paper_assets.stores.documents import FIELDS, DataType
from paper_assets.stores.warehouse import value_of

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_BATCH = 10_000  # documents read at once
_BYTES_OF_FIELDS = 500  # title, categories and the rest of a document, twice


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """n documents of a data type in the order of their ids, with their vectors of one model."""

    documents: "pa.Table"  # doc_id, text and FIELDS
    vectors: np.ndarray  # float32 (n, d), zeros where there is none; d is 0 without any
    embedded: np.ndarray  # bool (n,)


def holdings_fingerprint(connection: "DuckDBPyConnection", data_type: DataType, *, model: str | None) -> str:
    """Changes with any document of the type and with which of them have a vector of `model`.

    The sum of hashes of whole rows as texts: DuckDB's hash of several columns is a xor of theirs, in which two
    documents that change alike cancel each other out.
    """
    found: str = value_of(
        connection,
        """
        select concat_ws(' ', count(*), sum(hash(told::varchar)))
        from (
            select
                * exclude (text),
                text_hash in (select text_hash from embeddings where model = $model) as embedded
            from retrievable
            where data_type = $data_type
        ) as told
        """,
        {"data_type": data_type, "model": model},
    )
    return found


def holdings_size(connection: "DuckDBPyConnection", data_type: DataType, *, model: str | None) -> int:
    """Bytes that all documents of the type take in memory with their vectors and the count of their words, roughly."""
    size: int = value_of(
        connection,
        """
        with vector as (from embeddings where model = $model limit 1)
        select coalesce(sum($overhead + 2 * strlen(text) + 4 * coalesce((select len(vector) from vector), 0)), 0)
        from retrievable
        where data_type = $data_type and not withdrawn
        """,
        {"data_type": data_type, "model": model, "overhead": _BYTES_OF_FIELDS},
    )
    return size


def read_holdings(
    connection: "DuckDBPyConnection", data_type: DataType, *, model: str | None, where: Where | None = None
) -> Holdings:
    """The documents that meet the filter, but for withdrawn papers; without a model, none has a vector.

    Raises InvalidInput.
    """
    condition = condition_of(where)
    asked = [data_type, *condition.parameters]
    documents = connection.sql(
        f"""
        select {", ".join(("doc_id", "text", *FIELDS))}
        from retrievable
        where data_type = ? and not withdrawn and {condition.sql}
        order by doc_id
        """,  # noqa: S608
        params=asked,
    ).to_arrow_table()
    dimension: int = value_of(connection, "select len(vector) from embeddings where model = ? limit 1", [model]) or 0
    vectors = np.zeros((len(documents), dimension), dtype=np.float32)
    embedded = np.zeros(len(documents), dtype=bool)
    # Apart from the texts: sorting rows of both takes twice the time and memory.
    placed = connection.sql(
        f"""
        select place, vector
        from (
            select row_number() over (order by doc_id) - 1 as place, text_hash
            from retrievable
            where data_type = ? and not withdrawn and {condition.sql}
        )
        join (from embeddings where model = ?) using (text_hash)
        """,  # noqa: S608
        params=[*asked, model],
    )
    for batch in placed.to_arrow_reader(_BATCH):
        at = batch["place"].to_numpy()
        vectors[at] = batch["vector"].flatten().to_numpy().reshape(len(batch), dimension)
        embedded[at] = True
    return Holdings(documents=documents, vectors=vectors, embedded=embedded)
