"""Search exactly over the documents that meet a filter: by meaning, by words, or both (SPEC R2, R5, R9).

Every matching document is compared; nothing is approximated. A snapshot in memory is used if it fits. Otherwise the
documents are read in blocks for each search, in bounded memory: the answer is the same, but it takes as long as reading
the matching documents and all vectors.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput
from paper_assets.models.embedder import Embedder
from paper_assets.retrieval.merge import Candidate, access
from paper_assets.retrieval.scoring import MatchingDocuments, Method, Positions, best_of, method_of
from paper_assets.retrieval.snapshot import snapshot_of
from paper_assets.settings import RetrievalConfig
from paper_assets.stores.documents import (
    FIELDS,
    DataType,
    Where,
    condition_of,
    count_documents,
    count_matching_documents,
)
from paper_assets.stores.holdings import bound_memory, own_copy, read_documents, read_vectors
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.bm25 import QueryWord, index_words, query_words, times_of
from paper_assets.text.words import normal_form, word_forms, words_in

_AT_ONCE = 8_192  # documents in memory at once


def read_through(
    connection: DuckDBPyConnection,
    data_type: DataType,
    question: str,
    query_vector: NDArray[np.float32] | None,
    *,
    model: str | None,
    where: Where | None,
    undated: Where | None,
    only: pa.Array | None = None,
) -> MatchingDocuments:
    """Read the documents that meet the filter, and compare them with the question.

    The result is valid while the connection is open. Raises InvalidInput.
    """
    bound_memory(connection)
    terms = query_words(question)
    keys, text_keys, doc_ids = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)], [pa.array([], pa.string())]
    times, lengths = [np.zeros((len(terms), 0), np.int32)], [np.zeros(0, np.int64)]
    for table in read_documents(connection, data_type, at_once=_AT_ONCE, where=where):
        if only is not None:
            table = table.filter(pc.is_in(table["paper_id"], only))
        index = index_words(table["text"])
        keys.append(table["key"].to_numpy().copy())
        text_keys.append(table["text_key"].to_numpy().copy())
        doc_ids.append(own_copy(table["doc_id"]))
        times.append(times_of(index, terms, np.arange(len(table))))
        lengths.append(index.lengths)
    ids, known = pa.concat_arrays(doc_ids), np.concatenate(keys)
    embedded, cosines = _cosines(connection, query_vector, model=model, text_keys=np.concatenate(text_keys))

    def word_counts(words: Sequence[QueryWord]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        return np.concatenate(times, axis=1), np.concatenate(lengths)

    def ids_at(at: Positions) -> list[str]:
        found: list[str] = ids.take(pa.array(at)).to_pylist()
        return found

    def documents(at: Positions) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for table in read_documents(connection, data_type, at_once=_AT_ONCE, keys=known[at]):
            found |= {each["doc_id"]: each for each in table.select(["doc_id", "text", *FIELDS]).to_pylist()}
        return [found[name] for name in ids_at(at)]

    return MatchingDocuments(
        embedded=embedded,
        undated=count_matching_documents(connection, data_type, undated) if undated else 0,
        word_counts=word_counts,
        approximate_cosines=lambda query_vector: (cosines, 0.0),
        exact_vectors=None,
        doc_ids=ids_at,
        documents=documents,
    )


def _cosines(
    connection: DuckDBPyConnection,
    query_vector: NDArray[np.float32] | None,
    *,
    model: str | None,
    text_keys: NDArray[np.uint64],
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return (n,) which texts have a vector, and their cosines to the query: 0 without either vector."""
    embedded, cosines = np.zeros(len(text_keys), dtype=bool), np.zeros(len(text_keys))
    if len(text_keys):
        for rows, vectors in read_vectors(connection, model=model, text_keys=text_keys):
            embedded[rows] = True
            if query_vector is not None:
                cosines[rows] = (vectors.astype(np.float64) * query_vector.astype(np.float64)).sum(axis=1)
    return embedded, cosines


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """The warehouse, embedder and settings of a search; without an embedder only words are compared."""

    warehouse: Warehouse
    embedder: Embedder | None
    config: RetrievalConfig = field(default_factory=RetrievalConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Candidates, best first, and how many documents meet the filter.

    `method` is the one used: lexical without an embedder, or if most documents have no vector. `unembedded` of the
    matching documents have no vector, so only words find them; `undated` more lack only a date. Scores are
    similarities: the cosine; BM25 as a share (`lexical`); or a weighted sum (`hybrid`). By words alone, a document that
    shares no word is not a candidate.
    """

    candidates: tuple[Candidate, ...]
    matching: int
    method: Method
    unembedded: int
    undated: int = 0


def search(
    corpus: Corpus,
    question: str,
    *,
    data_type: DataType,
    where: Where | None,
    k: int,
    method: Method,
    undated: Where | None = None,
    only: pa.Array | None = None,
) -> Found:
    """Return the k best documents of a type that meet the filter, as stored now; ties by doc_id.

    Documents that meet `undated` are counted. `only`: ids of the papers whose documents may be found.
    Raises InvalidInput (the filter, an empty question, k), StoreError.
    """
    condition_of(where)  # refuse an invalid filter before opening anything
    if not question.strip() or k < 1:
        raise InvalidInput(f"a search needs a question and k from 1, got {question[:60]!r} and {k}")
    embedder = corpus.embedder
    query_vector = embedder.encode([question])[0] if embedder and method != "lexical" else None
    with _matching_documents(corpus, data_type, question, query_vector, where, undated, only) as matching:
        used = method_of(method, matching.embedded, model=embedder is not None, config=corpus.config)
        best, scores = best_of(matching, question, query_vector, method=used, k=k, config=corpus.config)
        found = matching.documents(best) if len(best) else []
    return Found(
        candidates=tuple(
            Candidate(
                doc_id=fields.pop("doc_id"),
                content=fields.pop("text"),
                metadata=fields,
                score=score,
                score_type="similarity",
                source_id=fields["paper_id"],
            )
            for fields, score in zip(found, scores, strict=True)
        ),
        matching=len(matching.embedded),
        method=used,
        unembedded=len(matching.embedded) - int(np.count_nonzero(matching.embedded)),
        undated=matching.undated,
    )


def papers_with_phrases(
    corpus: Corpus,
    phrases: Sequence[str],
    *,
    data_types: Sequence[DataType],
    owner: str | None,
    only: pa.Array | None = None,
) -> pa.Array:
    """Return the ids of the papers with a document that holds every phrase; hyphens are spaces and a plural s makes no
    difference.

    Documents are narrowed down by the words that they hold, and only those left are read.
    """
    patterns = [_phrase_pattern(phrase) for phrase in phrases]
    terms = query_words(" ".join(phrases))
    found: set[str] = set()
    for data_type in data_types:
        with _matching_documents(corpus, data_type, "", None, access(owner), None, only) as matching:
            positions = np.arange(len(matching.embedded), dtype=np.intp)
            if terms and len(positions):
                times, _ = matching.word_counts(terms)
                positions = positions[(np.asarray(times) > 0).all(axis=0)]
            for start in range(0, len(positions), _AT_ONCE):
                for document in matching.documents(positions[start : start + _AT_ONCE]):
                    text = document["text"]
                    if not text.isascii():
                        text = normal_form(text)
                    if all(pattern.search(text) for pattern in patterns):
                        found.add(document["paper_id"])
    return pa.array(sorted(found), pa.string())


def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Return the pattern of a phrase: its words in their order, each in any of its forms, with anything but letters
    between.
    """
    words = ("|".join(map(re.escape, word_forms(word))) for word in words_in(phrase))
    return re.compile(r"[\W_]+".join(rf"\b(?:{forms})\b" for forms in words), re.IGNORECASE)


@contextmanager
def _matching_documents(
    corpus: Corpus,
    data_type: DataType,
    question: str,
    query_vector: NDArray[np.float32] | None,
    where: Where | None,
    undated: Where | None,
    only: pa.Array | None,
) -> Iterator[MatchingDocuments]:
    model = corpus.embedder.name if corpus.embedder else None
    snapshot = snapshot_of(corpus.warehouse, data_type, model=model, most_bytes=corpus.config.memory)
    if snapshot is not None:
        yield snapshot.matching_documents(where, undated, only)
        return
    with corpus.warehouse.reading(own_settings=True) as connection:
        yield read_through(
            connection, data_type, question, query_vector, model=model, where=where, undated=undated, only=only
        )


def count_matching(corpus: Corpus, *, data_type: DataType, where: Where | None) -> int:
    """Count the documents of a type that meet the filter. Raises InvalidInput, StoreError."""
    return count_documents(corpus.warehouse, data_type, where)
