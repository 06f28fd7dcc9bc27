"""Commands that fill and empty the desk, on the same Dagster instance as the UI: demo, import, fetch, harvest, reset.

Also `start --days`. Importing this module imports Dagster. Progress is reported to the page too
(interfaces/background.py).
"""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, timedelta
from importlib.resources import as_file, files
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from paper_assets.announcements import announced_days
from paper_assets.defs import runs
from paper_assets.defs.abandoned_runs import fail_abandoned_runs, runs_in_progress
from paper_assets.defs.history_files import HISTORY
from paper_assets.defs.instance import delete_server_history, explained, open_instance, uses_server
from paper_assets.errors import InvalidInput, InvalidProfile, PaperAssetsError, StoreBusy, StoreError, StoreUnwritable
from paper_assets.interfaces import background
from paper_assets.interfaces.background import Job
from paper_assets.interfaces.cli.backups import import_folder
from paper_assets.interfaces.cli.graph_run import Lists, bring_up_to_date, fetch_due, open_desk
from paper_assets.interfaces.cli.run import end, show_ranking
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    Yes,
    confirm,
    dagster_home,
    open_warehouse,
    print_json,
    print_table,
    program_as_called,
    progress_bar,
    read_settings,
    say,
    warn,
    warn_of_each,
)
from paper_assets.interfaces.values import parse_day
from paper_assets.pipeline import embeddings, papers
from paper_assets.pipeline.embeddings import COLLECTION
from paper_assets.pipeline.open_days import days_asked, due_days
from paper_assets.pipeline.papers import Harvest, minimum_requests
from paper_assets.pipeline.papers import harvest as harvest_papers
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles, followed_categories
from paper_assets.pipeline.step import Made, Partition
from paper_assets.settings import Settings
from paper_assets.setup.example import PROFILE
from paper_assets.setup.profile_editing import Place, create_profile, profile_names
from paper_assets.small_files import is_folder
from paper_assets.sources.arxiv import ARXIV
from paper_assets.sources.arxiv_oai import sets_of
from paper_assets.sources.bulk_files import read_papers
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.papers import paper_counts
from paper_assets.stores.vectors import drop
from paper_assets.text.numbers import count_of


def demo(as_json: AsJson = False) -> None:
    """Import the bundled example, rank it, and show the top papers with reasons."""

    def show(shown: Lists) -> None:
        if as_json:
            return print_json(shown)
        for ranking in shown:
            show_ranking(ranking, with_why=True)

    _example_profile()
    with as_file(files("paper_assets.setup") / "example_papers.jsonl") as example:
        _import([example], skip_bad_lines=False)
        last = max(paper.day for paper in read_papers(example) if paper.day)
    end(bring_up_to_date(None, last, last, show=show, others=False))
    if not as_json:
        say(next_commands(program_as_called()))


def next_commands(program: str) -> str:
    """Return what to do after the demo, in commands that can be copied."""
    commands = {
        "start": "read and rate, and make your own profile, in the browser",
        "explain PROFILE PAPER_ID": "why a paper has its rank",
        "up": "the desk and the graph, every day",
    }
    width = max(map(len, commands)) + 4
    return "\n".join(["\nNext:", *(f"  {program} {each:{width}} {what}" for each, what in commands.items())])


def _example_profile() -> None:
    """Make a profile where there is none, as after an installation without a checkout."""
    settings = read_settings()
    place = Place(profiles_dir=settings.profiles_dir, home=settings.home, warehouse=open_warehouse())
    if not profile_names(place):
        create_profile(place, PROFILE, now=datetime.now(UTC))


def import_files(
    files: Annotated[
        list[Path], typer.Argument(help="arXiv snapshot, JSON lines or Atom feed, also .gz; or a folder of `export`.")
    ],
    skip_bad_lines: Annotated[bool, typer.Option(help="Skip damaged lines too, and report them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Import papers from files, or add what `export` wrote. All files are read before anything is stored.

    A record that cannot be used, such as one without a title, is skipped and named.
    """
    if len(files) == 1 and is_folder(files[0]):
        return import_folder(files[0], as_json=as_json)
    outcome = _import(files, skip_bad_lines=skip_bad_lines)
    if as_json:
        print_json(outcome)


def fetch(
    day: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Day of first submission (UTC); default: the days due.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Last day, to fetch several days.")] = None,
    due: Annotated[
        bool, typer.Option("--due", help="Fetch the days of the last week that are due (the default).")
    ] = False,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --due: as if it were this time, such as 2026-03-02T01:30Z.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --due: print the days and why; fetch nothing.")
    ] = False,
    accept_fewer: Annotated[
        bool, typer.Option(help="Accept an answer with far fewer papers than are stored, and remove the missing ones.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch papers from arXiv: those of a day, or of the days that are due."""
    if day is None:
        if to is not None or accept_fewer:
            raise InvalidInput("--to and --accept-fewer need --day")
        return _fetch_due(_moment(at) if at else datetime.now(UTC), dry_run=dry_run, as_json=as_json)
    if due or at or dry_run:
        raise InvalidInput("give --day, or --due with --at and --dry-run")
    first, last = parse_day(day, "--day"), parse_day(to or day, "--to")
    with open_desk() as (workspace, instance):
        if not workspace.settings.first_day <= first <= last <= datetime.now(UTC).date():
            earliest = workspace.settings.first_day
            raise InvalidInput(f"--day and --to must be between {earliest} and today, in this order")
        workspace = replace(workspace, options={papers.ACCEPT_FEWER: accept_fewer})
        days = [Partition(first + timedelta(days=number)) for number in range((last - first).days + 1)]
        made = runs.fetch_days(instance, workspace, days)
        stored = paper_counts(workspace.warehouse)
        counts = {f"{each}": count for each, count in stored.items() if first <= each <= last}
    _warn_of_unanswered(made)
    if as_json:
        return print_json(counts)
    print_table("papers by day", ["day", "papers"], sorted(counts.items()))


def _moment(text: str) -> datetime:
    """Return a time given on the command line, in UTC unless it names another zone. Raises InvalidInput."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"--at: {text[:40]!r} is not a time; write it as 2026-03-02T01:30Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _fetch_due(now: datetime, *, dry_run: bool, as_json: bool) -> None:
    """Fetch the days that are due, newest first; a failed day stops no other. Raises the failure of the newest."""
    with open_desk() as (workspace, instance):
        workspace = replace(workspace, clock=lambda: now)
        days = due_days(workspace.warehouse, workspace.settings, now)
        fetched, failures = fetch_due(workspace, instance, [] if dry_run else [each.day for each in days])
        counts = paper_counts(workspace.warehouse)
    for made in fetched:
        _warn_of_unanswered(made)
    rows = [{"day": f"{each.day}", "reason": each.reason, "papers": counts.get(each.day, 0)} for each in days]
    if as_json:
        print_json(rows)
    elif rows:
        title = "days that are due" if dry_run else "fetched days"
        print_table(title, ["day", "why", "papers"], [tuple(row.values()) for row in rows])
    else:
        say("No day is due: everything that is announced is fetched.")
    if failures:
        raise failures[0]


def _warn_of_unanswered(made: Made) -> None:
    for reason in papers.unanswered(made):
        warn(f"warning: {reason}; the papers are stored without its data")


def _import(files: list[Path], *, skip_bad_lines: bool) -> dict[str, Any]:
    skipped: list[str] = []
    on_fault = skipped.append if skip_bad_lines else None
    with open_desk() as (workspace, instance), progress_bar("reading papers") as count:
        merged = merge_papers(
            workspace.warehouse,
            chain.from_iterable(read_papers(file, on_unusable=skipped.append, on_fault=on_fault) for file in files),
            progress=lambda read: count(read, None),
        )
        days = runs.report_papers(instance, workspace)
        today = workspace.clock().date()
        early = {day: papers for day, papers in paper_counts(workspace.warehouse).items() if day > today}
    if early:
        verb = "is" if sum(early.values()) == 1 else "are"
        warn(
            f"warning: {count_of(sum(early.values()), 'stored paper')} {verb} dated after today, up to {max(early)}; "
            "they will not be listed until that day"
        )
    warn_of_each(skipped, what="skipped")
    outcome = {
        "read": merged.read,
        "added": merged.added,
        "updated": merged.updated,
        "unchanged": merged.unchanged,
        "repeated": merged.repeated,
        "undated": merged.undated,
        "skipped": len(skipped),
        "days_reported": days,
    }
    say(_counts(outcome))
    return outcome


def harvest(
    first: Annotated[str, typer.Option("--from", metavar="YYYY-MM-DD", help="First day.")],
    until: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="Last day of changes; default: now. Later revisions are missing then."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="A set of arXiv, such as cs:cs:CL; default: those of the followed categories."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch months of papers by arXiv's OAI-PMH; a stopped harvest continues where it stopped."""
    from_day, last = parse_day(first, "--from"), parse_day(until, "--until") if until else None
    with open_desk() as (workspace, instance), progress_bar("harvesting") as count:
        if not from_day <= (last or from_day) <= workspace.clock().date():
            raise InvalidInput("--from and --until must not be after today, in this order")
        wanted = Harvest(
            first=from_day, last=last, sets=tuple(sets or sets_of(followed_categories(workspace.settings)))
        )
        if not wanted.sets:
            raise InvalidInput("no category to harvest; set PAPER_ASSETS_CATEGORIES, or give --set")
        requests = minimum_requests(wanted, workspace.clock().date())
        minutes = requests * workspace.settings.request_interval / 60
        if minutes >= 1:
            warn(f"at least {requests} requests, one for each month and set: {minutes:.0f} minutes or more")
        try:
            done = harvest_papers(workspace, ARXIV, wanted, progress=lambda read, window: count(read, None, window))
        except PaperAssetsError:
            runs.report_papers(instance, workspace)  # what was stored before can be used
            raise
        days = runs.report_papers(instance, workspace)
    warn_of_each(done.faults, what="skipped")
    outcome = {**asdict(done), "faults": len(done.faults), "days_reported": days}
    if as_json:
        return print_json(outcome)
    say(_counts(outcome))


_COUNTED = {"left_out": "submitted before --from and not stored", "resumed": "pages read by an earlier call"}


def _counts(outcome: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{_COUNTED.get(name, name.replace('_', ' '))} {value}"
        for name, value in outcome.items()
        if value or name == "read"
    )


def fetch_and_rank(days: int, only: str | None) -> None:
    """Fetch the last `days` days of which papers are announced, newest first, and rank.

    A day that was fetched is fetched again only if it is due, also an older one. Without a profile the papers of
    PAPER_ASSETS_CATEGORIES are fetched and embedded for the first one. Raises InvalidProfile without both, and the
    source's error after ranking the papers that could be fetched.
    """
    settings = read_settings()
    profiles = find_profiles(settings.profiles_dir) if settings.profiles_dir.is_dir() else ProfilesFound({}, {})
    if not profiles.readable and "categories" not in settings.model_fields_set:
        raise InvalidProfile("there is no profile yet; make one with `paper-assets profile new`")
    if only is not None and only not in profiles.readable:
        raise InvalidProfile(profiles.faults.get(only, f"there is no profile {only[:60]!r} in {settings.profiles_dir}"))
    now = datetime.now(UTC)
    newest = [day for day in announced_days(now, days) if day >= settings.first_day]
    if not newest:
        raise InvalidInput(f"no day to fetch: PAPER_ASSETS_FIRST_DAY is {settings.first_day}")
    job = Job(
        arguments=tuple(sys.argv[1:]),
        title=f"paper-assets start --days {days}",
        profile=only,
        total=len(newest),
        listed=not profiles.readable,
    )
    job = background.take_over(settings.home, job)
    failure = _fetched(settings, job, newest, now)
    job = background.last_job(settings.home) or job
    background.write_job(settings.home, replace(job, stage="embedding and ranking the papers", done=len(job.counts)))
    say("Embedding and ranking the papers …")
    if not profiles.readable:
        return _embed_for_the_first_profile(newest, failure)

    def show(shown: Lists) -> None:
        for profile_list in shown:
            show_ranking(profile_list, with_why=False)

    failures = bring_up_to_date(only, None, None, show=show, others=False)
    end([*([failure] if failure else []), *failures])
    background.write_job(settings.home, replace(job, state="done", stage="done", done=len(job.counts), process=""))


def _embed_for_the_first_profile(newest: list[date], failure: PaperAssetsError | None) -> None:
    with open_desk() as (workspace, instance):
        done = runs.RunResult()
        runs.bring_up_to_date(instance, workspace, embeddings.STEP, [Partition(day) for day in newest[::-1]], done)
    end([*([failure] if failure else []), *done.failures.values()])


def _fetched(settings: Settings, job: Job, newest: list[date], now: datetime) -> PaperAssetsError | None:
    """Fetch the newest days one by one, except those already fetched that cannot have grown, and earlier ones that may.

    Return the failure that stopped it, or raise it if no paper is stored.
    """
    with open_desk() as (workspace, instance):
        stored = paper_counts(workspace.warehouse)
        due = {each.day: each for each in due_days(workspace.warehouse, workspace.settings, now)}
        grown = {day for day, each in due.items() if each.papers is not None}
        wanted = sorted({*newest, *grown}, reverse=True)
        job = replace(job, total=len(wanted))
        known = days_asked(workspace.warehouse, settings, since=wanted[-1]) - due.keys()
        counts = {f"{day}": stored.get(day, 0) for day in wanted if day in known}
        for number, day in enumerate(wanted, start=1):
            if f"{day}" in counts:
                continue
            stage = f"fetching {day:%A} {day.day} {day:%B}: day {number} of {len(wanted)}"
            background.write_job(settings.home, replace(job, stage=stage, done=len(counts), counts=counts))
            total = count_of(sum(counts.values()), "paper")
            say(
                f"Day {number} of {len(wanted)}, {day}: {total} so far; "
                f"{settings.request_interval:g} s between two requests, as arXiv asks"
            )
            try:
                made = runs.fetch_days(instance, workspace, [Partition(day)])
            except PaperAssetsError as fault:
                background.write_job(settings.home, replace(job, stage=stage, done=len(counts), counts=counts))
                if not paper_counts(workspace.warehouse):
                    raise
                return PaperAssetsError(
                    f"{fault}; {count_of(len(counts), 'day')} of {len(wanted)} fetched, the same command continues"
                )
            _warn_of_unanswered(made)
            counts[f"{day}"] = paper_counts(workspace.warehouse).get(day, 0)
            background.write_job(settings.home, replace(job, stage=stage, done=len(counts), counts=counts))
    return None


_ON_SERVER = "Dagster's history on the PostgreSQL server"
_HEARTBEAT_SECONDS = 60  # seconds; a running daemon sends a heartbeat every 30


def reset(
    history: Annotated[bool, typer.Option("--history", help="Only Dagster's runs and events; papers stay.")] = False,
    yes: Yes = False,
) -> None:
    """Delete papers, results and Dagster's history; profiles and settings are kept."""
    settings = read_settings()
    home = dagster_home()
    stores = [
        *settings.home.glob(f"{settings.warehouse_path.name}*"),
        *settings.home.glob(f"{settings.vectors_path.name}*"),
        settings.rankings_dir,
        settings.digests_dir,
    ]
    doomed = [home / name for name in HISTORY] + ([] if history else stores)
    doomed = [path for path in doomed if path.exists()]
    on_server = uses_server()
    vectors = [COLLECTION, settings.archive] if settings.chroma_url and not history else []
    on_servers = [*([_ON_SERVER] if on_server else []), *(f"{settings.chroma_url} {name}" for name in vectors)]
    targets = ", ".join([*map(str, doomed), *on_servers])
    if not targets:
        return say("nothing to remove")
    confirm(f"remove {targets} for good", yes=yes)
    instance = _instance_or_none(home, on_server=on_server)
    if not history and settings.warehouse_path.exists():
        with open_warehouse().writing():  # no other process has it open
            pass
    if instance and on_server:
        with explained(home):
            delete_server_history(instance)
    for name in vectors:
        drop(VectorIndex(settings.vectors_place, deadline=settings.store_deadline), name)
    for path in doomed:
        try:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        except OSError as fault:
            raise StoreUnwritable(f"{path} cannot be removed: {fault.strerror}; check permissions") from None
    say(f"removed {targets}")


def _instance_or_none(home: Path, *, on_server: bool) -> Any:
    """Return Dagster's instance; None if its files are damaged and can only be removed.

    Raises StoreBusy if a run or the daemon is still writing what is being removed.
    """
    try:
        instance = open_instance(home)
        with explained(home):
            fail_abandoned_runs(instance)
            busy = runs_in_progress(instance)
            beats = [beat.timestamp for beat in instance.get_daemon_heartbeats().values()]
    except StoreBusy:
        raise
    except StoreError:
        if on_server:
            raise
        return None
    if busy:
        raise StoreBusy(f"{busy} is running; let it finish or stop it, then reset")
    if max(beats, default=0.0) > datetime.now(UTC).timestamp() - _HEARTBEAT_SECONDS:
        raise StoreBusy("Dagster's daemon uses this history; stop it (`make dev`), wait a minute, then reset")
    return instance
