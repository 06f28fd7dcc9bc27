"""Test that one module imports Dagster's private names, and that each still does what that module expects."""

import ast
import inspect
import re
import sqlite3
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import dagster as dg
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


def test_the_version_is_the_one_that_the_module_was_written_for() -> None:
    version = re.search(r"written for Dagster (\d+\.\d+)", dagster_internals.__doc__ or "")
    assert version and dg.__version__.startswith(f"{version[1]}."), "check its list, then its version"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("dagster._core.storage.event_log.sqlite.sqlite_event_log", "create_engine"),
        ("dagster._core.storage.runs.sqlite.sqlite_run_storage", "create_engine"),
        ("dagster._core.storage.schedules.sqlite.sqlite_schedule_storage", "create_engine"),
    ],
)
def test_what_is_replaced_in_dagster_is_still_there_and_used(module: str, name: str) -> None:
    source = inspect.getsource(import_module(module))
    assert hasattr(import_module(module), name)
    assert len(re.findall(rf"\b{name}\b", source)) >= 2, "defined or imported, and used"


def test_the_commands_that_are_run_are_still_there() -> None:
    (daemon,) = entry_points(group="console_scripts", name="dagster-daemon")
    assert callable(daemon.load())
    help_text = subprocess.run([sys.executable, "-m", "dagster", "code-server", "start", "--help"], capture_output=True)
    for option in ("--location-name", "--use-python-environment-entry-point", "--heartbeat-ttl"):
        assert option in help_text.stdout.decode()


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


def test_files_that_stay_open_show_other_processes_each_event_at_once(tmp_path: Path) -> None:
    with open_instance(tmp_path) as instance:
        for day in ("2026-03-02", "2026-03-03"):
            instance.report_runless_asset_event(dg.AssetMaterialization("papers", partition=day))
            with sqlite3.connect(tmp_path / "history" / "runs" / "index.db") as other:
                rows = other.execute("select partition from event_logs").fetchall()
            assert (day,) in rows
