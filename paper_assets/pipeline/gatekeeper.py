"""`filtered_candidates` and `scored_rankings`: the gatekeeper for each day and profile (SPEC 2).

One step makes both, day by day in ascending order: a day's candidates lack what the days before have shown
(ALREADY_SHOWN), so that the candidates of all days cannot be made before the first ranking. What is computed, and from
what, stands in day_inputs.py, candidates.py and rankings.py; what a person is shown of it, in gatekeeper_report.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from paper_assets.pipeline.candidates import keep_candidates
from paper_assets.pipeline.day_inputs import CODE_VERSION, inputs_by_day, profile_day
from paper_assets.pipeline.days_on_cluster import day_by_day
from paper_assets.pipeline.gatekeeper_report import (
    candidate_report,
    every_removed_paper_has_a_reason,
    ranking_report,
    scores_are_recomputable,
)
from paper_assets.pipeline.partition import Grid, Partition, by_profile
from paper_assets.pipeline.profiles import remembered_profile, usable_profile
from paper_assets.pipeline.rankings import Work, done_here, ranking_work
from paper_assets.pipeline.step import Check, Made, Product, Step, one_by_one
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.ranking.gatekeeper import ranking_options
from paper_assets.stores.rankings import output_paths, stored_inputs

CANDIDATES, RANKINGS = "filtered_candidates", "scored_rankings"


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """For each day and profile: filter, score, keep. What has not changed is not computed again."""
    model = workspace.embedder() if RANKINGS in wanted else None
    verifier = workspace.load_verifier()

    @cache
    def profile_of(name: str) -> Profile:
        return with_options(remembered_profile(workspace, name), workspace.options)

    def prepare(partition: Partition) -> bool:
        if CANDIDATES not in wanted:
            return False
        inputs = profile_day(
            workspace.warehouse, profile_of(partition.of_profile), partition.of_day, settings=workspace.settings
        )
        return keep_candidates(workspace.warehouse, inputs, settings=workspace.settings)

    def work_of(partition: Partition) -> Work:
        return ranking_work(
            workspace.warehouse,
            profile_of(partition.of_profile),
            partition.of_day,
            embedder=model,
            llm=verifier.model,
            settings=workspace.settings,
            now=workspace.clock(),
        )

    def make(partition: Partition) -> bool:
        new = prepare(partition)
        if RANKINGS in wanted:
            new = done_here(work_of(partition), verifier)
            tell(partition, new)
        return new

    def tell(partition: Partition, new: bool) -> None:
        workspace.log.info(f"{partition}: {'ranked' if new else 'unchanged'}")

    if workspace.cluster and RANKINGS in wanted:
        new, failures = day_by_day(
            workspace.cluster, partitions, prepare=prepare, work_of=work_of, verifier=verifier, tell=tell
        )
    else:
        new, failures = one_by_one(partitions, make, in_order=True)
    return Made(new=new, failures=failures)


def with_options(profile: Profile, options: Mapping[str, object]) -> Profile:
    """The profile with a run's own ranking options over its own (G1: run config > profile > default).

    Raises InvalidInput naming the option.
    """
    if not options:
        return profile
    chosen = ranking_options(profile, options)
    return replace(profile, content=profile.content.model_copy(update={"ranking": chosen}))


def _inputs(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str]:
    model, llm = workspace.embedding_model(), workspace.load_verifier().model
    found: dict[Partition, str] = {}
    for name, days in by_profile(partitions):
        profile = with_options(usable_profile(workspace, name), workspace.options)
        wanted = inputs_by_day(workspace.warehouse, profile, days, model=model, llm=llm, settings=workspace.settings)
        found |= {Partition(day, name): " ".join(wanted[day]) for day in days}
    return found


def _stored(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str | None]:
    """The table and its file: a ranking whose file is gone, or was never written, is not all there."""
    found: dict[Partition, str | None] = {}
    for name, days in by_profile(partitions):
        kept = stored_inputs(workspace.warehouse, name, days[0], days[-1])
        files = output_paths(workspace.warehouse, name, days[0], days[-1])
        whole = [day for day in days if day in kept and (file := files.get(day)) and Path(file).exists()]
        found |= {Partition(day, name): " ".join(map(str, kept[day])) for day in whole}
    return found


def _reported(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[str, Mapping[Partition, str]]:
    candidates: dict[Partition, str] = {}
    ranked: dict[Partition, str] = {}
    for name, days in by_profile(partitions):
        for day, (judged, scored) in stored_inputs(workspace.warehouse, name, days[0], days[-1]).items():
            candidates[Partition(day, name)] = judged
            if scored is not None:
                ranked[Partition(day, name)] = scored
    return {CANDIDATES: candidates, RANKINGS: ranked}


_UPSTREAM = ("paper_embeddings", "research_profile", "preference_model")

STEP = Step(
    name="gatekeeper",
    products=(
        Product(
            name=CANDIDATES,
            description="Every paper of the window ending on the day: passed, or removed with its reason.",
            kinds=frozenset({"duckdb"}),
            report=candidate_report,
            deps=_UPSTREAM,
            any_day=frozenset({"paper_embeddings"}),
            checks=(
                Check(
                    name="every_removed_paper_has_a_reason",
                    description="A paper has passed, or names the filter that removed it; never both, never neither.",
                    holds=every_removed_paper_has_a_reason,
                    serious=True,
                    blocking=True,
                ),
            ),
        ),
        Product(
            name=RANKINGS,
            description="The profile's candidates of the day in order of worth, every score explained.",
            kinds=frozenset({"duckdb", "json"}),
            report=ranking_report,
            deps=(CANDIDATES, *_UPSTREAM),
            any_day=frozenset({"paper_embeddings"}),
            checks=(
                Check(
                    name="scores_are_in_range_and_recomputable",
                    description="Every score comes out again from what is stored beside it, and lies in its range.",
                    holds=scores_are_recomputable,
                    serious=True,
                    blocking=True,
                ),
            ),
        ),
    ),
    grid=Grid.PROFILE_DAY,
    group="ranking",
    code_version=CODE_VERSION,
    make=_make,
    inputs=_inputs,
    stored=_stored,
    reported=_reported,
    trigger="new_papers_or_profile",
    in_order=True,
    side_by_side=True,
)
