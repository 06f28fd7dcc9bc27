"""The cursor of the conditions, kept beside Dagster's own.

Where the daemon is killed between noting the runs of a look and asking for all of them, the next one asks for the rest,
and then forgets the cursor of conditions that are evaluated in the code server (Dagster 1.13, `SensorLaunchContext`).
What was due and waited for something else would be forgotten with it.
"""

import json

import dagster as dg
from dagster._core.errors import DagsterInvariantViolationError

_KEY = "paper_assets/cursor_of_conditions"


def keep_cursor(instance: dg.DagsterInstance, tick: str, *, began: str | None, ended: str | None) -> None:
    """Keep with which cursor a tick (its number in Dagster's storage) began to look, and with which it ended."""
    kept = json.dumps({"tick": tick, "began": began, "ended": ended})
    instance.daemon_cursor_storage.set_cursor_values({_KEY: kept})


def kept_cursor(instance: dg.DagsterInstance) -> str | None:
    """The cursor to go on with where Dagster has none: of the last look, or of the one before if Dagster has not noted
    what that asked for. None if nobody has looked.
    """
    text = instance.daemon_cursor_storage.get_cursor_values({_KEY}).get(_KEY)
    if not text:
        return None
    kept: dict[str, str] = json.loads(text)
    return kept["ended" if _noted(instance, kept["tick"]) else "began"]


def _noted(instance: dg.DagsterInstance, tick: str) -> bool:
    """Whether the runs that the tick asked for are Dagster's to ask for, whatever happens."""
    storage = instance.schedule_storage
    if storage is None or not tick.isdigit():
        return False
    try:
        return bool(storage.get_tick(int(tick)).tick_data.reserved_run_ids)
    except DagsterInvariantViolationError:  # it is forgotten
        return False
