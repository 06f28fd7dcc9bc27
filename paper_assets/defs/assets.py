"""Define every step of the pipeline as a Dagster asset: partitions, dependencies, checks, versions and metadata.

Belongs here: the translation, once for all steps. Not here: what a step does, shows or checks (pipeline/).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import dagster as dg
from pydantic import Field

from paper_assets.defs.automation import CONDITIONS
from paper_assets.defs.external_assets import reader_ratings, research_profile
from paper_assets.defs.partitions import any_day, partition_key, partition_of, partitions_of
from paper_assets.defs.reports import ATTENDED, materializations, separate_events, user_errors_as_failures
from paper_assets.errors import PaperAssetsError, StoreError, named_error
from paper_assets.models.minilm import one_blas_thread
from paper_assets.pipeline.health import repair
from paper_assets.pipeline.papers import ACCEPT_FEWER
from paper_assets.pipeline.step import WHOLE, Check, Checked, Grid, Made, Partition, Product, Report, Step, failure_of
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
        description="Accept an answer with far fewer papers than are stored for the day, and remove the missing ones.",
    )

    def options(self) -> dict[str, Any]:
        """Return the options that were set."""
        return {ACCEPT_FEWER: True} if self.accept_fewer else {}


RUN_CONFIG: dict[str, type[RankingRunConfig] | type[PapersRunConfig]] = {
    "gatekeeper": RankingRunConfig,
    "arxiv_papers": PapersRunConfig,
}


_DESCRIBED_TOGETHER = 20  # partitions reported in one opening of the store; writers wait half a second for them


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
    attended = ATTENDED in context.run.tags  # a command's run has one step
    alone = attended or len(context.run.asset_selection or ()) == len(wanted)
    with user_errors_as_failures(context):
        if not attended:  # a command does this before its first run
            repair(workspace)
        products = [product for product in step.products if product.name in wanted]
        with one_blas_thread():
            made = step.make(workspace, asked, wanted)
            described = [describe(step, product, workspace, made) for product in products]
            checked = [check_made(step, product, workspace, made) for product in products]
        unreported = {each: error for found in described for each, error in found.failures.items()}
        rejected = {each: error for found in checked for each, error in found.failures.items()}
        workspace.on_made(replace(made, failures={**unreported, **rejected, **made.failures}))
        # Dagster handles a failed check, so the run fails only for partitions that could not be made or reported.
        failure = failure_of(replace(made, failures={**made.failures, **unreported}), asked)
        for product, reports, checks in zip(products, described, checked, strict=True):
            keyed = {partition_key(step.grid, each): report for each, report in reports.of_made.items()}
            if failure is not None:  # the output of the op would count for all requested partitions
                yield from separate_events(product.name, keyed)
            else:
                yield from materializations(product.name, keyed, checks.results(product), last=alone)
            also_changed = {partition_key(step.grid, each): report for each, report in reports.of_others.items()}
            yield from separate_events(product.name, also_changed)
        if failure is not None:
            raise failure


@dataclass(slots=True)
class Described:
    """The reports of a product's partitions, and the partitions of which none could be made."""

    of_made: dict[Partition, Report] = field(default_factory=dict)
    of_others: dict[Partition, Report] = field(default_factory=dict)
    failures: dict[Partition, PaperAssetsError] = field(default_factory=dict)


def describe(step: Step, product: Product, workspace: Workspace, made: Made) -> Described:
    """Report each partition that was made or has changed; an unexpected error in one does not affect the others."""
    found = Described()
    for partitions, reports in ((list(made.new), found.of_made), (list(made.also_changed), found.of_others)):
        for at in range(0, len(partitions), _DESCRIBED_TOGETHER):
            with _reading_together(step, workspace) as reading:
                for each in partitions[at : at + _DESCRIBED_TOGETHER]:
                    try:
                        reports[each] = product.report(reading, each, made)
                    except StoreError:
                        raise
                    except Exception as error:
                        found.failures[each] = named_error(error, f"{product.name} of {each}")
    return found


@contextmanager
def _reading_together(step: Step, workspace: Workspace) -> Iterator[Workspace]:
    """Open the store once for reports and checks that do nothing but read it."""
    if not step.reports_only_read:
        yield workspace
        return
    with workspace.warehouse.read_together() as opened:
        yield replace(workspace, warehouse=opened)


@dataclass(slots=True)
class ChecksMade:
    """The outcome of a product's checks, and the partitions of profiles that fail a blocking one."""

    outcomes: dict[str, Checked] = field(default_factory=dict)
    failures: dict[Partition, PaperAssetsError] = field(default_factory=dict)

    def results(self, product: Product) -> list[dg.AssetCheckResult]:
        """Return the outcomes as Dagster records them."""
        return [
            dg.AssetCheckResult(
                asset_key=product.name,
                check_name=check.name,
                passed=self.outcomes[check.name].passed,
                severity=dg.AssetCheckSeverity.ERROR if check.serious else dg.AssetCheckSeverity.WARN,
                metadata=dict(self.outcomes[check.name].counted),
            )
            for check in product.checks
        ]


def check_made(step: Step, product: Product, workspace: Workspace, made: Made) -> ChecksMade:
    """Check what was made; a failing blocking check is repeated for each profile, because it stops no other.

    If nothing could be made, there is nothing to check, and the run fails without outcomes.
    """
    found, done = ChecksMade(), list(made.new)
    if not done and made.failures:
        return found
    for check in product.checks:
        with _reading_together(step, workspace) as reading:
            found.outcomes[check.name] = outcome = holds(check, reading, done, made)
        if check.blocking and not outcome.passed:
            for profile in dict.fromkeys(each.profile for each in done):
                own = [each for each in done if each.profile == profile]
                if not holds(check, workspace, own, made).passed:
                    reason = f"check {check.name} of {product.name} failed for {profile or 'all'}"
                    found.failures |= dict.fromkeys(own, PaperAssetsError(reason))
    return found


def holds(check: Check, workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Check what was made; an unexpected error is a failed check."""
    try:
        return check.holds(workspace, partitions, made)
    except StoreError:
        raise
    except Exception as error:
        return Checked(passed=False, counted={"error": f"{named_error(error, check.name)}"})


_MADE = tuple(asset_of(step) for step in STEPS)


ASSETS: tuple[dg.AssetsDefinition | dg.AssetSpec, ...] = (research_profile, reader_ratings, *_MADE)  # the whole lineage
