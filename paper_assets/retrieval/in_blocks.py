"""Search in blocks: documents too many to be kept are read through once for a search, in bounded memory (SPEC R9).

Of each document only numbers stay: its cosine and how often it holds the asked words. The answer is the same as that
of a snapshot; it takes as long as reading what meets the filter, and the vectors of all documents.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from paper_assets.retrieval.comparing import Compared, Positions
from paper_assets.stores.document_filters import Where
from paper_assets.stores.documents import FIELDS, DataType, count_matching_documents
from paper_assets.stores.holdings import bound_memory, own_copy, read_documents, read_vectors
from paper_assets.text.bm25 import QueryWord, index_words, query_words, times_of

_AT_ONCE = 8_192  # documents in memory at once


def read_through(
    connection: DuckDBPyConnection,
    data_type: DataType,
    question: str,
    asked: NDArray[np.float32] | None,
    *,
    model: str | None,
    where: Where | None,
    undated: Where | None,
) -> Compared:
    """What a search for `question` compares, valid while the connection is open. Raises InvalidInput."""
    bound_memory(connection)
    terms = query_words(question)
    keys, text_keys, doc_ids = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)], [pa.array([], pa.string())]
    times, lengths = [np.zeros((len(terms), 0), np.int32)], [np.zeros(0, np.int64)]
    for table in read_documents(connection, data_type, at_once=_AT_ONCE, where=where):
        index = index_words(table["text"])
        keys.append(table["key"].to_numpy().copy())
        text_keys.append(table["text_key"].to_numpy().copy())
        doc_ids.append(own_copy(table["doc_id"]))
        times.append(times_of(index, terms, np.arange(len(table))))
        lengths.append(index.lengths)
    ids, of_text = pa.concat_arrays(doc_ids), np.concatenate(text_keys)
    embedded, cosines = np.zeros(len(ids), dtype=bool), np.zeros(len(ids))
    if len(ids):
        for rows, vectors in read_vectors(connection, model=model, text_keys=of_text):
            embedded[rows] = True
            if asked is not None:
                cosines[rows] = (vectors.astype(np.float64) * asked.astype(np.float64)).sum(axis=1)
    known = np.concatenate(keys)

    def counted(words: Sequence[QueryWord]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        return np.concatenate(times, axis=1), np.concatenate(lengths)

    def names(at: Positions) -> list[str]:
        found: list[str] = ids.take(pa.array(at)).to_pylist()
        return found

    def documents(at: Positions) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for table in read_documents(connection, data_type, at_once=_AT_ONCE, keys=known[at]):
            found |= {each["doc_id"]: each for each in table.select(["doc_id", "text", *FIELDS]).to_pylist()}
        return [found[name] for name in names(at)]

    return Compared(
        embedded=embedded,
        undated=count_matching_documents(connection, data_type, undated) if undated else 0,
        times=counted,
        rough=lambda asked: (cosines, 0.0),
        exact=None,
        doc_ids=names,
        documents=documents,
    )
