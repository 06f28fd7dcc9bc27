"""Locate and inspect the files of Dagster's history without importing Dagster, which takes a second.

Belongs here: their paths and what can be read without Dagster. Not here: opening and repairing them (instance.py).
"""

import sqlite3
from contextlib import closing
from pathlib import Path

SETTINGS = "dagster.yaml"
INDEX = Path("history", "runs", "index.db")  # materializations and their versions
RUNS = Path("history", "runs.db")
DATABASES = (RUNS, INDEX, Path("schedules", "schedules.db"))
HISTORY = ("history", "schedules", "storage")  # folders of the history
_IN_PROGRESS = ("STARTING", "STARTED", "CANCELING")


def events_files(dagster_home: Path) -> list[Path]:
    """Return the files that change with Dagster's settings and with every event."""
    index = dagster_home / INDEX
    return [dagster_home / SETTINGS, index, index.with_name(f"{index.name}-wal")]


def is_idle(dagster_home: Path) -> bool:
    """Return whether the files can be read and no run is in progress or abandoned. False if in doubt."""
    try:
        for name in DATABASES:
            # Read-only, it would leave a log behind at closing.
            with closing(sqlite3.connect(f"{(dagster_home / name).absolute().as_uri()}?mode=rw", uri=True)) as file:
                file.execute("select 1 from sqlite_master limit 1").fetchall()
                if name == RUNS:
                    marks = ", ".join("?" * len(_IN_PROGRESS))
                    query = f"select 1 from runs where status in ({marks}) limit 1"  # noqa: S608  # only marks
                    if file.execute(query, _IN_PROGRESS).fetchall():
                        return False
    except (sqlite3.Error, OSError):
        return False
    return True
