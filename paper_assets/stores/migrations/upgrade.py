"""Create a warehouse and upgrade an older one: the migrations in order, each from one schema version to the next.

A new warehouse runs all of them and appears complete or not at all, private to its user, made by the first of several
creators. An older one runs those it lacks when it is next opened, each in one transaction, after a copy of the file was
made. A released migration never changes; schema.sql is the first one.

To add one:
1. Before anything else, run `python -m tests.stores.invented_warehouse`: it stores a warehouse of the present version
   in tests/stores/warehouses/, which every later version must read.
2. Write `NNNN_what_it_does.sql` here, or a small function below if SQL alone is not enough, and add a line to
   MIGRATIONS. It runs in a separate transaction: no `begin`, `commit`, `checkpoint` or `attach`.
3. Give the new tables and columns rows in tests/stores/invented_warehouse.py.

What DuckDB 2.0 does to a table with rows, in one transaction (all tried; adding, dropping, renaming and rebuilding also
with the process killed before the checkpoint):
- `add column c type`, also with `default …` or `not null default …`, whatever keys, indexes or views the table has; the
  column comes last. Not with `check`, and not `not null` without a default.
- `drop column` (its `check` goes along) and `alter column … type`: not on or, to drop, before a column with a primary
  key, `unique` or an index; no new type for a column with a `check`.
- `rename column`, `set not null`, `drop default`: not while the table has an index. `add primary key` yes,
  `drop constraint` no.
- Everything else: create the new table, `insert into new by name select … from old`, drop the old one, rename the new
  one. Views find it by its name.
`previous_rankings` has the columns of `rankings`: a column added to one is added to the other.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import duckdb
from duckdb import DuckDBPyConnection

from paper_assets.errors import StoreError, StoreUnwritable, StoreVersion
from paper_assets.locks import store_lock
from paper_assets.small_files import make_private_folder, remove_unfinished, write_file
from paper_assets.stores.checkpoint import backup_path, checkpoint


@dataclass(frozen=True, slots=True)
class Migration:
    """Define one step of the schema: to version `number`, by `apply`, which runs inside a transaction."""

    number: int
    name: str
    apply: Callable[[DuckDBPyConnection], None]


def _run_file(file: str, connection: DuckDBPyConnection) -> None:
    connection.execute(Path(__file__).with_name(file).read_text(encoding="utf-8"))


FIRST = 22  # the version of schema.sql; programs from before the first release wrote lower ones
MIGRATIONS = (Migration(FIRST, "first schema", partial(_run_file, "schema.sql")),)
KEPT_COPIES = 2  # the newest ones: the previous version and one more, for a late discovery


def pending(connection: DuckDBPyConnection, path: Path, migrations: Sequence[Migration]) -> list[Migration]:
    """Return the migrations that the warehouse still needs, in order.

    Raises StoreVersion if it is newer than the program or from before the first release, StoreError if it is not a
    warehouse.
    """
    try:
        [(version,)] = connection.execute("select max(schema_version) from meta").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):
        version = None
    if not version or version < 1:
        raise StoreError(f"{path} is not a paper_assets database; move it away or set PAPER_ASSETS_HOME")
    newest = migrations[-1].number
    if version > newest:
        raise StoreVersion(
            f"{path} has schema version {version}, this paper_assets works with version {newest}; update paper_assets"
        )
    if version < FIRST:
        raise StoreVersion(
            f"{path} is from before the first release (schema version {version}). To keep what was entered: run "
            "`paper-assets export FOLDER` (a program without it: `ratings export PROFILE > FOLDER/PROFILE.json`) with "
            "the program that made it, move the database away, and run `paper-assets import FOLDER` with this one"
        )
    return [migration for migration in migrations if migration.number > version]


def create(connection: DuckDBPyConnection, migrations: Sequence[Migration]) -> None:
    """Create the tables of the newest version in an empty database."""
    for migration in migrations:
        migration.apply(connection)
    connection.execute("insert into meta values (?)", [migrations[-1].number])


def upgrade(
    connection: DuckDBPyConnection, path: Path, before: BinaryIO, migrations: Sequence[Migration]
) -> list[Migration]:
    """Run the pending migrations, each in one transaction, after copying the file.

    `connection` is open for writing, so that no other process works on the file; `before` reads the same file. If it is
    killed, the warehouse is at one of the versions and the copy is complete; the next opening continues. A failing
    migration leaves its version unchanged. Returns what was run. Raises StoreVersion, StoreUnwritable, StoreError.
    """
    ahead = pending(connection, path, migrations)  # the previous holder of the file may have done it
    if not ahead:
        return []
    checkpoint(connection, path, before)  # from here on the file alone is complete
    copy = path.with_name(f"{path.name}.before-{ahead[0].number:04}")
    _back_up(before, path, copy)
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
            raise  # the disk refused, which `explained` reports
        text = " ".join(str(fault).split())
        raise StoreError(
            f"{path} could not be upgraded to schema version {migration.number} ({migration.name}): {text}; it is "
            f"unchanged, and {copy} is a copy of it; go back to the previous paper_assets and report this"
        ) from fault


def _back_up(before: BinaryIO, path: Path, copy: Path) -> None:
    """Copy the file, private to its user; the copy appears complete or not at all."""
    try:
        remove_unfinished(copy.parent, f"{path.name}.before-*")
        before.seek(0)
        write_file(copy, iter(partial(before.read, 1 << 20), b""))
    except OSError as fault:
        raise StoreUnwritable(
            f"{path} has an earlier version and is copied before the upgrade; the copy cannot be written: "
            f"{fault.strerror}; free {path.stat().st_size // 1_000_000 + 1} MB on its disk"
        ) from None


def _keep_newest_copies(path: Path) -> None:
    copies = sorted(entry for entry in path.parent.iterdir() if entry.name.startswith(f"{path.name}.before-"))
    for copy in copies[:-KEPT_COPIES]:
        with suppress(OSError):
            copy.unlink()


# For a database of another kind (SQLite) DuckDB would download an extension.
NO_EXTENSIONS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_CREATING = 60.0  # seconds to wait for another creator, which takes 0.1


def create_if_missing(path: Path, migrations: Sequence[Migration]) -> None:
    """Create the warehouse with the tables of the newest version if there is no file.

    The file appears complete or not at all: DuckDB itself would leave an empty file, which it later refuses to open, if
    killed while creating. Raises StoreBusy, StoreUnwritable, or duckdb.Error if the disk is full.
    """
    try:
        if path.exists():
            return
        make_private_folder(path.parent)
        with store_lock(path, deadline=_CREATING):
            if not path.exists():
                remove_unfinished(path.parent, path.name)
                backup_path(path).unlink(missing_ok=True)  # left by a warehouse that was removed
                write_file(path, _without_rows(tuple(migrations)))
    except OSError as error:
        raise StoreUnwritable(
            f"{path} cannot be created: {error.strerror}; free space, check permissions or set PAPER_ASSETS_HOME"
        ) from None


@cache
def _without_rows(migrations: tuple[Migration, ...]) -> bytes:
    """Return the file of a warehouse without rows; a process makes it once, however many warehouses it creates."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "warehouse.duckdb"
        with duckdb.connect(str(file), config=dict(NO_EXTENSIONS)) as connection:
            create(connection, migrations)
            connection.execute("checkpoint")
        return file.read_bytes()
