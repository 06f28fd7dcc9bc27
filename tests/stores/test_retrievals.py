"""Test stored answers: one set per day and profile, replaced as a whole."""

from datetime import date
from pathlib import Path

import pytest

from paper_assets.stores.documents import replace_retrievals, retrieval_inputs, retrievals_of
from paper_assets.stores.warehouse import Warehouse

MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)
ANSWER = {"question": "Ist das wahr? 정말?", "sides": [{"side": "a", "documents": [], "filter": None, "score": 0.25}]}


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse.duckdb", deadline=10)


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
