"""What a sensor has looked at and found nothing to do in, so that it need not look again until something has happened.

With 20 profiles the looks of 15 seconds took a tenth of a core for ever. Remembered by each process for itself: another
one looks for itself. Belongs here: how it is told that nothing has happened. Not here: what a sensor looks for.
"""

import time
from collections.abc import Hashable
from pathlib import Path

import dagster as dg

from paper_assets.defs.instance import keeps_files
from paper_assets.defs.partitions import profiles
from paper_assets.stores.run_stamp import file_states

_AT_LEAST_EVERY = 600  # seconds; midnight (UTC), when a day becomes a partition, begins one of these spans

_found_quiet: dict[str, Hashable] = {}  # by sensor


def state_of(instance: dg.DagsterInstance, *roots: Path) -> Hashable | None:
    """All that a look at these files and at Dagster's history rests on; None where that cannot be told at a glance."""
    if not keeps_files(instance) or (files := file_states(roots)) is None:
        return None
    return (
        instance.root_directory,
        instance.event_log_storage.get_maximum_record_id(),
        tuple(instance.get_dynamic_partitions(str(profiles.name))),
        int(time.time() // _AT_LEAST_EVERY),
        *files.items(),
    )


def files_of(warehouse: Path) -> tuple[Path, Path]:
    """The warehouse and its log."""
    return warehouse, warehouse.with_name(f"{warehouse.name}.wal")


def was_quiet(sensor: str, state: Hashable | None) -> bool:
    """Whether the sensor has looked at just this and found nothing to do."""
    return state is not None and _found_quiet.get(sensor) == state


def remember_quiet(sensor: str, state: Hashable | None) -> None:
    """Keep that the sensor found nothing to do in what was so before it looked."""
    _found_quiet[sensor] = state
