"""Read the environment when the graph is loaded, and define the resource of assets and sensors: the workspace.

The settings are read once, because partitions and intervals are fixed then. Making the resource opens nothing.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import dagster as dg
from pydantic import Field

from paper_assets.defs.abandoned_runs import process_tag
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.settings import Settings, default_folder, load_settings
from paper_assets.stores.kept_settings import kept_environment


def current_settings() -> Settings:
    """Read the settings now: hours and weekdays of the daily fetch may have changed on the page since the start."""
    return _settings(os.environ)


def _settings(environ: Mapping[str, str]) -> Settings:
    folder = default_folder(environ, Path.cwd())
    found = load_settings(environ, Path.cwd(), default_folder=folder)
    kept = kept_environment(environ, found.home, now)
    return load_settings(kept, Path.cwd(), default_folder=folder)


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


settings = current_settings()


def sensor_seconds(ticks: int) -> int:
    """Return the interval to declare for a sensor that evaluates every `ticks` ticks.

    Dagster's loop takes five seconds and skips a sensor whose interval ends a moment later: a third of the ticks of a
    five-second interval came after ten seconds.
    """
    return max(1, ticks * settings.sensor_interval - 1)


BACKLOG = "paper_assets/backlog"  # tag of a run over days that no list of today needs
_NICENESS = 10  # of a run that embeds old papers: what a person waits for gets the processor first


class WorkspaceResource(dg.ConfigurableResource[Workspace]):
    """The stores, models and clock with which every asset works; an empty field is taken from the environment."""

    home: str = Field(default="", description="Folder of the stores; as PAPER_ASSETS_HOME.")
    profiles: str = Field(default="", description="Folder of the profiles; as PAPER_ASSETS_PROFILES.")
    first_day: str = Field(default="", description="First day of the partitions; as PAPER_ASSETS_FIRST_DAY.")
    environment: dict[str, str] = Field(default={}, description="Other variables, as `paper-assets` reads them.")

    def create_resource(self, context: dg.InitResourceContext) -> Workspace:
        """Open the workspace. A run names its process before its first step waits for a slot or works."""
        if context.run and context.instance:
            context.instance.add_run_tags(context.run.run_id, process_tag())
            if BACKLOG in context.run.tags:
                os.nice(_NICENESS)
        fields = {"HOME": self.home, "PROFILES": self.profiles, "FIRST_DAY": self.first_day}
        own = {f"PAPER_ASSETS_{name}": value for name, value in fields.items() if value}
        return _opened(tuple(sorted({**self.environment, **own}.items())))


@lru_cache(1)
def _opened(variables: tuple[tuple[str, str], ...]) -> Workspace:
    environ = {**os.environ, **dict(variables)}
    return open_workspace(_settings(environ) if variables else settings, environ, clock=now)
