"""Commands that fill the desk: demo, import, fetch and harvest, on the same Dagster instance as the UI."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from paper_assets.defs import runs
from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.cli.graph_run import Lists, bring_up_to_date, open_desk
from paper_assets.interfaces.cli.run import end, show_ranking
from paper_assets.interfaces.cli.stamp import stamp_key
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    open_warehouse,
    print_json,
    print_table,
    progress_bar,
    read_settings,
    say,
    warn,
)
from paper_assets.interfaces.values import parse_day
from paper_assets.pipeline import papers
from paper_assets.pipeline.harvest import Harvest, least_requests
from paper_assets.pipeline.harvest import harvest as bring_in
from paper_assets.pipeline.profiles import followed_categories
from paper_assets.pipeline.step import Partition
from paper_assets.setup.example import PROFILE
from paper_assets.setup.profiles import Place, create_profile, profile_names
from paper_assets.sources.arxiv import ARXIV
from paper_assets.sources.arxiv_oai import sets_of
from paper_assets.sources.bulk_files import read_papers
from paper_assets.stores.papers import latest_day, paper_counts


def demo(as_json: AsJson = False) -> None:
    """Import the bundled example, rank it, and show the top papers with reasons."""

    def show(shown: Lists) -> None:
        if as_json:
            return print_json(shown)
        for ranking in shown:
            show_ranking(ranking, with_why=True)

    _example_profile()
    with as_file(files("paper_assets.example") / "papers.jsonl") as example:
        _import([example], skip_bad_lines=False)
        last = max(paper.day for paper in _read(example, None) if paper.day)
    day = (
        None if latest_day(open_warehouse()) == last else last
    )  # the same question as `run`, so that its stamp serves both
    end(bring_up_to_date(None, day, day, show=show, key=stamp_key(None, day, day), others=False))
    if not as_json:
        say(
            "\nNext:\n"
            "  paper-assets start                        read and rate, and make your own profile, in the browser\n"
            "  paper-assets explain PROFILE PAPER_ID     why a paper has its rank\n"
            "  paper-assets up                           the desk and the graph, every day"
        )


def _example_profile() -> None:
    """Make a profile where there is none, as after an installation without a checkout."""
    settings = read_settings()
    place = Place(profiles_dir=settings.profiles_dir, home=settings.home, warehouse=open_warehouse())
    if not profile_names(place):
        create_profile(place, PROFILE, now=datetime.now(UTC))


def import_files(
    files: Annotated[list[Path], typer.Argument(help="arXiv snapshot, JSON lines or Atom feed; also .gz.")],
    skip_bad_lines: Annotated[bool, typer.Option(help="Skip lines that are not papers, and report them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Import papers from files. All files are read before anything is stored."""
    outcome = _import(files, skip_bad_lines=skip_bad_lines)
    if as_json:
        print_json(outcome)


def fetch(
    day: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help="Day of first submission (UTC).")],
    to: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Last day, to fetch several days.")] = None,
    accept_fewer: Annotated[
        bool, typer.Option(help="Accept an answer with far fewer papers than are stored, and remove the missing ones.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch the papers of a day from arXiv, replacing what is stored for that day."""
    first, last = parse_day(day, "--day"), parse_day(to or day, "--to")
    with open_desk() as (workspace, instance):
        if not workspace.settings.first_day <= first <= last <= datetime.now(UTC).date():
            earliest = workspace.settings.first_day
            raise InvalidInput(f"--day and --to must be between {earliest} and today, in this order")
        workspace = replace(workspace, options={papers.ACCEPT_FEWER: accept_fewer})
        days = [Partition(first + timedelta(days=number)) for number in range((last - first).days + 1)]
        runs.fetch_days(instance, workspace, papers.STEP, days)
        counts = {f"{of}": count for of, count in paper_counts(workspace.warehouse).items() if first <= of <= last}
    if as_json:
        return print_json(counts)
    print_table("papers by day", ["day", "papers"], sorted(counts.items()))


def _read(file: Path, faults: list[str] | None, oversized: list[str] | None = None) -> Iterator[Any]:
    yield from read_papers(
        file,
        on_fault=None if faults is None else faults.append,
        on_oversized=None if oversized is None else oversized.append,
    )


def _import(files: list[Path], *, skip_bad_lines: bool) -> dict[str, Any]:
    skipped: list[str] = []
    faults = skipped if skip_bad_lines else None
    with open_desk() as (workspace, instance), progress_bar("reading papers") as count:
        merged, days = runs.import_papers(
            instance,
            workspace,
            chain.from_iterable(_read(file, faults, skipped) for file in files),
            progress=lambda read: count(read, None),
        )
    for fault in skipped[:20]:
        warn(f"skipped: {fault}")
    if len(skipped) > 20:
        warn(f"skipped: {len(skipped) - 20} more")
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


_SHOWN = 20  # skipped records that are printed


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
        asked = Harvest(first=from_day, last=last, sets=tuple(sets or sets_of(followed_categories(workspace.settings))))
        if not asked.sets:
            raise InvalidInput("no category to harvest; set PAPER_ASSETS_CATEGORIES, or give --set")
        requests = least_requests(asked, workspace.clock().date())
        minutes = requests * workspace.settings.request_interval / 60
        if minutes >= 1:
            warn(f"at least {requests} requests, one for each month and set: {minutes:.0f} minutes or more")
        try:
            done = bring_in(workspace, ARXIV, asked, progress=lambda read, window: count(read, None, window))
        except PaperAssetsError:
            runs.report_papers(instance, workspace)  # what was stored before can be used
            raise
        days = runs.report_papers(instance, workspace)
    for fault in done.faults[:_SHOWN]:
        warn(f"skipped: {fault}")
    if len(done.faults) > _SHOWN:
        warn(f"skipped: {len(done.faults) - _SHOWN} more")
    outcome = {**asdict(done), "faults": len(done.faults), "days_reported": days}
    if as_json:
        return print_json(outcome)
    say(_counts(outcome))


def _counts(outcome: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in outcome.items() if value or name == "read")
