"""Locate and inspect the files of Dagster's history without importing Dagster, which takes a second.

Belongs here: their paths and what can be read without Dagster. Not here: opening and repairing them (instance.py).
"""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SETTINGS = "dagster.yaml"
INDEX = Path("history", "runs", "index.db")  # materializations and their versions
RUNS = Path("history", "runs.db")
DATABASES = (RUNS, INDEX, Path("schedules", "schedules.db"))
HISTORY = ("history", "schedules", "storage")  # folders of the history
_IN_PROGRESS = ("STARTING", "STARTED", "CANCELING")
_ENDS = ("start", "end")
_CODE = re.compile(r"^(?:[\w.]+: )?[A-Z_]{4,}: ")  # an error's class and code before its sentence
_ELSEWHERE = re.compile(rb"^(?:run_)?storage:", re.MULTILINE)  # in the settings: the history is not in these files


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """One run: its status, what it made (assets, the keys of the first and the last partition), when it began and how
    many seconds it took.
    """

    run_id: str
    status: str
    assets: tuple[str, ...]
    partitions: tuple[str, ...]
    began: datetime | None
    seconds: float | None


def events_files(dagster_home: Path) -> list[Path]:
    """Return the files that change with Dagster's settings and with every event."""
    index = dagster_home / INDEX
    return [dagster_home / SETTINGS, index, index.with_name(f"{index.name}-wal")]


def is_idle(dagster_home: Path) -> bool:
    """Return whether the files can be read and no run is in progress or abandoned. False if in doubt."""
    try:
        for name in DATABASES:
            with _opened(dagster_home / name) as file:
                file.execute("select 1 from sqlite_master limit 1").fetchall()
                if name == RUNS:
                    marks = ", ".join("?" * len(_IN_PROGRESS))
                    query = f"select 1 from runs where status in ({marks}) limit 1"  # noqa: S608  # only marks
                    if file.execute(query, _IN_PROGRESS).fetchall():
                        return False
    except (sqlite3.Error, OSError):
        return False
    return True


def runs_in_files(dagster_home: Path, *, most: int) -> list[PastRun] | None:
    """Return the newest runs first, from the table and the JSON in which Dagster 1.13 keeps them; None if in doubt.

    `instance.latest_runs` reads the same through Dagster, which takes two seconds to import and open.
    """
    try:
        if _ELSEWHERE.search((dagster_home / SETTINGS).read_bytes()):
            return None
        with _opened(dagster_home / RUNS) as file:
            query = "select status, run_body, start_time, end_time from runs order by id desc limit ?"
            rows = file.execute(query, [most]).fetchall()
        return [_past_run(json.loads(body), status, start, end) for status, body, start, end in rows]
    except (sqlite3.Error, OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def failure_in_files(dagster_home: Path, run_id: str) -> str | None:
    """Return why a step of a run failed, from the log in which Dagster 1.13 keeps it; None if that is not known."""
    query = "select event from event_logs where dagster_event_type = 'STEP_FAILURE' order by id limit 1"
    try:
        with _opened((dagster_home / RUNS).with_suffix("") / f"{run_id}.db") as file:
            found = file.execute(query).fetchone()
        data = json.loads(found[0])["dagster_event"]["event_specific_data"]
        reason = (data["user_failure_data"] or {}).get("description") or data["error"]["message"]
        return _CODE.sub("", reason.strip().splitlines()[0]) or None
    except (sqlite3.Error, OSError, ValueError, TypeError, KeyError, AttributeError, IndexError):
        return None


def past_run(
    *,
    run_id: str,
    status: str,
    assets: Sequence[str],
    tags: Mapping[str, str],
    start: float | None,
    end: float | None,
) -> PastRun:
    """Describe a run by the fields in which Dagster keeps it."""
    keys = tags.get("dagster/partition"), *(tags.get(f"dagster/asset_partition_range_{each}") for each in _ENDS)
    return PastRun(
        run_id=run_id,
        status=status.lower().replace("_", " "),
        assets=tuple(sorted(assets)),
        partitions=tuple(filter(None, keys)),
        began=datetime.fromtimestamp(start, UTC) if start else None,
        seconds=end - start if end and start else None,
    )


def _past_run(body: Mapping[str, Any], status: str, start: float | None, end: float | None) -> PastRun:
    chosen = body["asset_selection"] or {"__frozenset__": []}
    return past_run(
        run_id=body["run_id"],
        status=status,
        assets=["/".join(key["path"]) for key in chosen["__frozenset__"]],
        tags=body["tags"],
        start=start,
        end=end,
    )


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing database; not read-only, which would leave a log behind at closing."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)) as opened:
        yield opened
