"""Reciprocal rank fusion: places count, not scores, and the order of the lists does not."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.retrieval.fusion import reciprocal_rank_fusion

rankings = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=5)


def test_two_second_places_beat_one_first_place() -> None:
    fused = reciprocal_rank_fusion([["x", "both"], ["y", "both"]], constant=60)
    assert list(fused) == ["both", "x", "y"]
    assert fused["both"] == pytest.approx(2 / 62)
    assert fused["x"] == fused["y"] == pytest.approx(1 / 61)


def test_a_document_named_twice_in_a_list_counts_once_at_its_better_place() -> None:
    assert reciprocal_rank_fusion([["a", "a", "b", "a"]], constant=0) == {"a": 1.0, "b": 0.5}


def test_nothing_fused_is_nothing() -> None:
    assert reciprocal_rank_fusion([]) == reciprocal_rank_fusion([[], []]) == {}


@given(rankings)
def test_the_order_of_the_lists_changes_no_bit(lists: list[list[str]]) -> None:
    fused = [list(reciprocal_rank_fusion(order).items()) for order in permutations(lists)]
    assert all(each == fused[0] for each in fused)


@given(rankings, st.integers(0, 100))
def test_it_is_the_sum_over_the_lists(lists: list[list[str]], constant: int) -> None:
    fused = reciprocal_rank_fusion(lists, constant=constant)
    for doc_id in "abcdefgh":
        plain = sum(1 / (constant + each.index(doc_id) + 1) for each in lists if doc_id in each)
        assert fused.get(doc_id, 0.0) == pytest.approx(plain)
    assert list(fused.values()) == sorted(fused.values(), reverse=True)
