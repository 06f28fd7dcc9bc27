"""Open Dagster's instance, and describe in one line what is wrong with it.

Belongs here: the folder, its settings, its three SQLite files. Not here: queries to the instance.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import dagster as dg

from paper_assets.defs.dagster_internals import SqliteEventLogStorage, SqliteRunStorage
from paper_assets.defs.history_files import DATABASES, INDEX, SETTINGS
from paper_assets.defs.history_server import (
    check_connection,
    check_server,
    new_settings,
    server_errors_explained,
    without_address,
)
from paper_assets.errors import InvalidInput, PaperAssetsError, StoreBusy, StoreError, StoreUnwritable
from paper_assets.stores.locks import folder_locked, make_private_folder

_RESTORE = "restore it, or begin a new history with `paper-assets reset --history`; papers and results stay"

_FORMER = frozenset(
    {  # SHA-256 of dagster.yaml as earlier versions wrote it
        "90c2c9862b0deb44cb59746cfb19781a9c8d23ecd6c21ead37428d1772c6aca0",
        "2a18f51a8e0d5bae71f9ce68e78bff7ef50fe89a9ee1d0ab0894ee3eadf3735d",
    }
)


def open_instance(dagster_home: Path) -> dg.DagsterInstance:
    """Open the instance whose runs and events the UI shows; create it on first use, with the settings of this project.

    Raises InvalidInput for settings that cannot be used, StoreError, StoreUnwritable.
    """
    file = dagster_home / SETTINGS
    try:
        make_private_folder(dagster_home)
        os.environ["DAGSTER_HOME"] = str(dagster_home.absolute())
        with folder_locked(dagster_home), explained(dagster_home):
            ours = files("paper_assets.defs").joinpath(SETTINGS).read_bytes()
            if not file.exists() or _is_former(file.read_bytes()):
                _appear(file, new_settings(ours, os.environ))
            check_server(file, os.environ)
            check_connection(os.environ)
            try:
                return _opened(dagster_home)
            except dg.DagsterInvalidInvocationError:  # the index lacks tables: the process that created it was killed
                if _holds_events(dagster_home / INDEX):
                    raise
                for left in (dagster_home / INDEX.parent).glob(f"{INDEX.name}*"):
                    left.unlink()
                return _opened(dagster_home)
    except OSError as fault:
        raise StoreUnwritable(f"{dagster_home} cannot be used: {fault.strerror}; set DAGSTER_HOME") from None


def _is_former(settings: bytes) -> bool:
    """Return whether the settings are those that an earlier version wrote; settings edited by a person are kept."""
    return sha256(settings).hexdigest() in _FORMER


def keeps_files(instance: dg.DagsterInstance) -> bool:
    """Return whether the history is in the files of `history_files`, not on a database server."""
    return isinstance(instance.event_log_storage, SqliteEventLogStorage) and isinstance(
        instance.run_storage, SqliteRunStorage
    )


def _opened(dagster_home: Path) -> dg.DagsterInstance:
    try:
        with server_errors_explained(os.environ):
            instance = dg.DagsterInstance.get()
    except Exception as fault:  # reading YAML and configuration can raise anything
        if _of_sqlite(fault) or isinstance(fault, PaperAssetsError):
            raise
        raise _bad_settings(dagster_home, fault) from None
    # Dagster opens its files when it needs them; these queries find a damaged one now.
    instance.get_run_records(limit=1)
    instance.get_dynamic_partitions("profile")
    return instance


def _holds_events(index: Path) -> bool:
    """Return whether an index that lacks tables has events, as that of an older Dagster has."""
    with closing(sqlite3.connect(index)) as connection:
        try:
            return bool(connection.execute("select 1 from event_logs limit 1").fetchall())
        except sqlite3.OperationalError:  # no such table
            return False


def _bad_settings(dagster_home: Path, fault: Exception) -> PaperAssetsError:
    reason = " ".join(without_address(str(fault), os.environ).split())
    reason = reason if len(reason) <= 200 else f"{reason[:200]} …"
    return InvalidInput(
        f"{dagster_home / SETTINGS} cannot be used: {reason}; fix it, or remove it to restore the default"
    )


@contextmanager
def explained(dagster_home: Path) -> Iterator[None]:
    """Turn errors of the instance's files or server into one line. Raises StoreError, StoreBusy, StoreUnwritable."""
    try:
        with server_errors_explained(os.environ):
            yield
    except Exception as fault:
        found = _of_sqlite(fault)
        if found is None:
            raise
        reason = " ".join(str(found).split())
        if "locked" in reason:
            raise StoreBusy(f"{dagster_home}: another process holds Dagster's history; try again") from None
        if any(sign in reason for sign in ("full", "readonly", "unable to open", "disk I/O")):
            raise StoreUnwritable(
                f"{dagster_home} cannot be written: {reason}; free space, check permissions or set DAGSTER_HOME"
            ) from None
        damaged = _damaged(dagster_home)
        raise StoreError(f"{damaged or dagster_home} is damaged: {reason}; {_RESTORE}") from None


def _of_sqlite(fault: BaseException) -> sqlite3.Error | None:
    """Return the SQLite error that caused an exception, if there is one."""
    found: BaseException | None = fault
    while found is not None:
        behind = getattr(found, "orig", found)  # as SQLAlchemy wraps it
        if isinstance(behind, sqlite3.Error):
            return behind
        found = found.__cause__
    return None


def _damaged(dagster_home: Path) -> Path | None:
    """Return the first file that SQLite cannot read."""
    for file in (dagster_home / name for name in DATABASES):
        if file.exists():
            try:
                with (
                    closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection,
                    suppress(sqlite3.ProgrammingError),
                ):
                    if connection.execute("pragma quick_check(1)").fetchall() != [("ok",)]:
                        return file
            except sqlite3.Error:
                return file
    return None


def _appear(file: Path, content: bytes) -> None:
    """Write the whole file in one step."""
    new = file.with_name(f".{file.name}.new")
    new.write_bytes(content)
    new.replace(file)
