"""The environment of the process that loads the graph, read once: partitions and intervals are fixed when it loads."""

import os
from pathlib import Path

from paper_assets.settings import load_settings

settings = load_settings(os.environ, Path.cwd())


def seconds_between(looks: int) -> int:
    """The interval of a sensor that is to look every so many looks, as Dagster has to be told it.

    Dagster's own loop takes five seconds and passes over a sensor whose interval is a moment short of over: a third of
    what was to be done every five seconds was done after ten.
    """
    return max(1, looks * settings.sensor_interval - 1)
