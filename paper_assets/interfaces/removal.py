"""Delete everything of a profile in a home: files, tables, lists, pages, logs and what Dagster's history repeats."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path

from paper_assets.defs.history_files import forget_profile
from paper_assets.errors import StoreError
from paper_assets.interfaces.background import forget_job
from paper_assets.settings import Settings, dagster_folder
from paper_assets.setup.profile_editing import Place, delete_profile, expired_profiles
from paper_assets.small_files import write_file
from paper_assets.stores.warehouse import Warehouse


def remove_everything(settings: Settings, environ: Mapping[str, str], name: str) -> list[str]:
    """Delete a profile for good; return in sentences what may still repeat its words.

    Raises InvalidProfile, StoreBusy, StoreUnwritable.
    """
    left = list[str]()

    def clean(words: Collection[str]) -> None:
        forget_job(settings.home, name)
        for log in settings.home.glob("*.log*"):
            _without_lines(log, name, words)
        try:
            forget_profile(dagster_folder(environ, Path.cwd()), name)
        except StoreError as fault:
            left.append(f"{fault}")

    delete_profile(_place(settings), name, (settings.rankings_dir, settings.digests_dir), clean)
    folders = [folder for folder in (settings.home / "backups", settings.home / "replaced") if folder.exists()]
    if folders:
        left.append(f"{' and '.join(map(str, folders))} may still hold it: delete the copies there too")
    return left


def remove_expired(settings: Settings, environ: Mapping[str, str], *, now: datetime) -> list[str]:
    """Delete everything of the profiles that were removed 30 days ago; return their names."""
    expired = expired_profiles(_place(settings), now=now)
    for name in expired:
        remove_everything(settings, environ, name)
    return expired


def _place(settings: Settings) -> Place:
    warehouse = Warehouse(settings.warehouse_path, deadline=settings.store_deadline)
    return Place(profiles_dir=settings.profiles_dir, home=settings.home, warehouse=warehouse)


def _without_lines(log: Path, name: str, words: Collection[str]) -> None:
    """Remove the lines of a log that name the profile or repeat one of its words."""
    repeated = re.compile(
        rf"(?<![\w-]){re.escape(name)}(?![\w-])|{'|'.join(map(re.escape, words)) or '(?!)'}", re.IGNORECASE
    )
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    kept = [line for line in lines if not repeated.search(line)]
    if len(kept) < len(lines):
        write_file(log, "".join(kept))
