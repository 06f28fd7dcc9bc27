"""Evaluate the automation conditions of assets on an instance, as Dagster's daemon does in one tick."""

from functools import cache
from typing import Any
from unittest import mock

import dagster as dg


def evaluated(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *, cursor: Any, **options: Any
) -> dg.EvaluateAutomationConditionsResult:
    """Evaluate once, after the evaluation that returned the `cursor`; None: the first one.

    Dagster's function for tests reads the partitions from the instance at each use, which is a third of its time.
    """
    once = cache(instance.get_dynamic_partitions)
    with mock.patch.object(instance, "get_dynamic_partitions", once):
        return dg.evaluate_automation_conditions(definitions, instance, cursor=cursor, **options)


def materialized(instance: dg.DagsterInstance, asset: str, partition: str, version: str) -> None:
    """Report a materialization with this data version, without a run."""
    instance.report_runless_asset_event(
        dg.AssetMaterialization(asset, partition=partition, tags={"dagster/data_version": version})
    )
