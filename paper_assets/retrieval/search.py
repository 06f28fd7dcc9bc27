"""Search the stored documents by meaning, by words, or both (SPEC R2, R5, R9; docs/search.md).

- With a filter: one SQL statement compares every document that meets it with the query vector. The answer is exact.
- Without one: Chroma names several times as many documents as asked for. They and those that can win by their words
  are merged as two sources (M1) and scored again, exactly, with the vectors in DuckDB.
- While Chroma cannot answer (it is being filled, in use, damaged or missing), SQL compares every document.

Both ways give a document the same score: (1 - share) * cosine + share * words, where `words` is BM25 over the documents
that meet the filter, as if there were no others. Both begin with cosines in float32, and score those that can be among
the best again in float64.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput
from paper_assets.models.embedder import Embedder
from paper_assets.retrieval.merge import Candidate, Policy, Rules, access, merge
from paper_assets.settings import RetrievalConfig, Settings
from paper_assets.small_files import file_state
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.documents import (
    FIELDS,
    DataType,
    Where,
    condition_of,
    count_matching_documents,
)
from paper_assets.stores.embeddings import UNEMBEDDED
from paper_assets.stores.vectors import nearest
from paper_assets.stores.warehouse import Warehouse, value_of
from paper_assets.stores.word_index import holders_of
from paper_assets.text.bm25 import bm25, query_words, spaced
from paper_assets.text.words import word_forms, words_in

Method = Literal["vector", "lexical", "hybrid"]

_SEVERAL, _FEWEST = 5, 100  # documents asked of Chroma: several times as many as wanted, and no fewer than these
_MOST_BY_WORDS = 500  # documents outside Chroma's answer that are scored
_NAMED_ONE_BY_ONE = 1_000  # ids that DuckDB looks up without reading the other documents
_ROUNDING = 1e-4  # at least the error of a product of two unit vectors in float32, which Chroma computes too
_LARGE, _MEMORY = 1_000_000_000, "600MB"  # bytes of a warehouse from which DuckDB's memory is limited, and the limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """The warehouse, embedder, Chroma and settings of a search; without an embedder only words are compared."""

    warehouse: Warehouse
    embedder: Embedder | None
    index: VectorIndex | None = None  # None: every search is made in SQL
    config: RetrievalConfig = field(default_factory=RetrievalConfig)


def open_corpus(settings: Settings, warehouse: Warehouse, embedder: Embedder | None, *, once: bool = False) -> Corpus:
    """Return the corpus that these settings search.

    `once`: a process that ends after this search uses SQL, because importing Chroma and loading its folder take longer
    than comparing all vectors: of 100,000, 2.7 s of processor time and 0.8 GB instead of 1.5 s and 0.5 GB.
    """
    place = settings.vectors_place
    index = VectorIndex(place, deadline=settings.store_deadline) if isinstance(place, str) or not once else None
    return Corpus(warehouse=warehouse, embedder=embedder, index=index, config=settings.retrieval)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Candidates, best first, and how many documents meet the filter.

    `method` is the one used: lexical without an embedder. `unembedded` of the matching documents have no vector, so
    only words find them; `undated` more lack only a date. Scores are similarities: the cosine; BM25 as a share
    (`lexical`); or a weighted sum (`hybrid`). By words alone, a document that shares no word is not a candidate. `way`:
    `Chroma`, or `SQL`, with the reason where there was no filter.
    """

    candidates: tuple[Candidate, ...]
    matching: int
    method: Method
    unembedded: int
    undated: int = 0
    way: str = "SQL"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matching:
    """The m documents that meet a filter.

    `places` of their vectors, null without one, hold as long as the connection is open. `public`: whether Chroma has
    them.
    """

    doc_ids: pa.Array
    numbers: NDArray[np.int32]  # of their texts in the inverted index
    lengths: NDArray[np.int32]  # words in each text
    places: pa.ChunkedArray
    public: NDArray[np.bool_]

    @property
    def embedded(self) -> NDArray[np.bool_]:
        return self.places.is_valid().to_numpy()


def without_vectors(found: Sequence[Found], *, model: bool) -> str | None:
    """Say in a sentence which documents were compared by their words only (R8); None if none were."""
    if not model:
        return "the embedding model cannot be used, so only words were compared"
    without, matching = sum(one.unembedded for one in found), sum(one.matching for one in found)
    if not without:
        return None
    how = "and were compared by words alone; `paper-assets run` embeds them"
    return f"{without:,} of {matching:,} documents {UNEMBEDDED} {how}"


def search(
    corpus: Corpus,
    question: str,
    *,
    data_type: DataType,
    where: Where | None,
    k: int,
    method: Method = "hybrid",
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
    vector = embedder.encode([question])[0] if embedder and method != "lexical" else None
    model = embedder.name if embedder else None
    with opened(corpus) as corpus, corpus.warehouse.reading() as connection:
        matching = _matching(connection, data_type, where, only, model=model)
        used: Method = method if embedder else "lexical"
        request = _Request(connection, corpus.config, data_type, question, vector, model, used, k)
        words = np.zeros(len(matching.doc_ids))
        if request.method != "vector" or not matching.embedded.all():
            words = _word_shares(request, matching)
        way, answer, caller = "SQL", None, _caller(where) if only is None else None
        if corpus.index and vector is not None and caller:
            as_of = file_state(corpus.warehouse.files)
            way, answer = _by_chroma(corpus.index, request, matching, words, caller[0], as_of=as_of)
        if answer is None:
            answer = _by_sql(request, matching, words)
        return Found(
            candidates=answer,
            matching=len(matching.doc_ids),
            method=request.method,
            unembedded=len(matching.doc_ids) - int(np.count_nonzero(matching.embedded)),
            undated=count_matching_documents(connection, data_type, undated) if undated else 0,
            way=way,
        )


@dataclass(frozen=True, slots=True)
class _Request:
    """What is searched for, over an open connection."""

    connection: DuckDBPyConnection
    config: RetrievalConfig
    data_type: DataType
    question: str
    vector: NDArray[np.float32] | None
    model: str | None
    method: Method
    k: int


def _by_sql(request: _Request, matching: _Matching, words: NDArray[np.float64]) -> tuple[Candidate, ...]:
    """Score every matching document; in float32 at first where all vectors are read."""
    rows = np.arange(len(matching.doc_ids))
    if not _few(request, len(rows)):
        near = _scores(request, _cosines(request, matching, rows, exact=False), words)
        worst = np.partition(near, -request.k)[-request.k] if len(near) > request.k else -np.inf
        rows = np.flatnonzero(near >= worst - 2 * _ROUNDING)
    best = _best(request, matching, rows, _cosines(request, matching, rows), words)
    documents = _documents(request, list(best))
    return tuple(_candidate(documents[doc_id], score, "similarity") for doc_id, score in best.items())


def _by_chroma(
    index: VectorIndex,
    request: _Request,
    matching: _Matching,
    words: NDArray[np.float64],
    owner: str | None,
    *,
    as_of: str | None,
) -> tuple[str, tuple[Candidate, ...] | None]:
    """Merge Chroma's nearest documents with all private ones and those that can win by their words; return the way
    and the answer.

    The cosine of any other public document is at most that of the last one that Chroma named, so the `_MOST_BY_WORDS`
    that reach most with it are added. There is no answer, and the way says why, if Chroma cannot answer or too many
    reach the same. `as_of`: the state of the database's files.
    """
    import pyarrow.compute as pc

    if request.vector is None or request.model is None:
        return "SQL", None
    answer = nearest(
        index,
        request.connection,
        request.data_type,
        request.vector,
        k=max(_SEVERAL * request.k, _FEWEST),
        model=request.model,
        as_of=as_of,
    )
    if answer.reason:
        return f"SQL: {answer.reason}", None
    named = pc.index_in(pa.array(answer.ids, pa.string()), value_set=matching.doc_ids).to_numpy()
    near = 1.0 - np.array(answer.distances)
    private = matching.embedded & ~matching.public
    last = near[-1] if len(near) else 1.0
    reachable = _scores(request, np.where(matching.embedded, last, np.nan), words)
    reachable[private | (words <= 0)] = -np.inf
    reachable[named] = -np.inf
    least = np.partition(reachable, -_MOST_BY_WORDS)[-_MOST_BY_WORDS] if len(reachable) > _MOST_BY_WORDS else -np.inf
    others = np.flatnonzero(private | ((reachable >= least) & np.isfinite(reachable)))
    if len(others) > 2 * _MOST_BY_WORDS + np.count_nonzero(private):
        return "SQL: too many documents are as near as the last one that Chroma named", None
    rows = np.concatenate([named, others])
    cosines = _cosines(request, matching, rows)
    if (np.abs(cosines[: len(named)] - near) > _ROUNDING).any():
        return "SQL: the Chroma folder holds other vectors than the database", None
    best = _best(request, matching, rows, cosines, words)
    documents = _documents(request, list(best))
    distances = dict(zip(answer.ids, answer.distances, strict=True))
    by_meaning = [_candidate(documents[each], distances[each], "distance") for each in distances if each in best]
    by_words = [_candidate(documents[each], best[each], "similarity") for each in best if each not in distances]
    merged = merge(
        [by_meaning, by_words],
        Rules(
            policy=Policy(owner=owner),
            comparable=True,
            rerank=lambda candidates: [best[each.doc_id] for each in candidates],
            limit=request.k,
        ),
    )
    return "Chroma", merged.candidates


def _best(
    request: _Request,
    matching: _Matching,
    rows: NDArray[np.integer],
    cosines: NDArray[np.float64],
    words: NDArray[np.float64],
) -> dict[str, float]:
    """Return the ids and scores of the k best of these rows, best first, ties by id."""
    scores: list[float] = _scores(request, cosines, words[rows]).tolist()
    ids: list[str] = matching.doc_ids.take(pa.array(rows, pa.int64())).to_pylist()
    scored = sorted((-score, doc_id) for score, doc_id in zip(scores, ids, strict=True) if score > -np.inf)
    return {doc_id: -score for score, doc_id in scored[: request.k]}


def _scores(request: _Request, cosines: NDArray[np.float64], words: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the score of each document, -inf for those to leave out.

    A document without a vector (NaN) gets the cosine that documents with as many of the words usually have, and is left
    out if it shares no word.
    """
    if request.method == "lexical":
        return np.where(words > 0, words, -np.inf)
    embedded = ~np.isnan(cosines)
    share = request.config.lexical_share if request.method == "hybrid" else 0.0
    assumed = np.minimum(request.config.assumed_cosine + words, 1.0)
    near = np.where(embedded, np.clip(cosines, -1.0, 1.0), assumed)
    return np.where(embedded | (words > 0), (1 - share) * near + share * words, -np.inf)


def _word_shares(request: _Request, matching: _Matching) -> NDArray[np.float64]:
    """Return BM25 of each matching document, as a share of what a document can reach."""
    if not len(matching.numbers):
        return np.zeros(0)
    terms = query_words(request.question)
    size = int(matching.numbers.max()) + 1
    copies = np.bincount(matching.numbers)  # documents with the same text
    lengths = np.zeros(size, dtype=np.int64)
    lengths[matching.numbers] = matching.lengths
    inside = []
    for rows, times in holders_of(request.connection, terms):
        kept = np.flatnonzero(copies[np.minimum(rows, size - 1)] * (rows < size))
        inside.append((rows[kept], times[kept]))
    k1, b = request.config.bm25_k1, request.config.bm25_b
    return bm25(terms, inside, lengths, copies=copies, k1=k1, b=b)[matching.numbers]


def _caller(where: Where | None) -> tuple[str | None] | None:
    """Return the profile whose private documents a filter admits, if it does nothing else; None for other filters."""
    if where == access(None):
        return (None,)
    owner = (where or {}).get("$or", [{}])[-1].get("owner", {}).get("$eq")
    return (owner,) if isinstance(owner, str) and where == access(owner) else None


@contextmanager
def opened(corpus: Corpus) -> Iterator[Corpus]:
    """Open the warehouse once for all searches of the block, which then see one state and read each column once.

    The memory for a large one is limited, because DuckDB would keep all vectors that it read.
    """
    warehouse = corpus.warehouse
    try:
        large = warehouse.path.stat().st_size > _LARGE and warehouse.opened is None
    except OSError:
        large = False
    with warehouse.reading(own_settings=large) as connection:
        if large:
            connection.execute(f"set memory_limit = '{_MEMORY}'")
            connection.execute("set preserve_insertion_order = false")
        yield replace(corpus, warehouse=replace(warehouse, opened=connection))


def _matching(
    connection: DuckDBPyConnection,
    data_type: DataType,
    where: Where | None,
    only: pa.Array | None,
    *,
    model: str | None,
) -> _Matching:
    """Read what decides about each document that meets the filter, except its vector."""
    condition, among = condition_of(where), ""
    if only is not None:
        connection.register("only_papers", pa.table({"paper_id": only}))
        among = "and paper_id in (from only_papers)"
    found = connection.sql(
        f"""
        with
        matching as (
            select doc_id, text_hash, access_level = 'public' as public
            from retrievable
            where data_type = ? and not withdrawn and {condition.sql} {among}
        ),
        meaning as (select text_hash, rowid as place from embeddings where model = ?)
        select doc_id, public, place, number, words
        from matching
        join texts using (text_hash)
        left join meaning using (text_hash)
        """,  # noqa: S608
        params=[data_type, *condition.parameters, model],
    ).to_arrow_table()
    return _Matching(
        doc_ids=found["doc_id"].combine_chunks(),
        numbers=found["number"].to_numpy(),
        lengths=found["words"].to_numpy(),
        places=found["place"],
        public=found["public"].to_numpy(),
    )


def _cosines(
    request: _Request, matching: _Matching, rows: NDArray[np.integer], *, exact: bool = True
) -> NDArray[np.float64]:
    """Return the cosines of these rows, NaN without a vector; 0 if no vector is asked for.

    Unless `exact` they are computed in float32, with an error below `_ROUNDING`.
    """
    import pyarrow.compute as pc

    if request.vector is None or not len(rows):
        return np.where(matching.embedded[rows], 0.0, np.nan)
    places, among = matching.places.take(pa.array(rows, pa.int64())), ""
    if _few(request, len(rows)):
        request.connection.register("asked_places", pa.table({"place": places.unique()}))
        among = "join asked_places on embeddings.rowid = place"
    kind = "double" if exact else "float"
    found = request.connection.sql(
        f"""
        select embeddings.rowid as place, list_inner_product(vector::{kind}[], $vector::{kind}[])::double as cosine
        from embeddings {among}
        where model = $model
        """,  # noqa: S608
        params={"vector": request.vector.tolist(), "model": request.model},
    ).to_arrow_table()
    cosines = found["cosine"].take(pc.index_in(places, value_set=found["place"].combine_chunks()))
    return np.asarray(cosines.to_numpy(), dtype=np.float64)


def _few(request: _Request, count: int) -> bool:
    """Return whether looking up `count` vectors is faster than reading all; exact cosines then cost nothing more."""
    stored: int = value_of(request.connection, "select count(*) from embeddings")
    return 2 * count < stored


def _documents(request: _Request, doc_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read documents by id."""
    if not doc_ids:
        return {}
    request.connection.register("asked_documents", pa.table({"doc_id": pa.array(doc_ids, pa.string())}))
    among, named = "from asked_documents", {}
    if len(doc_ids) <= _NAMED_ONE_BY_ONE:
        named = {f"id{number}": doc_id for number, doc_id in enumerate(doc_ids)}
        among = ", ".join(f"${name}" for name in named)
    rows = request.connection.sql(
        f"""
        select doc_id, text, {", ".join(FIELDS)}
        from retrievable
        where data_type = $data_type and doc_id in ({among})
        """,  # noqa: S608
        params={"data_type": request.data_type, **named},
    ).to_arrow_table()
    return {row["doc_id"]: row for row in rows.to_pylist()}


def _candidate(document: Mapping[str, Any], score: float, score_type: Literal["distance", "similarity"]) -> Candidate:
    return Candidate(
        doc_id=document["doc_id"],
        content=document["text"],
        metadata={name: document[name] for name in FIELDS},
        score=score,
        score_type=score_type,
        source_id=document["paper_id"],
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

    The inverted index narrows the documents down to those with all words; only these are read, as it has read them.
    """
    import pyarrow.compute as pc

    condition = condition_of(access(owner))
    these = "" if only is None else "and paper_id in (from only_papers)"
    with opened(corpus) as corpus, corpus.warehouse.reading() as connection:
        if holders := [numbers for numbers, _ in holders_of(connection, query_words(" ".join(phrases)))]:
            connection.register("asked_texts", pa.table({"number": reduce(np.intersect1d, holders)}))
            these += " and number in (from asked_texts)"
        if only is not None:
            connection.register("only_papers", pa.table({"paper_id": only}))
        found = connection.sql(
            f"""
            select paper_id, text
            from retrievable
            join texts using (text_hash)
            where list_contains(?, data_type) and not withdrawn and {condition.sql} {these}
            """,  # noqa: S608
            params=[list(data_types), *condition.parameters],
        ).to_arrow_table()
    patterns = [_phrase_pattern(phrase) for phrase in phrases if words_in(phrase)]
    holds = np.ones(len(found), dtype=bool)
    for rows, texts in spaced(found["text"].combine_chunks()):
        for pattern in patterns:
            holds[rows] &= pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return found["paper_id"].filter(pa.array(holds)).unique()


def _phrase_pattern(phrase: str) -> str:
    """Return the pattern (RE2) of a phrase in a spaced text: its words in their order, each in any of its forms."""
    words = (f"(?:{'|'.join(map(re.escape, word_forms(word)))})" for word in words_in(phrase))
    return f"(?:^| ){' +'.join(words)}(?:$| )"
