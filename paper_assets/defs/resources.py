"""The resource of assets and sensors: the workspace, from this process's environment. Nothing is opened yet."""

import os
from datetime import UTC, datetime

import dagster as dg

from paper_assets.defs.abandoned_runs import process_tag
from paper_assets.defs.environment import settings
from paper_assets.defs.run_queue import BACKLOG, QUEUE
from paper_assets.pipeline.workspace import Workspace, open_workspace

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
