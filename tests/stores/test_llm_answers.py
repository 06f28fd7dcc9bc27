"""Test LLM answers stored by content in the warehouse (SPEC I5, G5)."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from paper_assets.models.llm import LanguageModel
from paper_assets.stores.llm_answers import StoredAnswers, keep_answers, known_answers
from paper_assets.stores.warehouse import Warehouse
from tests.loopback_llm import loopback_llm, says


class Score(BaseModel):
    score: float


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse.duckdb", deadline=10)


def test_only_the_kept_answers_come_back(warehouse: Warehouse) -> None:
    keep_answers(warehouse, {"a": "0.5", "b": "null", "c": "1.0"}, model="m")
    assert known_answers(warehouse, ["b", "a", "x", "a"]) == {"a": "0.5", "b": "null"}
    assert known_answers(warehouse, []) == {}


def test_an_answer_that_was_asked_for_again_replaces_the_stored_one(warehouse: Warehouse) -> None:
    keep_answers(warehouse, {"a": "0.5", "c": "0.2"}, model="m")
    keep_answers(warehouse, {"a": "0.9", "b": "0.1"}, model="m")
    assert known_answers(warehouse, ["a", "b", "c"]) == {"a": "0.9", "b": "0.1", "c": "0.2"}


def test_a_stored_answer_that_fails_a_check_is_paid_for_again_once(warehouse: Warehouse) -> None:
    with loopback_llm(*[says({"score": 0.75})] * 2) as server:
        ask = LanguageModel(config=server.config("ollama"), cache=StoredAnswers(warehouse)).ask
        ask(system="s", user="u", schema=Score)
        [(key,)] = warehouse.rows("select key from llm_answers")
        keep_answers(warehouse, {key: '{"score": -1}'}, model="m")
        again = [
            ask(system="s", user="u", schema=Score, complaint=lambda value: "negative" if value.score < 0 else None)
            for _ in range(2)
        ]
        assert [each.cached for each in again] == [False, True]
        assert [each.value.score for each in again] == [0.75, 0.75]
        assert len(server.requests) == 2


def test_a_question_asked_by_another_process_is_not_asked_again(warehouse: Warehouse) -> None:
    with loopback_llm(says({"score": 0.25})) as server:
        config = server.config("ollama")
        first, later = (
            LanguageModel(config=config, cache=StoredAnswers(each)).ask(system="s", user="u", schema=Score)
            for each in (warehouse, Warehouse(warehouse.path, deadline=10))
        )
        assert len(server.requests) == 1
    assert not first.cached
    assert later.cached
    assert later.value == first.value == Score(score=0.25)
