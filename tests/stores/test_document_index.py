"""Test that the collections of documents mirror the database, with the fields that filters name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.stores.chroma_collections import document_batches, sync_documents
from paper_assets.stores.documents import Document, remove_documents, replace_documents, texts_to_embed
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.vectors import VectorIndex, count, fetch
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import MONDAY, TUESDAY, paper
from tests.invented_vectors import query
from tests.stores.test_embeddings import embed, vector_for


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=5)


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    return VectorIndex(tmp_path / "chroma", deadline=10)


def passage(doc_id: str, text: str = "", **given: Any) -> Document:
    fields: dict[str, Any] = {"paper_id": "2601.00001", "title": "On bees", "access_level": "public"}
    return Document(doc_id=doc_id, text=text or f"text of {doc_id}", data_type="fulltext", **{**fields, **given})


def put(warehouse: Warehouse, origin: str, *documents: Document) -> None:
    """Store and embed."""
    replace_documents(warehouse, "fulltext", origin=origin, documents=documents)
    hashes, texts = texts_to_embed(warehouse, "fulltext", model="m")
    keep_vectors(warehouse, hashes, np.array([vector_for(text) for text in texts]).reshape(-1, 6), model="m")


def test_passages_are_found_by_their_fields_and_follow_the_database(warehouse: Warehouse, index: VectorIndex) -> None:
    mine = passage("a", access_level="private", owner="me", categories=("cs.CL", "cs.LG"), date_int=20260301)
    put(warehouse, "one.pdf", mine, passage("b"))
    put(warehouse, "two.pdf", passage("c"))
    assert sync_documents(warehouse, index, "fulltext", model="m").upserted == 3
    held = fetch(index, "fulltext", ["a"]).metadatas[0]
    assert {name: value for name, value in held.items() if name != "partition"} == {
        "paper_id": "2601.00001",
        "title": "On bees",
        "date_int": 20260301,
        "categories": ["cs.CL", "cs.LG"],
        "data_type": "fulltext",
        "access_level": "private",
        "version": 1,
        "owner": "me",
    }
    where = {"categories": {"$contains": "cs.LG"}}
    assert query(index, "fulltext", vector_for("any")[None], k=5, where=where)[0] == [["a"]]

    put(warehouse, "one.pdf", passage("a"), passage("d"))
    remove_documents(warehouse, "fulltext", origins=["two.pdf"])
    report = sync_documents(warehouse, index, "fulltext", model="m")
    assert (report.upserted, report.removed, report.rebuilt) == (2, 2, None)  # a says less than before, d is new
    assert "owner" not in fetch(index, "fulltext", ["a"]).metadatas[0]
    assert set(fetch(index, "fulltext", ["a", "b", "c", "d"]).ids) == {"a", "d"}
    assert sync_documents(warehouse, index, "fulltext", model="m").upserted == 0


def test_what_has_no_vector_yet_is_not_in_the_index_until_it_has(warehouse: Warehouse, index: VectorIndex) -> None:
    replace_documents(warehouse, "fulltext", origin="one.pdf", documents=[passage("a")])
    sync_documents(warehouse, index, "fulltext", model="m")
    assert count(index, "fulltext") == 0
    put(warehouse, "one.pdf", passage("a"))
    assert sync_documents(warehouse, index, "fulltext", model="m").upserted == 1


def test_abstracts_come_by_day_with_their_fields_and_their_own_vectors(warehouse: Warehouse) -> None:
    papers = [
        paper("2601.00001", categories=("stat.ML", "cs.LG"), primary_category="stat.ML", version=2),
        paper("2601.00002", withdrawn=True),
        paper("2601.00003", TUESDAY, categories=(), primary_category=None),
        paper("2601.00004", None),
    ]
    merge_papers(warehouse, papers)
    embed(warehouse, None, None)

    def rows(*days: str) -> Iterator[tuple[str, str, np.ndarray, Any]]:
        for batch in document_batches(warehouse, "abstract", days, model="m"):
            merge_papers(warehouse, [])  # the warehouse is free meanwhile
            for each in zip(batch.ids, batch.vectors, batch.metadatas, strict=True):
                yield batch.partition, *each

    found = {doc_id: (day, vector, fields) for day, doc_id, vector, fields in rows(str(MONDAY), str(TUESDAY))}
    assert {doc_id: day for doc_id, (day, _, _) in found.items()} == {
        "2601.00001": "2026-01-05",
        "2601.00002": "2026-01-05",  # every vector of the database is in the index
        "2601.00003": "2026-01-06",
    }
    for each in papers[:3]:
        assert np.array_equal(found[each.paper_id][1], vector_for(f"{each.title}\n\n{each.abstract}"))
    assert found["2601.00001"][2] == {
        "paper_id": "2601.00001",
        "title": "On 2601.00001",
        "date_int": 20260105,
        "primary_category": "stat.ML",
        "categories": ["stat.ML", "cs.LG"],
        "topic_id": "stat",
        "data_type": "abstract",
        "access_level": "public",
        "language": "en",
        "version": 2,
        "url": "https://arxiv.org/abs/2601.00001",
        "owner": None,
    }
    assert found["2601.00003"][2]["categories"] is None  # Chroma takes no empty list
    assert {doc_id for _, doc_id, _, _ in rows(str(TUESDAY))} == {"2601.00003"}
    assert list(document_batches(warehouse, "abstract", [str(MONDAY)], model="another")) == []
