"""Locate and inspect the files of Dagster's history without importing Dagster, which takes a second.

Belongs here: their paths, what can be read without Dagster, and what is deleted from them. Not here: opening and
repairing them (instance.py).
"""

import json
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from shutil import rmtree
from typing import Any

from paper_assets.errors import StoreError

SETTINGS = "dagster.yaml"
INDEX = Path("history", "runs", "index.db")  # materializations and their versions
RUNS = Path("history", "runs.db")
DATABASES = (RUNS, INDEX, Path("schedules", "schedules.db"))
HISTORY = ("history", "schedules", "storage")  # folders of the history
_UNFINISHED = json.dumps(["STARTING", "STARTED", "CANCELING", "QUEUED", "NOT_STARTED"])  # for `json_each`
_RESET = "stop `up`, then run `paper-assets reset --history`"
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


def is_settled(dagster_home: Path) -> bool:
    """Return whether no run is in progress or was killed, and the last one succeeded: then Dagster knows all that is
    stored. False if in doubt.
    """
    query = """
        select 1
        from runs
        where status in (select value from json_each(?))
        or (id = (select max(id) from runs) and status <> 'SUCCESS')
        limit 1
    """
    try:
        with _opened(dagster_home / RUNS) as file:
            return not file.execute(query, [_UNFINISHED]).fetchall()
    except (sqlite3.Error, OSError):
        return False


def runs_in_files(dagster_home: Path, *, most: int) -> list[PastRun] | None:
    """Return the newest runs first, from the table and the JSON in which Dagster 1.13 keeps them; None if in doubt."""
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


def _past_run(body: Mapping[str, Any], status: str, start: float | None, end: float | None) -> PastRun:
    chosen, tags = body["asset_selection"] or {"__frozenset__": []}, body["tags"]
    keys = [
        tags.get(f"dagster/{each}")
        for each in ("partition", "asset_partition_range_start", "asset_partition_range_end")
    ]
    return PastRun(
        run_id=body["run_id"],
        status=status.lower().replace("_", " "),
        assets=tuple(sorted("/".join(key["path"]) for key in chosen["__frozenset__"])),
        partitions=tuple(filter(None, keys)),
        began=datetime.fromtimestamp(start, UTC) if start else None,
        seconds=end - start if end and start else None,
    )


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing database; not read-only, which would leave a log behind at closing."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)) as opened:
        yield opened


MOST_EVENTS = 40_000  # of the history of materializations and checks each: those of about 2,300 lists, 250 MB
MOST_RUNS = 5_000  # in the list of runs; 3 kB each
KEPT_LOGS = 500  # runs whose log the UI can still show; an SQLite file each, 150 kB of mostly empty tables, and
LOG_BYTES = 100_000_000  # together: 1 MB each where a run makes the lists of twenty profiles
_SLACK = 1.1  # not at every command
_KEPT_EMPTY = 0.25  # of a file, before it is made smaller


def prune_history(dagster_home: Path) -> None:
    """Delete the oldest events, checks, runs and logs beyond the limits, unless the history cannot be read.

    A partition whose events are deleted is shown as missing in the UI. What is due follows from the stored inputs, so
    nothing is computed again.
    """
    with suppress(sqlite3.Error, OSError):
        with _opened(dagster_home / INDEX) as file:
            if oldest := _oldest_kept(file, "event_logs", MOST_EVENTS):
                with file:
                    file.execute("delete from event_logs where id < ?", [oldest])
                    file.execute("delete from asset_event_tags where event_id < ?", [oldest])
            if oldest := _oldest_kept(file, "asset_check_executions", MOST_EVENTS):
                with file:
                    file.execute("delete from asset_check_executions where id < ?", [oldest])
            _shrink(file)
        with _opened(dagster_home / RUNS) as file:
            if oldest := _oldest_kept(file, "runs", MOST_RUNS):
                with file:
                    file.execute(
                        "delete from runs where id < ? and status not in (select value from json_each(?))",
                        [oldest, _UNFINISHED],
                    )
                    file.execute("delete from run_tags where run_id not in (select run_id from runs)")
                    file.execute(
                        """
                        delete from snapshots
                        where snapshot_type = 'PIPELINE'
                        and snapshot_id not in (select snapshot_id from runs where snapshot_id is not null)
                        """
                    )
            _shrink(file)
            query = "select run_id from runs where status in (select value from json_each(?))"
            _remove_logs(dagster_home, {run_id for (run_id,) in file.execute(query, [_UNFINISHED])})


def _remove_logs(dagster_home: Path, unfinished: Collection[str]) -> None:
    """Remove the logs of finished runs except the newest `KEPT_LOGS` of `LOG_BYTES`, with what the runs printed."""
    logs = {}
    for file in (dagster_home / INDEX.parent).glob("*.db"):
        if file.stem != INDEX.stem:
            with suppress(FileNotFoundError):  # another process removes logs too
                logs[file] = file.stat()
    if len(logs) <= KEPT_LOGS * _SLACK and sum(each.st_size for each in logs.values()) <= LOG_BYTES * _SLACK:
        return
    newest = sorted(logs, key=lambda each: logs[each].st_mtime, reverse=True)
    sizes = accumulate(logs[file].st_size for file in newest)
    for number, (file, size) in enumerate(zip(newest, sizes, strict=True), 1):
        if (number > KEPT_LOGS or size > LOG_BYTES) and file.stem not in unfinished:
            for part in (file, *file.parent.glob(f"{file.name}-*")):
                part.unlink(missing_ok=True)
            rmtree(dagster_home / "storage" / file.stem, ignore_errors=True)


def _oldest_kept(file: sqlite3.Connection, table: str, most: int) -> int | None:
    """Return the id of the oldest row to keep; None while the table is within its limit."""
    first, last = file.execute(f"select min(id), max(id) from {table}").fetchone()  # noqa: S608  # a name of ours
    return last - most + 1 if last and last - first > most * _SLACK else None


def _shrink(file: sqlite3.Connection) -> None:
    """Give back the space of deleted rows once it is most of the file; another process may hold it, then later."""
    (free,), (pages,) = (file.execute(f"pragma {name}").fetchone() for name in ("freelist_count", "page_count"))
    if free > pages * _KEPT_EMPTY:
        file.execute("vacuum")
        file.execute("pragma wal_checkpoint(truncate)")


def forget_profile(dagster_home: Path, name: str) -> None:
    """Delete the finished runs of a profile and the events of its partitions. Raises StoreError where it cannot."""
    if not (dagster_home / RUNS).exists():
        return
    ours = {"name": name, "partition": f"%|{name}", "quoted": f'%"{name}"%', "ends": f'%|{name}"%'}
    try:
        if _ELSEWHERE.search((dagster_home / SETTINGS).read_bytes()):
            raise StoreError(f"Dagster's history on its server may still name it: {_RESET}")
        with _opened(dagster_home / RUNS) as file:
            query = """
                select run_id
                from runs
                where (run_body like :quoted or run_body like :ends)
                and status not in (select value from json_each(:unfinished))
            """
            runs = [run_id for (run_id,) in file.execute(query, {**ours, "unfinished": _UNFINISHED}).fetchall()]
            _delete(file, "delete from runs where run_id = ?", runs)
            _delete(file, "delete from run_tags where run_id = ?", runs)
        for run_id in runs:
            for left in (dagster_home / INDEX.parent).glob(f"{run_id}.db*"):
                left.unlink(missing_ok=True)
            rmtree(dagster_home / "storage" / run_id, ignore_errors=True)
        for events in (dagster_home / INDEX, dagster_home / INDEX.with_name(".db")):  # the second: events without a run
            if events.exists():
                with _opened(events) as file:
                    for statement in _FORGET_PARTITIONS:
                        _delete(file, statement, [ours])
        with _opened(dagster_home / DATABASES[2]) as file:
            _delete(file, "delete from job_ticks where tick_body like :quoted or tick_body like :ends", [ours])
    except (sqlite3.Error, OSError) as fault:
        raise StoreError(f"Dagster's history may still name it ({fault}): {_RESET}") from None


_FORGET_PARTITIONS = (
    """
    delete from event_logs
    where partition = :name or partition like :partition or event like :quoted or event like :ends
    """,
    "delete from asset_event_tags where event_id not in (select id from event_logs)",
    "delete from asset_check_executions where partition = :name or partition like :partition",
    "delete from dynamic_partitions where partition = :name",
    """
    update asset_keys
    set last_materialization = null, cached_status_data = null
    where last_materialization like :quoted
    or last_materialization like :ends
    or cached_status_data like :quoted
    or cached_status_data like :ends
    """,
)


def _delete(file: sqlite3.Connection, statement: str, values: Sequence[Any]) -> None:
    """Run a statement for each value, and overwrite what it deletes."""
    file.execute("pragma secure_delete = on")
    with file:
        for each in values:
            file.execute(statement, [each] if isinstance(each, str) else each)
    file.execute("pragma wal_checkpoint(truncate)")
