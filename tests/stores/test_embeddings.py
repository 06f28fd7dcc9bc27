"""Test that a text is embedded once and every vector is returned for its paper."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from paper_assets.errors import InvalidInput
from paper_assets.stores.embeddings import (
    days_without_vectors,
    embedded_with_others,
    keep_vectors,
    remembered_vectors,
    texts_without_vector,
    unembedded_count,
    vectors_between,
    vectors_of,
)
from paper_assets.stores.paper_merging import merge_papers, replace_day
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import MONDAY, TUESDAY, paper, papers_of


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=5)


def vector_for(text: str, dimension: int = 6) -> np.ndarray:
    """A unit vector that follows from the text alone."""
    vector = np.random.default_rng(list(text.encode())).standard_normal(dimension)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def embed(warehouse: Warehouse, first: date | None, last: date | None, *, model: str = "m") -> list[str]:
    """Embed what is missing; the texts that were."""
    hashes, texts = texts_without_vector(warehouse, first, last, model=model)
    keep_vectors(warehouse, hashes, np.array([vector_for(text) for text in texts]).reshape(-1, 6), model=model)
    return texts


def test_equal_texts_are_embedded_once(warehouse: Warehouse) -> None:
    same = {"title": "Same", "abstract": "text."}
    merge_papers(warehouse, [paper("a", **same), paper("b", TUESDAY, **same), paper("c", None, **same)])
    assert unembedded_count(warehouse, None, None, model="m") == 3
    assert embed(warehouse, MONDAY, MONDAY) == ["Same\n\ntext."]
    assert embed(warehouse, None, None) == []
    assert unembedded_count(warehouse, None, None, model="m") == 0
    assert vectors_of(warehouse, ["c", "b", "a"], model="m")[1].all()


def test_only_the_days_asked_for_and_the_model_asked_for_are_looked_at(warehouse: Warehouse) -> None:
    merge_papers(warehouse, [*papers_of(MONDAY, 2), *papers_of(TUESDAY, 3), paper("undated", None)])
    assert len(embed(warehouse, TUESDAY, TUESDAY)) == 3
    assert days_without_vectors(warehouse, model="m") == {MONDAY}
    assert unembedded_count(warehouse, MONDAY, TUESDAY, model="m") == 2
    assert unembedded_count(warehouse, None, None, model="other") == 6


def test_a_new_version_needs_a_vector_only_if_its_text_is_new(warehouse: Warehouse) -> None:
    replace_day(warehouse, MONDAY, [paper("a"), paper("b")])
    embed(warehouse, MONDAY, MONDAY)
    replace_day(warehouse, MONDAY, [paper("a", version=2), paper("b", version=2, abstract="Rewritten.")])
    assert embed(warehouse, MONDAY, MONDAY) == ["On b\n\nRewritten."]


def test_vectors_come_back_in_the_order_of_the_ids_with_zeros_where_there_is_none(warehouse: Warehouse) -> None:
    papers = papers_of(MONDAY, 40)
    merge_papers(warehouse, papers[:30])
    embed(warehouse, MONDAY, MONDAY)
    merge_papers(warehouse, papers[30:])
    ids = [papers[at].paper_id for at in np.random.default_rng(1).permutation(40)] + ["unknown", papers[0].paper_id]
    matrix, found = vectors_of(warehouse, ids, model="m")
    known = {each.paper_id: vector_for(f"{each.title}\n\n{each.abstract}") for each in papers[:30]}
    assert matrix.dtype == np.float32
    assert found.tolist() == [paper_id in known for paper_id in ids]
    assert np.array_equal(matrix, np.array([known.get(paper_id, np.zeros(6, np.float32)) for paper_id in ids]))


def test_without_any_vector_of_the_model_nothing_is_found(warehouse: Warehouse) -> None:
    merge_papers(warehouse, papers_of(MONDAY, 2))
    matrix, found = vectors_of(warehouse, ["a", "b"], model="m")
    assert matrix.shape == (2, 0)
    assert not found.any()
    assert list(vectors_between(warehouse, MONDAY, TUESDAY, model="m")) == []
    assert vectors_of(warehouse, [], model="m")[1].shape == (0,)


def test_keeping_twice_keeps_the_first(warehouse: Warehouse) -> None:
    first, second = np.eye(2, dtype=np.float32)
    keep_vectors(warehouse, ["h", "h"], np.array([first, first]), model="m")
    keep_vectors(warehouse, ["h", "i"], np.array([second, second]), model="m")
    keep_vectors(warehouse, [], np.zeros((0, 2)), model="m")
    assert warehouse.column("select vector[1] from embeddings order by text_hash") == [1, 0]


@pytest.mark.parametrize(
    "rows",
    [[[1, 0], [np.nan, 0]], [[1, 0], [np.inf, 0]], [[1, 0], [0, 0]], [[1, 0], [1, 1]], [[1, 0]], [1, 0]],
    ids=["nan", "infinite", "zero", "too long", "too few", "no matrix"],
)
def test_a_faulty_vector_is_refused_and_nothing_is_kept(warehouse: Warehouse, rows: list[list[float]]) -> None:
    with pytest.raises(InvalidInput):
        keep_vectors(warehouse, ["h", "i"], np.array(rows), model="m")
    assert warehouse.value("select count(*) from embeddings") == 0


def test_a_model_keeps_its_number_of_dimensions(warehouse: Warehouse) -> None:
    keep_vectors(warehouse, ["h"], np.eye(1, 3), model="m")
    with pytest.raises(InvalidInput, match="vectors of 3 numbers"):
        keep_vectors(warehouse, ["i"], np.eye(1, 4), model="m")
    keep_vectors(warehouse, ["i"], np.eye(1, 4), model="other")


def test_vectors_stream_in_batches(warehouse: Warehouse) -> None:
    papers = papers_of(MONDAY, 10_500)
    merge_papers(warehouse, [*papers, paper("t", TUESDAY), paper("u", None)])
    embed(warehouse, None, None)
    batches, seen = 0, {}
    for ids, matrix in vectors_between(warehouse, MONDAY, TUESDAY, model="m"):
        batches += 1
        seen |= dict(zip(ids, matrix, strict=True))
    assert batches > 1
    assert set(seen) == {"t", *(each.paper_id for each in papers)}
    last = papers[-1]
    assert np.array_equal(seen[last.paper_id], vector_for(f"{last.title}\n\n{last.abstract}"))


def test_a_text_embedded_once_is_never_encoded_again(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    asked: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        asked.append(texts)
        return np.array([[1.0, 0.0] if "left" in text else [0.0, 1.0] for text in texts], dtype=np.float32)

    def vectors(*texts: str) -> list[list[float]]:
        return remembered_vectors(warehouse, texts, model="m", encode=encode).tolist()

    assert vectors("left", "right", "left") == [[1, 0], [0, 1], [1, 0]]
    assert vectors("right", "left one", "left") == [[0, 1], [1, 0], [1, 0]]
    assert asked == [["left", "right"], ["left one"]]


def test_papers_are_compared_with_others_of_their_days_that_new_days_do_not_replace(
    warehouse: Warehouse,
) -> None:
    def compared(most: int = 9, categories: list[str] | None = None) -> list[str]:
        found = embedded_with_others(warehouse, ["b", "a"], categories=categories, most=most, model="m")
        return [paper_id for paper_id, _ in found]

    undated, on_maths = paper("b", None), paper("maths", categories=("math.CO",))
    merge_papers(warehouse, [paper("a"), undated, on_maths, *papers_of(MONDAY, 6)])
    embed(warehouse, MONDAY, MONDAY)
    merge_papers(warehouse, [paper("without vector")])
    all_of_monday = [*(f"2601.05{number:03d}" for number in range(6)), "maths"]
    assert compared() == ["a", *all_of_monday]
    assert compared(categories=["cs.CL", "cs.LG"]) == ["a", *all_of_monday[:-1]]
    few = compared(most=3)
    assert len(few) == 4 and set(few) < {"a", *all_of_monday}
    merge_papers(warehouse, papers_of(TUESDAY, 6))
    embed(warehouse, TUESDAY, TUESDAY)
    assert compared(most=3) == few
    embed(warehouse, None, None)
    assert compared() == ["a", "b", *all_of_monday, "without vector"]
