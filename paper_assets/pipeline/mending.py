"""What every run passes through before its own work: what killed processes have left is put in order (A4).

The tables are the truth: a ranking whose file is gone gets it back, a day whose pages are gone gets them back, a feed
follows its pages, and nothing unfinished stays lying about. Nothing is computed anew here.
"""

from contextlib import suppress
from itertools import chain
from pathlib import Path

from paper_assets.errors import InvalidProfile, NotComputed
from paper_assets.pipeline.digests import digests_folder, write_digest
from paper_assets.pipeline.profiles import usable_profile
from paper_assets.pipeline.rankings import keep_file
from paper_assets.pipeline.workspace import Workspace
from paper_assets.stores.digest_files import digest_path, unfinished_profiles
from paper_assets.stores.lock import sweep_notes
from paper_assets.stores.ranking_files import sweep_rankings
from paper_assets.stores.rankings import all_output_paths


def mend(workspace: Workspace) -> None:
    """Write the files and pages that stored rankings lack, and remove what killed writers have left.

    Raises StoreError. A profile that cannot be read is left as it is.
    """
    settings = workspace.settings
    folder = digests_folder(settings)
    sweep_notes(chain(settings.home.glob("*.lock.holder"), folder.glob("*/.writing.lock.holder")))
    sweep_rankings(settings.output_dir / "rankings")
    if not settings.warehouse_path.exists():
        return
    unfinished = unfinished_profiles(folder)
    stored = all_output_paths(workspace.warehouse)
    newest = dict(stored.keys())  # by profile, for its days ascend
    for (profile, day), file in stored.items():
        with suppress(InvalidProfile, NotComputed):
            if file is None or not Path(file).exists():
                keep_file(workspace.warehouse, usable_profile(workspace, profile), day, settings=settings)
            pages = [digest_path(folder, profile, day, ending) for ending in ("html", "md")]
            if not all(page.exists() for page in pages) or (profile in unfinished and day == newest[profile]):
                write_digest(workspace.warehouse, profile, day, settings=settings)
