"""Define every step of the pipeline as a Dagster asset: partitions, dependencies, checks, versions and metadata.

`asset_of` is the translation, once for all steps; below it each asset has its name. To add one, add a line there. Not
here: what a step does, shows or checks (pipeline/).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from inspect import getdoc
from itertools import product as pairs_of
from typing import Any, Literal, get_args, get_origin

import dagster as dg
from pydantic import BaseModel, Field, create_model

from paper_assets.defs.due import FAILING, failing_partitions
from paper_assets.defs.external_assets import reader_ratings, research_profile
from paper_assets.defs.partitions import any_day, partition_key, partition_of, partitions_of
from paper_assets.defs.reports import ATTENDED, materializations, separate_events, user_errors_as_failures
from paper_assets.errors import PaperAssetsError, StoreError, named_error
from paper_assets.models.minilm import one_blas_thread
from paper_assets.pipeline import archive, digests, embeddings, gatekeeper, papers, preferences, retrievals, rewrites
from paper_assets.pipeline.changes import days_before
from paper_assets.pipeline.health import repair
from paper_assets.pipeline.profiles import find_profiles
from paper_assets.pipeline.staleness import partitions_of_days
from paper_assets.pipeline.step import (
    WHOLE,
    Check,
    Checked,
    Grid,
    Made,
    Partition,
    Product,
    Report,
    Step,
    failure_of,
    keys_of,
)
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import RankingOptions
from paper_assets.stores.papers import latest_day, paper_counts
from paper_assets.weights import Weights


class RunConfig(dg.Config):
    """Options of one run, set in the UI. An empty one is taken from the profile, else from the defaults."""

    def options(self) -> dict[str, Any]:
        """Return the options that were set."""
        values = self.model_dump(exclude_none=True)
        return {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}


def _field(name: str, options: type[BaseModel]) -> Any:
    """Return the optional run config of an option; an enumeration lets Dagster's editor complete and refuse values."""
    option = options.model_fields[name]
    values = get_args(option.annotation) if get_origin(option.annotation) is Literal else ()
    kind: Any = Enum(name, {value: value for value in values}) if values else option.annotation
    ends = {end: getattr(each, end) for each in option.metadata for end in ("ge", "le") if hasattr(each, end)}
    limits = " From {ge} to {le}.".format(**ends) if len(ends) == 2 else ""
    return kind | None, Field(default=None, description=f"{option.description or ''}{limits}".strip() or None)


_OPTIONS = (
    "top_k",
    "purpose",
    "ranking_mode",
    "include_contrastive",
    "contrastive_type",
    "enable_llm_verification",
    "interest_mode",
)
_weights = {name: _field(name, Weights) for name in Weights.model_fields}
_Weights: Any = create_model("WeightsRunConfig", __base__=dg.Config, **_weights)
RankingRunConfig: Any = create_model(
    "RankingRunConfig",
    __base__=RunConfig,
    **{name: _field(name, RankingOptions) for name in _OPTIONS},
    weights=(_Weights | None, Field(default=None, description="The weight of each dimension; the sum is 1.")),
)


class PapersRunConfig(RunConfig):
    """How one run accepts the answers of a source."""

    accept_fewer: bool | None = Field(
        default=None,
        description="Accept an answer with far fewer papers than are stored for the day, and remove the missing ones.",
    )


RUN_CONFIG: dict[str, Any] = {
    "gatekeeper": RankingRunConfig,
    "arxiv_papers": PapersRunConfig,
}
# A list is expected each working day: a weekend with a holiday is three and a half days.
FRESHNESS = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=84), warn_window=timedelta(hours=36))
_DESCRIBED_TOGETHER = 20  # partitions reported in one opening of the store; writers wait half a second for them
_RECENT_DAYS = 14  # that a check looks at when it is executed alone


def asset_of(step: Step) -> dg.AssetsDefinition:
    """Return the asset or assets of a step, made in one op."""

    def body(context: dg.AssetExecutionContext, config: Any, workspace: dg.ResourceParam[Workspace]) -> Iterator[Any]:
        options = {**workspace.options, **config.options()}
        yield from _run(step, context, replace(workspace, log=context.log, options=options))

    body.__annotations__["config"] = RUN_CONFIG.get(step.name, RunConfig)
    chunk = step.partitions_per_run
    return dg.multi_asset(
        name=step.name,
        specs=[_spec(step, product) for product in step.products],
        check_specs=[_check_spec(product, check) for product in step.products for check in product.checks],
        can_subset=True,  # so that each check can be executed alone
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=chunk) if chunk else None,
        # Independent steps are made in their order, not by name: a list before the answers to questions.
        op_tags={"dagster/priority": f"{len(STEPS) - STEPS.index(step)}"},
    )(body)


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
        freshness_policy=FRESHNESS if product.name == gatekeeper.RANKINGS else None,
        skippable=True,
    )


def _check_spec(product: Product, check: Check) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(check.name, asset=product.name, description=getdoc(check.holds), blocking=check.blocking)


def _run(step: Step, context: dg.AssetExecutionContext, workspace: Workspace) -> Iterator[Any]:
    """Make the partitions of the run and report those that were made; then fail the run if some failed."""
    wanted = frozenset(key.to_user_string() for key in context.selected_asset_keys)
    products = [product for product in step.products if product.name in wanted]
    attended = ATTENDED in context.run.tags  # a command's run has one step
    alone = attended or len(context.run.asset_selection or ()) == len(wanted)
    with user_errors_as_failures(context):
        if not wanted:
            yield from _only_checked(step, context, workspace)
            return
        asked = _asked(step, context)
        if not attended:  # a command does this before its first run
            repair(workspace)
        with one_blas_thread():
            made = step.make(workspace, asked, wanted)
            context.log.info(f"{sum(made.new.values())} of {len(asked)} partitions are new")  # each line is an event
            reports, unreported = describe(step, products, workspace, made)
            checked = [check_made(step, product, context, workspace, made) for product in products]
        rejected = {each: error for _, errors in checked for each, error in errors.items()}
        workspace.on_made(replace(made, failures={**unreported, **rejected, **made.failures}))
        # Dagster handles a failed check, so the run fails only for partitions that could not be made or reported.
        failure = failure_of(replace(made, failures={**made.failures, **unreported}), asked)
        for product, (results, _) in zip(products, checked, strict=True):
            separate = {partition_key(step.grid, each): report for each, report in reports[product.name].items()}
            if failure is None:  # the output of the op would count for all requested partitions
                of_made = {key: separate.pop(key) for key in (partition_key(step.grid, each) for each in made.new)}
                yield from materializations(product.name, of_made, results, last=alone)
            yield from separate_events(product.name, separate)
        if failure is not None:
            raise failure


def _asked(step: Step, context: dg.AssetExecutionContext) -> list[Partition]:
    return [WHOLE] if step.grid is Grid.WHOLE else partition_of(step.grid, context.partition_keys)


def _only_checked(step: Step, context: dg.AssetExecutionContext, workspace: Workspace) -> Iterator[dg.AssetCheckResult]:
    """Evaluate the selected checks of what is stored: of the run's partitions, or of the last two weeks."""
    asked = _asked(step, context) if context.has_partition_key or context.has_partition_key_range else None
    stored = recent_partitions(step, workspace) if asked is None else asked
    made = _stored_only(stored)
    for product in step.products:
        yield from check_made(step, product, context, workspace, made)[0]


def _stored_only(partitions: Sequence[Partition]) -> Made:
    """Return what a check is given that is executed without making anything: no details."""
    return Made(new=dict.fromkeys(partitions, False), details={})


def recent_partitions(step: Step, workspace: Workspace) -> list[Partition]:
    """Return the stored partitions of the last two weeks."""
    if step.grid is Grid.WHOLE:
        return [WHOLE]
    with workspace.warehouse.read_together() as opened:
        newest = latest_day(opened, until=workspace.clock().date())
        if newest is None:
            return []
        earliest = max(min(paper_counts(opened)), workspace.settings.first_day)
        first = max(newest - timedelta(days=_RECENT_DAYS - 1), earliest)
        recent = [first + timedelta(days=at) for at in range((newest - first).days + 1)]
        if step.grid is Grid.DAY:
            return [Partition(day) for day in recent]
        profiles = find_profiles(workspace.settings.profiles_dir).readable
        asked = partitions_of_days(replace(step.tracked, backfills=True), profiles, recent, first_day=first)
        stored = step.tracked.stored(replace(workspace, warehouse=opened), asked)
        return [each for each in asked if stored.get(each) is not None]


def describe(
    step: Step, products: Sequence[Product], workspace: Workspace, made: Made
) -> tuple[dict[str, dict[Partition, Report]], dict[Partition, PaperAssetsError]]:
    """Report each partition that was made or has changed, by product; return also those that could not be reported."""
    reports: dict[str, dict[Partition, Report]] = {product.name: {} for product in products}
    failures: dict[Partition, PaperAssetsError] = {}
    reported = [*made.new, *made.also_changed]
    for at in range(0, len(reported), _DESCRIBED_TOGETHER):
        together = reported[at : at + _DESCRIBED_TOGETHER]
        with _reading_together(step, workspace, together) as reading:
            for product, each in pairs_of(products, together):
                try:
                    reports[product.name][each] = product.report(reading, each, made)
                except StoreError:
                    raise
                except Exception as error:
                    failures[each] = named_error(error, f"{product.name} of {each}")
    return reports, failures


@contextmanager
def _reading_together(step: Step, workspace: Workspace, partitions: Sequence[Partition]) -> Iterator[Workspace]:
    """Open the store once for reports and checks that do nothing but read it."""
    if not step.reports_only_read:
        yield workspace
        return
    days = keys_of(partitions)
    with (
        workspace.warehouse.read_together(days) as opened,
        opened.read_together([*days, *days_before(opened, days)]) as together,
    ):
        yield replace(workspace, warehouse=together)


def check_made(
    step: Step, product: Product, context: dg.AssetExecutionContext, workspace: Workspace, made: Made
) -> tuple[list[dg.AssetCheckResult], dict[Partition, PaperAssetsError]]:
    """Check the new partitions, and again those that failed before: a failure stays until its partition passes.

    Return also the partitions of profiles that fail a blocking check. If nothing could be made, there is nothing to
    check, and the run fails without outcomes.
    """
    results: list[dg.AssetCheckResult] = []
    failures: dict[Partition, PaperAssetsError] = {}
    done = list(made.new)
    if not done and made.failures:
        return results, failures
    selected = {key.name for key in context.selected_asset_check_keys if key.asset_key.to_user_string() == product.name}
    checks = [check for check in product.checks if check.name in selected]
    before = failing_partitions(context.instance, product.name, [check.name for check in checks]) if checks else {}
    for check in checks:
        with _reading_together(step, workspace, done) as reading:
            outcome = holds(check, reading, done, made)
            failing = [] if outcome.passed else _failing(check, reading, done, made)
            others = [each for each in before[check.name] if each not in made.new]
            failing += [each for each in others if not holds(check, reading, [each], _stored_only([each])).passed]
        counted = {**outcome.counted, **({FAILING: [*map(_day_and_profile, failing)]} if failing else {})}
        results.append(
            dg.AssetCheckResult(
                asset_key=product.name,
                check_name=check.name,
                passed=not failing,
                severity=dg.AssetCheckSeverity.ERROR if check.serious else dg.AssetCheckSeverity.WARN,
                metadata=counted,
            )
        )
        if check.blocking:
            profiles = {each.profile for each in failing}
            for each in done:
                if each.profile in profiles:
                    reason = f"check {check.name} of {product.name} failed for {each.profile or 'all'}"
                    failures[each] = PaperAssetsError(reason)
    return results, failures


def _failing(check: Check, workspace: Workspace, done: Sequence[Partition], made: Made) -> list[Partition]:
    """Return the partitions that fail a check alone; all of them if none does."""
    if len(done) == 1:
        return [*done]
    try:
        return [each for each in done if not holds(check, workspace, [each], made).passed] or [*done]
    except StoreError:  # the check has marked an index for rebuilding
        return [*done]


def _day_and_profile(partition: Partition) -> list[str | None]:
    return [partition.day.isoformat() if partition.day else None, partition.profile]


def holds(check: Check, workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Check the new partitions; an unexpected error is a failed check."""
    try:
        return check.holds(workspace, partitions, made)
    except StoreError:
        raise
    except Exception as error:
        return Checked(passed=False, counted={"error": f"{named_error(error, check.name)}"})


arxiv_papers = asset_of(papers.STEP)
paper_embeddings = asset_of(embeddings.STEP)
preference_model = asset_of(preferences.STEP)
filtered_candidates = scored_rankings = asset_of(gatekeeper.STEP)  # made together, or each alone
balanced_retrievals = asset_of(retrievals.STEP)
paper_rewrites = asset_of(rewrites.STEP)
best_practice_archive = asset_of(archive.STEP)
reading_digests = asset_of(digests.STEP)

ASSETS: tuple[dg.AssetsDefinition | dg.AssetSpec, ...] = (  # the whole lineage
    research_profile,
    reader_ratings,
    arxiv_papers,
    paper_embeddings,
    preference_model,
    scored_rankings,
    balanced_retrievals,
    paper_rewrites,
    best_practice_archive,
    reading_digests,
)
