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
from functools import lru_cache
from typing import Any

__all__ = ["fork_runs", "keep_engines"]

_ENGINES = 8  # database files that stay open; a command writes one run at a time


def keep_engines() -> None:
    """Let this process keep the SQLite files of Dagster's history open between queries.

    Every query remains a separate transaction, so other processes see each event at once.
    """
    from dagster._core.storage.event_log.sqlite import sqlite_event_log
    from dagster._core.storage.runs.sqlite import sqlite_run_storage
    from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage

    for module in (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage):
        original = module.create_engine
        if hasattr(original, "cache_info"):
            continue

        @lru_cache(_ENGINES)
        def kept(address: str, timeout: int, original: Any = original) -> Any:
            return original(address, connect_args={"timeout": timeout, "check_same_thread": False})

        def create_engine(address: str, kept: Any = kept, **options: Any) -> Any:
            return kept(address, options.get("connect_args", {}).get("timeout", 5))

        create_engine.cache_info = kept.cache_info  # type: ignore[attr-defined]
        module.create_engine = create_engine  # type: ignore[attr-defined]


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
