"""Query the documents that can be retrieved, filter them by field, and store the answers of a profile (SPEC R1, R3).

Documents are abstracts, passages of full texts and rewrites. An abstract is a paper, with or without a vector, seen
through the view `retrievable`; the other kinds are rows of `documents`, replaced by origin (a PDF, a rewrite). Vectors
are stored by content, as those of papers are.

Filters use Chroma's grammar, are validated and compiled to SQL with bound parameters (SPEC R5):

    {"date_int": {"$gte": 20260301}}                                one field, one operator
    {"primary_category": "cs.CL"}                                   a bare value is $eq
    {"categories": {"$contains": "cs.LG"}}                          a list contains the value
    {"$and": [...]}, {"$or": [...]}                                 filters joined

The operators work as in Chroma: a document without a value differs from every value ($ne, $nin, $not_contains
match) and is neither more nor less than any. Beyond Chroma, several fields in one filter, or several operators on one
field, must all match, a list may have one entry, and null with $eq or $ne tests whether there is a value.

Retrievals: one set of answers per profile and day, replaced as a whole. `inputs` is the caller's fingerprint of
everything the set was computed from: with equal inputs nothing is retrieved again.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import InvalidInput
from paper_assets.paper import text_hash
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.warehouse import Key, Warehouse, value_of
from paper_assets.stores.word_index import count_words, forget_unused_texts

Where = Mapping[str, Any]
_NUMBERS = frozenset(["date_int", "version"])
_LISTS = frozenset(["categories"])
_TEXTS = frozenset([
    "paper_id", "title", "primary_category", "topic_id", "data_type", "access_level", "language", "url", "owner",
])  # fmt: skip
_EQUAL = {"$eq": "is not distinct from", "$ne": "is distinct from"}
_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_AMONG = {"$in": "", "$nin": "not "}
_HOLDS = {"$contains": "", "$not_contains": "not "}
_JOINED = {"$and": " and ", "$or": " or "}
_DEEPEST = 16  # levels of nested filters; a plan needs three
_LARGEST = 2**31 - 1  # the largest integer of the warehouse


class Condition(NamedTuple):
    """Represent a condition on the columns of documents, never null, and the values of its `?` in order."""

    sql: str
    parameters: list[Any]


def condition_of(where: Where | None) -> Condition:
    """Compile the filter to SQL; None and the empty filter match every document. Raises InvalidInput."""
    parameters: list[Any] = []
    return Condition(_all_of(where, parameters, depth=0) if where else "true", parameters)


def _all_of(where: object, parameters: list[Any], *, depth: int) -> str:
    """Compile one filter; its parameters are appended in the order of their marks."""
    if not isinstance(where, Mapping) or not where:
        raise InvalidInput(f"a filter must be an object with a field, $and or $or, got {_shown(where)}")
    if depth > _DEEPEST:
        raise InvalidInput(f"a filter is nested more than {_DEEPEST} levels deep; simplify it")
    parts: list[str] = []
    for name, value in where.items():
        if name in _JOINED:
            if not isinstance(value, Sequence) or isinstance(value, str) or not value:
                raise InvalidInput(f"{name} needs a list of filters, got {_shown(value)}")
            inner = [_all_of(each, parameters, depth=depth + 1) for each in value]
            parts.append(f"({_JOINED[name].join(inner)})")
        elif name in _NUMBERS or name in _LISTS or name in _TEXTS:
            parts.extend(_of_field(name, value, parameters))
        elif str(name).startswith("$"):
            raise InvalidInput(f"{_shown(name)} is not a field; expected a field, $and or $or")
        else:
            known = ", ".join(sorted(_NUMBERS | _LISTS | _TEXTS))
            raise InvalidInput(f"{_shown(name)} is not a field of documents; expected one of {known}")
    return " and ".join(parts)


def _of_field(field: str, given: object, parameters: list[Any]) -> Iterator[str]:
    """Compile the conditions on one field, one per operator. `field` is a known name, never a user's text."""
    operators: Mapping[str, Any] = given if isinstance(given, Mapping) else {"$eq": given}
    if not operators:
        raise InvalidInput(f"{field}: no operator; expected one like {{'$eq': ...}}")
    fitting = _fitting(field)
    for operator, value in operators.items():
        if operator not in fitting:
            raise InvalidInput(
                f"{field}: {_shown(operator)} does not apply to it; expected one of {', '.join(fitting)}"
            )
        if operator in _AMONG:
            if not isinstance(value, Sequence) or isinstance(value, str) or not value:
                raise InvalidInput(f"{field}: {operator} needs a list of values, got {_shown(value)}")
            parameters.append([_checked(field, each) for each in value])
            yield f"{_AMONG[operator]}coalesce(list_contains(?, {field}), false)"
        elif value is None and operator in _EQUAL and isinstance(given, Mapping):
            yield f"{field} is {'not ' if operator == '$ne' else ''}null"
        else:
            parameters.append(_checked(field, value))
            if operator in _HOLDS:
                yield f"{_HOLDS[operator]}coalesce(list_contains({field}, ?), false)"
            elif operator in _EQUAL:
                yield f"{field} {_EQUAL[operator]} ?"
            else:
                yield f"coalesce({field} {_ORDER[operator]} ?, false)"


def _fitting(field: str) -> tuple[str, ...]:
    """Return the operators that apply to the type of a field."""
    if field in _LISTS:
        return tuple(_HOLDS)
    return (*_EQUAL, *_AMONG, *(_ORDER if field in _NUMBERS else ()))


def _checked(field: str, value: object) -> str | int:
    if field in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
            kind = "a day as a whole number like 20260301" if field == "date_int" else "a whole number"
            raise InvalidInput(f"{field}: expected {kind}, got {_shown(value)}")
        return value
    if not isinstance(value, str):
        raise InvalidInput(f"{field}: expected a text, got {_shown(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(f"{field}: {_shown(value)} is not valid Unicode text") from None
    return value


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


DataType = Literal["abstract", "fulltext", "rewrite"]
# The fields of a document except id and text, in the order of the view.
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
DOCUMENT_TYPES: tuple[DataType, ...] = get_args(DataType)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Represent a passage or a rewrite. `doc_id` is unique among all data types; unknown is None.

    `date_int` is YYYYMMDD of the paper's first submission; `owner` is the only profile that may see a private document.
    """

    doc_id: str
    text: str  # displayed and embedded
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
    """Replace the documents of an origin, in order; return False, without writing, if they are equal.

    Raises InvalidInput if one is of another data type, if its id belongs to another document or a paper, or if a text
    cannot be stored.
    """
    if data_type == "abstract" or any(document.data_type != data_type for document in documents):
        raise InvalidInput(f"{origin}: its documents must all be {data_type}; abstracts are stored as papers")
    twice = [doc_id for doc_id, often in Counter(document.doc_id for document in documents).items() if often > 1]
    if twice:
        raise InvalidInput(f"{origin}: the document id {twice[0]} occurs twice")
    incoming = _rows(documents, origin=origin)
    params = {"data_type": data_type, "origin": origin}
    stored = warehouse.table("from documents where data_type = $data_type and origin = $origin order by place", params)
    if stored.select(incoming.column_names).cast(incoming.schema).equals(incoming):
        return False
    with warehouse.writing() as connection:
        connection.register("incoming", incoming)
        connection.execute("delete from documents where data_type = $data_type and origin = $origin", params)
        taken: str | None = value_of(connection, "select min(doc_id) from incoming join retrievable using (doc_id)")
        if taken is not None:
            raise InvalidInput(f"{origin}: the document id {taken} is taken; ids are unique among all documents")
        connection.execute("insert into documents by name from incoming")
        count_words(connection, incoming)
        if len(stored):
            forget_unused_texts(connection)
    return True


def remove_documents(warehouse: Warehouse, data_type: DataType, *, origins: Collection[str]) -> int:
    """Remove the documents of these origins; return their number."""
    if not origins:
        return 0
    with warehouse.writing() as connection:
        removed: int = value_of(
            connection,
            "delete from documents where data_type = $data_type and list_contains($origins, origin)",
            {"data_type": data_type, "origins": sorted(origins)},
        )
        if removed:
            forget_unused_texts(connection)
    return removed


def origins_of(warehouse: Warehouse, data_type: DataType) -> dict[str, str]:
    """Return every origin of a data type, with a fingerprint that changes with any of its documents."""
    rows = warehouse.rows(
        """
        select origin, sha256(string_agg(documents::varchar, chr(10) order by place))[:32]
        from documents
        where data_type = ?
        group by origin
        order by origin
        """,
        [data_type],
    )
    return dict(rows)


def embed_documents(
    warehouse: Warehouse, data_type: DataType, *, encode: Callable[[Sequence[str]], np.ndarray], model: str
) -> None:
    """Encode and store the documents that `model` has not embedded."""
    hashes, texts = texts_to_embed(warehouse, data_type, model=model)
    if texts:
        keep_vectors(warehouse, hashes, encode(texts), model=model)


def texts_to_embed(warehouse: Warehouse, data_type: DataType, *, model: str) -> tuple[list[str], list[str]]:
    """Return hashes and texts of documents that `model` has not embedded; each text once, ordered by hash."""
    rows = warehouse.rows(
        """
        select text_hash, any_value(text)
        from retrievable
        anti join (from embeddings where model = $model) using (text_hash)
        where data_type = $data_type
        group by text_hash
        order by text_hash
        """,
        {"data_type": data_type, "model": model},
    )
    return [row[0] for row in rows], [row[1] for row in rows]


def count_documents(warehouse: Warehouse, data_type: DataType, where: Where | None) -> int:
    """Return the number of documents that match the filter, embedded or not. Raises InvalidInput."""
    condition_of(where)  # an invalid filter is refused before anything is opened
    with warehouse.reading() as connection:
        return count_matching_documents(connection, data_type, where)


def count_matching_documents(connection: DuckDBPyConnection, data_type: DataType, where: Where | None) -> int:
    """Return `count_documents` on an open connection."""
    condition = condition_of(where)
    return value_of(
        connection,
        f"select count(*) from retrievable where data_type = ? and not withdrawn and {condition.sql}",  # noqa: S608
        [data_type, *condition.parameters],
    )


@cache
def _schema() -> pa.Schema:
    """Return the columns of the table `documents`."""
    whole, texts = ("place", "date_int", "version"), ("doc_id", "data_type", "origin", "place", "text", "text_hash")
    names = (*texts, *(name for name in FIELDS if name not in texts))
    kinds = {**dict.fromkeys(whole, pa.int32()), "categories": pa.list_(pa.string())}
    return pa.schema([pa.field(name, kinds.get(name, pa.string())) for name in names])


def _rows(documents: Sequence[Document], *, origin: str) -> pa.Table:
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
        raise InvalidInput(f"{origin}: {fault.object[:40]!a} is not valid Unicode text") from None


PARTED_BY = "\n\n"  # separates two passages when a text is reassembled


@dataclass(frozen=True, slots=True, kw_only=True)
class Fulltext:
    """Represent the text of one version of a paper."""

    version: int
    text: str


def public_fulltext(warehouse: Warehouse, paper_id: str) -> Fulltext | None:
    """Return the stored text of a paper; passages of a user's private PDF of it are excluded."""
    rows = warehouse.rows(
        """
        select version, string_agg(text, $between order by place)
        from documents
        where data_type = 'fulltext' and access_level = 'public' and origin = $origin
        group by version
        order by version desc
        """,
        {"origin": f"paper:{paper_id}", "between": PARTED_BY},
    )
    return Fulltext(version=rows[0][0], text=rows[0][1]) if rows else None


def text_before(warehouse: Warehouse, doc_id: str) -> tuple[str, str] | None:
    """Return the text of a passage's origin before the passage, and the passage; None if it is not a passage."""
    rows = warehouse.rows(
        """
        select before.text
        from documents as passage
        join documents as before using (data_type, origin)
        where passage.doc_id = ? and passage.data_type = 'fulltext' and before.place <= passage.place
        order by before.place
        """,
        [doc_id],
    )
    texts = [text for (text,) in rows]
    return (PARTED_BY.join(texts[:-1]), texts[-1]) if texts else None


def replace_retrievals(
    warehouse: Warehouse, day: date, profile: str, answers: Sequence[Mapping[str, Any]], *, inputs: str
) -> None:
    """Store `answers` (JSON values, one per question) as those of the day and profile."""
    key = {"day": day, "profile": profile}
    text = json.dumps(list(answers), ensure_ascii=False, sort_keys=True, allow_nan=False)
    with warehouse.writing() as connection:
        connection.execute("delete from retrieval_sets where day = $day and profile = $profile", key)
        connection.execute(
            "insert into retrieval_sets values ($day, $profile, $inputs, $answers)",
            {**key, "inputs": inputs, "answers": text},
        )


def retrievals_of(warehouse: Warehouse, day: date, profile: str) -> list[dict[str, Any]]:
    """Return the stored answers of the day and profile, in the order of its questions; empty without any."""
    text = warehouse.once_each("retrievals", (profile, day), _answers_of)
    return json.loads(text) if text else []


def _answers_of(warehouse: Warehouse, keys: Sequence[Key]) -> dict[Key, str]:
    stored = _of_retrievals(warehouse, "answers", [(day, profile) for profile, day in keys])
    return {(profile, day): answers for (day, profile), answers in stored.items()}


def inputs_of_retrievals(warehouse: Warehouse, keys: Collection[tuple[date, str]]) -> dict[tuple[date, str], str]:
    """Return the fingerprints of the inputs of stored answers by day and profile, for the `keys` that have any."""
    return _of_retrievals(warehouse, "inputs", keys)


def _of_retrievals(
    warehouse: Warehouse, column: str, keys: Collection[tuple[date, str]]
) -> dict[tuple[date, str], str]:
    rows = warehouse.rows(
        f"""
        with asked as (select unnest($days::date[]) as day, unnest($profiles::varchar[]) as profile)
        select day, profile, {column}
        from retrieval_sets
        join asked using (day, profile)
        """,  # noqa: S608  # a name of ours
        {"days": [day for day, _ in keys], "profiles": [profile for _, profile in keys]},
    )
    return {(day, profile): value for day, profile, value in rows}


def retrieval_inputs(warehouse: Warehouse, day: date, profile: str) -> str | None:
    """Return the fingerprint of the inputs of the stored answers; None if there are none."""
    return warehouse.value("select inputs from retrieval_sets where day = ? and profile = ?", [day, profile])
