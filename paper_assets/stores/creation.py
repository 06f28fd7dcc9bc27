"""A new warehouse: whole or not at all, private to its user, made by the first of several creators."""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from paper_assets.errors import StoreUnwritable
from paper_assets.stores.checkpoint import put_aside_of
from paper_assets.stores.folder_lock import folder_locked
from paper_assets.stores.migrations.registry import Migration
from paper_assets.stores.migrations.upgrade import create
from paper_assets.stores.private import make_private_folder

# A foreign database in the warehouse's place (SQLite's, say) would make DuckDB ask the internet for an extension.
NO_EXTENSIONS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


def create_if_missing(path: Path, migrations: Sequence[Migration]) -> None:
    """Make the warehouse with the tables of the newest version, unless there is a file. Raises StoreUnwritable.

    DuckDB itself would leave an empty file, which it later refuses to open, if killed while creating. What a killed
    creator has left is swept away by the next one: nobody else can be creating, for the folder is locked.
    """
    try:
        if path.exists():
            return
        make_private_folder(path.parent)
        with folder_locked(path.parent):
            if path.exists():
                return
            new = path.with_name(f".{path.name}.new")
            try:
                _remove_unfinished(new)
                put_aside_of(path).unlink(missing_ok=True)  # of a warehouse that somebody has taken away
                with duckdb.connect(str(new), config=dict(NO_EXTENSIONS)) as connection:
                    create(connection, migrations)
                new.chmod(0o600)
                new.rename(path)
            finally:
                _remove_unfinished(new)
    except OSError as error:
        raise StoreUnwritable(
            f"{path} cannot be created: {error.strerror}; free space, check permissions or set PAPER_ASSETS_HOME"
        ) from None


def _remove_unfinished(new: Path) -> None:
    for left in new.parent.glob(f"{new.name}*"):  # DuckDB's log lies beside it
        left.unlink()
