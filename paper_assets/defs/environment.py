"""Read the environment once when the graph is loaded, because partitions and intervals are fixed then."""

import os
from pathlib import Path

from paper_assets.installation import default_folder
from paper_assets.settings import load_settings

settings = load_settings(os.environ, Path.cwd(), default_folder=default_folder(os.environ, Path.cwd()))


def sensor_seconds(ticks: int) -> int:
    """Return the interval to declare for a sensor that evaluates every `ticks` ticks.

    Dagster's loop takes five seconds and skips a sensor whose interval ends a moment later: a third of the ticks of a
    five-second interval came after ten seconds.
    """
    return max(1, ticks * settings.sensor_interval - 1)
