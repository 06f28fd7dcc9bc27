"""What every run passes through before its own work: what killed processes have left is put in order (A4).

The tables are the truth: a ranking whose file is gone gets it back, a day whose pages are gone gets them back, a feed
follows its pages, and nothing unfinished stays lying about. Nothing is computed anew here.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from itertools import chain
from pathlib import Path

from paper_assets.errors import StoreError, named_error
from paper_assets.pipeline.digests import write_digest
from paper_assets.pipeline.profiles import usable_profile
from paper_assets.pipeline.rankings import keep_file
from paper_assets.pipeline.workspace import Workspace
from paper_assets.stores.digest_files import digest_path, unfinished_profiles
from paper_assets.stores.lock import sweep_notes
from paper_assets.stores.ranking_files import sweep_rankings
from paper_assets.stores.rankings import all_output_paths


def mend(workspace: Workspace, *, told: Callable[[int], None] | None = None) -> None:
    """Write the files and pages that stored rankings lack, and remove what killed writers have left.

    `told` hears how many are to be written, if any are: a year of pages takes minutes, the newest come first. A profile
    that cannot be read is left as it is. Raises StoreError.
    """
    settings = workspace.settings
    folder = settings.digests_dir
    sweep_notes(chain(settings.home.glob("*.lock.holder"), folder.glob("*/.writing.lock.holder")))
    sweep_rankings(settings.rankings_dir)
    if not settings.warehouse_path.exists():
        return
    lacking = _lacking(folder, all_output_paths(workspace.warehouse))
    if lacking and told:
        told(len(lacking))
    for profile, day, file_too in lacking:  # in the order of the days, by which files of one second are numbered
        if file_too:
            with _reported(profile, day):
                keep_file(workspace.warehouse, usable_profile(workspace, profile), day, settings=settings)
    for profile, day, _ in sorted(lacking, key=lambda each: each[1], reverse=True):
        with _reported(profile, day):
            write_digest(workspace.warehouse, profile, day, settings=settings)


@contextmanager
def _reported(profile: str, day: date) -> Iterator[None]:
    """Go on after what one profile's day cannot have: it stays as it is, and an unexpected error is logged."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        named_error(error, f"files of {profile}, {day}")


def _lacking(folder: Path, stored: dict[tuple[str, date], str | None]) -> list[tuple[str, date, bool]]:
    """Profile and day of what is to be written anew, days ascending, and whether its ranking's file is gone too."""
    unfinished = unfinished_profiles(folder)
    newest = dict(stored.keys())  # by profile, for its days ascend
    found = []
    for (profile, day), file in stored.items():
        gone = file is None or not Path(file).exists()
        pages = all(digest_path(folder, profile, day, ending).exists() for ending in ("html", "md"))
        if gone or not pages or (profile in unfinished and day == newest[profile]):
            found.append((profile, day, gone))
    return found
