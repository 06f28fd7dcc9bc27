"""Commands that move the graph: demo, import, fetch and what `run` makes, on the same Dagster instance as the UI."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from importlib.resources import as_file, files
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from paper_assets.defs import runs
from paper_assets.defs.dead_runs import cancel_own_runs, end_dead_runs
from paper_assets.defs.history_files import events_files
from paper_assets.defs.history_size import forget_old_logs
from paper_assets.defs.instance import explained, keeps_files, open_instance
from paper_assets.defs.profiles import report_profiles
from paper_assets.defs.ratings import report_ratings
from paper_assets.errors import InvalidInput, InvalidProfile, NotComputed, PaperAssetsError
from paper_assets.interfaces.cli.arguments import AsJson, dagster_home, open_warehouse, read_settings
from paper_assets.interfaces.cli.rested_on import rested_on
from paper_assets.interfaces.cli.rewriting import rewrites_of_day
from paper_assets.interfaces.cli.running import end, question, show_ranking
from paper_assets.interfaces.cli.stopping import before_the_end
from paper_assets.interfaces.cli.terminal import print_json, print_table, progress_bar, say, warn
from paper_assets.interfaces.days import parse_day
from paper_assets.interfaces.ranking_answers import shown_ranking
from paper_assets.pipeline import embeddings, gatekeeper, papers
from paper_assets.pipeline.mending import mend
from paper_assets.pipeline.partition import Grid, Partition
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles
from paper_assets.pipeline.step import Step
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.sources.bulk_files import read_papers
from paper_assets.stores.digest_files import digest_path
from paper_assets.stores.embeddings import days_without_vectors, unembedded_count
from paper_assets.stores.papers import latest_day, paper_counts
from paper_assets.stores.stamps import file_states, keep_stamp

Lists = Sequence[Mapping[str, Any]]  # as `_shown` gives them


def demo(as_json: AsJson = False) -> None:
    """Import the bundled example, embed and rank it, and show the top papers and why."""

    def show(shown: Lists) -> None:
        if as_json:
            return print_json(shown)
        for ranking in shown:
            show_ranking(ranking, with_why=True)

    with as_file(files("paper_assets.example") / "papers.jsonl") as example:
        _import([example], skip_bad_lines=False)
        last = max(paper.day for paper in _read(example, None) if paper.day)
    day = None if latest_day(open_warehouse()) == last else last  # asked as `run` asks, where that is the same
    end(bring_up_to_date(None, day, day, show=show, asked=question(None, day, day), others=False))
    if not as_json:
        say(
            "\nNext: `make desk` opens today's papers at http://127.0.0.1:8787, to read, rate and edit your profile"
            "  ·  or open a digest in a browser  ·  paper-assets explain PROFILE PAPER_ID"
            "  ·  `make dev` opens the graph at http://127.0.0.1:3000"
        )


def import_files(
    files: Annotated[list[Path], typer.Argument(help="arXiv snapshot, our own JSON lines or an Atom feed; .gz too.")],
    skip_bad_lines: Annotated[bool, typer.Option(help="Report lines that are no paper and import the others.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fill days from bulk files. All of them are read before anything is stored."""
    outcome = _import(files, skip_bad_lines=skip_bad_lines)
    if as_json:
        print_json(outcome)


def fetch(
    day: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help="Day of first submission, UTC.")],
    to: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Last day, to fetch several.")] = None,
    accept_fewer: Annotated[
        bool, typer.Option(help="Believe an answer with far fewer papers than are stored, and remove those it lacks.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch a day from arXiv and replace what is stored of it."""
    first, last = parse_day(day, "--day"), parse_day(to or day, "--to")
    with open_desk() as (workspace, instance):
        if not workspace.settings.first_day <= first <= last <= datetime.now(UTC).date():
            earliest = workspace.settings.first_day
            raise InvalidInput(f"--day and --to must lie between {earliest} and today, in this order")
        workspace = replace(workspace, options={papers.ACCEPT_FEWER: accept_fewer})
        runs.materialize(instance, workspace, papers.STEP, Partition(first), Partition(last))
        counts = {f"{of}": count for of, count in paper_counts(workspace.warehouse).items() if first <= of <= last}
    if as_json:
        return print_json(counts)
    print_table("papers by day", ["day", "papers"], sorted(counts.items()))


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


def _read(file: Path, faults: list[str] | None) -> Iterator[Any]:
    yield from read_papers(file, on_fault=None if faults is None else faults.append)


def _import(files: list[Path], *, skip_bad_lines: bool) -> dict[str, Any]:
    faults: list[str] | None = [] if skip_bad_lines else None
    with open_desk() as (workspace, instance), progress_bar("reading papers") as count:
        merged, days = runs.import_papers(
            instance,
            workspace,
            chain.from_iterable(_read(file, faults) for file in files),
            progress=lambda read: count(read, None),
        )
    for fault in (faults or [])[:20]:
        warn(f"skipped: {fault}")
    if faults and len(faults) > 20:
        warn(f"skipped: {len(faults) - 20} more")
    outcome = {
        "read": merged.read,
        "added": merged.added,
        "updated": merged.updated,
        "unchanged": merged.unchanged,
        "repeated": merged.repeated,
        "undated": merged.undated,
        "skipped": len(faults or []),
        "days_reported": days,
    }
    say(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in outcome.items() if value or name == "read"))
    return outcome


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
        roots = rested_on(workspace.settings, events_files(dagster_home())) if keeps_files(instance) else []
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
