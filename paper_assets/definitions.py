"""Entry point of the Dagster project: every definition of `defs/`, run in process.

The definitions are listed here instead of found by Dagster's loader of folders, which needs a pyproject.toml above the
package: an installed wheel has none. To add a sensor or schedule, add it below; a new step needs no change.

Small steps, so one process: four of them took 6 s in process and 33 s with the multiprocess executor.
"""

import dagster as dg

from paper_assets.defs.abandoned_runs import abandoned_runs
from paper_assets.defs.assets import ASSETS
from paper_assets.defs.dagster_internals import fork_runs
from paper_assets.defs.fetching import daily_fetch, weekly_repair
from paper_assets.defs.resources import WorkspaceResource
from paper_assets.defs.sensors import due

defs = dg.Definitions(
    assets=ASSETS,
    sensors=[due, daily_fetch, abandoned_runs],
    schedules=[weekly_repair],
    resources={"workspace": WorkspaceResource(), "io_manager": dg.mem_io_manager},
    executor=dg.in_process_executor,
)

# Here, because Dagster imports this module in the process that starts the runs, and offers no other hook.
fork_runs(["dagster._cli", "dagster._grpc.impl", __name__])
