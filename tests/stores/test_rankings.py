"""Test that candidates and rankings are replaced as a whole and report the result of a single paper."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from paper_assets.errors import NotComputed
from paper_assets.paper import papers_to_table
from paper_assets.ranking.explain import recompute, why
from paper_assets.ranking.rank import RankingTask, rank
from paper_assets.settings import ScoringConfig
from paper_assets.stores.migrations.upgrade import MIGRATIONS, Migration
from paper_assets.stores.rankings import (
    candidate_schema,
    candidates,
    candidates_inputs,
    latest_ranking_day,
    note_output,
    previous_ranking,
    ranking,
    ranking_days,
    ranking_inputs,
    ranking_schema,
    replace_candidates,
    replace_ranking,
    shown_by_day,
    stored_inputs,
)
from paper_assets.stores.warehouse import Warehouse
from paper_assets.weights import DIMENSIONS
from tests.invented_papers import MONDAY, TUESDAY, WEDNESDAY
from tests.ranking import invented


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=5)


def judged(*ids: str, removed: tuple[str, ...] = ()) -> pa.Table:
    rows = [{"paper_id": each, "title": f"On {each}", "passed": True, "reason": None, "phase": None} for each in ids]
    rows += [
        {"paper_id": each, "title": f"On {each}", "passed": False, "reason": "TOO_OLD:2001", "phase": 3}
        for each in removed
    ]
    return pa.Table.from_pylist(rows, schema=candidate_schema())


def ranked(*ids: str, top: int = 1) -> pa.Table:
    rows = [
        {field.name: 0.25 for field in ranking_schema() if field.type == pa.float64()}
        | {"rank": place, "shown": place <= top, "paper_id": each, "penalty_keywords": ["학습"], "tags": ["NO_CODE"]}
        | {"evaluation_method": "embedding"}
        for place, each in enumerate(ids, start=1)
    ]
    return pa.Table.from_pylist(rows, schema=ranking_schema())


def keep(warehouse: Warehouse, day: date, profile: str, *ids: str, top: int = 1) -> None:
    replace_candidates(warehouse, day, profile, judged(*ids, removed=("old",)), inputs=f"{day} c")
    replace_ranking(warehouse, day, profile, ranked(*ids, top=top), {"top_k": top}, inputs=f"{day} r")


def test_candidates_come_back_by_id_with_their_reasons(warehouse: Warehouse) -> None:
    replace_candidates(warehouse, MONDAY, "p", judged("b", "a", removed=("c",)), inputs="x")
    assert candidates(warehouse, MONDAY, "p") == judged("a", "b", removed=("c",))
    assert candidates_inputs(warehouse, MONDAY, "p") == "x"


def test_a_ranking_comes_back_in_order_with_its_header(warehouse: Warehouse) -> None:
    header = {"weights": dict.fromkeys(DIMENSIONS, 0.2), "model": None, "warnings": ["논문"], "top_k": 2}
    replace_ranking(warehouse, MONDAY, "p", ranked("b", "c", "a", top=2), header, inputs="x")
    found = ranking(warehouse, MONDAY, "p")
    assert (found.header, found.inputs) == (header, "x")
    assert found.rows == ranked("b", "c", "a", top=2)


def test_columns_may_come_in_any_order_and_more_of_them(warehouse: Warehouse) -> None:
    given = ranked("a").append_column("note", pa.array(["mine"]))
    replace_ranking(warehouse, MONDAY, "p", given.select(given.column_names[::-1]), {}, inputs="x")
    assert ranking(warehouse, MONDAY, "p").rows == ranked("a")


def test_a_set_is_replaced_as_a_whole_and_no_other_is_touched(warehouse: Warehouse) -> None:
    for day in (MONDAY, TUESDAY):
        for profile in ("p", "q"):
            keep(warehouse, day, profile, "a", "b")
    keep(warehouse, MONDAY, "p", "c")
    assert ranking(warehouse, MONDAY, "p").rows["paper_id"].to_pylist() == ["c"]
    assert candidates(warehouse, MONDAY, "p")["paper_id"].to_pylist() == ["c", "old"]
    for day, profile in ((TUESDAY, "p"), (MONDAY, "q"), (TUESDAY, "q")):
        assert ranking(warehouse, day, profile).rows["paper_id"].to_pylist() == ["a", "b"]
        assert candidates(warehouse, day, profile).num_rows == 3


def test_an_empty_ranking_is_a_ranking(warehouse: Warehouse) -> None:
    replace_ranking(warehouse, MONDAY, "p", ranked(), {}, inputs="x")
    assert ranking(warehouse, MONDAY, "p").rows.num_rows == 0
    assert latest_ranking_day(warehouse, "p") == MONDAY


def test_a_write_that_fails_leaves_the_old_set(warehouse: Warehouse) -> None:
    keep(warehouse, MONDAY, "p", "a")
    for broken in (judged("b").set_column(2, "passed", pa.array([None], pa.bool_())),):
        with pytest.raises(duckdb.ConstraintException):
            replace_candidates(warehouse, MONDAY, "p", broken, inputs="new")
    assert candidates(warehouse, MONDAY, "p")["paper_id"].to_pylist() == ["a", "old"]
    assert candidates_inputs(warehouse, MONDAY, "p") == f"{MONDAY} c"


def test_a_ranking_that_was_never_computed_is_reported_as_such(warehouse: Warehouse) -> None:
    for ask in (candidates, ranking):
        with pytest.raises(NotComputed, match=r"profile 'p' on 2026-01-05"):
            ask(warehouse, MONDAY, "p")
    assert candidates_inputs(warehouse, MONDAY, "p") is ranking_inputs(warehouse, MONDAY, "p") is None
    assert latest_ranking_day(warehouse, "p") is None


def test_days_and_inputs_of_a_profile_are_its_own(warehouse: Warehouse) -> None:
    keep(warehouse, WEDNESDAY, "p", "a")
    keep(warehouse, MONDAY, "p", "a")
    replace_candidates(warehouse, TUESDAY, "p", judged("a"), inputs="only candidates")
    keep(warehouse, TUESDAY, "q", "a")
    assert ranking_days(warehouse, "p") == [MONDAY, WEDNESDAY]
    assert latest_ranking_day(warehouse, "p") == WEDNESDAY
    assert latest_ranking_day(warehouse, "p", until=TUESDAY) == MONDAY
    assert stored_inputs(warehouse, {"p": (MONDAY, TUESDAY), "q": (WEDNESDAY, WEDNESDAY)}) == {
        "p": {MONDAY: (f"{MONDAY} c", f"{MONDAY} r"), TUESDAY: ("only candidates", None)},
        "q": {},
    }


def test_only_the_top_places_count_as_shown(warehouse: Warehouse) -> None:
    keep(warehouse, MONDAY, "p", "a", "b", "c", top=2)
    keep(warehouse, TUESDAY, "p", "d", "a")
    keep(warehouse, WEDNESDAY, "p", "e")
    keep(warehouse, MONDAY, "q", "f")
    assert shown_by_day(warehouse, {"p": (TUESDAY, WEDNESDAY), "q": (MONDAY, MONDAY)}) == {
        "p": {TUESDAY: {"d"}, WEDNESDAY: {"e"}},
        "q": {MONDAY: {"f"}},
    }


def test_the_place_of_the_file_is_noted_in_the_header(warehouse: Warehouse, tmp_path: Path) -> None:
    keep(warehouse, MONDAY, "p", "a")
    note_output(warehouse, MONDAY, "p", tmp_path / "r.json")
    found = ranking(warehouse, MONDAY, "p")
    assert found.header == {"top_k": 1, "output_path": str(tmp_path / "r.json")}
    assert found.inputs == f"{MONDAY} r"


def test_the_ranking_that_was_replaced_is_kept_once_and_an_equal_one_replaces_nothing(warehouse: Warehouse) -> None:
    with pytest.raises(NotComputed, match="first"):
        previous_ranking(warehouse, MONDAY, "ann")
    for inputs, ids in (("one", "ab"), ("two", "ba"), ("two", "ba"), ("three", "ca")):
        replace_ranking(warehouse, MONDAY, "ann", ranked(*ids), {"inputs": inputs}, inputs=inputs)
    previous = previous_ranking(warehouse, MONDAY, "ann")
    assert (previous.inputs, previous.header) == ("two", {"inputs": "two"})
    assert previous.rows.column("paper_id").to_pylist() == ["b", "a"]


def test_rankings_stored_before_a_dimension_was_added_can_be_explained(tmp_path: Path) -> None:
    path, added = tmp_path / "warehouse.duckdb", DIMENSIONS[-1]
    others = len(DIMENSIONS) - 1
    scoring = ScoringConfig(weights={"general": (*[1 / others] * others, 0.0)})
    reader = invented.profile()
    made = rank(
        RankingTask(
            candidates=papers_to_table([invented.paper("1"), invented.paper("2")]),
            profile=reader,
            options=reader.content.ranking,
            as_of=invented.AS_OF,
            scoring=scoring,
        )
    )
    for inputs in ("before", "after"):  # the first becomes the previous one
        replace_ranking(Warehouse(path, deadline=5), MONDAY, "lab", made.rows, made.header, inputs=inputs)
    with duckdb.connect(str(path)) as earlier:  # as an earlier program stored it
        for table in ("", "previous_"):
            earlier.execute(f"alter table {table}rankings drop column {added}")
            earlier.execute(
                f"""
                update {table}ranking_sets
                set header = json_merge_patch(header, json_object('weights', json_object('{added}', null)))
                """
            )

    def add_column(connection: duckdb.DuckDBPyConnection) -> None:
        for table in ("rankings", "previous_rankings"):
            connection.execute(f"alter table {table} add column {added} double default 0")

    migration = Migration(MIGRATIONS[-1].number + 1, "a dimension", add_column)
    warehouse = Warehouse(path, deadline=5, migrations=(*MIGRATIONS, migration))
    for stored in (ranking(warehouse, MONDAY, "lab"), previous_ranking(warehouse, MONDAY, "lab")):
        assert stored.header["weights"][added] == 0.0
        assert stored.rows[added].to_pylist() == [0.0, 0.0]
        scores = recompute(stored.rows, stored.header["weights"], ScoringConfig())
        np.testing.assert_array_equal(scores, stored.rows["final"].to_numpy())
    one = ranking(warehouse, MONDAY, "lab")
    assert why(one.rows.to_pylist()[0], one.header, scored=2)[0].startswith("Place ")


def test_days_read_together_are_as_if_read_alone_and_a_broken_one_stops_no_other(
    warehouse: Warehouse,
) -> None:
    keep(warehouse, MONDAY, "p", "a", "b")
    keep(warehouse, TUESDAY, "p", "c", "a", "b", top=2)
    keep(warehouse, TUESDAY, "q", "b")
    keys = [("p", MONDAY), ("q", MONDAY), ("p", TUESDAY), ("q", TUESDAY)]
    with warehouse.read_together(keys) as opened:
        for profile, day in (("p", MONDAY), ("p", TUESDAY), ("q", TUESDAY)):
            assert ranking(opened, day, profile) == ranking(warehouse_alone(opened), day, profile)
            assert candidates(opened, day, profile) == candidates(warehouse_alone(opened), day, profile)
        with pytest.raises(NotComputed):
            ranking(opened, MONDAY, "q")
        assert ranking_days(opened, "p") == [MONDAY, TUESDAY] and ranking_days(opened, "q") == [TUESDAY]
    warehouse.run("update ranking_sets set header = '{\"weights\": 1}' where profile = 'q'")
    with warehouse.read_together(keys) as opened:
        assert ranking(opened, TUESDAY, "p").rows.num_rows == 3
        with pytest.raises(TypeError):
            ranking(opened, TUESDAY, "q")


def warehouse_alone(opened: Warehouse) -> Warehouse:
    return replace(opened, answers=None, days=())
