"""Entry point of the Dagster project: every definition of `defs/`, run in process.

The definitions are listed here instead of found by Dagster's loader of folders, which needs a pyproject.toml above the
package: an installed wheel has none. To add a sensor or schedule, add it below; a new step needs no change.

Small steps, so one process: four of them took 6 s in process and 33 s with the multiprocess executor.
"""

from collections.abc import Sequence

import dagster as dg

from paper_assets.defs.abandoned_runs import abandoned_runs
from paper_assets.defs.assets import ASSETS
from paper_assets.defs.dagster_internals import fork_runs
from paper_assets.defs.fetching import daily_fetch, weekly_repair
from paper_assets.defs.resources import WorkspaceResource
from paper_assets.defs.sensors import due


class _Definitions(dg.Definitions):
    """Definitions whose assets can be taken out and materialized with another workspace, as in a test."""

    def resolve_assets_def(self, key: dg.AssetKey | str | Sequence[str]) -> dg.AssetsDefinition:
        """Return the asset as it is defined, without the resources of this project."""
        wanted = dg.AssetKey(key) if not isinstance(key, dg.AssetKey) else key
        for asset in ASSETS:
            if isinstance(asset, dg.AssetsDefinition) and wanted in asset.keys:
                return asset
        return super().resolve_assets_def(wanted)


defs = _Definitions(
    assets=ASSETS,
    sensors=[due, daily_fetch, abandoned_runs],
    schedules=[weekly_repair],
    resources={"workspace": WorkspaceResource(), "io_manager": dg.mem_io_manager},
    executor=dg.in_process_executor,
)

# Here, because Dagster imports this module in the process that starts the runs, and offers no other hook.
fork_runs(["dagster._cli", "dagster._grpc.impl", __name__])
