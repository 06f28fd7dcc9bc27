"""What a sensor has looked at and found nothing to do in, so that it need not look again until something has happened.

With 20 profiles the looks of 15 seconds took a tenth of a core for ever. Remembered by each process for itself: another
one looks for itself. Belongs here: how it is told that nothing has happened. Not here: what a sensor looks for.
"""

import os
import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.sensor_definition import SensorExecutionData

from paper_assets.defs.history_files import events_files
from paper_assets.defs.instance import keeps_files
from paper_assets.stores.stamps import file_states

_AT_LEAST_EVERY = 600  # seconds; midnight (UTC), when a day becomes a partition, begins one of these spans

_found_quiet: dict[str, Hashable] = {}  # by sensor


class QuietSensor(dg.SensorDefinition):
    """A sensor that is asked only where something has happened since it said `remember_quiet`.

    A plain sensor could tell so only after Dagster has opened its history for the resources it asks for.
    """

    def __init__(self, *, rests_on: Sequence[Path] = (), **as_usual: Any) -> None:
        super().__init__(**as_usual)
        self._rests_on = rests_on

    def evaluate_tick(self, context: dg.SensorEvaluationContext) -> Any:  # Dagster's own type of a tick is private
        state = state_of(*self._rests_on)
        if was_quiet(self.name, state and (state, context.cursor)):
            return SensorExecutionData(skip_message="nothing has happened since the last look", cursor=context.cursor)
        return super().evaluate_tick(context)


def state_of(*roots: Path) -> Hashable | None:
    """All that a look at these files and at Dagster's history rests on; None where that cannot be told at a glance.

    Nothing is opened: opening Dagster's history for a look costs more than all else in it.
    """
    home = os.environ.get("DAGSTER_HOME")
    if not home or (files := file_states([*events_files(Path(home)), *roots])) is None:
        return None
    return (int(time.time() // _AT_LEAST_EVERY), *files.items())


def files_of(warehouse: Path) -> tuple[Path, Path]:
    """The warehouse and its log."""
    return warehouse, warehouse.with_name(f"{warehouse.name}.wal")


def was_quiet(sensor: str, state: Hashable | None) -> bool:
    """Whether the sensor has looked at just this and found nothing to do."""
    return state is not None and _found_quiet.get(sensor) == state


def remember_quiet(sensor: str, state: Hashable | None, instance: dg.DagsterInstance) -> None:
    """Keep that the sensor found nothing to do in what was so before it looked; not where the history is a server's."""
    _found_quiet[sensor] = state if keeps_files(instance) else None
