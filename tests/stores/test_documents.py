"""Test that documents are replaced by origin, completely or not at all, and equal ones are not rewritten."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from paper_assets.errors import InvalidInput
from paper_assets.stores.documents import (
    Document,
    count_documents,
    origins_of,
    remove_documents,
    replace_documents,
    replace_retrievals,
    retrieval_inputs,
    retrievals_of,
    texts_to_embed,
)
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import paper


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=5)


def passage(doc_id: str, **given: Any) -> Document:
    fields: dict[str, Any] = {
        "text": f"text of {doc_id}",
        "paper_id": "2601.00001",
        "title": "On bees",
        "categories": ("cs.CL", "cs.LG"),
        "data_type": "fulltext",
        "access_level": "public",
    }
    return Document(doc_id=doc_id, **{**fields, **given})


def put(warehouse: Warehouse, *documents: Document, origin: str = "one.pdf") -> bool:
    return replace_documents(warehouse, "fulltext", origin=origin, documents=documents)


def stored(warehouse: Warehouse) -> list[tuple[str, str]]:
    return warehouse.rows("select origin, doc_id from documents order by origin, place")


def test_the_same_documents_again_write_nothing(warehouse: Warehouse) -> None:
    both = passage("a", date_int=20260101, owner="me", access_level="private"), passage("b", categories=())
    assert put(warehouse, *both)
    before = warehouse.path.stat().st_mtime_ns
    assert not put(warehouse, *both)
    assert warehouse.path.stat().st_mtime_ns == before


def test_any_change_is_written_and_changes_the_fingerprint_of_its_origin_alone(warehouse: Warehouse) -> None:
    changes: list[dict[str, Any]] = [
        {"text": "another"},
        {"title": "another"},
        {"date_int": 20260102},
        {"categories": ("cs.LG", "cs.CL")},
        {"access_level": "private"},
        {"owner": "me"},
        {"version": 2},
        {"url": "https://arxiv.org/abs/2601.00001"},
    ]
    put(warehouse, passage("a"), passage("b"))
    put(warehouse, passage("c"), origin="other.pdf")
    seen = [origins_of(warehouse, "fulltext")]
    for change in changes:
        assert put(warehouse, passage("a"), replace(passage("b"), **change))
        seen.append(origins_of(warehouse, "fulltext"))
    assert len({each["one.pdf"] for each in seen}) == len(seen)
    assert len({each["other.pdf"] for each in seen}) == 1


def test_the_documents_of_an_origin_are_replaced_together(warehouse: Warehouse) -> None:
    put(warehouse, passage("a"), passage("b"), passage("c"))
    put(warehouse, passage("x"), origin="other.pdf")
    assert put(warehouse, passage("c"), passage("a"))
    assert stored(warehouse) == [("one.pdf", "c"), ("one.pdf", "a"), ("other.pdf", "x")]
    assert put(warehouse)
    assert stored(warehouse) == [("other.pdf", "x")]
    assert not put(warehouse)


def test_an_id_is_unique_among_all_documents_and_papers(warehouse: Warehouse) -> None:
    merge_papers(warehouse, [paper("2601.00001")])
    put(warehouse, passage("a"))
    for taken in ("a", "2601.00001"):
        with pytest.raises(InvalidInput, match=f"other.pdf: the document id {taken} is taken"):
            put(warehouse, passage("new"), passage(taken), origin="other.pdf")
    with pytest.raises(InvalidInput, match="b occurs twice"):
        put(warehouse, passage("b"), passage("b"))
    assert stored(warehouse) == [("one.pdf", "a")]


def test_a_document_of_another_type_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(InvalidInput, match="must all be rewrite"):
        replace_documents(warehouse, "rewrite", origin="one", documents=[passage("a")])
    with pytest.raises(InvalidInput, match="abstracts are stored as papers"):
        replace_documents(warehouse, "abstract", origin="one", documents=[])


def test_a_text_that_no_file_can_hold_is_refused_by_its_origin(warehouse: Warehouse) -> None:
    with pytest.raises(InvalidInput, match=r"one\.pdf: .* not valid Unicode"):
        put(warehouse, passage("a", text="cut \ud83d"))


def test_removing_takes_whole_origins_of_one_type(warehouse: Warehouse) -> None:
    put(warehouse, passage("a"), passage("b"))
    put(warehouse, passage("c"), origin="other.pdf")
    rewrite = passage("r", data_type="rewrite")
    replace_documents(warehouse, "rewrite", origin="one.pdf", documents=[rewrite])
    assert remove_documents(warehouse, "fulltext", origins=["one.pdf", "unknown"]) == 2
    assert remove_documents(warehouse, "fulltext", origins=[]) == 0
    assert set(origins_of(warehouse, "fulltext")) == {"other.pdf"}
    assert set(origins_of(warehouse, "rewrite")) == {"one.pdf"}


def test_equal_texts_are_to_be_embedded_once(warehouse: Warehouse) -> None:
    put(warehouse, passage("a", text="same"), passage("b", text="same"), passage("c"))
    merge_papers(warehouse, [paper("2601.00001")])
    assert sorted(texts_to_embed(warehouse, "fulltext", model="m")[1]) == ["same", "text of c"]
    assert texts_to_embed(warehouse, "abstract", model="m")[1] == ["On 2601.00001\n\nWe study 2601.00001."]


def test_counting_needs_no_vector_and_leaves_out_withdrawn_papers(warehouse: Warehouse) -> None:
    merge_papers(warehouse, [paper("2601.00001"), paper("2601.00002", None), paper("2601.00003", withdrawn=True)])
    assert count_documents(warehouse, "abstract", None) == 2
    assert count_documents(warehouse, "abstract", {"date_int": {"$ne": 20260105}}) == 1
    assert count_documents(warehouse, "rewrite", None) == 0


def test_a_paper_without_a_primary_category_is_stored_with_its_first(warehouse: Warehouse) -> None:
    untold = replace(paper("2603.00009"), categories=("math.ST", "cs.LG"), primary_category=None)
    merge_papers(warehouse, [untold])
    assert count_documents(warehouse, "abstract", {"primary_category": "math.ST", "topic_id": "math"}) == 1
    assert count_documents(warehouse, "abstract", {"primary_category": "cs.LG"}) == 0


# Stored answers: one set per day and profile, replaced as a whole


MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)
ANSWER = {"question": "Ist das wahr? 정말?", "sides": [{"side": "a", "documents": [], "filter": None, "score": 0.25}]}


def test_answers_come_back_as_they_went_in_and_in_their_order(warehouse: Warehouse) -> None:
    replace_retrievals(warehouse, MONDAY, "ann", [ANSWER, {"question": "b"}], inputs="1")
    assert retrievals_of(warehouse, MONDAY, "ann") == [ANSWER, {"question": "b"}]
    assert retrieval_inputs(warehouse, MONDAY, "ann") == "1"


def test_a_set_is_replaced_as_a_whole_and_leaves_other_days_and_profiles_alone(warehouse: Warehouse) -> None:
    for day, name in ((MONDAY, "ann"), (TUESDAY, "ann"), (MONDAY, "bob")):
        replace_retrievals(warehouse, day, name, [ANSWER, ANSWER], inputs="1")
    replace_retrievals(warehouse, MONDAY, "ann", [], inputs="2")
    assert retrievals_of(warehouse, MONDAY, "ann") == []
    assert retrieval_inputs(warehouse, MONDAY, "ann") == "2", "no question is an answer too"
    assert retrievals_of(warehouse, TUESDAY, "ann") == retrievals_of(warehouse, MONDAY, "bob") == [ANSWER, ANSWER]


def test_a_day_without_answers_has_none_and_no_inputs(warehouse: Warehouse) -> None:
    assert retrievals_of(warehouse, MONDAY, "ann") == []
    assert retrieval_inputs(warehouse, MONDAY, "ann") is None


def test_answers_that_are_not_json_leave_the_stored_ones(warehouse: Warehouse) -> None:
    replace_retrievals(warehouse, MONDAY, "ann", [ANSWER], inputs="1")
    with pytest.raises(ValueError, match="JSON compliant"):
        replace_retrievals(warehouse, MONDAY, "ann", [{"score": float("nan")}], inputs="2")
    assert retrievals_of(warehouse, MONDAY, "ann") == [ANSWER]
    assert retrieval_inputs(warehouse, MONDAY, "ann") == "1"
