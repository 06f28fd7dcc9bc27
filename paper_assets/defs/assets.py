"""Every step of the pipeline as a Dagster asset: its partitions, dependencies, checks, versions and metadata.

Belongs here: the translation, once for all steps. Not here: what a step does, shows or checks (pipeline/).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg

from paper_assets.defs.automation import CONDITIONS
from paper_assets.defs.partitions import any_day, partition_key, partition_of, partitions_of
from paper_assets.defs.profiles import research_profile
from paper_assets.defs.ratings import reader_ratings
from paper_assets.defs.reports import ATTENDED, materializations, separately, user_errors_as_failures
from paper_assets.defs.run_config import RUN_CONFIG
from paper_assets.pipeline.health import repair
from paper_assets.pipeline.step import WHOLE, Check, Grid, Made, Partition, Product, Step, failure_of
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace


def asset_of(step: Step) -> dg.AssetsDefinition:
    """The asset or assets of a step, made in one op."""
    config = RUN_CONFIG.get(step.name)

    def body(context: dg.AssetExecutionContext, config: Any, workspace: dg.ResourceParam[Workspace]) -> Iterator[Any]:
        options = config.options() if config else {}
        yield from _run(step, context, replace(workspace, log=context.log, options={**workspace.options, **options}))

    def plain(context: dg.AssetExecutionContext, workspace: dg.ResourceParam[Workspace]) -> Iterator[Any]:
        yield from _run(step, context, replace(workspace, log=context.log))

    if config:
        body.__annotations__["config"] = config
    chunk = step.partitions_per_run
    return dg.multi_asset(
        name=step.name,
        specs=[_spec(step, product) for product in step.products],
        check_specs=[_check_spec(product, check) for product in step.products for check in product.checks],
        can_subset=len(step.products) > 1,
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=chunk) if chunk else None,
        retry_policy=dg.RetryPolicy(max_retries=step.retries, delay=step.retry_delay, backoff=dg.Backoff.EXPONENTIAL),
        pool=step.pool,
        # Of steps that do not wait for each other the first is made first, not that with the first name: a list before
        # the answers to questions.
        op_tags={"dagster/priority": f"{len(STEPS) - STEPS.index(step)}"},
    )(body if config else plain)


def _spec(step: Step, product: Product) -> dg.AssetSpec:
    return dg.AssetSpec(
        product.name,
        deps=[
            dg.AssetDep(name, partition_mapping=any_day if name in product.any_day else None) for name in product.deps
        ],
        description=product.description,
        kinds=set(product.kinds),
        group_name=step.group,
        code_version=step.code_version,
        partitions_def=partitions_of(step.grid),
        automation_condition=CONDITIONS[step.trigger],
        skippable=True,
    )


def _check_spec(product: Product, check: Check) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        check.name, asset=product.name, description=check.description or None, blocking=check.blocking
    )


def _run(step: Step, context: dg.AssetExecutionContext, workspace: Workspace) -> Iterator[Any]:
    """Make the partitions of the run, and report those that were made; a failure of some fails the run afterwards."""
    wanted = frozenset(key.to_user_string() for key in context.selected_asset_keys)
    asked = [WHOLE] if step.grid is Grid.WHOLE else partition_of(step.grid, context.partition_keys)
    with user_errors_as_failures(context):
        if ATTENDED not in context.run.tags:  # a command has done so before its first run
            repair(workspace)
        made = step.make(workspace, asked, wanted)
        failure = failure_of(made, asked)
        for product in step.products:
            if product.name in wanted:
                if made.new or failure is None:
                    yield from _events(step, product, workspace, asked, made, whole=failure is None)
                also_changed = {partition_key(step.grid, each): each for each in made.also_changed}
                yield from separately(
                    product.name, {key: product.report(workspace, each, made) for key, each in also_changed.items()}
                )
        if failure is not None:
            raise failure


def _events(
    step: Step, product: Product, workspace: Workspace, asked: Sequence[Partition], made: Made, *, whole: bool
) -> Iterator[Any]:
    done = [each for each in asked if each in made.new]
    reports = {partition_key(step.grid, each): product.report(workspace, each, made) for each in done}
    if not whole:  # the op's own output would stand for all that was asked for
        yield from separately(product.name, reports)
        return
    checks = []
    for check in product.checks:
        found = check.holds(workspace, done, made)
        checks.append(
            dg.AssetCheckResult(
                asset_key=product.name,
                check_name=check.name,
                passed=found.passed,
                severity=dg.AssetCheckSeverity.ERROR if check.serious else dg.AssetCheckSeverity.WARN,
                metadata=dict(found.counted),
            )
        )
    yield from materializations(product.name, reports, checks)


_MADE = tuple(asset_of(step) for step in STEPS)
ASSETS: tuple[dg.AssetsDefinition | dg.AssetSpec, ...] = (research_profile, reader_ratings, *_MADE)  # the whole lineage
