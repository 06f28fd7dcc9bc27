"""Test that a filter means what it means in Chroma, and that an invalid one is named in one line."""

from functools import cache
from typing import Any

import chromadb
import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper_assets.errors import InvalidInput
from paper_assets.stores.documents import condition_of

DOCUMENTS: list[dict[str, Any]] = [
    {
        "primary_category": category,
        "date_int": day,
        "categories": [each for each in ("cs.CL", "cs.LG") if number % (2 if each == "cs.CL" else 3) == 0],
    }
    for number, (category, day) in enumerate(
        [(category, day) for category in ("cs.CL", "cs.LG", None) for day in (20260301, 20260302, None)]
    )
]


SCHEMA = pa.schema([("primary_category", pa.string()), ("date_int", pa.int32()), ("categories", pa.list_(pa.string()))])


@cache
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("incoming", pa.Table.from_pylist(DOCUMENTS, schema=SCHEMA))
    connection.execute("create table documents as select *, row_number() over () - 1 as number from incoming")
    return connection


def met(where: dict[str, Any] | None) -> set[int]:
    """The documents that meet the filter, by number, as the database says."""
    condition = condition_of(where)
    rows = database().execute(f"select number from documents where {condition.sql}", condition.parameters).fetchall()
    return {number for (number,) in rows}


@pytest.fixture(scope="module")
def in_chroma(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same documents in a collection; what is unknown or empty is left out of their metadata."""
    client = chromadb.PersistentClient(tmp_path_factory.mktemp("filters"))
    rows = client.create_collection("documents", embedding_function=None)
    metadatas = [{**{k: v for k, v in each.items() if v not in (None, [])}, "here": 1} for each in DOCUMENTS]
    rows.add(
        ids=[str(at) for at in range(len(metadatas))],
        embeddings=np.eye(len(metadatas), dtype=np.float32),
        metadatas=metadatas,
    )
    yield rows
    client.close()


categories, days = st.sampled_from(["cs.CL", "cs.LG", "cs.CV"]), st.sampled_from([20260301, 20260302, 20260303])
atoms = st.one_of(
    st.builds(lambda value: {"primary_category": value}, categories),
    st.builds(lambda op, value: {"primary_category": {op: value}}, st.sampled_from(["$eq", "$ne"]), categories),
    st.builds(
        lambda op, values: {"primary_category": {op: values}},
        st.sampled_from(["$in", "$nin"]),
        st.lists(categories, min_size=1, max_size=3),
    ),
    st.builds(
        lambda op, value: {"date_int": {op: value}},
        st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]),
        days,
    ),
    st.builds(
        lambda op, value: {"categories": {op: value}}, st.sampled_from(["$contains", "$not_contains"]), categories
    ),
)
filters = st.recursive(
    atoms,
    lambda inner: st.builds(
        lambda op, parts: {op: parts}, st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=2, max_size=3)
    ),
    max_leaves=6,
)


@given(where=filters)
@settings(max_examples=40)
def test_a_filter_means_what_it_means_to_chroma(in_chroma: Any, where: dict[str, Any]) -> None:
    assert met(where) == {int(each) for each in in_chroma.get(where=where, include=[])["ids"]}


def test_no_filter_and_the_empty_one_hold_for_everything() -> None:
    assert met(None) == met({}) == set(range(len(DOCUMENTS)))


def test_several_fields_and_several_operators_must_all_hold() -> None:
    assert met({"primary_category": "cs.LG", "date_int": {"$gte": 20260301, "$lt": 20260302}}) == {3}
    assert met({"$or": [{"primary_category": "cs.LG", "date_int": 20260302}, {"date_int": 20260301}]}) == {0, 3, 4, 6}


def test_null_asks_whether_there_is_a_value() -> None:
    undated = {at for at, document in enumerate(DOCUMENTS) if document["date_int"] is None}
    assert undated and met({"date_int": {"$eq": None}}) == undated
    assert met({"date_int": {"$ne": None}}) == set(range(len(DOCUMENTS))) - undated


def test_a_value_is_never_part_of_the_query() -> None:
    hostile = "cs.CL' or 1 = 1 --"
    condition = condition_of({"$or": [{"primary_category": hostile}, {"primary_category": {"$in": [hostile]}}]})
    assert hostile not in condition.sql
    assert met({"primary_category": hostile}) == set()


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ({"party": "A"}, "'party' is not a field"),
        ({"date_int": "2026-03-01"}, "date_int: expected a day as a whole number like 20260301, got '2026-03-01'"),
        ({"date_int": {"$gte": True}}, "date_int"),
        ({"date_int": 10**12}, "date_int"),
        ({"version": 1.5}, "version: expected a whole number"),
        ({"primary_category": None}, "primary_category: expected a text, got None"),
        ({"primary_category": {"$gt": "cs"}}, r"primary_category: '\$gt' does not apply to it; expected one of \$eq"),
        ({"primary_category": {"$regex": "cs"}}, r"primary_category: '\$regex'"),
        ({"primary_category": {}}, "primary_category: no operator"),
        ({"primary_category": {"$in": "cs.CL"}}, r"\$in needs a list"),
        ({"primary_category": {"$in": []}}, r"\$in needs a list"),
        ({"categories": "cs.CL"}, r"categories: '\$eq' does not apply to it; expected one of \$contains"),
        ({"title": "\ud800"}, "not valid Unicode"),
        ({"$and": []}, r"\$and needs a list of filters"),
        ({"$or": {"title": "x"}}, r"\$or needs a list of filters"),
        ({"$and": ["title"]}, "a filter must be an object"),
        ({"$not": {"title": "x"}}, r"'\$not' is not a field; expected"),
    ],
)
def test_a_filter_that_makes_no_sense_is_one_line_with_its_field(where: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named) as raised:
        condition_of(where)
    assert "\n" not in str(raised.value)


def test_a_filter_without_end_is_refused() -> None:
    where: dict[str, Any] = {"title": "x"}
    for _ in range(2_000):
        where = {"$and": [where]}
    with pytest.raises(InvalidInput, match="deep"):
        condition_of(where)
