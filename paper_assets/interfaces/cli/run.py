"""Bring rankings and digests up to date (`run`), and show what is stored, out of date or wrong (`status`).

While nothing is due, the stored lists are shown without the graph: importing Dagster alone takes longer.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from paper_assets.announcements import in_words
from paper_assets.defs.history_files import is_settled
from paper_assets.errors import InvalidInput, InvalidProfile, NotComputed, PaperAssetsError
from paper_assets.interfaces.cli.process import importing, log_unexpected
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    dagster_home,
    day_option,
    environment,
    open_warehouse,
    print_json,
    print_table,
    read_settings,
    say,
    warn,
)
from paper_assets.interfaces.values import late_in_words
from paper_assets.pipeline.open_days import due_days, has_fetched, recent_days
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles
from paper_assets.profile import Profile
from paper_assets.settings import RewritingConfig, Settings
from paper_assets.sources.id_prefixes import prefixes_of_fetched_sources
from paper_assets.stores.backups import backups, damaged_tables, time_of
from paper_assets.stores.digest_files import digest_path
from paper_assets.stores.embeddings import unembedded_count
from paper_assets.stores.entered import ENTERED_TABLES
from paper_assets.stores.feedback import model_inputs
from paper_assets.stores.harvests import MissingDays, day_troubles, missing_days
from paper_assets.stores.papers import latest_day, paper_counts, summary
from paper_assets.stores.rankings import all_output_paths, ranking_header
from paper_assets.stores.rewrites import rewrites_of
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.numbers import count_of
from paper_assets.text.tex import readable

if TYPE_CHECKING:
    from paper_assets.pipeline.workspace import Workspace

_MOST_LINES = 20  # papers beside the list


def run(
    profile: Annotated[str | None, typer.Option(help="A profile; default: all.")] = None,
    as_of: Annotated[date | None, day_option("--as-of", "Day to rank; default: the newest.")] = None,
    since: Annotated[date | None, day_option("--since", "First day, to rank several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Bring rankings and digests up to date. Fetches the days that are due where papers were fetched before, embeds new
    papers and computes only what has changed.

    At the end all other stored papers are embedded, newest first. That can be stopped at any time: the next run
    continues, and until then `retrieve` compares those papers by words only.
    """
    first, last = since or as_of, as_of

    def show(shown: Sequence[Mapping[str, Any]]) -> None:
        if as_json:
            return print_json(shown)
        for ranking in shown:
            show_ranking(ranking, with_why=False)

    current = _current_lists(profile, last) if first == last else None
    if current is not None:
        return show(current)
    with importing():
        from paper_assets.interfaces.cli.graph_run import bring_up_to_date  # imports Dagster

    end(bring_up_to_date(profile, first, last, show=show, ask=last is None))


def comparing_workspace() -> "Workspace":
    """Return a workspace that compares without loading the embedding model that comes with this package."""
    with importing():
        from paper_assets.models import minilm
        from paper_assets.pipeline.workspace import open_workspace

    settings = read_settings()
    named = minilm.NAME if settings.embedding_model == minilm.NAME else None
    workspace = open_workspace(settings, environment(), clock=lambda: datetime.now(UTC))
    return replace(workspace, assumed_model=named)


def _current_lists(only: str | None, day: date | None) -> list[dict[str, Any]] | None:
    """Return the lists of the day (None: the newest) if nothing is due; None also where a run was killed or failed."""
    workspace = comparing_workspace()
    settings = workspace.settings
    if not settings.warehouse_path.exists() or not is_settled(dagster_home()):
        return None
    from paper_assets.pipeline.health import lacking_files
    from paper_assets.pipeline.staleness import late_assets
    from paper_assets.pipeline.step import Partition, keys_of

    with workspace.warehouse.read_together() as opened:
        workspace = replace(workspace, warehouse=opened)
        profiles, _, last = scope_of(workspace, only, day, day)
        asks = day is None and has_fetched(opened, settings) and due_days(opened, settings, workspace.clock())
        model = workspace.embedding_model()
        if asks or model is None or unembedded_count(opened, None, None, model=model):
            return None
        partitions = [Partition(last, name) for name in profiles.readable]
        workspace = replace(workspace, warehouse=replace(opened, days=keys_of(partitions)))
        if lacking_files(settings, all_output_paths(opened)) or any(late_assets(workspace, partitions).values()):
            return None
        shown = [list_shown(workspace, each.of_profile, last, days_ranked=0) for each in partitions]
    warn_of_faults(profiles, only)
    return shown


def warn_of_faults(profiles: ProfilesFound, only: str | None) -> None:
    """Name the profiles that cannot be read, unless the run is for one profile (`only`)."""
    for fault in profiles.faults.values() if only is None else ():
        warn(f"skipped profile: {fault}")


def scope_of(
    workspace: "Workspace", only: str | None, first: date | None, last: date | None
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


def list_shown(workspace: "Workspace", profile: str, day: date, *, days_ranked: int) -> dict[str, Any]:
    """Return a profile's list of a day as JSON values, with what it waits for and what a run did for it."""
    from paper_assets.interfaces.ranking_answers import shown_ranking
    from paper_assets.pipeline.staleness import waits_of

    warehouse, settings = workspace.warehouse, workspace.settings
    list_of_day = shown_ranking(warehouse, profile, day, settings=settings)
    return {
        **list_of_day,
        "days_ranked": days_ranked,
        "warnings": [*list_of_day["warnings"], *waits_of(workspace, profile, day)],
        "rewrites": rewrites_of_day(warehouse, profile, day, config=settings.rewriting),
        "digest": str(digest_path(settings.digests_dir, profile, day, "html")),
    }


def end(failures: Sequence[PaperAssetsError]) -> None:
    """Print each failure in a line and end the command with the first. What did not depend on them is done."""
    for line in list(dict.fromkeys(map(str, failures)))[1:]:
        warn(f"error: {line}")
    if failures:
        raise failures[0]


def show_ranking(shown: Mapping[str, Any], *, with_why: bool) -> None:
    """Print a profile's list as a table, with its warnings and files, and what a run did for it (`days_ranked`)."""
    ranked = shown.get("days_ranked")
    state = "" if ranked is None else f" ({count_of(ranked, 'day')} ranked)" if ranked else " (nothing has changed)"
    for warning in shown["warnings"]:
        warn(f"warning: {warning}")
    _print_papers(f"{shown['profile']}, {shown['day']}: {shown['headline']}{state}", shown["papers"], shown)
    for paper in shown["more_likely"][:_MOST_LINES]:
        say(f"also likely: {paper['paper_id']}  {readable(paper['title'])}")
    if left := len(shown["more_likely"][_MOST_LINES:]):
        say(f"and {left} more")
    for paper in shown["by_people"]:
        say(f"by people you follow: {paper['paper_id']}  {readable(paper['title'])}")
    if not shown["papers"]:
        say(shown.get("window", "").removesuffix("."))
    if with_why:
        for paper in shown["papers"]:
            say(f"{paper['rank']}. {paper['reason']}")
    if shown["rewrites"]:
        say(f"rewrites: {', '.join(f'{count} {standing}' for standing, count in shown['rewrites'].items())}")
    say(f"file: {shown['file']}\ndigest: {shown['digest']}\n")


def _print_papers(title: str, papers: Sequence[Mapping[str, Any]], shown: Mapping[str, Any]) -> None:
    print_table(
        title,
        ["#", "level" if shown["is_probability"] else "score", "paper", "notable"],
        [
            (
                paper["rank"],
                paper["level"] if shown["is_probability"] else f"{paper['score']:.3f}",
                f"{paper['paper_id']}  {readable(paper['title'])}",
                ", ".join(paper["notable"]),
            )
            for paper in papers
        ],
    )


def rewrites_of_day(warehouse: Warehouse, profile: str, day: date, *, config: RewritingConfig) -> dict[str, int]:
    """Count the rewrites of the profile's day by state."""
    items = rewrites_of(warehouse, profile=profile, day=day)
    if not items:
        return {}
    from paper_assets.rewriting.loop import status_in_words  # imports the rewriting package

    return dict(Counter(status_in_words(item, config=config) for item in items))


T = TypeVar("T")
_GOOD = "good"  # the state of a profile that can be read
_MAX_SPANS = 20  # spans of missing days that are shown, the latest ones


def status(as_json: AsJson = False) -> None:
    """Show what is stored, what is out of date, and which profiles cannot be read."""
    settings = read_settings()
    # What people entered is a moment's reading; `doctor` and every backup read all.
    damaged = damaged_tables(open_warehouse(), ENTERED_TABLES)
    with open_warehouse().read_together() as opened:
        held, missing, late = _collected(settings, opened)
    held["damaged"], kept = list(damaged), backups(settings.home)
    held["newest_backup"] = kept[0] if kept else None
    if as_json:
        print_json(held)
        raise typer.Exit(1 if damaged else 0)
    before = len(missing) - _MAX_SPANS
    print_table(
        f"{settings.home}",
        ["what", "value"],
        [
            *_stored_papers(held),
            *(tuple(day.split(": ", 1)) for day in held["recent_days"]),
            *((_span(days), str(days)) for days in missing[-_MAX_SPANS:]),
            *([("earlier missing days", f"{count_of(before, 'span')}, see --json")] if before > 0 else []),
            *((f"vectors of {model}", count) for model, count in held["vectors"].items()),
            ("backups", f"{len(kept)}, the newest of {time_of(kept[0]):%Y-%m-%d}" if kept else "none yet"),
            *([] if held["profiles"] else [("profiles", "none yet; `paper-assets profile new` makes one")]),
        ],
    )
    if names := sorted(held["profiles"].keys() | held["rankings"].keys()):
        rows = [(name, *_lists_of(held, name), _state_of(held, late, name)) for name in names]
        print_table("", ["profile", "lists", "newest", "state"], rows)
    if late:
        print("`paper-assets run` computes what is out of date.")
    for table, fault in damaged.items():
        warn(f"error: {table} is damaged: {fault}")
    if damaged:
        raise typer.Exit(1)


def _lists_of(held: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Return how many lists of a profile are stored, and the day of the newest one."""
    count = held["rankings"].get(name, 0)
    return f"{count}", f"{held['last_ranking'].get(name, '')}"


def _state_of(held: Mapping[str, Any], late: Mapping[str, Sequence[str]], name: str) -> str:
    """Say what is wrong with a profile or out of date, and how much its ratings count."""
    state = held["profiles"].get(name, "removed; its lists are kept")
    if state == _GOOD:
        state = "current" if name in held["current"] else "no list yet"
        if steps := late.get(name):
            state = f"{late_in_words(steps)} out of date"
    return "; ".join(filter(None, (state, held["unrefined"].get(name), held["learning"].get(name))))


def _stored_papers(held: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rows about papers and their days, or how to get the first papers."""
    if not held["papers"]:
        before = "" if held["profiles"] else "after making a profile, "
        return [("papers", f"none yet; {before}`paper-assets start --days 7` fetches and ranks the last week")]
    days = f"{held['days']}, {held['first_day']} to {held['last_day']}" if held["days"] else "none; no paper has a date"
    return [("papers", f"{held['papers']}"), ("without a date", f"{held['undated']}"), ("days", days)]


def _collected(
    settings: Settings, warehouse: Warehouse
) -> tuple[dict[str, Any], list[MissingDays], dict[str, tuple[str, ...]]]:
    """Return the status as JSON values, the spans of missing days, and what is out of date by profile."""
    held = asdict(summary(warehouse))
    folders = find_profiles(settings.profiles_dir) if settings.profiles_dir.exists() else ProfilesFound({}, {})
    held["profiles"] = {**dict.fromkeys(folders.readable, _GOOD), **folders.faults}
    held["recent_days"] = [in_words(day) for day in recent_days(warehouse, settings, datetime.now(UTC))]
    missing = missing_days(day_troubles(warehouse, sources=prefixes_of_fetched_sources(settings)))
    held["days_to_repair"] = [asdict(days) for days in missing]
    last = {name: held["last_ranking"][name] for name in sorted(folders.readable.keys() & held["last_ranking"].keys())}
    late = _late(warehouse, last) if last else {}
    held["current"] = {name: _sentence(late.get(name, ())) for name in last}
    headers = {name: ranking_header(warehouse, day, name) for name, day in last.items()}
    # Without a configured model nothing is missing.
    held["unrefined"] = {
        name: each["llm_note"] for name, each in headers.items() if each.get("llm_model") and each.get("llm_note")
    }
    learned = model_inputs(warehouse)
    held["learning"] = {
        name: _isolated(f"checking what {name} has learned", _learning, warehouse, profile)
        for name, profile in sorted(folders.readable.items())
        if name in learned
    }
    return held, missing, late


def _sentence(late: Sequence[str]) -> str:
    return f"out of date: {', '.join(late)}; run `paper-assets run`" if late else "current"


def _span(days: MissingDays) -> str:
    return f"{days.first}" if days.days == 1 else f"{days.first} to {days.last}"


def _learning(warehouse: Warehouse, profile: Profile) -> str | None:
    """Return how much the profile's ratings count, and why."""
    from paper_assets.pipeline.preferences import evidence_of  # imports the learning package

    evidence = evidence_of(warehouse, profile)
    return evidence.sentence if evidence else None


def _late(warehouse: Warehouse, last: Mapping[str, date]) -> dict[str, tuple[str, ...]]:
    """Map profiles to the assets of their newest list that are out of date, or cannot be compared."""
    with importing():
        from paper_assets.pipeline.staleness import late_assets  # with the modules below, a tenth of a second
        from paper_assets.pipeline.step import Partition

    workspace = replace(comparing_workspace(), warehouse=warehouse)
    late = late_assets(workspace, [Partition(day, name) for name, day in last.items()])
    return {partition.of_profile: steps for partition, steps in late.items() if steps}


def _isolated(what: str, check: Callable[..., T], *arguments: Any) -> T | str:
    """Return the result of a check; an unexpected error becomes one line, so that other profiles are still shown."""
    try:
        return check(*arguments)
    except PaperAssetsError:
        raise
    except Exception as error:
        return log_unexpected(error, what=what)
