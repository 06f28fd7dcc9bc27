"""Test that a sensor that found nothing to do is evaluated again only after a change."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from paper_assets.definitions import defs
from paper_assets.defs import change_detection
from paper_assets.defs.change_detection import ChangeDrivenSensor, files_of, is_unchanged, remember_unchanged, state_of
from paper_assets.defs.instance import open_instance


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_HOME", f"{tmp_path / 'dagster_home'}")
    monkeypatch.setattr(change_detection, "_nothing_to_do", {})
    monkeypatch.setattr(change_detection.time, "time", lambda: 1_790_000_000.0)
    with open_instance(tmp_path / "dagster_home") as opened:
        yield opened


def event(version: str) -> dg.AssetMaterialization:
    return dg.AssetMaterialization("research_profile", partition="ann", tags={"dagster/data_version": version})


def test_a_touched_file_an_event_and_a_new_profile_are_something_new(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    roots = files_of(tmp_path / "warehouse.duckdb")
    states = [state_of(*roots)]
    assert state_of(*roots) == states[0]
    for happens in (
        lambda: roots[0].write_bytes(b"papers"),
        lambda: roots[1].write_bytes(b"a log"),
        lambda: instance.add_dynamic_partitions("profile", ["ann"]),
        lambda: instance.report_runless_asset_event(event("1")),
    ):
        happens()
        states.append(state_of(*roots))
    assert len(set(states)) == 5


def test_a_state_that_cannot_be_compared_counts_as_changed(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of()
    remember_unchanged("ratings", state, instance)
    assert is_unchanged("ratings", state)
    with dg.DagsterInstance.ephemeral() as of_a_server:
        remember_unchanged("ratings", state, of_a_server)
        assert not is_unchanged("ratings", state)
    monkeypatch.delenv("DAGSTER_HOME")
    remember_unchanged("ratings", state_of(), instance)
    assert not is_unchanged("ratings", state_of())


def test_a_quiet_sensor_is_not_asked_and_needs_no_instance_until_something_happens(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    asked, file = list[str](), tmp_path / "warehouse.duckdb"

    def look(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        state = state_of(file)
        asked.append(context.cursor or "")
        remember_unchanged("looker", (state, context.cursor), context.instance)
        return dg.SkipReason("nothing")

    sensor = ChangeDrivenSensor(name="looker", evaluation_fn=look, depends_on=[file])
    sensor.evaluate_tick(dg.build_sensor_context(instance, cursor="1"))
    tick = sensor.evaluate_tick(dg.build_sensor_context(cursor="1"))
    assert asked == ["1"] and tick.cursor == "1" and tick.skip_message
    sensor.evaluate_tick(dg.build_sensor_context(instance, cursor="2"))
    file.write_bytes(b"papers")
    sensor.evaluate_tick(dg.build_sensor_context(instance, cursor="2"))
    assert asked == ["1", "2", "2"]


def test_the_graph_has_its_sensors_as_they_were_written() -> None:
    sensors = defs.get_repository_def().sensor_defs
    assert {each.name for each in sensors if isinstance(each, ChangeDrivenSensor)} == {
        "abandoned_runs",
        "decision_sensor",
    }
