"""Materialize assets in an instance that leaves nothing, and read what was reported."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from paper_assets.defs.assets import ASSETS
from paper_assets.defs.reports import ATTENDED
from paper_assets.pipeline.workspace import Workspace

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def made(
    instance: dg.DagsterInstance,
    workspace: Workspace,
    *assets: str,
    first: str | None = None,
    last: str | None = None,
    tags: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> dg.ExecuteInProcessResult:
    """Materialize a partition or a range; `options`: the run config by op."""
    span = {"dagster/asset_partition_range_start": f"{first}", "dagster/asset_partition_range_end": f"{last}"}
    return dg.materialize(
        ASSETS,
        selection=list(assets),
        instance=instance,
        resources={"workspace": workspace},
        partition_key=None if last else first,
        tags={**({ATTENDED: "yes"} if tags is None else tags), **(span if last else {})},
        raise_on_error=False,
        run_config={**_QUIET, **({"ops": {op: {"config": chosen} for op, chosen in (options or {}).items()}})},
    )


def latest(instance: dg.DagsterInstance, asset: str, key: str | None = None) -> tuple[str, dict[str, Any]]:
    """Return the data version and the metadata last reported of a partition."""
    record = instance.get_latest_data_version_record(dg.AssetKey(asset), partition_key=key)
    assert record is not None and record.asset_materialization is not None
    event = record.asset_materialization
    return (event.tags or {})["dagster/data_version"], {name: value.value for name, value in event.metadata.items()}
