"""Dagster's own waiting made cheaper: an idle daemon took half as much again before, and none of it was our work.

Dagster 1.13 builds SQLAlchemy's engine anew, with all it has compiled, for each question to its schedules and runs, and
asks its code server every second whether it is still the same, by a channel that is built for it. It has no setting for
either. Belongs here: what is set in Dagster's modules before they are used. Not here: how often we look (looks.py).
"""

from functools import lru_cache

from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from dagster._grpc import server_watcher

_WATCHED_EVERY = 10  # seconds; a code server that was restarted is met that much later
_ENGINES = 8  # files; without a pool an engine holds no connection


def wait_cheaply() -> None:
    """For the process that calls it, from then on."""
    server_watcher.WATCH_INTERVAL = _WATCHED_EVERY
    for module in (sqlite_run_storage, sqlite_schedule_storage):
        module.create_engine = lru_cache(_ENGINES)(module.create_engine)  # type: ignore[attr-defined]
