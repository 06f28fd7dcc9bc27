"""Store vectors of texts by content: a text is embedded once per model, whichever papers contain it.

DuckDB is the source of truth; the search index can be rebuilt from here without embedding anything.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import InvalidInput
from paper_assets.paper import embedded_text, text_hash
from paper_assets.stores.warehouse import Warehouse, value_of

UNEMBEDDED = "have no vector yet"  # in notes on papers that only words find; the page offers to embed them
_BATCH = 10_000  # vectors in memory at once, 15 MB at 384 dimensions
_LENGTH_TOLERANCE = 1e-3  # a unit vector computed in bfloat16 and normalised in float32 is well within it


def texts_without_vector(
    warehouse: Warehouse, first: date | None, last: date | None, *, model: str
) -> tuple[list[str], list[str]]:
    """Return hashes and texts that `model` has not embedded, of the papers of the days first..last (None: open).

    Each text once, ordered by hash.
    """
    rows = warehouse.rows(
        """
        select text_hash, any_value(title), any_value(abstract)
        from papers
        anti join (from embeddings where model = $model) using (text_hash)
        where ($first::date is null or day >= $first) and ($last::date is null or day <= $last)
        group by text_hash
        order by text_hash
        """,
        {"first": first, "last": last, "model": model},
    )
    return [row[0] for row in rows], [embedded_text(title, abstract) for _, title, abstract in rows]


def newest_without_vector(
    warehouse: Warehouse, *, before: date, after: date, model: str, limit: int
) -> tuple[list[str], list[str], list[date]]:
    """Return hashes and texts, and the days, of at most `limit` papers without a vector, newest first.

    Only papers of days before `before` or after `after`; papers without a date are last.
    """
    rows = warehouse.rows(
        """
        select text_hash, any_value(title), any_value(abstract), list(distinct day) filter (where day is not null)
        from papers
        anti join (from embeddings where model = $model) using (text_hash)
        where day is null or day < $before or day > $after
        group by text_hash
        order by max(day) desc nulls last, text_hash
        limit $limit
        """,
        {"before": before, "after": after, "model": model, "limit": limit},
    )
    days = sorted({day for *_, found in rows for day in found or ()})
    return [row[0] for row in rows], [embedded_text(title, abstract) for _, title, abstract, _ in rows], days


def unembedded_count(warehouse: Warehouse, first: date | None, last: date | None, *, model: str) -> int:
    """Return the number of papers of the days first..last without a vector of `model`."""
    return warehouse.value(
        """
        select count(*)
        from papers
        anti join (from embeddings where model = $model) using (text_hash)
        where ($first::date is null or day >= $first) and ($last::date is null or day <= $last)
        """,
        {"first": first, "last": last, "model": model},
    )


def keep_vectors(warehouse: Warehouse, hashes: Sequence[str], matrix: np.ndarray, *, model: str) -> None:
    """Store the vectors (n, d) of n texts; existing ones are kept.

    Raises InvalidInput if a vector is not finite or not of unit length, or if d is not the model's.
    """
    vectors = np.ascontiguousarray(matrix, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(hashes):
        raise InvalidInput(f"{len(hashes)} texts need a matrix of as many vectors, got the shape {vectors.shape}")
    if not hashes:
        return
    lengths = np.linalg.norm(vectors, axis=1)
    faulty = ~(np.abs(lengths - 1) <= _LENGTH_TOLERANCE)  # also true for nan
    if faulty.any():
        at = int(faulty.argmax())
        raise InvalidInput(f"model {model!r} gave text {hashes[at]} a vector of length {lengths[at]:g}, expected 1")
    dimension = vectors.shape[1]
    rows = pa.table(
        {
            "text_hash": pa.array(hashes, pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), dimension),
        }
    )
    with warehouse.writing() as connection:
        stored = _dimension(connection, model)
        if stored not in (None, dimension):
            raise InvalidInput(f"model {model!r} has vectors of {stored} numbers in the warehouse, got {dimension}")
        connection.register("incoming", rows)
        connection.execute(
            """
            insert into embeddings
            select $model, text_hash, any_value(vector)
            from incoming
            anti join (from embeddings where model = $model) using (text_hash)
            group by text_hash
            """,
            {"model": model},
        )


def vectors_of(warehouse: Warehouse, paper_ids: Sequence[str], *, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors float32 (n, d) and whether they were found, bool (n,), in the order of `paper_ids`.

    A paper without a vector has a row of zeros. If the model has no vectors at all, d is 0.
    """
    requested = pa.table({"paper_id": pa.array(paper_ids, pa.string()), "position": np.arange(len(paper_ids))})
    found, matrix = np.zeros(len(paper_ids), dtype=bool), None
    with warehouse.reading() as connection:
        connection.register("requested", requested)
        relation = connection.sql(
            """
            select position, vector
            from requested
            join papers using (paper_id)
            join (from embeddings where model = $model) using (text_hash)
            """,
            params={"model": model},
        )
        for batch in relation.to_arrow_reader(_BATCH):
            if len(batch):
                positions, vectors = batch["position"].to_numpy(), _matrix(batch["vector"])
                if matrix is None:
                    matrix = np.zeros((len(paper_ids), vectors.shape[1]), dtype=np.float32)
                matrix[positions] = vectors
                found[positions] = True
        if matrix is None:
            matrix = np.zeros((len(paper_ids), _dimension(connection, model) or 0), dtype=np.float32)
    return matrix, found


def embedded_with_others(
    warehouse: Warehouse, paper_ids: Sequence[str], *, categories: Sequence[str] | None, most: int, model: str
) -> list[tuple[str, str]]:
    """Return (id, text hash) of those of the papers that have a vector, then of at most `most` others of their days.

    The others have a vector and, with `categories`, any of these. Which ones depends on their ids alone, so that they
    stay the same until these days themselves change.
    """
    requested = pa.table({"paper_id": pa.array(paper_ids, pa.string())})
    with warehouse.reading() as connection:
        connection.register("requested", requested)
        return connection.execute(
            """
            with embedded as (
                select paper_id, day, categories, text_hash, paper_id in (from requested) as asked
                from papers
                semi join (from embeddings where model = $model) using (text_hash)
                where paper_id in (from requested)
                    or day in (select day from papers semi join requested using (paper_id))
            ),
            others as (
                select paper_id, text_hash
                from embedded
                where not asked and ($categories::varchar[] is null or list_has_any(categories, $categories))
                order by md5(paper_id)
                limit $most
            )
            select paper_id, text_hash
            from (
                select paper_id, text_hash, true as asked from embedded where asked
                union all
                select paper_id, text_hash, false from others
            )
            order by asked desc, paper_id
            """,
            {"model": model, "categories": None if categories is None else list(categories), "most": most},
        ).fetchall()


def remembered_vectors(
    warehouse: Warehouse, texts: Sequence[str], *, model: str, encode: Callable[[list[str]], np.ndarray]
) -> np.ndarray:
    """Return vectors float32 (n, d) of any texts: stored ones are read, the others are encoded and stored."""
    hashes = [text_hash(text) for text in texts]
    distinct = dict(zip(hashes, texts, strict=True))
    with warehouse.reading() as connection:
        connection.register("requested", pa.table({"text_hash": pa.array(distinct, pa.string())}))
        stored = connection.sql(
            "select text_hash, vector from embeddings join requested using (text_hash) where model = $model",
            params={"model": model},
        ).to_arrow_table()
    known = dict(zip(stored["text_hash"].to_pylist(), stored["vector"].to_numpy(), strict=True))
    missing = [name for name in distinct if name not in known]
    if missing:
        new = encode([distinct[name] for name in missing])
        keep_vectors(warehouse, missing, new, model=model)
        known |= dict(zip(missing, new, strict=True))
    return np.stack([known[name] for name in hashes]) if hashes else encode([])


def vectors_between(
    warehouse: Warehouse, first: date, last: date, *, model: str
) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield batches of paper ids and their float32 vectors (n, d), of the papers of the days that are not withdrawn."""
    with warehouse.reading() as connection:
        batches = connection.sql(
            """
            select paper_id, vector
            from papers
            join (from embeddings where model = $model) using (text_hash)
            where day between $first and $last and not withdrawn
            """,
            params={"first": first, "last": last, "model": model},
        ).to_arrow_reader(_BATCH)
        for batch in batches:
            if len(batch):
                yield batch["paper_id"].to_pylist(), _matrix(batch["vector"])


def _dimension(connection: DuckDBPyConnection, model: str) -> int | None:
    return value_of(connection, "select len(vector) from embeddings where model = ? limit 1", [model])


def _matrix(vectors: pa.ListArray) -> np.ndarray:
    """Return the lists of one non-empty batch, which are contiguous in one buffer, as an array (n, d)."""
    return vectors.flatten().to_numpy().reshape(len(vectors), -1)


class StoredModel(NamedTuple):
    """A model that has vectors in the database: how many, and of how many numbers each."""

    name: str
    vectors: int
    dimension: int


def stored_models(warehouse: Warehouse) -> list[StoredModel]:
    """Return the models that have vectors, the one with most vectors first."""
    rows = warehouse.rows(
        "select model, count(*), any_value(len(vector)) from embeddings group by model order by 2 desc, 1"
    )
    return [StoredModel(*row) for row in rows]


def days_without_vectors(warehouse: Warehouse, *, model: str) -> frozenset[date]:
    """Return the days with at least one paper without a vector of `model`."""
    return frozenset(
        warehouse.column(
            """
        select distinct day
        from papers
        anti join (from embeddings where model = ?) using (text_hash)
        where day is not null
        """,
            [model],
        )
    )
