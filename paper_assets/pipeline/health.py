"""The state of the installation (V7) and the repair of what killed processes left behind (A4).

Health lists days without papers, outdated assets and use of the language model; every problem comes with the command
that fixes it. Repair runs before each run: tables are the truth, so missing ranking files, pages and feeds are written
again from them and unfinished files are removed. Repair computes nothing again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

from paper_assets.errors import InvalidProfile, failure_logged
from paper_assets.pipeline.digests import write_digest
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles, usable_profile
from paper_assets.pipeline.rankings import keep_file
from paper_assets.pipeline.rewrites import waiting_by_profile
from paper_assets.pipeline.staleness import late_assets
from paper_assets.pipeline.step import Partition
from paper_assets.pipeline.workspace import Workspace
from paper_assets.settings import Settings
from paper_assets.small_files import remove_unfinished
from paper_assets.sources.id_prefixes import prefixes_of_fetched_sources
from paper_assets.stores.digest_files import digest_path, unfinished_profiles
from paper_assets.stores.embeddings import days_without_vectors, unembedded_count
from paper_assets.stores.harvests import DayTrouble, day_troubles
from paper_assets.stores.papers import Summary, latest_day, paper_counts, summary
from paper_assets.stores.ranking_files import remove_superseded, saved_file
from paper_assets.stores.rankings import all_output_paths, latest_ranking_day
from paper_assets.text.numbers import count_of

_ABANDONED = timedelta(hours=1)  # after which no process still writes a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of the installation.

    `troubles`: days that lack papers. `late`: by profile, the outdated assets of its last day. `faults`: by profile,
    why it cannot be read. `waiting`: by profile, rewrites that wait for a decision.
    """

    held: Summary
    troubles: Sequence[DayTrouble]
    late: Mapping[str, tuple[str, ...]]
    faults: Mapping[str, str]
    waiting: Mapping[str, int]


def health(workspace: Workspace) -> Health:
    """Read the state of everything, opening the store once; changes nothing. Raises StoreBusy."""
    with workspace.warehouse.read_together() as opened:
        return _health(replace(workspace, warehouse=opened))


def _health(workspace: Workspace) -> Health:
    warehouse, settings = workspace.warehouse, workspace.settings
    held = summary(warehouse)
    try:
        found = find_profiles(settings.profiles_dir)
    except InvalidProfile as fault:
        found = ProfilesFound({}, {f"{settings.profiles_dir}": str(fault)})
    return Health(
        held=held,
        troubles=day_troubles(warehouse, sources=prefixes_of_fetched_sources(settings)),
        late={
            partition.of_profile: late
            for partition, late in late_assets(
                workspace,
                [
                    Partition(held.last_ranking[name], name)
                    for name in sorted(found.readable.keys() & held.last_ranking.keys())
                ],
            ).items()
        },
        faults=found.faults,
        waiting=waiting_by_profile(warehouse, config=settings.rewriting),
    )


def progress_of_newest(workspace: Workspace, profile: str) -> str | None:
    """Describe how far the list of the newest day with papers is; None once the profile has it.

    Its first step is embedding: ranking Monday: 40 of 178 papers embedded.
    """
    warehouse, model = workspace.warehouse, workspace.settings.embedding_model
    newest, ranked = latest_day(warehouse, until=workspace.clock().date()), latest_ranking_day(warehouse, profile)
    if newest is None or (ranked is not None and newest <= ranked):
        return None
    first = newest - timedelta(days=usable_profile(workspace, profile).content.feed.window_days - 1)
    left = unembedded_count(warehouse, first, newest, model=model)
    unfinished = days_without_vectors(warehouse, model=model)
    # A first list counts its whole window, a later one the days that are new or have grown.
    since = ranked + timedelta(days=1) if ranked else first
    days = {day for day in unfinished if first <= day <= newest}
    days |= {since + timedelta(days=number) for number in range((newest - since).days + 1)}
    total = sum(count for day, count in paper_counts(warehouse).items() if day in days)
    done = f": {total - left:,} of {count_of(total, 'paper')} embedded" if left else ""
    return f"ranking {newest:%A}{done}"


def repair(workspace: Workspace, *, report: Callable[[int], None] | None = None) -> None:
    """Write the files and pages that stored rankings lack, and remove what killed writers left.

    `report` is called with the number of files to write, if any: a year of pages takes minutes, the newest are written
    first. A profile that cannot be read is left as it is. Raises StoreError.
    """
    settings = workspace.settings
    for folder in (settings.home, settings.home / "pdfs", *settings.profiles_dir.glob("*/")):
        remove_unfinished(folder, before=workspace.clock() - _ABANDONED)
    if not settings.warehouse_path.exists():
        return
    noted = all_output_paths(workspace.warehouse)
    remove_superseded(settings.rankings_dir, {Path(path).name for path in noted.values() if path})
    lacking = lacking_files(settings, noted)
    if lacking and report:
        report(len(lacking))
    for profile, day, file_too in lacking:  # in the order of the days, by which files of one second are numbered
        if file_too:
            with failure_logged(f"files of {profile}, {day}"):
                keep_file(workspace.warehouse, usable_profile(workspace, profile), day, settings=settings)
    for profile, day, _ in sorted(lacking, key=lambda each: each[1], reverse=True):
        with failure_logged(f"files of {profile}, {day}"):
            write_digest(workspace.warehouse, profile, day, settings=settings)


def lacking_files(settings: Settings, stored: Mapping[tuple[str, date], str | None]) -> list[tuple[str, date, bool]]:
    """Return profile and day of what must be written again, days ascending, and whether its ranking's file is missing
    too.
    """
    folder = settings.digests_dir
    unfinished = unfinished_profiles(folder)
    newest = dict(stored.keys())  # by profile, for its days ascend
    found = []
    for (profile, day), file in stored.items():
        missing = saved_file(settings.rankings_dir, profile, file) is None
        pages = all(digest_path(folder, profile, day, ending).exists() for ending in ("html", "md"))
        if missing or not pages or (profile in unfinished and day == newest[profile]):
            found.append((profile, day, missing))
    return found
