"""Skip the ticks of a sensor that found nothing to do until something changes.

With 20 profiles a full evaluation every 15 seconds took a tenth of a core. Each process remembers what it has
evaluated. Belongs here: detecting changes. Not here: what a sensor evaluates.
"""

import os
import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from paper_assets.defs.dagster_internals import SensorExecutionData
from paper_assets.defs.history_files import events_files
from paper_assets.defs.instance import keeps_files
from paper_assets.small_files import file_state

_AT_LEAST_EVERY = 600  # seconds; midnight (UTC), when a day becomes a partition, begins one of these spans

_nothing_to_do: dict[str, Hashable] = {}  # by sensor


class ChangeDrivenSensor(dg.SensorDefinition):
    """A sensor that is evaluated only if something has changed since it called `remember_unchanged`.

    A plain sensor can decide that only after Dagster has opened its history for the sensor's resources.
    """

    def __init__(self, *, depends_on: Sequence[Path] = (), **options: Any) -> None:
        super().__init__(**options)
        self._depends_on = depends_on

    def evaluate_tick(self, context: dg.SensorEvaluationContext) -> Any:  # Dagster's own type of a tick is private
        state = state_of(*self._depends_on)
        if is_unchanged(self.name, state and (state, context.cursor)):
            return SensorExecutionData(
                skip_message="nothing has changed since the last evaluation", cursor=context.cursor
            )
        return super().evaluate_tick(context)


def state_of(*roots: Path) -> Hashable | None:
    """Return the state of these files and of Dagster's history; None if it is unknown.

    No file is opened: opening Dagster's history costs more than the rest of an evaluation.
    """
    home = os.environ.get("DAGSTER_HOME")
    state = file_state([*events_files(Path(home)), *roots]) if home else None
    return state and (int(time.time() // _AT_LEAST_EVERY), state)


def files_of(warehouse: Path) -> tuple[Path, Path]:
    """Return the warehouse and its log."""
    return warehouse, warehouse.with_name(f"{warehouse.name}.wal")


def is_unchanged(sensor: str, state: Hashable | None) -> bool:
    """Return whether the sensor has evaluated this state and found nothing to do."""
    return state is not None and _nothing_to_do.get(sensor) == state


def remember_unchanged(sensor: str, state: Hashable | None, instance: dg.DagsterInstance) -> None:
    """Remember a state in which the sensor found nothing to do; without effect if a server keeps the history."""
    _nothing_to_do[sensor] = state if keeps_files(instance) else None
