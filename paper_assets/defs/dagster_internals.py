"""Isolate what this project takes from Dagster's private modules, with the reason; written for Dagster 1.13.

No other module imports `dagster._*`; `tests/defs/test_dagster_internals.py` checks that, and fails when Dagster changes
one of these names. Remove an entry as soon as Dagster offers a public way. Imports inside functions are needed by one
process only and are slow.

- `SensorExecutionData`: the result of a sensor's tick. Two sensor classes override `evaluate_tick`, to skip ticks in
  which nothing changed (change_detection.py) and to merge run requests (sensors.py).
- `SqliteEventLogStorage`, `SqliteRunStorage`: to know whether the history is kept in files, whose changes are visible
  without opening them.
- `restore_cursor`: a daemon that is killed while it submits the runs of a tick loses the cursor of the conditions, and
  with it work that was due. The stored cursor is put in its place.
- `forget_future_ticks`: after the clock was set back, Dagster evaluates no sensor until it passes the last tick.
- `run_dev`: `dagster dev` has no option that replaces its daemon and UI. The UI needs a guard against requests from
  other sites, the daemon `reduce_idle_work`.
- `reduce_idle_work`: with 400 days of 20 profiles an idle daemon takes 7.3 % of a core without and 4.2 % with it, with
  30 days of 4 profiles 5.8 % and 3.4 % (one after the other on a quiet machine); the target is 5 %. Dagster has no
  setting for either interval.
- `fork_runs`: the code server starts a new interpreter for each run, which imports everything again: 5 s of processor
  time before the run begins, for which a person waits after each edit. Dagster has no setting for it.
- `notice_failures`: the first daemon of a home ignores runs that failed before it looked, and retries none of them.
- `kept_connections`: Dagster opens an SQLite file several times for each event, with a new engine, and reads the schema
  again. A command that stores 800 events spent a third of its processor time there.
"""

import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any

import dagster as dg
from dagster._core.definitions.sensor_definition import SensorExecutionData
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage
from sqlalchemy import Connection, Engine, create_engine

__all__ = [
    "SensorExecutionData",
    "SqliteEventLogStorage",
    "SqliteRunStorage",
    "forget_future_ticks",
    "fork_runs",
    "kept_connections",
    "notice_failures",
    "reduce_idle_work",
    "restore_cursor",
    "run_daemon",
    "run_dev",
]

_HOUR, _MONTH = 3_600, 30 * 86_400  # seconds
_WATCH_SECONDS = 10  # between two questions whether the code server was restarted; Dagster asks every second
_TICK_TIMES = ("last_tick_timestamp", "last_tick_start_timestamp", "last_tick_success_timestamp")
_INDEX = "index"  # name of the file with the events of all runs
_SQLITE_PATIENCE = 30  # seconds
_SHARDS = 4  # files of runs that stay open; a command writes one run at a time
_ENGINES = 8  # database files; without a pool an engine holds no connection


def restore_cursor(context: dg.SensorEvaluationContext, cursor: str | None) -> None:
    """Give a tick the cursor that Dagster lost."""
    context._cursor = cursor


def forget_future_ticks(instance: dg.DagsterInstance, *, now: float) -> list[str]:
    """Remove the times of ticks that are later than `now` (seconds since 1970); return the names of their sensors."""
    found = []
    for state in instance.all_instigator_state():
        data: Any = state.instigator_data
        future = {name: None for name in _TICK_TIMES if (getattr(data, name, None) or 0.0) > now}
        if future:
            instance.update_instigator_state(state.with_data(data._replace(**future)))
            found.append(state.name)
    return found


def notice_failures(instance: dg.DagsterInstance) -> None:
    """Let a home's first daemon retry runs that fail from now on.

    Otherwise it ignores all that failed before it first looked, so that a run which was killed in a new home's first
    seconds was never retried.
    """
    from dagster._daemon.auto_run_reexecution import event_log_consumer as consumer

    storage = instance.daemon_cursor_storage
    if storage is None:
        return
    keys = {consumer._create_cursor_key(each) for each in consumer.DAGSTER_EVENT_TYPES}
    if missing := keys - storage.get_cursor_values(keys).keys():
        newest = instance.event_log_storage.get_maximum_record_id() or 0
        storage.set_cursor_values(dict.fromkeys(missing, str(newest)))


def run_dev(modules: Mapping[str, str]) -> None:
    """Run `dagster dev` with other modules for its processes, by their names.

    Its code servers end if they hear nothing for 30 or 45 seconds of the clock, so after a laptop's sleep they often
    ended, and did not come back. Here they all end with their process group; an old one lives for an hour after a
    reload of the definitions.
    """
    from dagster._cli import dev, proxy_server_manager

    proxy_server_manager.WEBSERVER_GRPC_SERVER_HEARTBEAT_TTL = _MONTH
    os.environ.setdefault("DAGSTER_GRPC_PROXY_HEARTBEAT_TTL_SECONDS", str(_HOUR))
    start = dev.open_ipc_subprocess

    def start_replaced(parts: list[str], **options: Any) -> Any:
        return start([modules.get(part, part) for part in parts], **options)

    dev.open_ipc_subprocess = start_replaced  # type: ignore[assignment]
    dev.dev_command()


def fork_runs(preloaded: Sequence[str]) -> None:
    """Let the code server of this process start its runs from a process that has imported these modules.

    The process is new and has one thread that runs Python, so forking it is safe; it ends with the code server. Without
    effect in a process that is not a code server, and elsewhere than on Linux: on macOS a forked process may not use
    all of the system's libraries.
    """
    server = sys.modules.get("dagster._grpc.server")
    if server is None or sys.platform != "linux":
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preloaded])
    # The server that imports the definitions has set its own context already; a property takes precedence over it.
    server.DagsterApiServer._mp_ctx = property(lambda _: context, lambda _, __: None)


def run_daemon() -> None:
    """Run Dagster's daemon with less idle work; takes the options of `dagster-daemon`."""
    from dagster._daemon.cli import main

    reduce_idle_work()
    main()


def reduce_idle_work() -> None:
    """Keep database engines between queries, and ask the code server less often whether it is the same."""
    from dagster._core.storage.runs.sqlite import sqlite_run_storage
    from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
    from dagster._grpc import server_watcher

    server_watcher.WATCH_INTERVAL = _WATCH_SECONDS
    for module in (sqlite_run_storage, sqlite_schedule_storage):
        module.create_engine = lru_cache(_ENGINES)(module.create_engine)  # type: ignore[attr-defined]


@contextmanager
def kept_connections(instance: dg.DagsterInstance) -> Iterator[None]:
    """Keep the SQLite files of the history open during the block; without effect if a server keeps the history.

    Every query remains a separate transaction, so other processes see each event at once. Afterwards the files are
    closed, as Dagster leaves them.
    """
    events, runs = instance.event_log_storage, instance.run_storage
    with ExitStack() as kept:
        if type(events) is SqliteEventLogStorage:
            kept.enter_context(_with_kept_events(events))
        if type(runs) is SqliteRunStorage:
            kept.enter_context(_with_kept_runs(runs))
        yield


@contextmanager
def _with_kept_events(storage: SqliteEventLogStorage) -> Iterator[None]:
    engines: dict[str, Engine] = {}
    tables: set[str] = set()
    columns: dict[str, bool] = {}
    has_table, has_column = storage.has_table, storage._has_asset_key_col_on_connection

    @contextmanager
    def connect(shard: str) -> Iterator[Connection]:
        with storage._db_lock:
            if shard not in engines:
                while len(engines) >= _SHARDS:
                    engines.pop(next(each for each in engines if each != _INDEX)).dispose()
                engines[shard] = _engine(storage.conn_string_for_shard(shard))
            engine = engines[shard]
            if shard not in storage._initialized_dbs:
                storage._initdb(engine)
                storage._initialized_dbs.add(shard)
            with engine.connect() as connection, connection.begin():
                yield connection

    def table_exists(table_name: str) -> bool:
        if table_name not in tables and has_table(table_name):
            tables.add(table_name)
        return table_name in tables

    def column_exists(connection: Connection, column_name: str) -> bool:
        if column_name not in columns:
            columns[column_name] = has_column(connection, column_name)
        return columns[column_name]

    replaced = {"_connect": connect, "has_table": table_exists, "_has_asset_key_col_on_connection": column_exists}
    vars(storage).update(replaced)
    try:
        yield
    finally:
        for name in replaced:
            del vars(storage)[name]
        for engine in engines.values():
            engine.dispose()


@contextmanager
def _with_kept_runs(storage: SqliteRunStorage) -> Iterator[None]:
    engine = _engine(storage._conn_string)

    @contextmanager
    def connect() -> Iterator[Connection]:
        with engine.connect() as connection, connection.begin():
            yield connection

    vars(storage)["connect"] = connect
    try:
        yield
    finally:
        del vars(storage)["connect"]
        engine.dispose()


def _engine(address: str) -> Engine:
    """Return an engine that keeps its connections, with the patience that Dagster has with a locked file."""
    return create_engine(address, connect_args={"timeout": _SQLITE_PATIENCE})
