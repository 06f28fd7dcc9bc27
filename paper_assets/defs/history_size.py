"""Dagster's history kept bounded: the logs of old runs go, what they made stays known.

Every run has an SQLite file of its own (150 kB and up, most of it empty tables), and a command makes four or five runs
for each day and profile: 400 days of 8 profiles were 1.6 GB. What the graph rests on (materializations, data versions,
checks, the list of runs) stands in two other files and is not touched.
"""

from contextlib import suppress
from pathlib import Path

import dagster as dg

KEPT_LOGS = 500  # runs whose log the UI can still show; about 80 MB
_LOGS = Path("history", "runs")
_INDEX = "index"


def forget_old_logs(instance: dg.DagsterInstance, dagster_home: Path) -> int:
    """Remove the logs of all but the newest `KEPT_LOGS` runs, never of a run that is not over; how many.

    Nothing to do where the history is not kept in SQLite files.
    """
    logs = [file for file in (dagster_home / _LOGS).glob("*.db") if file.stem != _INDEX]
    if len(logs) <= KEPT_LOGS + KEPT_LOGS // 10:  # not at every command
        return 0
    ages = {}
    for file in logs:
        with suppress(FileNotFoundError):  # another process tidies up too
            ages[file] = file.stat().st_mtime
    forgotten = 0
    for file in sorted(ages, key=lambda each: ages[each])[:-KEPT_LOGS]:
        run = instance.get_run_by_id(file.stem)
        if run is None or run.is_finished:
            for part in (file, *file.parent.glob(f"{file.name}-*")):
                part.unlink(missing_ok=True)
            forgotten += 1
    return forgotten
