"""Bring the lists up to date on the same Dagster instance as the UI. Importing this imports Dagster."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from paper_assets.defs import runs
from paper_assets.defs.abandoned_runs import cancel_process_runs, fail_abandoned_runs
from paper_assets.defs.dagster_internals import close_files
from paper_assets.defs.external_assets import report_profiles, report_ratings
from paper_assets.defs.history_files import events_files
from paper_assets.defs.instance import explained, keeps_files, open_instance, remove_old_logs
from paper_assets.errors import InvalidInput, InvalidProfile, NotComputed, PaperAssetsError
from paper_assets.interfaces.background import report_stage
from paper_assets.interfaces.cli.process import before_the_end, log_unexpected
from paper_assets.interfaces.cli.rewriting import rewrites_of_day
from paper_assets.interfaces.cli.stamp import stamp_files
from paper_assets.interfaces.cli.terminal import dagster_home, environment, progress_bar, read_settings, warn
from paper_assets.interfaces.ranking_answers import shown_ranking
from paper_assets.pipeline import embeddings, gatekeeper, papers
from paper_assets.pipeline.health import repair
from paper_assets.pipeline.open_days import due_days, has_fetched, quiet_until
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles
from paper_assets.pipeline.staleness import partitions_of_days
from paper_assets.pipeline.step import STOPS_ALL, Grid, Made, Partition, Step
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.small_files import file_state
from paper_assets.sources.source import seconds_from_now
from paper_assets.stores.digest_files import digest_path
from paper_assets.stores.embeddings import days_without_vectors, unembedded_count
from paper_assets.stores.papers import latest_day, paper_counts
from paper_assets.stores.stamps import keep_stamp
from paper_assets.text.numbers import count_of

Lists = Sequence[Mapping[str, Any]]  # as `_shown` returns them
_ASKING = 60.0  # seconds for which `run` waits for new papers


@contextmanager
def open_desk() -> Iterator[tuple[Workspace, Any]]:
    """Open the workspace and the Dagster instance that the UI shows too, and repair what killed processes have left.

    Raises StoreError for faults of the instance's files, InvalidInput for its settings.
    """
    home = dagster_home()
    workspace = open_workspace(read_settings(), environment(), clock=lambda: datetime.now(UTC))
    instance = open_instance(home)
    before_the_end(lambda: cancel_process_runs(instance))
    with explained(home):
        fail_abandoned_runs(instance)
        remove_old_logs(instance, home)
        repair(workspace, report=_report_missing)
        yield workspace, instance


def _report_missing(count: int) -> None:
    warn(f"{count_of(count, 'ranking file or page', 'ranking files or pages')} missing; writing again")


def fetch_due(
    workspace: Workspace, instance: Any, days: Sequence[date], *, stop: tuple[type[PaperAssetsError], ...] = STOPS_ALL
) -> tuple[list[Made], list[PaperAssetsError]]:
    """Fetch these days one after the other; return the results and the failures; after one of `stop` no more."""
    made: list[Made] = []
    failures: list[PaperAssetsError] = []
    for day in days:
        try:
            made.append(runs.fetch_days(instance, workspace, papers.STEP, [Partition(day)]))
        except PaperAssetsError as failure:
            failures.append(failure)
            if isinstance(failure, stop):
                break
    return made, failures


def _ask_sources(workspace: Workspace, instance: Any) -> None:
    """Fetch the days that are due in a home that has fetched before; a failure is a warning, and ends the asking."""
    warehouse, settings = workspace.warehouse, workspace.settings
    due = due_days(warehouse, settings, workspace.clock()) if has_fetched(warehouse, settings) else []
    if not due:
        return
    report_stage(workspace.settings.home, f"fetching {count_of(len(due), 'day')} that may have new papers")
    access = replace(workspace.access, patient=False, left=seconds_from_now(_ASKING, time.monotonic))
    hasty = replace(workspace, access=access)
    _, failures = fetch_due(hasty, instance, [each.day for each in due], stop=(PaperAssetsError,))
    for failure in failures:
        warn(f"warning: new papers could not be fetched: {failure}; the lists are made of those that are stored")


def bring_up_to_date(
    only: str | None,
    first: date | None,
    last: date | None,
    *,
    show: Callable[[Lists], None],
    key: str,
    others: bool = True,
    ask: bool = False,
) -> list[PaperAssetsError]:
    """Run every stale step for the days first..last, profile by profile, and return the failures.

    Args:
        only: a profile; None: all.
        first, last: days to rank; None: the newest day.
        show: receives each profile's list of the last day.
        key: names this question. Where it is about one day and nothing is left to do, the answer is stamped with it.
        others: also embed the papers that no list needs.
        ask: first fetch the days that are due.
    """
    with open_desk() as (workspace, instance):
        if ask:
            _ask_sources(workspace, instance)
        roots = stamp_files(workspace.settings, events_files(dagster_home())) if keeps_files(instance) else []
        before = file_state(roots)
        scope = profiles, first_day, day = _scope(workspace, only, first, last)
        for fault in profiles.faults.values() if only is None else ():
            warn(f"skipped profile: {fault}")
        current = _current_lists(workspace, instance, profiles, day) if first_day == day else None
        if current is not None:
            show(current)
            failures: list[PaperAssetsError] = []
        else:
            shown, failures = _updated(workspace, instance, profiles, first_day, day)
            show(shown)
            if not failures:
                report_stage(workspace.settings.home, "the list is ready", listed=True)
            failures += _others_embedded(workspace, instance, profiles, day) if others else []
            close_files()
            before = file_state(roots)
            # A profile or a newer day may have been added meanwhile.
            if first_day == day and not failures and _scope(workspace, only, first, last) == scope:
                current = _current_lists(workspace, instance, profiles, day)
        close_files()
        # No stamp where a profile is broken, which every run reports, or where a file has changed meanwhile.
        if current is not None and roots and before and not profiles.faults and file_state(roots) == before:
            answer = {
                "lists": current,
                "until": quiet_until(workspace.warehouse, workspace.settings, workspace.clock()),
            }
            keep_stamp(workspace.settings.warehouse_path, "run", key, roots, before, answer)
        return failures


def _current_lists(workspace: Workspace, instance: Any, profiles: ProfilesFound, day: date) -> Lists | None:
    """Return the lists of the day if nothing is stale, in one opening of the store; else None."""
    runs.report_papers(instance, workspace)
    report_profiles(instance, profiles)
    # `run` meets the error again, and names it
    with suppress(Exception), workspace.warehouse.read_together() as opened:
        together = replace(workspace, warehouse=opened)
        report_ratings(instance, together)
        model, done = together.embedding_model(), runs.RunResult()
        if model is None or unembedded_count(opened, None, None, model=model):
            return None
        for step, partitions in _steps_of_days(together, profiles, [day]):
            if runs.is_due(instance, together, step, partitions, done):
                return None
        return [_shown(together, Partition(day, profile), done) for profile in profiles.readable]
    return None  # an input is missing


def _updated(
    workspace: Workspace, instance: Any, profiles: ProfilesFound, first: date, last: date
) -> tuple[Lists, list[PaperAssetsError]]:
    """Run every stale step for first..last; return each profile's list of the last day, and the failures."""
    runs.report_papers(instance, workspace)
    report_profiles(instance, profiles)
    report_ratings(instance, workspace)
    done, home = runs.RunResult(), workspace.settings.home
    filled = paper_counts(workspace.warehouse)
    days = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    days = [day for day in days if day in filled or day == last]
    steps = list(_steps_of_days(workspace, profiles, days))
    for stage, bar, is_by_day in (
        ("embedding the papers of the last days", "embedding papers", True),
        ("ranking the papers", "ranking profiles", False),
    ):
        report_stage(home, stage)
        with progress_bar(bar) as count:
            for step, partitions in steps:
                if (step.grid is Grid.DAY) is is_by_day:
                    runs.bring_up_to_date(instance, replace(workspace, progress=count), step, partitions, done)
                if step is gatekeeper.STEP and not is_by_day and not done.failures:
                    report_stage(home, "the list is ready; answers, rewrites and digests follow", listed=True)
    shown: list[Mapping[str, Any]] = []
    unexpected: list[PaperAssetsError] = []
    with workspace.warehouse.read_together() as opened:
        for profile in profiles.readable:
            if (gatekeeper.RANKINGS, profile) not in done.failed:
                try:
                    shown.append(_shown(replace(workspace, warehouse=opened), Partition(last, profile), done))
                except PaperAssetsError:
                    raise
                except Exception as error:  # a bug in one profile must not hide the others
                    unexpected.append(PaperAssetsError(log_unexpected(error, what=f"showing the list of {profile}")))
    return shown, [*done.failures.values(), *unexpected]


def _steps_of_days(
    workspace: Workspace, profiles: ProfilesFound, days: Sequence[date]
) -> Iterator[tuple[Step, list[Partition]]]:
    """Yield all steps in order, each with the partitions on which the lists of these ascending days depend."""
    for step in STEPS:
        first_day = workspace.settings.first_day
        yield step, partitions_of_days(step.tracked, profiles.readable, days, first_day=first_day)


def _others_embedded(
    workspace: Workspace, instance: Any, profiles: ProfilesFound, newest: date
) -> list[PaperAssetsError]:
    """Embed every stored paper that has no vector yet, newest first, then update what depends on them.

    Works month by month, so that an interruption loses at most one month. Returns the failures.
    """
    model = workspace.embedding_model()
    if model is None or not unembedded_count(workspace.warehouse, None, None, model=model):
        return []
    done, settings = runs.RunResult(), workspace.settings
    with progress_bar("embedding the other papers") as count:
        others = replace(workspace, progress=count)
        days = days_without_vectors(workspace.warehouse, model=model)
        in_graph = [day for day in days if settings.first_day <= day <= workspace.clock().date()]
        for month in embeddings.steps_newest_first(in_graph):
            left = count_of(unembedded_count(workspace.warehouse, None, None, model=model), "paper")
            report_stage(settings.home, f"embedding the other stored papers, {left} left")
            runs.bring_up_to_date(instance, others, embeddings.STEP, [Partition(day) for day in month], done)
        embeddings.embed_unpartitioned(others)
    for step, partitions in _steps_of_days(workspace, profiles, [newest]):
        runs.bring_up_to_date(instance, workspace, step, partitions, done)
    if again := sorted(made.of_profile for made in done.made.get(gatekeeper.STEP.name, ())):
        warn(f"ranked again with the papers embedded since: {', '.join(again)}; `paper-assets today` shows the list")
    return list(done.failures.values())


def _scope(
    workspace: Workspace, only: str | None, first: date | None, last: date | None
) -> tuple[ProfilesFound, date, date]:
    """Find the profiles and days of a run. Raises InvalidProfile, InvalidInput, NotComputed."""
    settings = workspace.settings
    folders = find_profiles(settings.profiles_dir)
    if only is not None and only not in folders.readable:
        raise InvalidProfile(folders.faults.get(only, f"no profile {only!r} in {settings.profiles_dir}"))
    profiles = {name: profile for name, profile in folders.readable.items() if only in (None, name)}
    if not profiles and folders.faults:
        raise InvalidProfile("; ".join(folders.faults.values()))
    if not profiles:
        raise InvalidProfile(f"no valid profile in {settings.profiles_dir}; `paper-assets profile new` makes one")
    today = workspace.clock().date()
    last = last or latest_day(workspace.warehouse, until=today)
    if last is None:
        if earliest := next(iter(paper_counts(workspace.warehouse)), None):
            raise NotComputed(f"every paper is dated after today, {today}, the first {earliest}; is the clock right?")
        raise NotComputed("no papers yet; run `paper-assets import FILE` or `paper-assets fetch --day DAY` first")
    first = first or last
    if not settings.first_day <= first <= last <= today:
        span = f"between {settings.first_day} and today, {today}"
        raise InvalidInput(f"days to rank must be {span}, and in order, got {first} to {last}")
    return ProfilesFound(profiles, folders.faults), first, last


def _shown(workspace: Workspace, partition: Partition, done: runs.RunResult) -> dict[str, Any]:
    """Return a profile's list of a day as JSON values, with what the run did for it."""
    day, profile, warehouse = partition.of_day, partition.of_profile, workspace.warehouse
    list_of_day = shown_ranking(warehouse, profile, day, settings=workspace.settings)
    ranked = [made for made in done.made.get(gatekeeper.STEP.name, ()) if made.profile == profile]
    notes = [done.waiting[partition]] if partition in done.waiting else []
    return {
        **list_of_day,
        "days_ranked": len(ranked),
        "warnings": [*list_of_day["warnings"], *notes],
        "rewrites": rewrites_of_day(warehouse, profile, day, config=workspace.settings.rewriting),
        "digest": str(digest_path(workspace.settings.digests_dir, profile, day, "html")),
    }
