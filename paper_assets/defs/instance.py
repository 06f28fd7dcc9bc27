"""Open Dagster's instance, and describe in one line what is wrong with it.

The history is in three SQLite files of its folder, or on a PostgreSQL server (SPEC X4), whose address is only in
PAPER_ASSETS_POSTGRES: dagster.yaml names the variable.
"""

import json
import os
import sqlite3
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import dagster as dg

from paper_assets.defs.dagster_internals import close_files, keep_engines
from paper_assets.defs.history_files import DATABASES, INDEX, SETTINGS
from paper_assets.errors import InvalidInput, PaperAssetsError, StoreBusy, StoreError, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.small_files import make_private_folder, write_file
from paper_assets.text.secrets import Secrets

VARIABLE = "PAPER_ASSETS_POSTGRES"
# The address names its driver, because SQLAlchemy 2.1 would choose another one than dagster-postgres installs.
_SCHEME = "postgresql+psycopg2://"
_CONNECT = 10  # seconds
_STORAGE = f"""
# Runs, events and schedules on PostgreSQL; the address with the password is only in the variable.
storage:
  postgres:
    postgres_url:
      env: {VARIABLE}
"""


def _address() -> str:
    return os.environ.get(VARIABLE, "").strip()


def uses_server() -> bool:
    """Return whether a server keeps the history."""
    return bool(_address())


def check_server(file: Path) -> None:
    """Check that dagster.yaml and the environment agree. Raises InvalidInput, without the address."""
    written = file.read_text(encoding="utf-8", errors="replace")
    asks, elsewhere = VARIABLE in written, "\nstorage:" in f"\n{written}"
    if asks and not uses_server():
        raise InvalidInput(
            f"{file} keeps Dagster's history on PostgreSQL; set {VARIABLE} to "
            f"{_SCHEME}user:password@host/database, or remove that file to keep the history in files"
        )
    if not uses_server():
        return
    if not _address().startswith(_SCHEME):
        raise InvalidInput(f"{VARIABLE} must be an address like {_SCHEME}user:password@host/database")
    if not asks and not elsewhere:
        raise InvalidInput(
            f"{VARIABLE} is set, but {file} keeps Dagster's history in files; remove that file to have it rewritten "
            "(the old history stays in its folder, unread), or unset the variable"
        )
    if find_spec("dagster_postgres") is None:
        raise InvalidInput(f'{VARIABLE} is set, but dagster-postgres is missing; pip install "paper-assets[postgres]"')


def check_connection() -> None:
    """Connect once, because Dagster would retry five times and log each. Raises StoreError."""
    if not uses_server():
        return
    import sqlalchemy

    with server_errors_explained():
        engine = sqlalchemy.create_engine(_address(), connect_args={"connect_timeout": _CONNECT})
        try:
            engine.connect().close()
        finally:
            engine.dispose()


@contextmanager
def server_errors_explained() -> Iterator[None]:
    """Turn errors of the server into one line without the address. Raises StoreError."""
    try:
        yield
    except Exception as fault:
        message = _driver_message(fault) if uses_server() else None
        if message is None:
            raise
        raise StoreError(
            f"the PostgreSQL server of {VARIABLE} failed: {without_address(message)}; "
            "see that it runs and that user, password and database exist"
        ) from None


def _driver_message(fault: BaseException) -> str | None:
    """Return the message of the server's driver that caused an exception, if there is one."""
    from sqlalchemy.exc import DBAPIError  # Dagster has imported it by now

    for found in _causes(fault):
        if isinstance(found, DBAPIError) and type(found.orig).__module__.startswith("psycopg"):
            return str(found.orig)
    return None


def without_address(text: str) -> str:
    """Return the text in one line, cut, without user and password."""
    line = " ".join(text.split())
    return Secrets({"POSTGRES_URL": os.environ.get(VARIABLE, "")}).hide(line if len(line) <= 300 else f"{line[:300]} …")


def delete_server_history(instance: dg.DagsterInstance) -> None:
    """Delete the history on a server, including the partitions of profiles."""
    for key in instance.get_dynamic_partitions("profile"):
        instance.delete_dynamic_partition("profile", key)
    instance.wipe()
    if instance.schedule_storage:
        instance.schedule_storage.wipe()


_RESTORE = "restore it, or begin a new history with `paper-assets reset --history`; papers and results stay"

_DEADLINE = 60.0  # seconds to wait for another process that opens the history


def open_instance(dagster_home: Path, *, stay_open: bool = False) -> dg.DagsterInstance:
    """Open the instance whose runs and events the UI shows; create it on first use, with the settings of this project.

    `stay_open` as for `keep_engines`. Raises InvalidInput for settings that cannot be used, StoreError,
    StoreUnwritable.
    """
    file = dagster_home / SETTINGS
    try:
        make_private_folder(dagster_home)
        os.environ["DAGSTER_HOME"] = str(dagster_home.absolute())
        with store_lock(file, deadline=_DEADLINE), explained(dagster_home):
            if not file.exists():
                ours = files("paper_assets.defs").joinpath(SETTINGS).read_bytes()
                write_file(file, ours + _STORAGE.encode() if uses_server() else ours)
            check_server(file)
            check_connection()
            try:
                return _opened(dagster_home, stay_open)
            except dg.DagsterInvalidInvocationError:  # the index lacks tables: the process that created it was killed
                if _holds_events(dagster_home / INDEX):
                    raise
                close_files()  # a connection that stays open would go on reading the removed file
                for left in (dagster_home / INDEX.parent).glob(f"{INDEX.name}*"):
                    left.unlink()
                return _opened(dagster_home, stay_open)
    except OSError as fault:
        place = fault.filename or dagster_home
        raise StoreUnwritable(
            f"{place} cannot be used: {fault.strerror}; check permissions or set DAGSTER_HOME"
        ) from None


def _opened(dagster_home: Path, stay_open: bool) -> dg.DagsterInstance:
    keep_engines(stay_open=stay_open)
    try:
        with server_errors_explained():
            instance = dg.DagsterInstance.get()
    except Exception as fault:  # reading YAML and configuration can raise anything
        if _of_sqlite(fault) or isinstance(fault, PaperAssetsError | OSError):
            raise
        raise _bad_settings(dagster_home, fault) from None
    # Dagster opens its files when needed; these queries detect a damaged one now.
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
    reason = without_address(str(fault))
    return InvalidInput(
        f"{dagster_home / SETTINGS} cannot be used: {reason}; fix it, or remove it to restore the default"
    )


@contextmanager
def explained(dagster_home: Path) -> Iterator[None]:
    """Turn errors of the instance's files or server into one line. Raises StoreError, StoreBusy, StoreUnwritable."""
    try:
        with server_errors_explained():
            yield
    except Exception as fault:
        found = _of_sqlite(fault) or _undecodable(fault)
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
    return next((found for found in _causes(fault) if isinstance(found, sqlite3.Error)), None)


def _causes(fault: BaseException) -> Iterator[BaseException]:
    """Yield the exception, and those that it was raised from on purpose: others may be unrelated."""
    found: BaseException | None = fault
    while found is not None:
        yield found
        found = found.__cause__


def _undecodable(fault: BaseException) -> BaseException | None:
    """Return the fault if Dagster could not decode what its history holds, although SQLite could read it."""
    is_of_dagster = type(fault).__name__ == "DeserializationError"  # in a module that is not public
    if not is_of_dagster and not isinstance(fault, UnicodeDecodeError | json.JSONDecodeError):
        return None
    frames = traceback.extract_tb(fault.__traceback__)
    return fault if any("/site-packages/dagster" in frame.filename for frame in frames) else None


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
