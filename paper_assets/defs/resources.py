"""Read the environment when the graph is loaded, and define the resource of assets and sensors: the workspace.

The settings are read once, because partitions and intervals are fixed then. Making the resource opens nothing.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from paper_assets.defs.abandoned_runs import process_tag
from paper_assets.defs.run_queue import BACKLOG, QUEUE
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.settings import Settings, default_folder, load_settings
from paper_assets.stores.kept_settings import kept_environment


def current_settings() -> Settings:
    """Read the settings now: hours and weekdays of the daily fetch may have changed on the page since the start."""
    given = load_settings(os.environ, Path.cwd(), default_folder=default_folder(os.environ, Path.cwd()))
    kept = kept_environment(os.environ, given.home, lambda: datetime.now(UTC))
    return load_settings(kept, Path.cwd(), default_folder=default_folder(os.environ, Path.cwd()))


settings = current_settings()


def sensor_seconds(ticks: int) -> int:
    """Return the interval to declare for a sensor that evaluates every `ticks` ticks.

    Dagster's loop takes five seconds and skips a sensor whose interval ends a moment later: a third of the ticks of a
    five-second interval came after ten seconds.
    """
    return max(1, ticks * settings.sensor_interval - 1)


_NICENESS = 10  # of a run that embeds old papers: what a person waits for gets the processor first


def workspace_resource() -> dg.ResourceDefinition:
    """Return the resource that gives every asset and sensor the workspace."""
    opened = open_workspace(settings, os.environ, clock=lambda: datetime.now(UTC))

    @dg.resource
    def workspace(context: dg.InitResourceContext) -> Workspace:
        # A run names its process before its first step waits for a slot or works.
        if context.run and context.instance:
            context.instance.add_run_tags(context.run.run_id, process_tag())
            if context.run.tags.get(QUEUE) == BACKLOG:
                os.nice(_NICENESS)
        return opened

    return workspace
