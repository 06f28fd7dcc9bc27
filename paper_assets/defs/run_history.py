"""Read the last runs of the instance as plain values, and keep the history bounded.

Every run has an SQLite file (150 kB and up, most of it empty tables), and a command makes four or five runs for each
day and profile: 400 days of 8 profiles took 1.6 GB. Materializations, data versions, checks and the list of runs are in
two other files, which are kept.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from paper_assets.defs.instance import open_instance

KEPT_LOGS = 500  # runs whose log the UI can still show; about 80 MB
_LOGS = Path("history", "runs")
_INDEX = "index"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """One run: its status, what it made (assets, partitions), when it began and how many seconds it took."""

    run_id: str
    status: str
    assets: tuple[str, ...]
    partition: str | None
    began: datetime | None
    seconds: float | None


def latest_runs(dagster_home: Path, *, most: int) -> list[PastRun]:
    """Return the newest runs first. Raises StoreUnwritable."""
    instance = open_instance(dagster_home)
    found = []
    for record in instance.get_run_records(limit=most):
        run, tags = record.dagster_run, record.dagster_run.tags
        span = tags.get("dagster/asset_partition_range_start"), tags.get("dagster/asset_partition_range_end")
        found.append(
            PastRun(
                run_id=run.run_id,
                status=run.status.value.lower().replace("_", " "),
                assets=tuple(sorted(key.to_user_string() for key in run.asset_selection or ())),
                partition=tags.get("dagster/partition") or (" to ".join(map(str, span)) if all(span) else None),
                began=datetime.fromtimestamp(record.start_time, UTC) if record.start_time else None,
                seconds=record.end_time - record.start_time if record.end_time and record.start_time else None,
            )
        )
    return found


def remove_old_logs(instance: dg.DagsterInstance, dagster_home: Path) -> int:
    """Remove the logs of finished runs except the newest `KEPT_LOGS`; return their number.

    Without effect if the history is not kept in SQLite files.
    """
    logs = [file for file in (dagster_home / _LOGS).glob("*.db") if file.stem != _INDEX]
    if len(logs) <= KEPT_LOGS + KEPT_LOGS // 10:  # not at every command
        return 0
    ages = {}
    for file in logs:
        with suppress(FileNotFoundError):  # another process removes logs too
            ages[file] = file.stat().st_mtime
    removed = 0
    for file in sorted(ages, key=lambda each: ages[each])[:-KEPT_LOGS]:
        run = instance.get_run_by_id(file.stem)
        if run is None or run.is_finished:
            for part in (file, *file.parent.glob(f"{file.name}-*")):
                part.unlink(missing_ok=True)
            removed += 1
    return removed
