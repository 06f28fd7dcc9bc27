"""Answers that a reader keeps."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from paper_assets.stores.kept_answers import keep_answer, kept_answers
from paper_assets.stores.warehouse import Warehouse

NOW = datetime(2026, 3, 9, tzinfo=UTC)
ANSWER = {"sentences": [{"text": "Roads are open."}], "input_tokens": 900, "calls": 2, "cost": 0.1}


@pytest.mark.parametrize(
    ("question", "options", "answer", "number"),
    [
        ("Is the road open?", {"sides": False}, {**ANSWER, "input_tokens": 0, "calls": 0, "cost": None}, 1),
        ("Is the road open?", {"sides": False}, {**ANSWER, "sentences": []}, 2),
        ("Is the road open?", {"sides": True}, ANSWER, 2),
        ("Is the road closed?", {"sides": False}, ANSWER, 2),
    ],
    ids=["the same, already paid", "another answer", "asked differently", "another question"],
)
def test_an_answer_is_kept_once_however_often_its_command_is_repeated(
    tmp_path: Path, question: str, options: dict[str, Any], answer: dict[str, Any], number: int
) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    assert keep_answer(warehouse, "Is the road open?", options={"sides": False}, answer=ANSWER, now=NOW) == 1
    assert keep_answer(warehouse, question, options=options, answer=answer, now=NOW) == number
    assert [kept.number for kept in kept_answers(warehouse)] == list(range(1, number + 1))
