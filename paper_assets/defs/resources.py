"""What the assets are handed: the workspace, from this process's environment. Nothing is opened yet."""

import os
from datetime import UTC, datetime

import dagster as dg

from paper_assets.defs.dead_runs import own_tag
from paper_assets.defs.environment import settings
from paper_assets.pipeline.workspace import Workspace, open_workspace


@dg.definitions
def resources() -> dg.Definitions:
    """The resources of every asset and sensor."""
    opened = open_workspace(settings, os.environ, clock=lambda: datetime.now(UTC))

    @dg.resource
    def workspace(context: dg.InitResourceContext) -> Workspace:
        # Before its first step a run waits for a slot or works, it says which process carries it out.
        if context.run and context.instance:
            context.instance.add_run_tags(context.run.run_id, own_tag())
        return opened

    return dg.Definitions(resources={"workspace": workspace})
