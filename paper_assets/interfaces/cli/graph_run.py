"""Bring the lists up to date on the same Dagster instance as the UI. Importing this imports Dagster."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from paper_assets.defs import runs
from paper_assets.defs.dead_runs import cancel_own_runs, end_dead_runs
from paper_assets.defs.history_files import events_files
from paper_assets.defs.history_size import forget_old_logs
from paper_assets.defs.instance import explained, keeps_files, open_instance
from paper_assets.defs.profiles import report_profiles
from paper_assets.defs.ratings import report_ratings
from paper_assets.errors import InvalidInput, InvalidProfile, NotComputed, PaperAssetsError
from paper_assets.interfaces.cli.process import before_the_end
from paper_assets.interfaces.cli.rewriting import rewrites_of_day
from paper_assets.interfaces.cli.stamp import stamp_files
from paper_assets.interfaces.cli.terminal import (
    dagster_home,
    progress_bar,
    read_settings,
    warn,
)
from paper_assets.interfaces.ranking_answers import shown_ranking
from paper_assets.pipeline import embeddings, gatekeeper
from paper_assets.pipeline.mending import mend
from paper_assets.pipeline.partition import Grid, Partition
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles
from paper_assets.pipeline.step import Step
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.stores.digest_files import digest_path
from paper_assets.stores.embeddings import days_without_vectors, unembedded_count
from paper_assets.stores.papers import latest_day, paper_counts
from paper_assets.stores.stamps import file_states, keep_stamp

Lists = Sequence[Mapping[str, Any]]  # as `_shown` gives them


@contextmanager
def open_desk() -> Iterator[tuple[Workspace, Any]]:
    """The workspace, and the Dagster instance that the UI shows too. What killed processes have left is put in order.

    Raises what goes wrong with the instance's files in one line, and InvalidInput for its settings.
    """
    home = dagster_home()
    workspace = open_workspace(read_settings(), os.environ, clock=lambda: datetime.now(UTC))
    instance = open_instance(home)
    before_the_end(lambda: cancel_own_runs(instance))
    with explained(home):
        end_dead_runs(instance)
        forget_old_logs(instance, home)
        mend(workspace, told=_tell_of_missing)
        yield workspace, instance


def _tell_of_missing(count: int) -> None:
    warn(f"{count} days lack a file or page and get it back")


def bring_up_to_date(
    only: str | None,
    first: date | None,
    last: date | None,
    *,
    show: Callable[[Lists], None],
    asked: str,
    others: bool = True,
) -> list[PaperAssetsError]:
    """Make what is stale of every step for first..last (None: the newest day), profile by profile, and `show` each
    profile's list of the last day. Then embed all `others`, papers of no list. Returns what has failed.

    Where it is about one day and nothing is left to do, the answer is kept for who asks the same, `asked`, again.
    """
    with open_desk() as (workspace, instance):
        roots = stamp_files(workspace.settings, events_files(dagster_home())) if keeps_files(instance) else []
        before = file_states(roots)
        meant = profiles, first_day, day = _asked_for(workspace, only, first, last)
        for fault in profiles.faults.values() if only is None else ():
            warn(f"left out: {fault}")
        stands = _what_stands(workspace, instance, profiles, day) if first_day == day else None
        if stands is not None:
            show(stands)
            failures: list[PaperAssetsError] = []
        else:
            shown, failures = _made_current(workspace, instance, profiles, first_day, day)
            show(shown)
            failures += _others_embedded(workspace, instance, profiles, day) if others else []
            before = file_states(roots)
            # Meanwhile a profile or a newer day may have come.
            if first_day == day and not failures and _asked_for(workspace, only, first, last) == meant:
                stands = _what_stands(workspace, instance, profiles, day)
        # A broken profile is told of each time; and what was touched meanwhile may have another answer.
        if stands is not None and roots and before and not profiles.faults and file_states(roots) == before:
            keep_stamp(workspace.settings.warehouse_path, "run", asked, before, stands)
        return failures


def _what_stands(workspace: Workspace, instance: Any, profiles: ProfilesFound, day: date) -> Lists | None:
    """The lists of the day if nothing at all is to do for it, in one opening of the store; None otherwise."""
    runs.report_papers(instance, workspace)
    report_profiles(instance, profiles)
    with suppress(PaperAssetsError), workspace.warehouse.read_together() as opened:
        together = replace(workspace, warehouse=opened)
        report_ratings(instance, together)
        model, done = together.embedding_model(), runs.RunResult()
        if model is None or unembedded_count(opened, None, None, model=model):
            return None
        for step, asked in _to_look_at(together, profiles, day):
            if runs.is_due(instance, together, step, asked, done):
                return None
        return [_shown(together, Partition(day, profile), done) for profile in profiles.readable]
    return None  # what it rests on is not there


def _to_look_at(workspace: Workspace, profiles: ProfilesFound, day: date) -> Iterator[tuple[Step, list[Partition]]]:
    """The steps of a run for one day, in its order, each with the partitions that it is asked for."""
    yield embeddings.STEP, _window(workspace, profiles, day, day)
    for profile in profiles.readable:
        for step in STEPS:
            if step.grid is Grid.PROFILE:
                yield step, [Partition(profile=profile)]
            if step.grid is Grid.PROFILE_DAY:
                yield step, [Partition(day, profile)]


def _made_current(
    workspace: Workspace, instance: Any, profiles: ProfilesFound, first: date, last: date
) -> tuple[Lists, list[PaperAssetsError]]:
    """Make what is stale of every step for first..last; each profile's list of the last day, and what has failed."""
    runs.report_papers(instance, workspace)
    report_profiles(instance, profiles)
    report_ratings(instance, workspace)
    done = runs.RunResult()
    with progress_bar("embedding papers") as count:
        windows = _window(workspace, profiles, first, last)
        runs.bring_up_to_date(instance, replace(workspace, progress=count), embeddings.STEP, windows, done)
    filled = paper_counts(workspace.warehouse)
    days = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    days = [day for day in days if day in filled or day == last]
    shown = []
    with progress_bar("ranking profiles") as count:
        for step in STEPS[: STEPS.index(gatekeeper.STEP) + 1] if workspace.cluster else ():  # profiles side by side
            if step.grid is Grid.PROFILE:
                everybody = [Partition(profile=profile) for profile in profiles.readable]
                runs.bring_up_to_date(instance, workspace, step, everybody, done)
            if step.side_by_side:
                everybody = [Partition(day, profile) for day in days for profile in profiles.readable]
                runs.bring_up_to_date(instance, workspace, step, everybody, done)
        for number, profile in enumerate(profiles.readable):
            count(number, len(profiles.readable))
            for step in STEPS:
                if step.grid is Grid.PROFILE:
                    runs.bring_up_to_date(instance, workspace, step, [Partition(profile=profile)], done)
                if step.grid is Grid.PROFILE_DAY:
                    asked = [Partition(day, profile) for day in (days if step.backfills else [last])]
                    runs.bring_up_to_date(instance, workspace, step, asked, done)
            if (gatekeeper.RANKINGS, profile) not in done.failed:
                shown.append(_shown(workspace, Partition(last, profile), done))
    return shown, list(done.failures.values())


def _window(workspace: Workspace, profiles: ProfilesFound, first: date, last: date) -> list[Partition]:
    """Every day whose papers a list of first..last may hold."""
    longest = max(profile.content.feed.window_days for profile in profiles.readable.values())
    earliest = max(first - timedelta(days=longest - 1), workspace.settings.first_day)
    return [Partition(earliest + timedelta(days=i)) for i in range((last - earliest).days + 1)]


def _others_embedded(
    workspace: Workspace, instance: Any, profiles: ProfilesFound, newest: date
) -> list[PaperAssetsError]:
    """Embed every stored paper that has no vector yet, newest first, and answer the profiles' questions with them.

    In steps of a month: each is kept as it is done, whatever stops the next one. Returns what has failed.
    """
    model = workspace.embedding_model()
    if model is None or not unembedded_count(workspace.warehouse, None, None, model=model):
        return []
    done, settings = runs.RunResult(), workspace.settings
    with progress_bar("embedding the other papers") as count:
        others = replace(workspace, progress=count)
        days = days_without_vectors(workspace.warehouse, model=model)
        for month in embeddings.steps_newest_first(day for day in days if day >= settings.first_day):
            runs.bring_up_to_date(instance, others, embeddings.STEP, [Partition(day) for day in month], done)
        embeddings.embed_unpartitioned(others)
    for profile in profiles.readable:
        for step in STEPS:
            if step.grid is Grid.PROFILE_DAY:
                runs.bring_up_to_date(instance, workspace, step, [Partition(newest, profile)], done)
    return list(done.failures.values())


def _asked_for(
    workspace: Workspace, only: str | None, first: date | None, last: date | None
) -> tuple[ProfilesFound, date, date]:
    """The profiles and days that a run is for. Raises InvalidProfile, InvalidInput and NotComputed in one line each."""
    settings = workspace.settings
    found = find_profiles(settings.profiles_dir)
    if only is not None and only not in found.readable:
        raise InvalidProfile(found.faults.get(only, f"no profile {only!r} in {settings.profiles_dir}"))
    profiles = {name: profile for name, profile in found.readable.items() if only in (None, name)}
    if not profiles:
        raise InvalidProfile(f"no usable profile in {settings.profiles_dir}; put a profile.json into a folder there")
    last = last or latest_day(workspace.warehouse)
    if last is None:
        raise NotComputed("no papers yet; run `paper-assets import FILE` or `paper-assets fetch --day DAY` first")
    first = first or last
    if not settings.first_day <= first <= last:
        raise InvalidInput(f"days to rank must lie from {settings.first_day} on and in order, got {first} to {last}")
    return ProfilesFound(profiles, found.faults), first, last


def _shown(workspace: Workspace, partition: Partition, done: runs.RunResult) -> dict[str, Any]:
    """A profile's list of a day as JSON values, with what the run did for it."""
    day, profile, warehouse = partition.of_day, partition.of_profile, workspace.warehouse
    list_of_day = shown_ranking(warehouse, profile, day)
    ranked = [each for each in done.made.get(gatekeeper.STEP.name, ()) if each.profile == profile]
    notes = [done.waiting[partition]] if partition in done.waiting else []
    return {
        **list_of_day,
        "days_ranked": len(ranked),
        "warnings": [*list_of_day["warnings"], *notes],
        "rewrites": rewrites_of_day(warehouse, profile, day, config=workspace.settings.rewriting),
        "digest": str(digest_path(workspace.settings.digests_dir, profile, day, "html")),
    }
