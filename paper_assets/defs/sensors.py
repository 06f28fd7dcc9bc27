"""Define the sensor that requests runs for what is due, after reporting changed profiles and ratings (A1, A2, L6).

Belongs here: what one tick does, and skipping a tick where nothing has changed. Not here: what is due (due.py).
"""

import os
import time
from collections.abc import Hashable
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg

from paper_assets.defs import resources
from paper_assets.defs.due import decide
from paper_assets.defs.external_assets import report_profiles, report_ratings
from paper_assets.defs.history_files import events_files
from paper_assets.defs.partitions import profiles
from paper_assets.errors import InvalidProfile, StoreError
from paper_assets.pipeline.profiles import find_profiles
from paper_assets.pipeline.workspace import Workspace
from paper_assets.small_files import file_state

_AT_LEAST_EVERY = 600  # seconds; midnight (UTC), when a day becomes a partition, begins one of these spans
_reported_faults: set[str] = set()  # of profiles, as the last tick logged them
_nothing_to_do: dict[Hashable, datetime | None] = {}  # the files' state in which nothing was due, and until when


def report_changes(instance: dg.DagsterInstance, workspace: Workspace, log: Any) -> bool:
    """Report added, changed and removed profiles and new ratings (A1, L6); return whether the store could be read.

    A profile that cannot be read changes nothing and is logged once.
    """
    try:
        found = find_profiles(workspace.settings.profiles_dir)
        for name in report_profiles(instance, found):
            instance.delete_dynamic_partition(str(profiles.name), name)
        faults = {f"{fault}; its last good ranking stays" for fault in found.faults.values()}
    except InvalidProfile as fault:
        faults = {f"{fault}"}
    for line in sorted(faults - _reported_faults):
        log.warning(line)
    _reported_faults.clear()
    _reported_faults.update(faults)
    try:
        report_ratings(instance, workspace)
    except StoreError as busy:
        log.warning(f"{busy}")
        return False
    return True


def files_state() -> Hashable | None:
    """Return the state of the files on which a decision depends; None if a server keeps Dagster's history.

    A tick in which they have not changed does nothing: opening Dagster's history costs more than the rest of it.
    """
    home, warehouse = os.environ.get("DAGSTER_HOME"), resources.settings.warehouse_path
    if not home:
        return None
    stores = [warehouse, warehouse.with_name(f"{warehouse.name}.wal"), resources.settings.profiles_dir]
    state = file_state([*events_files(Path(home)), *stores])
    return None if state is None else (int(time.time() // _AT_LEAST_EVERY), state)


@dg.sensor(
    description="Reports new, changed and removed profiles and new ratings; an invalid profile.json changes nothing. "
    "Then requests a run for each step that has something due: embeddings, rankings, answers to questions, rewrites, "
    "best practices, digests.",
    asset_selection=dg.AssetSelection.all(),
    required_resource_keys={"workspace"},
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=resources.sensor_seconds(1),
)
def due(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    """Request what is due, unless nothing has changed since nothing was."""
    state = files_state()
    if state in _nothing_to_do:
        again = _nothing_to_do[state]
        if again is None or again > resources.now():
            return dg.SensorResult(skip_reason="nothing has changed since nothing was due")
    _nothing_to_do.clear()
    workspace: Workspace = context.resources.workspace
    store_was_read = report_changes(context.instance, workspace, context.log)
    try:
        decision = decide(context.instance, workspace)
    except StoreError as busy:  # the next tick tries again
        return dg.SensorResult(skip_reason=f"{busy}")
    if decision.requests:
        return dg.SensorResult(run_requests=decision.requests)
    if state and store_was_read and not decision.is_waiting:
        _nothing_to_do[state] = decision.again
    waits = "what is due waits for runs in progress" if decision.is_waiting else "nothing is due"
    return dg.SensorResult(
        skip_reason=waits + (f"; tried again at {decision.again:%H:%M} UTC" if decision.again else "")
    )
