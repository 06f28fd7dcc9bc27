"""Store answers to questions that a reader keeps: they can be read, exported and asked again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paper_assets.stores.warehouse import Warehouse, stored_time

_PAID = ("calls", "input_tokens", "output_tokens", "cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """An answer as it was kept: `options` and `answer` hold JSON values."""

    number: int
    question: str
    asked_at: datetime
    options: Mapping[str, Any]
    answer: Mapping[str, Any]


def keep_answer(
    warehouse: Warehouse, question: str, *, options: Mapping[str, Any], answer: Mapping[str, Any], now: datetime
) -> int:
    """Store an answer and return its number, or that of an equal one: the command may be repeated after a kill.

    What was paid does not count, because the repeated command pays less. Raises StoreError.
    """
    texts = {
        name: json.dumps(dict(value), ensure_ascii=False) for name, value in (("options", options), ("answer", answer))
    }
    with warehouse.writing() as connection:
        earlier = connection.execute(
            "select number, answer from kept_answers where question = ? and options = ?", [question, texts["options"]]
        ).fetchall()
        for number, kept in earlier:
            if _unpaid(kept) == _unpaid(texts["answer"]):
                return int(number)
        [(number,)] = connection.execute("select coalesce(max(number), 0) + 1 from kept_answers").fetchall()
        connection.execute(
            "insert into kept_answers values ($number, $question, $asked_at, $options, $answer)",
            {"number": number, "question": question, "asked_at": stored_time(now), **texts},
        )
    return int(number)


def _unpaid(answer: str) -> dict[str, Any]:
    return {name: value for name, value in json.loads(answer).items() if name not in _PAID}


def kept_answers(warehouse: Warehouse, number: int | None = None) -> list[KeptAnswer]:
    """Return the kept answers, oldest first, or the one with a number. Raises StoreError."""
    rows = warehouse.records(
        """
        select number, question, asked_at, options, answer
        from kept_answers
        where $number is null or number = $number
        order by number
        """,
        {"number": number},
    )
    return [
        KeptAnswer(**{**row, "options": json.loads(row["options"]), "answer": json.loads(row["answer"])})
        for row in rows
    ]


def remove_answer(warehouse: Warehouse, number: int) -> bool:
    """Delete a kept answer; returns whether there was one. Raises StoreError."""
    return bool(warehouse.run("delete from kept_answers where number = ?", [number]))
