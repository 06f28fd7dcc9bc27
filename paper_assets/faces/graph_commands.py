"""Commands that move the graph: demo, import, fetch, run and status, on the same Dagster instance as the UI."""

import os
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from paper_assets.errors import InvalidInput
from paper_assets.faces.arguments import AsJson, open_warehouse, parse_day, read_settings
from paper_assets.faces.terminal import print_json, print_table, progress_bar, say
from paper_assets.settings import Settings


def demo(as_json: AsJson = False) -> None:
    """Import the bundled example, embed it, rank it for every profile, and show the top papers and why."""
    from importlib.resources import as_file, files

    with as_file(files("paper_assets.example") / "papers.jsonl") as example:
        _import([example], skip_bad_lines=False)
        last = max(paper.day for paper in _read(example, None) if paper.day)
    shown = _rank_profiles(None, last, last)
    if as_json:
        return print_json(shown)
    for ranking in shown:
        _show_ranking(ranking, with_why=True)
    say(
        "\nNext: open a digest in a browser  ·  paper-assets explain PROFILE PAPER_ID"
        "  ·  edit profiles/*/profile.json and run `paper-assets run`"
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
    as_json: AsJson = False,
) -> None:
    """Fetch a day from arXiv and replace what is stored of it."""
    from paper_assets.defs import runs
    from paper_assets.stores.papers import paper_counts

    first, last = parse_day(day, "--day"), parse_day(to or day, "--to")
    settings, resources, instance = _desk()
    if not settings.first_day <= first <= last <= datetime.now(UTC).date():
        raise InvalidInput(f"--day and --to must lie between {settings.first_day} and today, in this order")
    runs.fetch_days(instance, resources, first, last)
    counts = {f"{of}": count for of, count in paper_counts(resources["warehouse"]).items() if first <= of <= last}
    if as_json:
        return print_json(counts)
    print_table("papers by day", ["day", "papers"], sorted(counts.items()))


def run(
    profile: Annotated[str | None, typer.Option(help="One profile; without it, all.")] = None,
    as_of: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Day to rank; default: the newest.")] = None,
    since: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="First of several days to rank.")] = None,
    as_json: AsJson = False,
) -> None:
    """Embed what is new and rank; what stands already is not computed again."""
    last = parse_day(as_of, "--as-of") if as_of else None
    shown = _rank_profiles(profile, parse_day(since, "--since") if since else last, last)
    if as_json:
        return print_json(shown)
    for ranking in shown:
        _show_ranking(ranking, with_why=False)


def status(as_json: AsJson = False) -> None:
    """Show what is stored, for which days and profiles, and what is wrong with a profile, if anything."""
    from dataclasses import asdict

    from paper_assets.defs.profiles import find_profiles
    from paper_assets.stores.warehouse import summary

    settings = read_settings()
    held = asdict(summary(open_warehouse()))
    found = find_profiles(settings.profiles_dir)
    held["profiles"] = {**dict.fromkeys(found.readable, "good"), **found.faults}
    if as_json:
        return print_json(held)
    print_table(
        f"{settings.home}",
        ["what", "value"],
        [
            ("papers", held["papers"]),
            ("without a date", held["undated"]),
            ("days", f"{held['days']}, {held['first_day'] or '–'} to {held['last_day'] or '–'}"),
            *((f"vectors of {model}", count) for model, count in held["vectors"].items()),
            *(
                (f"rankings of {name}", f"{count}, the last of {held['last_ranking'][name]}")
                for name, count in held["rankings"].items()
            ),
            *((f"profile {name}", state) for name, state in sorted(held["profiles"].items())),
        ],
    )


def _desk(progress: Any = None) -> tuple[Settings, dict[str, Any], Any]:
    """Settings, resources and the Dagster instance that the UI shows too."""
    from paper_assets.defs.resources import resources_for
    from paper_assets.defs.runs import open_instance

    settings = read_settings()
    home = os.environ.get("DAGSTER_HOME") or Path.cwd() / "dagster_home"
    told = {"progress": progress} if progress else {}
    resources = resources_for(settings, os.environ, **told)
    return settings, resources, open_instance(Path(home))


def _read(file: Path, faults: list[str] | None) -> Iterator[Any]:
    from paper_assets.sources.bulk_files import read_papers

    yield from read_papers(file, on_fault=None if faults is None else faults.append)


def _import(files: list[Path], *, skip_bad_lines: bool) -> dict[str, Any]:
    from itertools import chain

    from paper_assets.defs import runs

    settings, resources, instance = _desk()
    faults: list[str] | None = [] if skip_bad_lines else None
    with progress_bar("reading papers") as count:
        merged, days = runs.import_papers(
            instance,
            resources["warehouse"],
            chain.from_iterable(_read(file, faults) for file in files),
            settings=settings,
            progress=lambda read: count(read, None),
        )
    for fault in (faults or [])[:20]:
        print(f"skipped: {fault}", file=sys.stderr)
    if faults and len(faults) > 20:
        print(f"skipped: {len(faults) - 20} more", file=sys.stderr)
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


def _rank_profiles(only: str | None, first: date | None, last: date | None) -> list[dict[str, Any]]:
    """Embed the windows, rank each profile over first..last (None: the newest day), return what is shown last."""
    from datetime import timedelta

    from paper_assets.defs import runs
    from paper_assets.defs.profiles import find_profiles, report_profiles
    from paper_assets.digests.daily import digests_folder
    from paper_assets.errors import InvalidProfile, NotComputed
    from paper_assets.faces.ranking_answers import shown_ranking
    from paper_assets.faces.rewriting_commands import rewrites_of_day
    from paper_assets.stores.digest_files import digest_path
    from paper_assets.stores.papers import latest_day, paper_counts

    with progress_bar("embedding papers") as count:
        settings, resources, instance = _desk(count)
        warehouse = resources["warehouse"]
        found = find_profiles(settings.profiles_dir)
        if only is not None and only not in found.readable:
            raise InvalidProfile(found.faults.get(only, f"no profile {only!r} in {settings.profiles_dir}"))
        for fault in found.faults.values() if only is None else ():
            print(f"left out: {fault}", file=sys.stderr)
        profiles = [profile for name, profile in found.readable.items() if only in (None, name)]
        if not profiles:
            raise InvalidProfile(
                f"no usable profile in {settings.profiles_dir}; put a profile.json into a folder there"
            )
        last = last or latest_day(warehouse)
        if last is None:
            raise NotComputed("no papers yet; run `paper-assets import FILE` or `paper-assets fetch --day DAY` first")
        first = first or last
        if not settings.first_day <= first <= last:
            raise InvalidInput(
                f"days to rank must lie from {settings.first_day} on and in order, got {first} to {last}"
            )
        report_profiles(instance, found)
        longest = max(profile.content.feed.window_days for profile in profiles)
        earliest = max(first - timedelta(days=longest - 1), settings.first_day)
        runs.embed_days(instance, warehouse, resources, earliest, last)
    filled = paper_counts(warehouse)
    walk = [
        day
        for day in (first + timedelta(days=i) for i in range((last - first).days + 1))
        if day in filled or day == last
    ]
    shown = []
    with progress_bar("ranking profiles") as count:
        for done, profile in enumerate(profiles):
            count(done, len(profiles))
            ranked = runs.rank_days(instance, warehouse, resources, profile, walk)
            runs.retrieve_day(instance, warehouse, resources, profile, last)
            shown.append({**shown_ranking(warehouse, profile.name, last), "days_ranked": len(ranked)})
            if note := runs.rewrite_day(instance, warehouse, resources, profile, last):
                shown[-1]["warnings"] = [*shown[-1]["warnings"], note]
            shown[-1]["rewrites"] = rewrites_of_day(warehouse, profile.name, last, numbers=settings.rewriting)
            runs.digest_days(instance, warehouse, resources, profile, ranked, last)
            shown[-1]["digest"] = str(digest_path(digests_folder(settings), profile.name, last, "html"))
    return shown


def _show_ranking(shown: dict[str, Any], *, with_why: bool) -> None:
    state = f"{shown['days_ranked']} days ranked" if shown["days_ranked"] else "nothing has changed"
    for warning in shown["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    print_table(
        f"{shown['profile']}, {shown['day']}: {len(shown['papers'])} of {shown['scored']} candidates ({state})",
        ["#", "score", "paper", "tags"],
        [
            (paper["rank"], f"{paper['score']:.3f}", f"{paper['paper_id']}  {paper['title']}", ", ".join(paper["tags"]))
            for paper in shown["papers"]
        ],
    )
    if with_why:
        for paper in shown["papers"]:
            say(f"{paper['rank']}. {paper['sum']}")
    if shown["rewrites"]:
        say(f"rewrites: {', '.join(f'{count} {standing}' for standing, count in shown['rewrites'].items())}")
    say(f"file: {shown['file']}\ndigest: {shown['digest']}\n")
