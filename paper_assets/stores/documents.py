"""What can be retrieved: abstracts, passages of full texts, rewrites, each with the fields that filters name (SPEC R1).

An abstract is a paper with a vector or without, seen through the view `retrievable`; the other kinds are rows of
`documents`, replaced by their origin (a PDF, a rewrite). Vectors are kept by content, as those of papers are.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import InvalidInput
from paper_assets.paper import text_hash
from paper_assets.stores.document_filters import Where, condition_of
from paper_assets.stores.warehouse import Warehouse, value_of

DataType = Literal["abstract", "fulltext", "rewrite"]

# What is known of a document beside its id and text, in the order of the view.
FIELDS = (
    "paper_id",
    "title",
    "date_int",
    "primary_category",
    "categories",
    "topic_id",
    "data_type",
    "access_level",
    "language",
    "version",
    "url",
    "owner",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A passage or a rewrite. `doc_id` is unique among all data types; unknown is None.

    `date_int` is YYYYMMDD of the paper's first submission; `owner` the profile that alone may see a private one.
    """

    doc_id: str
    text: str  # what is shown and embedded
    paper_id: str
    title: str
    date_int: int | None = None
    primary_category: str | None = None
    categories: tuple[str, ...] = ()
    topic_id: str | None = None
    data_type: DataType
    access_level: Literal["public", "private"]
    language: str | None = None
    version: int = 1
    url: str | None = None
    owner: str | None = None


def replace_documents(warehouse: Warehouse, data_type: DataType, *, origin: str, documents: Sequence[Document]) -> bool:
    """Make these the documents of an origin, in their order; False, and nothing written, if they are so already.

    Raises InvalidInput if one is of another data type, if its id is taken by another document or a paper, or if a text
    cannot be stored.
    """
    if data_type == "abstract" or any(document.data_type != data_type for document in documents):
        raise InvalidInput(f"{origin}: its documents must all be {data_type}; abstracts are stored as papers")
    twice = [doc_id for doc_id, often in Counter(document.doc_id for document in documents).items() if often > 1]
    if twice:
        raise InvalidInput(f"{origin}: the document id {twice[0]} stands there twice")
    incoming = _rows(documents, data_type=data_type, origin=origin)
    asked = {"data_type": data_type, "origin": origin}
    with warehouse.reading() as connection:
        stored = connection.sql(
            "from documents where data_type = $data_type and origin = $origin order by place", params=asked
        ).to_arrow_table()
    if stored.select(incoming.column_names).cast(incoming.schema).equals(incoming):
        return False
    with warehouse.writing() as connection:
        connection.register("incoming", incoming)
        connection.execute("delete from documents where data_type = $data_type and origin = $origin", asked)
        taken: str | None = value_of(connection, "select min(doc_id) from incoming join retrievable using (doc_id)")
        if taken is not None:
            raise InvalidInput(f"{origin}: the document id {taken} is taken; ids are unique among all documents")
        connection.execute("insert into documents by name from incoming")
    return True


def remove_documents(warehouse: Warehouse, data_type: DataType, *, origins: Collection[str]) -> int:
    """Remove the documents of these origins; how many there were."""
    if not origins:
        return 0
    with warehouse.writing() as connection:
        removed: int = value_of(
            connection,
            "delete from documents where data_type = $data_type and list_contains($origins, origin)",
            {"data_type": data_type, "origins": sorted(origins)},
        )
    return removed


def origins_of(warehouse: Warehouse, data_type: DataType) -> dict[str, str]:
    """Every origin of a data type, with a fingerprint that changes with any of its documents."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select origin, sha256(string_agg(documents::varchar, chr(10) order by place))[:32]
            from documents
            where data_type = ?
            group by origin
            order by origin
            """,
            [data_type],
        ).fetchall()
    return dict(rows)


def texts_to_embed(warehouse: Warehouse, data_type: DataType, *, model: str) -> tuple[list[str], list[str]]:
    """Hashes and texts of documents that `model` has not embedded yet; each text once, ordered by hash."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select text_hash, any_value(text)
            from retrievable
            anti join (from embeddings where model = $model) using (text_hash)
            where data_type = $data_type
            group by text_hash
            order by text_hash
            """,
            {"data_type": data_type, "model": model},
        ).fetchall()
    return [row[0] for row in rows], [row[1] for row in rows]


def count_documents(warehouse: Warehouse, data_type: DataType, where: Where | None) -> int:
    """Number of documents that meet the filter, embedded or not. Raises InvalidInput."""
    condition_of(where)  # a bad filter is refused before anything is opened
    with warehouse.reading() as connection:
        return count_matching_documents(connection, data_type, where)


def count_matching_documents(connection: DuckDBPyConnection, data_type: DataType, where: Where | None) -> int:
    """The same on an open connection."""
    condition = condition_of(where)
    count: int = value_of(
        connection,
        f"select count(*) from retrievable where data_type = ? and not withdrawn and {condition.sql}",  # noqa: S608
        [data_type, *condition.parameters],
    )
    return count


@cache
def _schema() -> pa.Schema:
    """The columns of the table `documents`."""
    whole, texts = ("place", "date_int", "version"), ("doc_id", "data_type", "origin", "place", "text", "text_hash")
    names = (*texts, *(name for name in FIELDS if name not in texts))
    kinds = {**dict.fromkeys(whole, pa.int32()), "categories": pa.list_(pa.string())}
    return pa.schema([pa.field(name, kinds.get(name, pa.string())) for name in names])


def _rows(documents: Sequence[Document], *, data_type: DataType, origin: str) -> pa.Table:
    records = [
        {
            **{name: getattr(document, name) for name in ("doc_id", "text", *FIELDS)},
            "categories": list(document.categories),
            "origin": origin,
            "place": place,
            "text_hash": text_hash(document.text),
        }
        for place, document in enumerate(documents)
    ]
    try:
        return pa.Table.from_pylist(records, schema=_schema())
    except UnicodeEncodeError as fault:
        raise InvalidInput(f"{origin}: {fault.object[:40]!a} is no valid Unicode text") from None
