"""Bring the lists up to date on the same Dagster instance as the UI. Importing this imports Dagster."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from paper_assets.defs import runs
from paper_assets.defs.abandoned_runs import cancel_process_runs, fail_abandoned_runs
from paper_assets.defs.dagster_internals import close_files
from paper_assets.defs.external_assets import report_profiles, report_ratings
from paper_assets.defs.history_files import prune_history
from paper_assets.defs.instance import explained, open_instance
from paper_assets.errors import PaperAssetsError
from paper_assets.interfaces.background import report_stage
from paper_assets.interfaces.cli.process import before_the_end, log_unexpected
from paper_assets.interfaces.cli.run import list_shown, scope_of, warn_of_faults
from paper_assets.interfaces.cli.terminal import dagster_home, environment, progress_bar, read_settings, warn
from paper_assets.pipeline import embeddings, gatekeeper
from paper_assets.pipeline.health import repair
from paper_assets.pipeline.open_days import due_days, has_fetched
from paper_assets.pipeline.profiles import ProfilesFound
from paper_assets.pipeline.staleness import partitions_of_days
from paper_assets.pipeline.step import STOPS_ALL, Grid, Made, Partition, Step
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.sources.source import seconds_from_now
from paper_assets.stores.embeddings import days_without_vectors, unembedded_count
from paper_assets.stores.papers import paper_counts
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
    instance = open_instance(home, stay_open=True)
    before_the_end(lambda: cancel_process_runs(instance))
    with explained(home):
        fail_abandoned_runs(instance)
        prune_history(home)
        repair(workspace, report=_report_missing)
        try:
            yield workspace, instance
        finally:
            close_files()


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
            made.append(runs.fetch_days(instance, workspace, [Partition(day)]))
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
    others: bool = True,
    ask: bool = False,
) -> list[PaperAssetsError]:
    """Run every stale step for the days first..last, profile by profile, and return the failures.

    Args:
        only: a profile; None: all.
        first, last: days to rank; None: the newest day.
        show: receives each profile's list of the last day.
        others: also embed the papers that no list needs.
        ask: first fetch the days that are due.
    """
    with open_desk() as (workspace, instance):
        if ask:
            _ask_sources(workspace, instance)
        profiles, first_day, day = scope_of(workspace, only, first, last)
        warn_of_faults(profiles, only)
        shown, failures = _updated(workspace, instance, profiles, first_day, day)
        show(shown)
        if not failures:
            report_stage(workspace.settings.home, "the list is ready", listed=True)
        return failures + (_others_embedded(workspace, instance, profiles, day) if others else [])


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
    with workspace.warehouse.read_together([(name, last) for name in profiles.readable]) as opened:
        for profile in profiles.readable:
            if (gatekeeper.RANKINGS, profile) not in done.failed:
                try:
                    ranked = sum(made.profile == profile for made in done.made.get(gatekeeper.STEP.name, ()))
                    together = replace(workspace, warehouse=opened)
                    shown.append(list_shown(together, profile, last, days_ranked=ranked))
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
