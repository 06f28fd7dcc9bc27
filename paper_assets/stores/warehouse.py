"""Open the DuckDB warehouse for one unit of work and close it again, so that all processes take turns.

DuckDB lets one process write or several read, never both. Nothing here keeps a connection: callers load, close,
compute, then open again to write. A conflict is retried until a deadline. The tables are defined in migrations/, and an
older warehouse is upgraded when it is opened; queries are in the module of their subject.

The file is attached to a DuckDB engine of this process for one unit of work: starting an engine takes 30 ms of CPU,
attaching a file 5 ms, and a day of a profile is read dozens of times. All readers share one engine, writers use one
after the other. An engine keeps no file, table or setting between units of work. Times are stored in UTC without a
zone, which DuckDB leaves unchanged in every time zone of the machine.
"""

import atexit
import os
import random
import re
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import count
from math import inf
from pathlib import Path
from tempfile import gettempdir
from threading import TIMEOUT_MAX, Lock, get_ident
from typing import Any, BinaryIO, TypeVar

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import StoreBusy, StoreError, StoreUnwritable, StoreVersion
from paper_assets.locks import lock_holder, store_lock
from paper_assets.processes import command_of
from paper_assets.small_files import is_broken_link, is_present
from paper_assets.stores.checkpoint import checkpoint, disable_automatic_checkpoints, log_path, undo_checkpoint
from paper_assets.stores.migrations.upgrade import (
    MIGRATIONS,
    NO_EXTENSIONS,
    Migration,
    create_if_missing,
    pending,
    upgrade,
)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.1  # seconds between two tries to open; a unit of work takes 20 ms and up
_TURNS: dict[Path, Lock] = {}  # DuckDB's lock does not separate the threads of one process
_HELD: dict[tuple[Path, int, int], DuckDBPyConnection] = {}  # by warehouse, process and thread
# DuckDB's messages about a damaged file or log, in any class of error; and the classes that it uses for nothing else.
_DAMAGED = ("Corrupt", "replaying WAL", "checksum", "Failed to deserialize", "not a valid DuckDB database")
_BROKEN = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)
_UNWRITABLE = ("Could not write", "No space left", "File too large", "Read-only file system", "Permission denied")

_REPAIR = "`paper-assets repair` saves what can be read, `paper-assets restore FILE` brings back a backup"

_Answer = TypeVar("_Answer")
Key = tuple[str, date]  # profile and day
_Key = TypeVar("_Key", Key, str)


@dataclass(frozen=True, slots=True)
class Warehouse:
    """Represent a warehouse file, created on first use; `deadline` is how many seconds to wait for another holder."""

    path: Path
    _: KW_ONLY
    deadline: float
    migrations: tuple[Migration, ...] = field(default=MIGRATIONS, repr=False, compare=False)
    # by `read_together`, for its block
    opened: DuckDBPyConnection | None = field(default=None, repr=False, compare=False)
    # cached by `once` and `once_each` within `read_together`
    answers: dict[Hashable, Any] | None = field(default=None, repr=False, compare=False)
    days: Sequence[Key] = field(default=(), repr=False, compare=False)  # profiles' days that it reads

    @contextmanager
    def reading(self, *, own_settings: bool = False) -> Iterator[DuckDBPyConnection]:
        """Open a read-only connection for one unit of work, never nested. Other readers may work, writers wait.

        `own_settings`: the block changes DuckDB's settings, which all readers of this process would share. Raises
        StoreBusy, StoreVersion, StoreUnwritable, StoreError.
        """
        if self.opened is not None:
            with explained(self.path):
                yield self.opened
            return
        if (held := _HELD.get(self._held_key)) and not own_settings:
            with explained(self.path):
                yield held
            return
        with self._opened(read_only=True, own_settings=own_settings) as connection:
            yield connection

    @contextmanager
    def read_together(self, days: Sequence[Key] = ()) -> Iterator["Warehouse"]:
        """Open the warehouse once for all reads of the block.

        For a page that runs a dozen queries and needs one consistent state. No process can write in the meantime, and
        the block may use no other `Warehouse` of the same file: that would wait for this one until its deadline.
        `days`: the profiles' days that the block reads, so that one statement reads what is stored for all of them.
        """
        with self.reading() as connection:
            if self.opened is not None:
                yield replace(self, days=days or self.days)
                return
            alone = self._held_key not in _HELD  # otherwise this thread may write in the meantime
            yield replace(self, opened=connection, answers={} if alone else None, days=days)

    def once(self, question: Hashable, answer: Callable[[], _Answer]) -> _Answer:
        """Return the earlier answer to the question in this block of `read_together`, or compute it with `answer`.

        For questions that many profiles share. The block keeps the file locked against writers; the caller must not
        change the answer.
        """
        if self.answers is None:
            return answer()
        if question not in self.answers:
            self.answers[question] = answer()
        return self.answers[question]

    def once_each(
        self, question: str, key: _Key, answer: Callable[["Warehouse", Sequence[_Key]], Mapping[_Key, _Answer]]
    ) -> _Answer | None:
        """Return the answer for a profile's day or a profile; None without one.

        In a block of `read_together` the first question is answered for all its days.
        """
        if self.answers is None:
            with self.read_together() as opened:
                return answer(opened, [key]).get(key)
        known: dict[_Key, _Answer | None] = self.answers.setdefault(question, {})
        if key not in known:
            expected: set[Any] = {each if isinstance(key, tuple) else each[0] for each in self.days}
            asked = [key, *(expected - known.keys() - {key})]
            try:
                known |= {**dict.fromkeys(asked), **answer(self, asked)}
            except StoreError:
                raise
            except Exception:  # of one of them: each alone, so that it stops no other
                known |= {key: None, **answer(self, [key])}
        return known[key]

    @contextmanager
    def writing(self, *, own_settings: bool = False) -> Iterator[DuckDBPyConnection]:
        """Open a connection inside one transaction: committed as a whole, or rolled back if the block raises. Never
        nested.

        `own_settings`: the block changes DuckDB's settings, which the next writers of this process would have too; it
        must not be inside `held`. Raises StoreBusy, StoreVersion, StoreUnwritable, StoreError.
        """
        if self.opened is not None:
            raise RuntimeError("this warehouse was opened for reading only")
        with ExitStack() as open_file:
            held = _HELD.get(self._held_key)
            if held:
                open_file.enter_context(explained(self.path))
            connection = held or open_file.enter_context(self._opened(read_only=False, own_settings=own_settings))
            connection.begin()
            try:
                yield connection
                connection.commit()
            except BaseException:
                with suppress(duckdb.Error):  # a commit that failed has rolled back already
                    connection.rollback()
                raise

    def rows(self, query: str, params: object = None) -> list[Any]:
        """Return the rows of one query as tuples. This and the next methods are one unit of work each."""
        with self.reading() as connection:
            return connection.execute(query, params).fetchall()

    def column(self, query: str, params: object = None) -> list[Any]:
        """Return the values of a query's only column."""
        return [value for (value,) in self.rows(query, params)]

    def value(self, query: str, params: object = None) -> Any:
        """Return the first column of the first row, None without rows."""
        with self.reading() as connection:
            return value_of(connection, query, params)

    def records(self, query: str, params: object = None) -> list[dict[str, Any]]:
        """Return rows by column as dataclasses take them: lists as tuples, times aware."""
        with self.reading() as connection:
            return records_of(connection, query, params)

    def table(self, query: str, params: object = None) -> pa.Table:
        """Return the rows as a table."""
        with self.reading() as connection:
            return connection.sql(query, params=params).to_arrow_table()

    def run(self, statement: str, params: object = None) -> int:
        """Execute one statement in a transaction; return how many rows it changed."""
        with self.writing() as connection:
            changed: int = value_of(connection, statement, params)
        return changed

    @contextmanager
    def held(self) -> Iterator[None]:
        """Open the warehouse once for all reading and writing that this thread does in the block.

        For a dozen short units of work in a row: opening the file to write and its checkpoint take 20 ms of CPU. Each
        write remains a separate transaction. Other threads and processes wait, so the block must not call a model or
        the network.
        """
        if self.opened is not None or self._held_key in _HELD:
            yield
            return
        with self._opened(read_only=False) as connection:
            _HELD[self._held_key] = connection
            try:
                yield
            finally:
                del _HELD[self._held_key]

    @contextmanager
    def held_in_turns(self, seconds: float) -> Iterator[Callable[[], None]]:
        """Yield a function to call before each of many units of work: it keeps the warehouse open (`held`).

        The file is closed and opened again where it has been open for `seconds`, so that others are not kept waiting.
        """
        with ExitStack() as opened:
            ends = -inf

            def hold() -> None:
                nonlocal ends
                if time.monotonic() > ends:
                    opened.close()
                    opened.enter_context(self.held())
                    ends = time.monotonic() + seconds

            yield hold

    def rewrite(self) -> None:
        """Copy the warehouse into a new file that replaces the old one, without the bytes of deleted rows.

        DuckDB leaves the values of deleted rows in unused parts of its file. The disk must hold both copies.
        A process killed meanwhile leaves the old file, complete. Raises StoreBusy, StoreUnwritable, StoreError.
        """
        if self.opened is not None or self._held_key in _HELD:
            raise RuntimeError("this warehouse is open")
        file, log = self.path.resolve(), log_path(self.path)
        new = file.with_name(f".{file.name}.rewritten")
        done = False
        while not done:
            with self._opened(read_only=False, own_settings=True) as connection:
                if log.exists():  # of a killed writer: closing the file writes it into the file
                    continue
                try:
                    copy_database(connection, new)
                    new.chmod(file.stat().st_mode & 0o777)
                    new.replace(file)  # this connection keeps the old file, until it is closed
                except OSError as error:
                    raise StoreUnwritable(f"{file} cannot be replaced: {error.strerror}") from None
                done = True

    @property
    def files(self) -> tuple[Path, Path]:
        """The file and its log: their `file_state` changes with every write, by any process."""
        return self.path, log_path(self.path)

    @property
    def _held_key(self) -> tuple[Path, int, int]:
        return self.path, os.getpid(), get_ident()

    @contextmanager
    def _opened(self, *, read_only: bool, own_settings: bool = False) -> Iterator[DuckDBPyConnection]:
        ends = time.monotonic() + self.deadline
        turn = _TURNS.setdefault(self.path, Lock())
        if not turn.acquire(timeout=min(max(self.deadline, 0.0), TIMEOUT_MAX)):
            raise StoreBusy(_busy(self, f"another thread of this process (pid {os.getpid()})"))
        try:
            with explained(self.path):
                _refuse_forbidden_folder(self.path)
                if is_broken_link(self.path):  # its disk may not be mounted, so no new warehouse is created
                    raise StoreError(f"{self.path} is a broken link; restore its target, or remove it")
                create_if_missing(self.path, self.migrations)
                for file in (self.path, self.path.with_name(f"{self.path.name}.wal")):
                    if is_present(file) and not file.is_file():  # opening a pipe would block
                        raise StoreError(f"{file} is not a file; move it away or set PAPER_ASSETS_HOME")
                with ExitStack() as held, ExitStack() as open_file:
                    before = _take_turn(held, self, ends, read_only=read_only)
                    shared, alone = (attached, _to_read_alone) if read_only else (attached_to_write, _to_write_alone)
                    connect = alone if own_settings else shared
                    connection = _connect_to_newest(self, connect, open_file, ends=ends)
                    if read_only:
                        held.close()
                    yield connection
                    if before:
                        # The data is safe in the log; a full disk is reported to the next writer.
                        with suppress(duckdb.Error, OSError):
                            checkpoint(connection, self.path, before)
        finally:
            turn.release()


def value_of(connection: DuckDBPyConnection, query: str, params: object = None) -> Any:
    """Return the first column of the first row, None without rows.

    A result must be read to its end (`fetchone` does not), or DuckDB 2.0 refuses the connection's next query.
    """
    rows = connection.execute(query, params).fetchall()
    return rows[0][0] if rows else None


def records_of(connection: DuckDBPyConnection, query: str, params: object = None) -> list[dict[str, Any]]:
    """Return `Warehouse.records` on an open connection."""
    return list(map(read_record, connection.sql(query, params=params).to_arrow_table().to_pylist()))


def read_record(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as dataclasses take it: lists as tuples, times aware."""
    return {
        name: tuple(value) if isinstance(value, list) else read_time(value) if isinstance(value, datetime) else value
        for name, value in row.items()
    }


def _refuse_forbidden_folder(path: Path) -> None:
    """Raise StoreUnwritable if this user may not look into the folder, for example another user's."""
    try:
        path.lstat()
    except PermissionError as error:
        raise StoreUnwritable(
            f"{path} cannot be used: {error.strerror}; check permissions or set PAPER_ASSETS_HOME"
        ) from None
    except OSError:  # missing, which the caller handles
        return


def _take_turn(held: ExitStack, warehouse: Warehouse, ends: float, *, read_only: bool) -> BinaryIO | None:
    """Take the warehouse's lock: a reader until it has the file open, a writer until it has closed it.

    Returns the handle that a writer needs for its `checkpoint`. DuckDB reads the head of the file before it locks the
    file, and never again: a process that opens it while another one finishes writing would work on the old state and
    write that back. Waiting with the lock also keeps later arrivals out; otherwise a writer would never find a moment
    in which none of several readers has the file open.
    """
    try:
        held.enter_context(store_lock(warehouse.path, deadline=ends - time.monotonic()))
        undo_checkpoint(warehouse.path)
        return None if read_only else held.enter_context(warehouse.path.open("rb"))
    except (StoreBusy, BlockingIOError):
        raise StoreBusy(_busy(warehouse, lock_holder(warehouse.path))) from None
    except OSError as error:
        raise StoreUnwritable(f"{warehouse.path} cannot be used: {error.strerror}; check permissions") from None


def copy_database(connection: DuckDBPyConnection, file: Path) -> None:
    """Copy the open warehouse into a new file; what a killed copy has left is removed."""
    for each in (file, file.with_name(f"{file.name}.wal")):
        each.unlink(missing_ok=True)
    name = value_of(connection, "select current_database()").replace('"', '""')
    connection.execute(f"attach {_quoted(file)} as rewritten (type duckdb)")
    connection.execute(f'copy from database "{name}" to rewritten')
    connection.execute("checkpoint rewritten")
    connection.execute("detach rewritten")


_Connect = Callable[[Path], AbstractContextManager[DuckDBPyConnection]]


def _connect_to_newest(
    warehouse: Warehouse, connect: _Connect, open_file: ExitStack, *, ends: float
) -> DuckDBPyConnection:
    """Connect to the warehouse in its newest version until `open_file` is closed.

    An older warehouse is upgraded first, which takes a moment as its only holder.
    """
    connection = _connect(warehouse, connect, open_file, ends=ends)
    if not pending(connection, warehouse.path, warehouse.migrations):
        return connection
    open_file.close()
    # Opened before DuckDB opens the file and closed after it has closed it: closing any handle of a file releases the
    # process's locks on that file, DuckDB's among them.
    with warehouse.path.open("rb") as before, ExitStack() as alone:
        connection = _connect(warehouse, _to_write_alone, alone, ends=ends)
        upgrade(connection, warehouse.path, before, warehouse.migrations)
        checkpoint(connection, warehouse.path, before)
    return _connect(warehouse, connect, open_file, ends=ends)


def _connect(warehouse: Warehouse, connect: _Connect, open_file: ExitStack, *, ends: float) -> DuckDBPyConnection:
    pause = _FIRST_PAUSE
    while True:
        try:
            return open_file.enter_context(connect(warehouse.path))
        except duckdb.IOException as error:
            if "Could not set lock" not in str(error):
                raise
            remaining = ends - time.monotonic()
            if remaining <= 0:
                raise StoreBusy(_busy(warehouse, _holder(str(error)))) from None
        # Random pauses, so that waiting processes do not collide again.
        time.sleep(min(remaining, pause * random.uniform(0.5, 1.5)))  # noqa: S311
        pause = min(2 * pause, _LONGEST_PAUSE)


@contextmanager
def _to_write_alone(path: Path) -> Iterator[DuckDBPyConnection]:
    with duckdb.connect(str(path), config=dict(NO_EXTENSIONS)) as connection:
        disable_automatic_checkpoints(connection)
        yield connection


@contextmanager
def _to_read_alone(path: Path) -> Iterator[DuckDBPyConnection]:
    with duckdb.connect(str(path), read_only=True, config=dict(NO_EXTENSIONS)) as connection:
        yield connection


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Report in one line what the disk or the file refused; faults in our own queries pass unchanged."""
    try:
        yield
    except duckdb.Error as error:
        text = " ".join(str(error).split())
        if any(sign in text for sign in _UNWRITABLE):
            raise StoreUnwritable(f"{path} cannot be written: {text}; free space or check permissions") from None
        if "storage version number" in text:
            raise StoreVersion(f"{path} was written by another version of DuckDB: {text}") from None
        if "replaying WAL" in text:
            raise StoreError(
                f"{path}: its log {path.name}.wal is damaged: {text}; `paper-assets repair` saves all but the last "
                "changes"
            ) from None
        if isinstance(error, _BROKEN) or any(sign in text for sign in _DAMAGED):
            raise StoreError(f"{path} cannot be used: {text}; {_REPAIR}") from None
        raise
    except UnicodeDecodeError:
        raise StoreError(f"{path} is damaged: it contains invalid text; {_REPAIR}") from None
    except RuntimeError as error:  # by which DuckDB replaces what a signal raised; work would go on after it
        raise (KeyboardInterrupt if f"{error}" == "Query interrupted" else error) from None


def _busy(warehouse: Warehouse, holder: str) -> str:
    return (
        f"{warehouse.path} is held by {holder}; waited {warehouse.deadline:g} s. Let it finish or stop it, "
        "or wait longer with PAPER_ASSETS_STORE_DEADLINE"
    )


def _holder(message: str) -> str:
    """Return the holding process from DuckDB's message, with its command line where the machine provides it."""
    match = re.search(r"held in (\S+) \(PID (\d+)\)", message)
    if match is None:
        return "another process"
    program, pid = match.groups()
    return f"pid {pid} ({command_of(int(pid)) or program})"


# By process, because the threads of an engine do not survive a fork: the engine that all readers share, and the engines
# that no writer uses at the moment.
_ENGINES: dict[int, DuckDBPyConnection] = {}
_IDLE: dict[int, list[DuckDBPyConnection]] = {}
_NUMBERS, _ONE_AT_A_TIME = count(), Lock()


@contextmanager
def attached(path: Path) -> Iterator[DuckDBPyConnection]:
    """Attach the file to the engine and return a connection that reads only it; the file is locked during the block.

    Raises duckdb.Error, as DuckDB does when it opens the file directly.
    """
    engine, name = _engine(), f"file_{next(_NUMBERS)}"
    with _another(engine) as connection:
        connection.execute(f"attach {_quoted(path)} as {name} (type duckdb, read_only)")
        try:
            connection.execute(f"use {name}")
            yield connection
        except (duckdb.Error, StoreError):
            _forget(engine)  # an engine that has read a broken file may refuse all others
            raise
        finally:
            connection.close()
            with _another(engine) as ending:
                ending.execute(f"detach {name}")


@contextmanager
def attached_to_write(path: Path) -> Iterator[DuckDBPyConnection]:
    """Attach the file to an engine that no other thread uses, and return a connection that reads and writes only it.

    The engine is used again unless the block raises: then it is closed, and the file with it, as a failed write can
    leave either in any state. Raises duckdb.Error, as DuckDB does when it opens the file directly.
    """
    engine, name = _idle_engine(), f"file_{next(_NUMBERS)}"
    try:
        engine.execute(f"attach {_quoted(path)} as {name} (type duckdb)")
        with engine.cursor() as connection:
            connection.execute(f"use {name}")
            yield connection
        engine.execute(f"detach {name}")
    except BaseException:
        engine.close()
        raise
    with _ONE_AT_A_TIME:
        _IDLE.setdefault(os.getpid(), []).append(engine)


def _engine() -> DuckDBPyConnection:
    with _ONE_AT_A_TIME:
        if os.getpid() not in _ENGINES:
            _ENGINES[os.getpid()] = _new_engine()
        return _ENGINES[os.getpid()]


def _idle_engine() -> DuckDBPyConnection:
    with _ONE_AT_A_TIME:
        if idle := _IDLE.get(os.getpid()):
            return idle.pop()
    engine = _new_engine()
    disable_automatic_checkpoints(engine)
    return engine


def _new_engine() -> DuckDBPyConnection:
    # An engine without a file would spill to the current folder.
    spilled = Path(gettempdir(), f"paper_assets-{os.getuid()}-{os.getpid()}.tmp")
    return duckdb.connect(config={**NO_EXTENSIONS, "temp_directory": str(spilled)})


def _another(engine: DuckDBPyConnection) -> DuckDBPyConnection:
    """Return a separate connection to the engine, for one thread."""
    with _ONE_AT_A_TIME:
        return engine.cursor()


def _forget(engine: DuckDBPyConnection) -> None:
    with _ONE_AT_A_TIME:
        if _ENGINES.get(os.getpid()) is engine:
            del _ENGINES[os.getpid()]


def _quoted(path: Path) -> str:
    """Return the path as a literal of SQL."""
    return "'" + str(path).replace("'", "''") + "'"


@atexit.register
def _end() -> None:
    """Close the engines before the interpreter exits, or DuckDB reports leaks."""
    _ENGINES.pop(os.getpid(), None)
    _IDLE.pop(os.getpid(), None)


def stored_time(moment: datetime) -> datetime:
    """Return an aware time as it is stored."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def read_time(stored: datetime) -> datetime:
    """Return a stored time as an aware one."""
    return stored.replace(tzinfo=UTC)
