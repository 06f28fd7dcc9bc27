"""Define every step of the pipeline as a Dagster asset: partitions, dependencies, checks, versions and metadata.

Belongs here: the translation, once for all steps. Not here: what a step does, shows or checks (pipeline/).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg
from pydantic import Field

from paper_assets.defs.automation import CONDITIONS
from paper_assets.defs.external_assets import reader_ratings, research_profile
from paper_assets.defs.partitions import any_day, partition_key, partition_of, partitions_of
from paper_assets.defs.reports import ATTENDED, materializations, separate_events, user_errors_as_failures
from paper_assets.pipeline.health import repair
from paper_assets.pipeline.papers import ACCEPT_FEWER
from paper_assets.pipeline.step import WHOLE, Check, Grid, Made, Partition, Product, Step, failure_of
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace


class RankingRunConfig(dg.Config):
    """Ranking options of one run, set in the UI. An empty one is taken from the profile, else from the defaults."""

    top_k: int | None = Field(default=None, description="Papers in the list.")
    purpose: str | None = Field(
        default=None, description="general, literature_review, implementation or idea_generation."
    )
    ranking_mode: str | None = Field(default=None, description="balanced, novelty, practicality or diversity.")
    include_contrastive: bool | None = Field(
        default=None, description="Whether the last place goes to a paper that differs from the others."
    )
    contrastive_type: str | None = Field(default=None, description="method, assumption or domain.")
    enable_llm_verification: bool | None = Field(
        default=None, description="Whether a language model is asked about papers of middling relevance."
    )
    interest_mode: str | None = Field(default=None, description="seed, lanes, library or hybrid.")
    weights: dict[str, float] | None = Field(
        default=None, description="The weight of each dimension by name; they sum to 1."
    )

    def options(self) -> dict[str, Any]:
        """Return the options that were set."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


class PapersRunConfig(dg.Config):
    """How one run accepts the answers of a source."""

    accept_fewer: bool = Field(
        default=False,
        description="Believe an answer with far fewer papers than are stored of the day, and remove those it lacks.",
    )

    def options(self) -> dict[str, Any]:
        """Return the options that were set."""
        return {ACCEPT_FEWER: True} if self.accept_fewer else {}


RUN_CONFIG: dict[str, type[RankingRunConfig] | type[PapersRunConfig]] = {
    "gatekeeper": RankingRunConfig,
    "arxiv_papers": PapersRunConfig,
}


def asset_of(step: Step) -> dg.AssetsDefinition:
    """Return the asset or assets of a step, made in one op."""
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
        # Independent steps are made in their order, not by name: a list before the answers to questions.
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
    """Make the partitions of the run and report those that were made; then fail the run if some failed."""
    wanted = frozenset(key.to_user_string() for key in context.selected_asset_keys)
    asked = [WHOLE] if step.grid is Grid.WHOLE else partition_of(step.grid, context.partition_keys)
    with user_errors_as_failures(context):
        if ATTENDED not in context.run.tags:  # a command does this before its first run
            repair(workspace)
        made = step.make(workspace, asked, wanted)
        failure = failure_of(made, asked)
        for product in step.products:
            if product.name in wanted:
                if made.new or failure is None:
                    yield from _events(step, product, workspace, asked, made, whole=failure is None)
                also_changed = {partition_key(step.grid, each): each for each in made.also_changed}
                yield from separate_events(
                    product.name, {key: product.report(workspace, each, made) for key, each in also_changed.items()}
                )
        if failure is not None:
            raise failure


def _events(
    step: Step, product: Product, workspace: Workspace, asked: Sequence[Partition], made: Made, *, whole: bool
) -> Iterator[Any]:
    done = [each for each in asked if each in made.new]
    reports = {partition_key(step.grid, each): product.report(workspace, each, made) for each in done}
    if not whole:  # the output of the op would count for all requested partitions
        yield from separate_events(product.name, reports)
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
