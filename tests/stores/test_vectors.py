"""Test that the vector index mirrors the database, finds it, and writes no more than necessary."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper_assets.errors import IndexUnusable
from paper_assets.stores.index_storage import VectorBatch
from paper_assets.stores.vectors import SyncReport, VectorIndex, count, drop, fetch, mark_for_rebuild, self_check, sync
from tests.invented_vectors import (
    COLLECTION,
    DIMENSION,
    MODEL,
    all_ids,
    fingerprints,
    found,
    ids_of,
    put,
    query,
    vectors_of,
)


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    return VectorIndex(tmp_path / "chroma", deadline=10)


def ids_in(index: VectorIndex, *candidates: str) -> set[str]:
    return set(fetch(index, COLLECTION, candidates).ids)


def test_the_first_sync_of_one_day_indexes_all_days(index: VectorIndex) -> None:
    truth = {"2025-01-01": ids_of("a", 30), "2025-01-02": ids_of("b", 20)}
    report = put(index, truth, "2025-01-02")
    assert report.upserted == 50
    assert report.rebuilt is not None
    assert found(index, all_ids(truth)) == all_ids(truth)


def test_a_second_sync_asks_for_nothing_and_opens_nothing(index: VectorIndex) -> None:
    truth = {"day": ids_of("a", 10)}
    put(index, truth)
    assert isinstance(index.place, Path)
    before = {path: path.stat().st_mtime_ns for path in (index.place / COLLECTION).rglob("*")}
    asked: list[str] = []
    assert put(index, truth, before=asked.append) == SyncReport()
    assert asked == []
    assert {path: path.stat().st_mtime_ns for path in (index.place / COLLECTION).rglob("*")} == before


def test_a_changed_day_writes_only_what_changed_and_drops_what_left(index: VectorIndex) -> None:
    truth = {"one": ids_of("a", 40), "two": ids_of("b", 5)}
    put(index, truth)
    changed = {**truth, "one": [*truth["one"][3:], "new"]}
    asked: list[str] = []
    report = put(index, changed, before=asked.append)
    assert (report.upserted, report.removed, report.rebuilt) == (1, 3, None)
    assert asked == ["one"]
    assert ids_in(index, *all_ids(truth), "new") == set(all_ids(changed))


def test_a_day_without_papers_any_more_leaves_none(index: VectorIndex) -> None:
    put(index, {"one": ["a", "b"], "two": ["c"]})
    assert put(index, {"one": [], "two": ["c"]}, "one").removed == 2
    assert count(index, COLLECTION) == 1


def test_days_of_equal_size_do_not_overwrite_each_other(index: VectorIndex) -> None:
    truth = {f"day{number}": ids_of(f"day{number}", 12) for number in range(4)}
    for name in truth:
        put(index, {each: truth[each] for each in truth if each <= name}, name)
    assert count(index, COLLECTION) == 48
    assert found(index, all_ids(truth)) == all_ids(truth)


def test_a_paper_that_moved_to_another_day_survives_the_sync_of_the_old_day(index: VectorIndex) -> None:
    put(index, {"old": ["stays", "moves"], "new": ["there"]})
    moved = {"old": ["stays"], "new": ["there", "moves"]}
    put(index, moved, "new")
    put(index, moved, "old")
    assert ids_in(index, "stays", "moves", "there") == {"stays", "moves", "there"}


def test_a_paper_that_moved_and_came_back_is_not_lost(index: VectorIndex) -> None:
    home, away = {"a": ["stays", "moves"], "b": ["there"]}, {"a": ["stays"], "b": ["there", "moves"]}
    put(index, home)
    put(index, away, "b")
    put(index, home, "a")  # the fingerprint is that of the first sync, yet the index must be asked again
    put(index, home, "b")
    assert ids_in(index, "stays", "moves", "there") == {"stays", "moves", "there"}


PARTITIONS = ("mon", "tue", "wed")
PAPERS = ("p1", "p2", "p3", "p4", "p5")
assignment = st.fixed_dictionaries({paper: st.sampled_from((*PARTITIONS, None)) for paper in PAPERS})
steps = st.lists(st.tuples(assignment, st.lists(st.sampled_from(PARTITIONS), min_size=1, unique=True)), max_size=3)


@given(steps=steps)
@settings(max_examples=8, deadline=None)
def test_after_any_syncs_the_index_equals_the_union_of_the_days(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[dict[str, str | None], list[str]]]
) -> None:
    index = VectorIndex(tmp_path_factory.mktemp("any") / "chroma", deadline=10)
    truth: dict[str, list[str]] = {name: [] for name in PARTITIONS}
    put(index, truth)
    for place, synced in steps:
        truth = {name: [paper for paper in PAPERS if place[paper] == name] for name in PARTITIONS}
        for name in synced:
            put(index, truth, name)
            assert ids_in(index, *truth[name]) == set(truth[name])
    put(index, truth)
    assert ids_in(index, *PAPERS) == set(all_ids(truth))
    assert count(index, COLLECTION) == len(all_ids(truth))


def test_another_model_replaces_every_vector(index: VectorIndex) -> None:
    truth = {"one": ["a", "b"], "two": ["c"]}
    put(index, truth)
    report = put(index, truth, "one", model="another")
    assert report.upserted == 3
    assert report.rebuilt is not None
    assert "invented" in report.rebuilt


def test_metadata_follows_the_database_also_when_a_key_goes(index: VectorIndex) -> None:
    def write(fingerprint: str, **metadata: str | int | None) -> SyncReport:
        batch = VectorBatch(partition="day", ids=["a"], vectors=vectors_of(["a"]), metadatas=[metadata])
        wanted = {"day": fingerprint}
        return sync(
            index,
            COLLECTION,
            model=MODEL,
            partitions=wanted,
            everything=lambda: wanted,
            batches=lambda _: iter([batch]),
        )

    write("1", primary_category="cs.CL", date_int=20250101, doi=None)
    assert fetch(index, COLLECTION, ["a"]).metadatas == [
        {"primary_category": "cs.CL", "date_int": 20250101, "partition": "day"}
    ]
    assert write("2", primary_category="cs.LG").upserted == 1
    assert fetch(index, COLLECTION, ["a"]).metadatas == [{"primary_category": "cs.LG", "partition": "day"}]


def test_similarity_is_the_cosine_and_the_best_comes_first(index: VectorIndex) -> None:
    truth = {"day": ids_of("a", 200)}
    put(index, truth)
    question = vectors_of(["a question", "another"])
    ids, similarities = query(index, COLLECTION, question, k=7)
    exact = question @ vectors_of(truth["day"]).T
    for row in range(2):
        order = np.argsort(-exact[row])[:7]
        assert ids[row] == [truth["day"][at] for at in order]
        np.testing.assert_allclose(similarities[row], exact[row][order], atol=1e-5)


def test_fewer_than_k_papers_leave_the_rest_unsaid(index: VectorIndex) -> None:
    put(index, {"day": ["a", "b"]})
    ids, similarities = query(index, COLLECTION, vectors_of(["a"]), k=5)
    assert len(ids[0]) == 2
    assert np.isnan(similarities[0, 2:]).all()
    ids, similarities = query(index, COLLECTION, vectors_of(["a"]), k=5, where={"partition": "another day"})
    assert ids == [[]]
    assert np.isnan(similarities).all()


def test_a_filter_that_makes_no_sense_is_refused_and_harms_nothing(index: VectorIndex) -> None:
    put(index, {"day": ["a"]})
    with pytest.raises(Exception, match="where"):
        query(index, COLLECTION, vectors_of(["a"]), k=1, where={"$nonsense": 1})
    assert found(index, ["a"]) == ["a"]


def test_self_check_names_what_is_missing_or_different_and_forgives_twins(index: VectorIndex) -> None:
    twin = vectors_of(["same"])[0]
    ids, vectors = ["a", "twin1", "twin2", "b"], vectors_of(["a", "x", "y", "b"])
    vectors[1] = vectors[2] = twin
    batch = VectorBatch(partition="day", ids=ids, vectors=vectors, metadatas=[{}] * 4)
    wanted = {"day": "1"}
    sync(index, COLLECTION, model=MODEL, partitions=wanted, everything=lambda: wanted, batches=lambda _: iter([batch]))
    assert self_check(index, COLLECTION, ids, vectors) == []
    newer = vectors.copy()
    newer[3] = vectors_of(["b in a new version"])[0]
    assert self_check(index, COLLECTION, ids, newer) == ["b"]
    # not there itself, though a paper with an equal vector is
    assert self_check(index, COLLECTION, ["a", "twin3"], np.stack([vectors[0], twin])) == ["twin3"]
    assert self_check(index, COLLECTION, [], np.empty((0, DIMENSION), np.float32)) == []


def test_fetch_keeps_the_order_asked_and_leaves_out_the_unknown(index: VectorIndex) -> None:
    put(index, {"day": ["a", "b", "c"]})
    there = fetch(index, COLLECTION, ["c", "unknown", "a"])
    assert there.ids == ["c", "a"]
    np.testing.assert_allclose(there.vectors, vectors_of(["c", "a"]), atol=1e-6)
    assert fetch(index, COLLECTION, ["unknown"]).vectors.shape[0] == 0


def test_more_vectors_than_one_call_of_chroma_carries(index: VectorIndex) -> None:
    truth = {"big": ids_of("a", 5_600)}
    put(index, truth)
    assert self_check(index, COLLECTION, truth["big"], vectors_of(truth["big"])) == []
    assert put(index, {"big": []}).removed == 5_600


def test_drop_forgets_one_collection_only(index: VectorIndex) -> None:
    put(index, {"day": ["a"]})
    wanted = {"day": "1"}
    batch = VectorBatch(partition="day", ids=["x"], vectors=vectors_of(["x"]), metadatas=[{}])
    sync(index, "rewrite", model=MODEL, partitions=wanted, everything=lambda: wanted, batches=lambda _: iter([batch]))
    drop(index, COLLECTION)
    drop(index, COLLECTION)
    with pytest.raises(IndexUnusable):
        count(index, COLLECTION)
    assert count(index, "rewrite") == 1


def test_a_distrusted_index_is_made_again(index: VectorIndex) -> None:
    truth = {"one": ["a"], "two": ["b"]}
    mark_for_rebuild(index, COLLECTION)  # nothing there yet: nothing to mark_for_rebuild
    put(index, truth)
    mark_for_rebuild(index, COLLECTION)
    assert put(index, truth, "one").upserted == 2


@pytest.mark.parametrize(
    ("ids", "vectors", "metadatas"),
    [
        (["a", "b"], vectors_of(["a"]), [{}, {}]),
        (["a"], vectors_of(["a"]), []),
        (["a"], vectors_of(["a"])[0], [{}]),
        (["a"], vectors_of(["a"]) * np.nan, [{}]),
        (["a", "a"], vectors_of(["a", "a"]), [{}, {}]),
    ],
)
def test_a_batch_that_does_not_fit_is_refused_and_the_next_sync_is_right(
    index: VectorIndex, ids: list[str], vectors: np.ndarray, metadatas: list[dict[str, str]]
) -> None:
    truth = {"day": ["a", "b"]}
    put(index, truth)
    wrong = VectorBatch(partition="day", ids=ids, vectors=vectors, metadatas=metadatas)
    with pytest.raises(ValueError, match="partition day"):
        sync(
            index,
            COLLECTION,
            model=MODEL,
            partitions={"day": "wrong"},
            everything=lambda: fingerprints(truth),
            batches=lambda _: iter([wrong]),
        )
    put(index, truth)
    assert found(index, ["a", "b"]) == ["a", "b"]


@pytest.mark.parametrize("name", ["", "ab", "../up", "a/b", ".hidden", "with space"])
def test_a_name_that_is_not_valid_for_a_folder_is_refused(index: VectorIndex, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a collection"):
        count(index, name)
