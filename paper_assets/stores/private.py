"""Folders and files that nobody but their user can look into (SPEC 8).

What exists already keeps the permissions it was given.
"""

import os
from pathlib import Path

_OTHERS = 0o077


def make_files_private() -> None:
    """From now on whatever this process and those that it starts make is for its user alone."""
    os.umask(_OTHERS)


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, each for its user alone. Raises OSError."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
