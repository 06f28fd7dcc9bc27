"""Store the archive of good rewrites. The table is the source of truth; a Chroma collection mirrors it.

A best practice never changes after it is stored, and its id is never reused.
Its vector is the vector of `original_text`, stored by content with all other vectors.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import AmbiguousId, InvalidInput
from paper_assets.paper import text_hash
from paper_assets.stores.warehouse import Warehouse, read_record, records_of, stored_time, value_of

_ROUNDING = 1e-6  # rounding error of a cosine of float32 vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class BestPractice:
    """Represent a stored rewrite (B1): `text` is the rewrite, `original_text` its source, which a search compares."""

    id: str
    text: str
    original_text: str
    score: int
    target_level: str
    keywords: tuple[str, ...]
    made_at: datetime
    model_version: str
    paper_id: str
    category: str | None


_COLUMNS = tuple(field.name for field in fields(BestPractice))


def best_practices(
    warehouse: Warehouse,
    collection: str,
    *,
    level: str | None = None,
    min_score: int | None = None,
    keyword: str | None = None,
) -> list[BestPractice]:
    """Return the matching best practices, newest first; `keyword` is a part of one of their keywords."""
    rows = warehouse.records(
        """
        select * exclude (collection, text_hash)
        from best_practices
        where
            collection = $collection
            and ($level::varchar is null or target_level = $level)
            and ($min_score::integer is null or score >= $min_score)
            and ($keyword::varchar is null or contains(lower(array_to_string(keywords, chr(10))), lower($keyword)))
        order by made_at desc, id
        """,
        {"collection": collection, "level": level, "min_score": min_score, "keyword": keyword},
    )
    return [BestPractice(**row) for row in rows]


def best_practice(warehouse: Warehouse, collection: str, identifier: str) -> BestPractice:
    """Return the best practice with this id or this unique beginning of an id. Raises InvalidInput, AmbiguousId."""
    rows = warehouse.records(
        """
        select * exclude (collection, text_hash)
        from best_practices
        where collection = $collection and starts_with(id, $id)
        order by id
        """,
        {"collection": collection, "id": identifier},
    )
    if not rows or not identifier:
        raise no_such_practice(collection, identifier)
    found = [BestPractice(**row) for row in rows]
    if len(found) > 1 and found[0].id != identifier:
        raise AmbiguousId(
            f"{len(found)} best practices have ids that begin with {identifier[:40]!r}; give more of it: "
            f"{', '.join(each.id for each in found[:5])}"
        )
    return found[0]


def unique_beginnings(ids: Sequence[str]) -> dict[str, str]:
    """Return for each id its shortest beginning that no other has, of 8 characters or more."""
    length = 8
    while len({each[:length] for each in ids}) < len(set(ids)):
        length += 1
    return {each: each[:length] for each in ids}


def remove_best_practice(warehouse: Warehouse, collection: str, identifier: str) -> None:
    """Remove one best practice permanently. Raises InvalidInput for an unknown id."""
    removed: int = warehouse.run("delete from best_practices where collection = ? and id = ?", [collection, identifier])
    if not removed:
        raise no_such_practice(collection, identifier)


def add_unless_alike(
    warehouse: Warehouse, practice: BestPractice, *, collection: str, model: str, similarity: float
) -> BestPractice | None:
    """Store a best practice unless an original of the same level has at least this cosine to its original.

    Returns the id of the similar one, in which case nothing is stored. Best practices of the same paper or original
    text with a lower score are replaced, provided no other one is similar. Comparing and writing are one transaction:
    of two processes with similar originals one is refused. The vector of the original must be stored; best practices
    without a vector are similar only to equal texts.
    """
    incoming = _table([practice])
    with warehouse.writing() as connection:
        connection.register("incoming", incoming)
        alike = records_of(
            connection,
            """
            with mine as (
                select text_hash, target_level, vector
                from incoming
                left join (from embeddings where model = $model) using (text_hash)
            )
            select theirs.* exclude (collection, text_hash)
            from best_practices as theirs
            join mine using (target_level)
            left join (from embeddings where model = $model) as embedded on embedded.text_hash = theirs.text_hash
            where
                theirs.collection = $collection
                and (
                    theirs.text_hash = mine.text_hash
                    or list_dot_product(embedded.vector, mine.vector) >= $similarity
                )
            order by list_dot_product(embedded.vector, mine.vector) desc, theirs.id
            """,
            {"model": model, "collection": collection, "similarity": similarity - _ROUNDING},
        )
        same = [
            row["id"]
            for row in alike
            if row["score"] < practice.score
            and (row["paper_id"] == practice.paper_id or row["original_text"] == practice.original_text)
        ]
        if len(alike) == len(same):
            connection.execute(
                "delete from best_practices where collection = ? and id in (select unnest(?))", [collection, same]
            )
            alike = []
            connection.execute(
                "insert into best_practices by name select *, $collection as collection from incoming",
                {"collection": collection},
            )
    return BestPractice(**alike[0]) if alike else None


def add_missing(warehouse: Warehouse, practices: Sequence[BestPractice], *, collection: str) -> int:
    """Store those whose ids the collection does not contain yet; return their number."""
    incoming = _table(practices)
    with warehouse.writing() as connection:
        connection.register("incoming", incoming)
        added: int = value_of(
            connection,
            """
            insert into best_practices by name
            select *, $collection as collection
            from incoming
            anti join (from best_practices where collection = $collection) using (id)
            """,
            {"collection": collection},
        )
    return added


def counts(warehouse: Warehouse) -> dict[str, int]:
    """Return the number of best practices per collection."""
    rows = warehouse.rows("select collection, count(*) from best_practices group by collection order by collection")
    return dict(rows)


def ids_of(warehouse: Warehouse, collection: str) -> list[str]:
    """Return all ids of a collection, ascending."""
    return warehouse.column("select id from best_practices where collection = ? order by id", [collection])


def originals_without_vector(warehouse: Warehouse, collection: str, *, model: str) -> tuple[list[str], list[str]]:
    """Return hashes and texts of the originals that `model` has not embedded; each text once, ordered by hash."""
    rows = warehouse.rows(
        """
        select text_hash, any_value(original_text)
        from best_practices
        anti join (from embeddings where model = $model) using (text_hash)
        where collection = $collection
        group by text_hash
        order by text_hash
        """,
        {"collection": collection, "model": model},
    )
    return [row[0] for row in rows], [row[1] for row in rows]


def with_vectors(
    warehouse: Warehouse, collection: str, ids: Iterable[str], *, model: str | None
) -> tuple[list[BestPractice], np.ndarray]:
    """Return those of `ids` that still exist, ascending by id, and the vectors of their originals, float32 (n, d).

    One without a vector of `model` has a row of zeros; d is 0 if none has a vector.
    """
    with warehouse.reading() as connection:
        connection.register("requested", pa.table({"id": pa.array(ids, pa.string())}))
        rows = connection.sql(
            """
            select kept.* exclude (collection, text_hash), vector
            from best_practices as kept
            semi join requested using (id)
            left join (from embeddings where model = $model) as embedded using (text_hash)
            where collection = $collection
            order by id
            """,
            params={"collection": collection, "model": model},
        ).to_arrow_table()
    vectors = rows["vector"].to_numpy()
    width = max((len(vector) for vector in vectors if vector is not None), default=0)
    empty = np.zeros(width, dtype=np.float32)
    matrix = np.array([empty if vector is None else vector for vector in vectors], dtype=np.float32)
    return _practices(rows.drop_columns(["vector"])), matrix.reshape(len(rows), width)


def practices_for(
    connection: DuckDBPyConnection,
    collection: str,
    *,
    level: str,
    other_levels: bool,
    least_score: int,
    model: str | None,
    vector: np.ndarray | None,
) -> tuple[list[BestPractice], np.ndarray]:
    """Return the best practices of a level (or of all others) ascending by id, and their cosines to the vector (n,).

    The cosine is NaN without a vector.
    """
    rows = connection.sql(
        """
        select kept.* exclude (collection, text_hash), list_inner_product(vector::double[], $vector::double[]) as cosine
        from best_practices as kept
        left join (from embeddings where model = $model and $vector is not null) as embedded using (text_hash)
        where collection = $collection and score >= $least_score and (target_level = $level) != $other_levels
        order by id
        """,
        params={
            "collection": collection,
            "least_score": least_score,
            "level": level,
            "other_levels": other_levels,
            "model": model,
            "vector": None if vector is None else vector.tolist(),
        },
    ).to_arrow_table()
    cosines = rows["cosine"].cast(pa.float64()).fill_null(np.nan).to_numpy()
    return _practices(rows.drop_columns(["cosine"])), cosines


def no_such_practice(collection: str, identifier: str) -> InvalidInput:
    """Return the error for an unknown id."""
    return InvalidInput(f"no best practice {identifier!r} in {collection}; `paper-assets archive list` shows the ids")


def _table(practices: Sequence[BestPractice]) -> pa.Table:
    columns: dict[str, Any] = {name: [getattr(each, name) for each in practices] for name in _COLUMNS}
    columns["keywords"] = pa.array([list(each.keywords) for each in practices], pa.list_(pa.string()))
    moments = [stored_time(each.made_at) for each in practices]
    columns["made_at"] = pa.array(moments, pa.timestamp("us"))
    columns["category"] = pa.array(columns["category"], pa.string())
    columns["text_hash"] = [text_hash(each.original_text) for each in practices]
    return pa.table(columns)


def _practices(rows: pa.Table) -> list[BestPractice]:
    return [BestPractice(**read_record(row)) for row in rows.to_pylist()]
