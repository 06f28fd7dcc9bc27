"""Answers to the questions of a profile, one set a day, replaced as a whole (SPEC R3).

`inputs` is the caller's fingerprint of everything the set was made from: equal inputs, nothing to retrieve again.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from paper_assets.stores.warehouse import Warehouse, value_of


def replace_retrievals(
    warehouse: Warehouse, day: date, profile: str, answers: Sequence[Mapping[str, Any]], *, inputs: str
) -> None:
    """Keep `answers` (JSON values, one a question) as those of the day and profile."""
    key = {"day": day, "profile": profile}
    text = json.dumps(list(answers), ensure_ascii=False, sort_keys=True, allow_nan=False)
    with warehouse.writing() as connection:
        connection.execute("delete from retrieval_sets where day = $day and profile = $profile", key)
        connection.execute(
            "insert into retrieval_sets values ($day, $profile, $inputs, $answers)",
            {**key, "inputs": inputs, "answers": text},
        )


def retrievals_of(warehouse: Warehouse, day: date, profile: str) -> list[dict[str, Any]]:
    """The stored answers of the day and profile, in the order of its questions; none if nothing was retrieved."""
    with warehouse.reading() as connection:
        text: str | None = value_of(
            connection, "select answers from retrieval_sets where day = ? and profile = ?", [day, profile]
        )
    return json.loads(text) if text else []


def retrieval_inputs(warehouse: Warehouse, day: date, profile: str) -> str | None:
    """Fingerprint of what the stored answers were made from; None if there are none."""
    with warehouse.reading() as connection:
        inputs: str | None = value_of(
            connection, "select inputs from retrieval_sets where day = ? and profile = ?", [day, profile]
        )
    return inputs
