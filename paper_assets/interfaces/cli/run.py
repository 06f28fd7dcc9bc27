"""Bring rankings and digests up to date: `run`.

While nothing is due, the stored lists are shown without the graph: importing Dagster alone takes longer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paper_assets.defs.history_files import is_settled
from paper_assets.errors import InvalidInput, InvalidProfile, NotComputed, PaperAssetsError
from paper_assets.interfaces.cli.process import importing
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    dagster_home,
    day_option,
    environment,
    print_json,
    print_table,
    read_settings,
    say,
    warn,
)
from paper_assets.pipeline.open_days import due_days, has_fetched
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles
from paper_assets.settings import RewritingConfig
from paper_assets.stores.digest_files import digest_path
from paper_assets.stores.embeddings import unembedded_count
from paper_assets.stores.papers import latest_day, paper_counts
from paper_assets.stores.rankings import all_output_paths
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
    from paper_assets.pipeline.step import Partition

    with workspace.warehouse.read_together() as opened:
        workspace = replace(workspace, warehouse=opened)
        profiles, _, last = scope_of(workspace, only, day, day)
        asks = day is None and has_fetched(opened, settings) and due_days(opened, settings, workspace.clock())
        model = workspace.embedding_model()
        if asks or model is None or unembedded_count(opened, None, None, model=model):
            return None
        partitions = [Partition(last, name) for name in profiles.readable]
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
