"""Test the table of best practices: one transaction decides, filters apply, and every write is detected."""

from pathlib import Path

import numpy as np
import pytest

from paper_assets.paper import text_hash
from paper_assets.small_files import file_state
from paper_assets.stores.best_practices import (
    BestPractice,
    add_missing,
    add_unless_alike,
    best_practices,
    counts,
    ids_of,
    originals_without_vector,
    remove_best_practice,
    with_vectors,
)
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.llm_answers import keep_answers
from paper_assets.stores.vectors import update
from paper_assets.stores.warehouse import Warehouse
from tests.chroma_folder import entries
from tests.rewriting.invented_archive import practice

NAME = "optim_best_practices_v1"


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=5)


def embed(warehouse: Warehouse, practices: list[BestPractice], rows: np.ndarray) -> None:
    hashes = [text_hash(each.original_text) for each in practices]
    keep_vectors(warehouse, hashes, rows.astype(np.float32), model="m")


def add(warehouse: Warehouse, each: BestPractice) -> BestPractice | None:
    return add_unless_alike(warehouse, each, collection=NAME, model="m", similarity=0.95)


def test_what_was_kept_comes_back_as_it_was_newest_first(warehouse: Warehouse) -> None:
    kept = [practice(number) for number in range(6)]
    assert add_missing(warehouse, kept, collection=NAME) == 6
    assert best_practices(warehouse, NAME) == kept[::-1]
    assert best_practices(warehouse, "optim_best_practices_v2") == []
    assert add_missing(warehouse, [*kept, practice(9)], collection=NAME) == 1
    assert counts(warehouse) == {NAME: 7}


def test_lists_are_of_a_level_a_score_and_a_keyword(warehouse: Warehouse) -> None:
    add_missing(warehouse, [practice(number) for number in range(12)], collection=NAME)
    assert {each.target_level for each in best_practices(warehouse, NAME, level="student")} == {"student"}
    assert {each.score for each in best_practices(warehouse, NAME, min_score=99)} == {99, 100}
    assert [each.id for each in best_practices(warehouse, NAME, keyword="SUBJECT7")] == [practice(7).id]
    assert best_practices(warehouse, NAME, keyword="100%_") == []


def test_the_nearest_of_two_similar_ones_is_named_and_only_that_level_counts(warehouse: Warehouse) -> None:
    kept = [practice(0), practice(3), practice(1)]
    new = practice(6)
    angles = [0.3, 0.1, 0.0, 0.0]
    embed(warehouse, [*kept, new], np.array([[np.cos(angle), np.sin(angle)] for angle in angles]))
    for each in kept:
        add_missing(warehouse, [each], collection=NAME)
    assert add(warehouse, new) == practice(3), "0.1 is nearer than 0.3, and the other level is ignored"
    remove_best_practice(warehouse, NAME, practice(3).id)
    assert add(warehouse, new) == practice(0)
    remove_best_practice(warehouse, NAME, practice(0).id)
    assert add(warehouse, new) is None
    assert ids_of(warehouse, NAME) == [practice(1).id, new.id]


def test_equal_originals_are_alike_even_without_vectors(warehouse: Warehouse) -> None:
    assert add(warehouse, practice(0)) is None
    assert add(warehouse, practice(3)) is None
    assert add(warehouse, practice(6, original_text=practice(0).original_text)) == practice(0)
    assert add(warehouse, practice(7, original_text=practice(0).original_text)) is None, "another level"


def test_vectors_come_with_their_own_best_practice_and_zeros_where_there_is_none(warehouse: Warehouse) -> None:
    kept = [practice(number) for number in range(5)]
    add_missing(warehouse, kept, collection=NAME)
    rows = np.eye(5)
    embed(warehouse, kept[1:], rows[1:])
    hashes, texts = originals_without_vector(warehouse, NAME, model="m")
    assert (hashes, texts) == ([text_hash(kept[0].original_text)], [kept[0].original_text])
    found, vectors = with_vectors(warehouse, NAME, [kept[4].id, "unknown", kept[0].id, kept[2].id], model="m")
    assert [each.id for each in found] == [kept[0].id, kept[2].id, kept[4].id]
    assert np.array_equal(vectors, np.array([np.zeros(5), rows[2], rows[4]]))
    assert with_vectors(warehouse, NAME, ids_of(warehouse, NAME), model="other")[1].shape == (5, 0)
    assert with_vectors(warehouse, NAME, [], model="m")[0] == []


def test_what_a_collection_holds_already_is_added_once(warehouse: Warehouse) -> None:
    kept = [practice(number) for number in range(4)]
    assert [add_missing(warehouse, some, collection=NAME) for some in (kept, [], kept, [*kept, practice(7)])] == [
        4,
        0,
        0,
        1,
    ]
    assert best_practices(warehouse, NAME) == [practice(number) for number in (7, 3, 2, 1, 0)]


def test_any_write_changes_the_mark_and_no_reading_does(warehouse: Warehouse) -> None:
    marks = [file_state(warehouse.files)]
    for key in ("one", "other"):
        keep_answers(warehouse, {key: "null"}, model="m")
        marks.append(file_state(warehouse.files))
        ids_of(warehouse, NAME)
        assert file_state(warehouse.files) == marks[-1]
    assert len(set(marks)) == 3


def test_the_collection_follows_the_table(warehouse: Warehouse, tmp_path: Path) -> None:
    index = VectorIndex(tmp_path / "chroma", deadline=5)
    kept = [practice(number) for number in range(30)]
    embed(warehouse, kept, np.random.default_rng(1).dirichlet(np.ones(8), 30) ** 0.5)
    add_missing(warehouse, kept[:29], collection=NAME)
    assert update(index, warehouse, [NAME], model="m").upserted == 29
    assert update(index, warehouse, [NAME], model="m").upserted == 0
    add_missing(warehouse, kept[29:], collection=NAME)
    remove_best_practice(warehouse, NAME, kept[3].id)
    report = update(index, warehouse, [NAME], model="m")
    assert (report.upserted, report.removed, report.rebuilt) == (1, 1, None)
    held = entries(index, NAME)
    assert {name: entry.document for name, entry in held.items()} == {
        each.id: each.text for each in kept if each.id != kept[3].id
    }
