"""Test that a ranker is judged by its order alone, whatever form its answer has."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.labelled_set import LabelledSet, load_labelled_set
from benchmarks.evaluation.metrics import EvaluationConfig, judge
from paper_assets.errors import InvalidInput
from tests.evaluation.sets import DOCS, QUERIES, write_set

JUDGING = EvaluationConfig(ndcg_at=(3,), recall_at=(1, 3), coverage_at=(1, 2), resamples=200)


@pytest.fixture
def labelled(tmp_path: Path) -> LabelledSet:
    return load_labelled_set(write_set(tmp_path))


def test_scores_and_ids_in_order_are_the_same_answer(labelled: LabelledSet) -> None:
    by_score = judge(labelled, lambda query: np.array([0.3, -np.inf, 0.9, np.nan]), judging=JUDGING)
    by_id = judge(labelled, lambda query: ["d3", "d1"], judging=JUDGING)
    assert by_score.query_ids == by_id.query_ids == ("q1", "q2")
    np.testing.assert_array_equal(by_score.values, by_id.values)
    assert by_id.of("recall@1").tolist() == [0.5, 0.0]


def test_a_document_left_out_of_the_list_is_not_found(labelled: LabelledSet) -> None:
    outcome = judge(labelled, lambda query: np.full(4, -np.inf), judging=JUDGING)
    assert outcome.of("ndcg@3").tolist() == [0.0, 0.0]


@given(st.permutations(range(4)))
def test_the_order_of_the_file_decides_nothing(tmp_path_factory: pytest.TempPathFactory, order: list[int]) -> None:
    there = load_labelled_set(write_set(tmp_path_factory.mktemp("set")))
    shuffled = write_set(tmp_path_factory.mktemp("set"), docs=[DOCS[position] for position in order])
    first = judge(there, lambda query: np.zeros(4), judging=JUDGING)
    second = judge(load_labelled_set(shuffled), lambda query: np.zeros(4), judging=JUDGING)
    np.testing.assert_array_equal(first.values, second.values)


def test_what_a_profile_likes_is_neither_ranked_nor_counted(tmp_path: Path) -> None:
    profile = {"id": "q1", "interests": {"primary": ["frogs", "ponds"], "papers": ["d1"]}}
    qrels = "query_id\tdoc_id\trelevance\tinterest\nq1\td1\t2\tfrogs\nq1\td2\t1\tponds\nq1\td3\t1\tfrogs\n"
    labelled = load_labelled_set(write_set(tmp_path, queries=[profile], qrels=qrels))
    outcome = judge(labelled, lambda query: ["d1", "d2", "d3"], judging=JUDGING)
    assert outcome.of("recall@1").tolist() == [0.5]
    assert outcome.of("ndcg@3").tolist() == [1.0]
    assert outcome.of("coverage@1").tolist() == [0.5]
    assert outcome.of("coverage@2").tolist() == [1.0]


def test_a_paper_that_answers_two_interests_covers_both(tmp_path: Path) -> None:
    qrels = "query_id\tdoc_id\trelevance\tinterest\nq1\td1\t2\tfrogs\nq1\td1\t1\tponds\nq1\td2\t1\tponds\n"
    labelled = load_labelled_set(write_set(tmp_path, queries=QUERIES[:1], qrels=qrels))
    outcome = judge(labelled, lambda query: ["d1"], judging=JUDGING)
    assert outcome.of("coverage@1").tolist() == [1.0]
    assert outcome.of("recall@1").tolist() == [0.5]


def test_without_labelled_interests_there_is_no_coverage(labelled: LabelledSet) -> None:
    assert np.isnan(judge(labelled, lambda query: ["d1"], judging=JUDGING).of("coverage@1")).all()


def test_an_answer_that_does_not_fit_the_set_is_refused(labelled: LabelledSet) -> None:
    with pytest.raises(InvalidInput, match="expected 4 scores"):
        judge(labelled, lambda query: np.zeros(3), judging=JUDGING)
    with pytest.raises(InvalidInput, match="'d9', which is not a document"):
        judge(labelled, lambda query: ["d1", "d9"], judging=JUDGING)
