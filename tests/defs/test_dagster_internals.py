"""Test that one module imports Dagster's private names, and that each still does what that module expects."""

import ast
import inspect
import logging
import re
from importlib import import_module
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
from dagster._core.test_utils import create_run_for_test

from paper_assets.defs import dagster_internals
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
        ("dagster._cli.dev", "open_ipc_subprocess"),
        ("dagster._grpc.server_watcher", "WATCH_INTERVAL"),
        ("dagster._core.storage.runs.sqlite.sqlite_run_storage", "create_engine"),
        ("dagster._core.storage.schedules.sqlite.sqlite_schedule_storage", "create_engine"),
    ],
)
def test_what_is_replaced_in_dagster_is_still_there_and_used(module: str, name: str) -> None:
    source = inspect.getsource(import_module(module))
    assert hasattr(import_module(module), name)
    assert len(re.findall(rf"\b{name}\b", source)) >= 2, "defined or imported, and used"


def test_the_commands_that_are_run_are_still_there() -> None:
    assert callable(import_module("dagster._cli.dev").dev_command)
    assert callable(import_module("dagster._daemon.cli").main)


def test_dagster_dev_starts_the_processes_whose_modules_are_replaced() -> None:
    source = inspect.getsource(import_module("dagster._cli.dev"))
    for module in ("dagster_webserver", "dagster._daemon"):
        assert f'"{module}"' in source


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


def test_code_servers_outlive_the_sleep_of_a_laptop(monkeypatch: pytest.MonkeyPatch) -> None:
    manager, servers = import_module("dagster._cli.proxy_server_manager"), import_module("dagster._cli.code_server")
    assert "heartbeat_ttl=WEBSERVER_GRPC_SERVER_HEARTBEAT_TTL" in inspect.getsource(manager.ProxyServerManager)
    dev = import_module("dagster._cli.dev")
    monkeypatch.setattr(dev, "dev_command", lambda: None)
    monkeypatch.setattr(dev, "open_ipc_subprocess", None)
    monkeypatch.setattr(manager, "WEBSERVER_GRPC_SERVER_HEARTBEAT_TTL", 45)
    monkeypatch.setenv("DAGSTER_GRPC_PROXY_HEARTBEAT_TTL_SECONDS", "30")  # restored after the test
    monkeypatch.delenv("DAGSTER_GRPC_PROXY_HEARTBEAT_TTL_SECONDS")
    dagster_internals.run_dev({})
    assert manager.WEBSERVER_GRPC_SERVER_HEARTBEAT_TTL >= 30 * 24 * 3600
    assert servers.get_default_grpc_proxy_heartbeat_ttl() == 3600


def test_a_run_that_fails_before_the_first_daemon_looks_is_noticed_and_what_failed_before_is_not(
    tmp_path: Path,
) -> None:
    consumer = import_module("dagster._daemon.auto_run_reexecution.event_log_consumer")

    def fail() -> None:
        run = create_run_for_test(instance)
        instance.report_run_failed(run)

    def noticed() -> int:
        cursors = consumer._fetch_persisted_cursors(instance, consumer.DAGSTER_EVENT_TYPES, logging.getLogger())
        return sum(
            len(instance.event_log_storage.get_logs_for_all_runs_by_log_id(after_cursor=at, dagster_event_type={kind}))
            for kind, at in cursors.items()
        )

    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        fail()  # of a command, before any daemon
        dagster_internals.notice_failures(instance)
        assert noticed() == 0
        fail()
        dagster_internals.notice_failures(instance)
        assert noticed() == 1


def test_a_tick_takes_the_restored_cursor() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance=instance)
        dagster_internals.restore_cursor(context, "restored")
        assert context.cursor == "restored"


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
        assert dagster_internals.forget_future_ticks(instance, now=1_000.0) == ["behind"]
        states = {state.name: state.sensor_instigator_data for state in instance.all_instigator_state()}
        assert states["behind"] is not None and states["usual"] is not None
        assert states["behind"].last_tick_start_timestamp is None and states["behind"].cursor == "kept"
        assert states["usual"].last_tick_start_timestamp == 500.0


def test_a_sensors_result_has_the_fields_that_are_set() -> None:
    result = dagster_internals.SensorExecutionData(skip_message="nothing", cursor="1", run_requests=[])
    assert (result.skip_message, result.cursor) == ("nothing", "1")
    for kind in (dg.SensorDefinition, dg.AutomationConditionSensorDefinition):
        assert "context" in inspect.signature(kind.evaluate_tick).parameters


def test_kept_connections_store_each_event_at_once_and_leave_the_files_closed(tmp_path: Path) -> None:
    instance = open_instance(tmp_path)
    with dagster_internals.kept_connections(instance):
        for day in ("2026-03-02", "2026-03-03"):
            instance.report_runless_asset_event(dg.AssetMaterialization("papers", partition=day))
            with dg.DagsterInstance.from_config(str(tmp_path)) as other:
                assert day in other.get_materialized_partitions(dg.AssetKey("papers"))
        inside = {"_connect", "has_table", "_has_asset_key_col_on_connection"}
        assert inside <= vars(instance.event_log_storage).keys(), "the names that are replaced"
        assert all(hasattr(dagster_internals.SqliteEventLogStorage, name) for name in inside)
    assert not list(tmp_path.rglob("*.db-wal"))
    assert not inside & vars(instance.event_log_storage).keys()
    assert "connect" not in vars(instance.run_storage)
    assert len(instance.get_materialized_partitions(dg.AssetKey("papers"))) == 2
