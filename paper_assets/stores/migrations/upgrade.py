"""Bringing a warehouse to the newest schema version: what is pending, the copy put aside, one transaction each."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import duckdb
from duckdb import DuckDBPyConnection

from paper_assets.errors import StoreError, StoreUnwritable, StoreVersion
from paper_assets.stores.checkpoint import checkpoint
from paper_assets.stores.migrations.registry import Migration

KEPT_COPIES = 2  # the newest ones: the version before, and one more for whoever notices late


def pending(connection: DuckDBPyConnection, path: Path, migrations: Sequence[Migration]) -> list[Migration]:
    """The migrations that the warehouse still lacks, in order.

    Raises StoreVersion if it is newer than the program, StoreError if it is no warehouse.
    """
    try:
        [(found,)] = connection.execute("select max(schema_version) from meta").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):
        found = None
    if not found or found < 1:
        raise StoreError(f"{path} is a database of something else; move it away or set PAPER_ASSETS_HOME")
    newest = migrations[-1].number
    if found > newest:
        raise StoreVersion(
            f"{path} has schema version {found}, this paper_assets works with version {newest}; update paper_assets"
        )
    return [migration for migration in migrations if migration.number > found]


def create(connection: DuckDBPyConnection, migrations: Sequence[Migration]) -> None:
    """Make the tables of the newest version in an empty database."""
    for migration in migrations:
        migration.apply(connection)
    connection.execute("insert into meta values (?)", [migrations[-1].number])


def upgrade(
    connection: DuckDBPyConnection, path: Path, before: BinaryIO, migrations: Sequence[Migration]
) -> list[Migration]:
    """Run what is pending, each migration in one transaction, after a copy of the file was put aside beside it.

    `connection` is open for writing, so that nobody else works on the file; `before` reads the same file. Killed at
    any moment, the warehouse stands at one of the versions and the copy is whole; the next opening goes on. A failing
    migration leaves its version as it was. Returns what was run. Raises StoreVersion, StoreUnwritable, StoreError.
    """
    ahead = pending(connection, path, migrations)  # whoever held the file meanwhile may have done it
    if not ahead:
        return []
    checkpoint(connection, path, before)  # from here on the file alone holds everything
    copy = path.with_name(f"{path.name}.before-{ahead[0].number:04}")
    _put_aside(before, path, copy)
    for migration in ahead:
        _run(connection, migration, path, copy)
    _keep_newest_copies(path)
    return ahead


def _run(connection: DuckDBPyConnection, migration: Migration, path: Path, copy: Path) -> None:
    connection.begin()
    try:
        migration.apply(connection)
        connection.execute("update meta set schema_version = ?", [migration.number])
        connection.commit()
    except Exception as fault:
        with suppress(duckdb.Error):  # a commit that failed has rolled back already
            connection.rollback()
        if isinstance(fault, duckdb.IOException | duckdb.FatalException):
            raise  # the disk refused, which the warehouse says in its own words
        text = " ".join(str(fault).split())
        raise StoreError(
            f"{path} could not be brought to schema version {migration.number} ({migration.name}): {text}; it is as it "
            f"was before, and {copy} is a copy of it; go back to the paper_assets used so far and report this"
        ) from fault


def _put_aside(before: BinaryIO, path: Path, copy: Path) -> None:
    """Copy the file, private to its user; the copy appears whole or not at all."""
    unfinished = copy.with_name(f".{copy.name}.new")
    try:
        unfinished.unlink(missing_ok=True)  # a killed process has left it
        before.seek(0)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            shutil.copyfileobj(before, stream, 1 << 20)
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(copy)
    except OSError as fault:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise StoreUnwritable(
            f"{path} is of an earlier version and is copied before it is changed; the copy cannot be written: "
            f"{fault.strerror}; free {path.stat().st_size // 1_000_000 + 1} MB on its disk"
        ) from None


def _keep_newest_copies(path: Path) -> None:
    copies = sorted(entry for entry in path.parent.iterdir() if entry.name.startswith(f"{path.name}.before-"))
    for copy in copies[:-KEPT_COPIES]:
        with suppress(OSError):
            copy.unlink()
