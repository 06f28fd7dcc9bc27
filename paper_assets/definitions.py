"""Entry point of the Dagster project: everything in defs/, run in process.

Small steps, so one process: four of them took 6 s in process and 33 s with the multiprocess executor.
"""

from pathlib import Path

import dagster as dg

import paper_assets.defs  # noqa: F401  # silences what Dagster would say of loading the others


@dg.definitions
def defs() -> dg.Definitions:
    """All assets, checks, sensors and schedules of the project."""
    found = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return dg.Definitions.merge(found, dg.Definitions(executor=dg.in_process_executor))
