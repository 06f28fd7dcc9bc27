"""Folders that nobody but their user can look into (SPEC 8). What exists already keeps the permissions it was given."""

from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, each for its user alone. Raises OSError."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
