"""Isolate what this project takes from Dagster's private modules, with the reason; written for Dagster 1.13.

No other module imports `dagster._*`; `tests/defs/test_dagster_internals.py` checks that, and fails when Dagster changes
one of these names. Remove an entry as soon as Dagster offers a public way.

- `keep_engines` (`create_engine` of Dagster's three SQLite storages): Dagster builds SQLAlchemy's engine and opens the
  file again for each query. An idle daemon spends more than 5 % of a core on that, and a command that stores 800 events
  a third of its processor time. Dagster has no setting for it.
- `fork_runs` (`DagsterApiServer._mp_ctx`): the code server starts a new interpreter for each run, which imports
  everything again: 5 s of processor time before the run begins, for which a person waits after each edit. Dagster has
  no setting for it.
"""

import multiprocessing
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import create_engine

__all__ = ["close_files", "fork_runs", "keep_engines"]

_MOST_FILES = 8  # that stay open; a command writes one run at a time
_engines: dict[str, Any] = {}  # by address, the least recently opened first


def keep_engines(*, stay_open: bool = False) -> None:
    """Let this process keep the SQLite engines of Dagster's history between queries.

    `stay_open`: also the files of events, which Dagster closes after each query, until `close_files`. In the daemon
    their log would change at each tick and wake the idle sensor. Every query remains a separate transaction, so other
    processes see each event at once.
    """
    from dagster._core.storage.event_log.sqlite import sqlite_event_log
    from dagster._core.storage.runs.sqlite import sqlite_run_storage
    from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage

    for module in (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage):
        module.create_engine = partial(_kept_engine, stay_open)  # type: ignore[attr-defined]


def _kept_engine(stay_open: bool, address: str, **options: Any) -> Any:
    """Return the engine of a file; without Dagster's pool, which keeps no connection."""
    options.pop("poolclass", None)
    if address not in _engines:
        while len(_engines) >= _MOST_FILES:
            _close(_engines.pop(next(iter(_engines))))
        _engines[address] = engine = create_engine(address, **options)
        if stay_open:
            engine.dispose = lambda close=True: None  # type: ignore[method-assign]  # called after each query of events
    return _engines[address]


def close_files() -> None:
    """Close the files, which leaves them as Dagster does: without a log beside them."""
    for engine in _engines.values():
        _close(engine)


def _close(engine: Any) -> None:
    type(engine).dispose(engine)


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
