"""Test that one module imports Dagster's private names, and that each still does what that module expects."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    SensorInstigatorData,
)

from paper_assets.defs import dagster_internals, services
from paper_assets.defs.history_files import INDEX
from paper_assets.defs.instance import open_instance

PACKAGE = Path(dagster_internals.__file__).parents[1]
ONLY = "defs/dagster_internals.py"


def private_imports(module: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        names += [f"{node.module}"] if isinstance(node, ast.ImportFrom) else []
        found |= {name for name in names if re.match(r"dagster[a-z_]*\._|dagster\..*\._", name)}
    return found


def test_only_one_module_imports_private_modules_of_dagster() -> None:
    importing = {file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py") if private_imports(file)}
    assert importing == {ONLY}


def test_a_code_server_starts_its_runs_from_a_process_that_has_imported_the_definitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = import_module("dagster._grpc.server")
    assert "self._mp_ctx.Process(" in inspect.getsource(server.DagsterApiServer.StartRun)
    monkeypatch.setattr(server.DagsterApiServer, "_mp_ctx", None, raising=False)  # restored after the test
    one = object.__new__(server.DagsterApiServer)
    vars(one)["_mp_ctx"] = "the context of a server that was started before"
    dagster_internals.fork_runs(["json"])
    assert one._mp_ctx.get_start_method() == "forkserver"


def test_files_of_events_stay_open_in_a_command_until_its_end_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_open(folder: Path, *, stay_open: bool) -> bool:
        monkeypatch.setenv("DAGSTER_HOME", str(folder))
        with open_instance(folder, stay_open=stay_open) as instance:
            assert instance.all_asset_keys() == []
            (index,) = (each for name, each in dagster_internals._engines.items() if name.endswith(f"{folder / INDEX}"))
            return bool(index.pool.checkedin())

    assert left_open(tmp_path / "command", stay_open=True)
    dagster_internals.close_files()
    assert not list((tmp_path / "command").rglob("*.db-wal"))
    assert not left_open(tmp_path / "services", stay_open=False)


def test_ticks_in_the_future_are_forgotten_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with open_instance(tmp_path) as instance:
        for name, time in (("behind", 5_000.0), ("usual", 500.0)):
            data = SensorInstigatorData(last_tick_timestamp=time, last_tick_start_timestamp=time, cursor="kept")
            origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "all"), name)
            instance.add_instigator_state(
                InstigatorState(origin, InstigatorType.SENSOR, InstigatorStatus.RUNNING, data)
            )
        assert services.forget_future_ticks(instance, now=1_000.0) == ["behind"]
        states = {state.name: state.sensor_instigator_data for state in instance.all_instigator_state()}
        assert states["behind"] is not None and states["usual"] is not None
        assert states["behind"].last_tick_start_timestamp is None and states["behind"].cursor == "kept"
        assert states["usual"].last_tick_start_timestamp == 500.0
