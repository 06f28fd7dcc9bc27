"""Back up a home into one file, restore it, and save what a damaged database still gives.

A backup is a database like that of the home, with one more table: the reader's files (profiles, settings, people). All
rows are read for it, so a damaged database gives an error and no backup. What `restore` and `repair` replace is moved
into a folder, never deleted. What is computed from papers and not stored in the database (pages, the index of vectors)
is made again from it.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from uuid import uuid4

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import InvalidInput, StoreBusy, StoreError, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.small_files import UNFINISHED, is_present, make_private_folder, remove_unfinished, write_file
from paper_assets.stores.checkpoint import log_path, undo_checkpoint
from paper_assets.stores.entered import add_entered
from paper_assets.stores.kept_settings import KEPT_NAMES
from paper_assets.stores.migrations.upgrade import MIGRATIONS, NO_EXTENSIONS, create, pending
from paper_assets.stores.profiles import people_file
from paper_assets.stores.warehouse import Warehouse, copy_database, explained

KEPT = 7  # backups of the schedule: a week
FOLDER = "backups"  # in the home
_NAME = "%Y-%m-%d-%H%M%S.duckdb"
_PATTERN = "[0-9]" * 4 + "-??-??-??????.duckdb"
_AGE = timedelta(hours=20)  # of the newest one, at which the next one is due; a machine may be on in the morning only
_FILES = "backup_files"  # the table
_ROWS = 122_880  # of a row group of DuckDB, the unit in which a damaged table is read
_DEADLINE = 10.0  # seconds to wait for an editor of profiles or another backup


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What a backup holds: the database, the folder of profiles and the small files of the home."""

    warehouse: Warehouse
    folder: Path
    profiles_dir: Path

    def files(self) -> dict[str, Path]:
        """Return the reader's files by the names that they have in a backup."""
        own = [self.folder / name for name in (*KEPT_NAMES, people_file(self.folder).name)]
        found = {f"home/{file.name}": file for file in own if file.is_file()}
        for folder, _, names in os.walk(self.profiles_dir):
            for name in names:
                file = Path(folder, name)
                if file.is_file() and not name.startswith(UNFINISHED) and file.suffix != ".lock":
                    found[f"profiles/{file.relative_to(self.profiles_dir).as_posix()}"] = file
        return found

    def place_of(self, name: str) -> Path | None:
        """Return where a file of a backup belongs; None for a name that no backup of ours has."""
        root, *parts = PurePosixPath(name).parts or ("",)
        if not parts or any(part in ("..", "/") for part in parts) or "\0" in name:
            return None
        if root == "home" and parts[0] in (*KEPT_NAMES, people_file(self.folder).name):
            return self.folder / parts[0]
        return self.profiles_dir.joinpath(*parts) if root == "profiles" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTable:
    """How many rows of a table `repair` saved, and how many were lost; `emptied`: computed again by the next run."""

    name: str
    saved: int
    lost: int
    emptied: bool = False


def back_up(home: Home, file: Path) -> None:
    """Write a backup while everything runs: readers go on, writers wait. Its file appears complete or not at all.

    Raises InvalidInput if the file exists, StoreBusy, StoreUnwritable, StoreError.
    """
    if is_present(file):
        raise InvalidInput(f"{file} exists already; name a new file")
    unfinished = file.with_name(f"{UNFINISHED}{file.name}-{uuid4().hex}")
    try:
        make_private_folder(file.parent)
        with home.warehouse.reading() as connection:
            size = home.warehouse.path.stat().st_size
            if shutil.disk_usage(file.parent).free < size:
                raise StoreUnwritable(
                    f"{file.parent} has not enough space for a backup of {size / 1e6:,.0f} MB; free space"
                )
            copy_database(connection, unfinished)
        with explained(unfinished), duckdb.connect(f"{unfinished}", config=dict(NO_EXTENSIONS)) as copy:
            copy.execute("create table backup_files (name varchar primary key, content blob not null)")
            for name, each in home.files().items():
                with suppress(FileNotFoundError):  # removed since it was listed
                    copy.execute("insert into backup_files values (?, ?)", [name, each.read_bytes()])
            copy.execute("checkpoint")
        unfinished.chmod(0o600)
        unfinished.rename(file)
    except OSError as fault:
        raise StoreUnwritable(f"{fault.filename or file} cannot be copied: {fault.strerror}") from None
    finally:
        for left in (unfinished, unfinished.with_name(f"{unfinished.name}.wal")):
            left.unlink(missing_ok=True)


def back_up_into_folder(home: Home, *, now: datetime, only_due: bool = False) -> Path | None:
    """Write a backup into the home's folder of backups and keep the last `KEPT`; return its file.

    With `only_due`: None if the newest one is less than a day old. Raises StoreBusy, StoreUnwritable, StoreError.
    """
    folder = home.folder / FOLDER
    with store_lock(folder, deadline=_DEADLINE):
        remove_unfinished(folder)
        kept = backups(home.folder)
        if only_due and kept and now - time_of(kept[0]) < _AGE:
            return None
        file = folder / f"{now:{_NAME}}"
        back_up(home, file)
        for old in backups(home.folder)[KEPT:]:
            with suppress(OSError):
                old.unlink()
    return file


def backups(folder: Path) -> list[Path]:
    """Return the backups of the schedule in this home, the newest first."""
    return sorted((folder / FOLDER).glob(_PATTERN), reverse=True)


def time_of(backup: Path) -> datetime:
    """Return when a backup of the schedule was made."""
    return datetime.strptime(f"{backup.name}+0000", f"{_NAME}%z")


def damaged_tables(warehouse: Warehouse, tables: Sequence[str] = ()) -> dict[str, str]:
    """Read every row of these tables, or of all; return the damaged ones with the reason.

    Raises StoreError if the database cannot be opened at all, StoreBusy.
    """
    with warehouse.reading() as connection:
        left, damaged = list(tables) or _tables(connection), dict[str, str]()
    while left:
        try:
            with warehouse.reading() as connection:
                while left:
                    _read_whole(connection, left[-1])
                    left.pop()
        except StoreBusy:
            raise
        except StoreError as fault:
            damaged[left.pop()] = f"{fault}"
    return damaged


def restore(home: Home, file: Path, *, now: datetime) -> tuple[Path, list[str]]:
    """Bring back a backup; return the folder that holds what it replaced, and the names of the replaced files.

    The backup is read whole before anything changes. Files and profiles that it does not hold stay. Raises
    InvalidInput, StoreVersion, StoreBusy, StoreUnwritable, StoreError.
    """
    path, aside = home.warehouse.path, replaced_folder(home.folder, now)
    with _copied(home, file) as copy:
        files = _unpack(copy, file)
        with suppress(StoreError):  # writes its log into it, if it can be used
            if is_present(path):
                with home.warehouse.writing():
                    pass
        with store_lock(path, deadline=home.warehouse.deadline):
            _replace(path, copy, aside)
        with store_lock(home.folder / "profiles-edited", deadline=_DEADLINE):
            replaced = [name for name, content in files.items() if _put(home.place_of(name), content, aside / name)]
    return aside, replaced


def restore_entered(home: Home, file: Path) -> dict[str, int]:
    """Add what people had entered when a backup was made and this home lacks: rows that `repair` could not read.

    What is here stays. Returns what was added by subject. Raises InvalidInput, StoreVersion, StoreBusy,
    StoreUnwritable, StoreError.
    """
    path, written = home.warehouse.path, 0
    with _copied(home, file) as copy:
        with store_lock(home.folder / "profiles-edited", deadline=_DEADLINE):
            for name, content in _unpack(copy, file).items():
                place = home.place_of(name)
                if name.startswith("profiles/") and place and not is_present(place):
                    written += 1
                    _put(place, content, path)
        return {"profiles": written, **add_entered(home.warehouse, replace(home.warehouse, path=copy))}


@contextmanager
def _copied(home: Home, file: Path) -> Iterator[Path]:
    """Copy a backup beside the database; remove the copy, and what killed processes left of theirs."""
    path = home.warehouse.path
    copy = path.with_name(f"{UNFINISHED}{path.name}-{uuid4().hex}")
    if not file.is_file():
        raise InvalidInput(f"{file} does not exist" if not is_present(file) else f"{file} is not a file")
    try:
        make_private_folder(path.parent)
        remove_unfinished(path.parent, path.name)
        shutil.copyfile(file, copy)
        copy.chmod(0o600)
        yield copy
    except OSError as fault:
        raise StoreUnwritable(f"{fault.filename or path} cannot be written: {fault.strerror}") from None
    finally:
        for left in path.parent.glob(f"{copy.name}*"):
            left.unlink(missing_ok=True)


def repair(home: Home, *, now: datetime) -> tuple[Path, list[SavedTable], bool]:
    """Replace a damaged database by one with all rows that can be read; return the folder with the damaged one.

    Also what became of each table, and whether the log of the last changes was lost. Raises StoreBusy,
    StoreUnwritable, and StoreError if nothing can be read.
    """
    path, aside = home.warehouse.path, replaced_folder(home.folder, now)
    new = path.with_name(f"{UNFINISHED}{path.name}-{uuid4().hex}")
    try:
        with store_lock(path, deadline=home.warehouse.deadline):
            remove_unfinished(path.parent, path.name)
            with suppress(OSError):
                undo_checkpoint(path)
            lost_log = _without_damaged_log(path, aside)
            saved = _save(path, new)
            new.chmod(0o600)
            _replace(path, new, aside)
    except OSError as fault:
        raise StoreUnwritable(f"{fault.filename or path} cannot be written: {fault.strerror}") from None
    finally:
        for left in (new, new.with_name(f"{new.name}.wal")):
            left.unlink(missing_ok=True)
    return aside, saved, lost_log


def replaced_folder(folder: Path, now: datetime) -> Path:
    """Return the folder of the home for what is replaced at this moment; it need not exist."""
    return folder / "replaced" / f"{now:%Y-%m-%d-%H%M%S}"


def _tables(connection: DuckDBPyConnection) -> list[str]:
    query = "select table_name from duckdb_tables() where database_name = current_database() order by table_name"
    return [name for (name,) in connection.execute(query).fetchall()]


def _read_whole(connection: DuckDBPyConnection, table: str) -> None:
    """Read every value of a table, which compares the checksums of its blocks. Raises duckdb.Error."""
    connection.execute(f'select max(hash(whole)) from "{table}" as whole').fetchall()  # noqa: S608  # a name of ours


def _unpack(new: Path, file: Path) -> dict[str, bytes]:
    """Read the copy of a backup whole, and take the reader's files out of it. Raises StoreError, StoreVersion."""
    with explained(file), duckdb.connect(f"{new}", config=dict(NO_EXTENSIONS)) as connection:
        pending(connection, file, MIGRATIONS)
        tables = _tables(connection)
        for table in tables:
            try:
                _read_whole(connection, table)
            except duckdb.Error as fault:
                reason = " ".join(f"{fault}".split())[:200]
                raise StoreError(f"{file} is damaged in {table}: {reason}; choose another backup") from None
        files = dict(connection.table(_FILES).fetchall()) if _FILES in tables else {}
        connection.execute("drop table if exists backup_files")
        connection.execute("checkpoint")
    return files


def _replace(path: Path, new: Path, aside: Path) -> None:
    """Put a new database instead of the old one, which is kept with its log in `aside`."""
    log = log_path(path)
    for old in (path, log):
        if is_present(old):
            make_private_folder(aside)
            _keep(old, aside / old.name)
    log.unlink(missing_ok=True)
    new.replace(path)


def _keep(file: Path, kept: Path) -> None:
    """Keep a file under a second name; the first one stays until it is replaced."""
    kept.unlink(missing_ok=True)
    try:
        os.link(file.resolve(), kept)
    except OSError:  # a disk without links
        shutil.copyfile(file, kept)


def _put(file: Path | None, content: bytes, aside: Path) -> bool:
    """Write a file of a backup; return whether it replaced another content, which is kept in `aside`."""
    if file is None:
        return False
    before = file.read_bytes() if file.is_file() else None
    if before == content:
        return False
    if before is not None:
        make_private_folder(aside.parent)
        write_file(aside, before)
    make_private_folder(file.parent)
    write_file(file, content)
    return before is not None


def _without_damaged_log(path: Path, aside: Path) -> bool:
    """Move the log aside if the database opens only without it; return whether it was. Raises StoreError."""
    try:
        with _opened(path):
            return False
    except duckdb.Error as fault:
        log, reason = log_path(path), " ".join(f"{fault}".split())[:200]
    if "Could not set lock" in reason:
        raise StoreBusy(f"{path} is in use: {reason}; end that process, then repair")
    if is_present(log):
        make_private_folder(aside)
        log.rename(aside / log.name)
        with suppress(duckdb.Error), _opened(path):
            return True
    raise StoreError(f"nothing in {path} can be read: {reason}; bring back a backup with `paper-assets restore FILE`")


@contextmanager
def _opened(path: Path) -> Iterator[DuckDBPyConnection]:
    with duckdb.connect(f"{path}", read_only=True, config=dict(NO_EXTENSIONS)) as connection:
        _tables(connection)
        yield connection


# Tables that only count together: with a row lost in one of them all are emptied, and computed again.
_TOGETHER = (
    ("candidate_sets", "candidates"),
    ("ranking_sets", "rankings"),
    ("previous_ranking_sets", "previous_rankings"),
    ("texts", "postings"),
    ("indexed_collections", "indexed"),
)


def _save(path: Path, new: Path) -> list[SavedTable]:
    """Copy what can be read into a new database of the same version."""
    with ExitStack() as opened:
        to = opened.enter_context(duckdb.connect(f"{new}", config=dict(NO_EXTENSIONS)))
        source = _Source(path)
        opened.callback(source.close)
        version = source.value("select max(schema_version) from meta") or MIGRATIONS[-1].number
        create(to, [each for each in MIGRATIONS if each.number <= version])
        saved = {table: _save_table(source, table, to) for table in _tables(to) if table != "meta"}
        damaged = {table for table, each in saved.items() if each.lost}
        for together in _TOGETHER:
            if damaged.intersection(together):
                for table in together:
                    to.execute(f'delete from "{table}"')  # noqa: S608  # a name of ours
                    saved[table] = SavedTable(name=table, saved=0, lost=saved[table].lost, emptied=True)
        if "papers" in damaged:  # their days are fetched again
            to.execute("delete from day_listings")
        to.execute(
            """
            delete from rewrite_items
            where kept is not null and (item, kept) not in (select item, attempt from rewrite_attempts)
            """
        )
        to.execute("checkpoint")
    return list(saved.values())


def _save_table(source: "_Source", table: str, to: DuckDBPyConnection) -> SavedTable:
    rows = source.value(f'select count(*) from "{table}"') or 0  # noqa: S608  # a name of ours
    end = source.value(f'select max(rowid) from "{table}"')  # noqa: S608
    saved = 0
    for first in range(0, rows if end is None else end + 1, _ROWS):
        found = source.rows(table, first)
        if found is not None:
            to.register("found", found)
            to.execute(f'insert into "{table}" by name from found')
            saved += len(found)
    return SavedTable(name=table, saved=saved, lost=max(0, rows - saved))


class _Source:
    """A damaged database; DuckDB refuses everything after a fault, so it is then opened again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: DuckDBPyConnection | None = None

    def rows(self, table: str, first: int) -> pa.Table | None:
        """Return the rows of a row group; None if they cannot be read."""
        return self._result(
            f'select * from "{table}" where rowid >= $first and rowid < $end',  # noqa: S608  # a name of ours
            {"first": first, "end": first + _ROWS},
        )

    def value(self, query: str) -> int | None:
        """Return the number that answers the query; None if it cannot be read."""
        found = self._result(query, {})
        return found.column(0)[0].as_py() if found is not None and len(found) else None

    def _result(self, query: str, params: Mapping[str, int]) -> pa.Table | None:
        try:
            if self._open is None:
                self._open = duckdb.connect(f"{self._path}", read_only=True, config=dict(NO_EXTENSIONS))
            return self._open.sql(query, params=dict(params)).to_arrow_table()
        except (duckdb.Error, UnicodeDecodeError):
            self.close()
            return None

    def close(self) -> None:
        """Close the database."""
        if self._open is not None:
            self._open.close()
            self._open = None
