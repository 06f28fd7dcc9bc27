"""The files of Dagster's history, for who looks at them without Dagster, which takes a second to import.

Belongs here: where they lie, and what two of them tell at a glance. Not here: opening and mending them (instance.py).
"""

import sqlite3
from contextlib import closing
from pathlib import Path

SETTINGS = "dagster.yaml"
INDEX = Path("history", "runs", "index.db")  # events: what was made, of which version
RUNS = Path("history", "runs.db")
DATABASES = (RUNS, INDEX, Path("schedules", "schedules.db"))
HISTORY = ("history", "schedules", "storage")  # the folders in which Dagster remembers
_UNDER_WAY = ("STARTING", "STARTED", "CANCELING")


def events_files(dagster_home: Path) -> list[Path]:
    """What is touched whenever Dagster's settings, or what it has heard of, change."""
    index = dagster_home / INDEX
    return [dagster_home / SETTINGS, index, index.with_name(f"{index.name}-wal")]


def is_at_rest(dagster_home: Path) -> bool:
    """Whether its files can be read and no run is under way, be it one whose process was killed. False if in doubt."""
    try:
        for name in DATABASES:
            # Read-only, it would leave a log behind at closing.
            with closing(sqlite3.connect(f"{(dagster_home / name).absolute().as_uri()}?mode=rw", uri=True)) as file:
                file.execute("select 1 from sqlite_master limit 1").fetchall()
                if name == RUNS:
                    marks = ", ".join("?" * len(_UNDER_WAY))
                    query = f"select 1 from runs where status in ({marks}) limit 1"  # noqa: S608  # only marks
                    if file.execute(query, _UNDER_WAY).fetchall():
                        return False
    except (sqlite3.Error, OSError):
        return False
    return True
