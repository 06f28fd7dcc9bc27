"""The DuckDB warehouse: opened for one unit of work and closed again, so that all processes take turns.

DuckDB lets one process write or several read, never both. Nothing here keeps a connection: callers load, close,
compute, then open again to write. A conflict is retried to a deadline. What is kept in which table stands in
schema.sql; the queries stand in the module of their subject.
"""

import fcntl
import os
import random
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from datetime import date
from pathlib import Path
from threading import TIMEOUT_MAX, Lock
from typing import IO, TYPE_CHECKING, Any

from paper_assets.errors import StoreBusy, StoreError, StoreUnwritable, StoreVersion

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SCHEMA_VERSION = 1

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.1  # seconds between two tries to open; a unit of work takes 20 ms and up
_TURNS: dict[Path, Lock] = {}  # DuckDB's own lock does not part the threads of one process
_UNWRITABLE = ("Could not write", "No space left", "File too large", "Read-only file system", "Permission denied")


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A warehouse file, created on first use; `deadline` is how many seconds to wait for another holder."""

    path: Path
    _: KW_ONLY
    deadline: float

    @contextmanager
    def reading(self) -> Iterator["DuckDBPyConnection"]:
        """A read-only connection for one unit of work, never nested. Other readers may work, writers wait.

        Raises StoreBusy, StoreVersion, StoreUnwritable, StoreError.
        """
        with self._opened(read_only=True) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator["DuckDBPyConnection"]:
        """A connection inside one transaction: all of the block is kept, or nothing if it raises. Never nested.

        Raises StoreBusy, StoreVersion, StoreUnwritable, StoreError.
        """
        import duckdb

        with self._opened(read_only=False) as connection:
            connection.begin()
            try:
                yield connection
                connection.commit()
            except BaseException:
                with suppress(duckdb.Error):  # a commit that failed has rolled back already
                    connection.rollback()
                raise

    @contextmanager
    def _opened(self, *, read_only: bool) -> Iterator["DuckDBPyConnection"]:
        ends = time.monotonic() + self.deadline
        turn = _TURNS.setdefault(self.path, Lock())
        if not turn.acquire(timeout=min(max(self.deadline, 0.0), TIMEOUT_MAX)):
            raise StoreBusy(_busy(self, f"another thread of this process (pid {os.getpid()})"))
        try:
            with _explained(self.path):
                _create_if_missing(self.path)
                connection = _connect(self, read_only=read_only, ends=ends)
                try:
                    _check_version(connection, self.path)
                    yield connection
                finally:
                    connection.close()
        finally:
            turn.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the warehouse holds: papers (`undated`: of unknown day), vectors by model, rankings by profile."""

    papers: int
    undated: int
    days: int
    first_day: date | None
    last_day: date | None
    vectors: dict[str, int]
    rankings: dict[str, int]
    last_ranking: dict[str, date]


def value_of(connection: "DuckDBPyConnection", query: str, params: object = None) -> Any:
    """The first column of the first row, None without rows.

    A result must be read to its end (`fetchone` does not), or DuckDB 2.0 refuses the connection's next query.
    """
    rows = connection.execute(query, params).fetchall()
    return rows[0][0] if rows else None


def summary(warehouse: Warehouse) -> Summary:
    """Counts for a status line."""
    with warehouse.reading() as connection:
        [(papers, undated, days, first_day, last_day)] = connection.execute(
            "select count(*), count(*) - count(day), count(distinct day), min(day), max(day) from papers"
        ).fetchall()
        vectors = connection.execute("select model, count(*) from embeddings group by model order by model").fetchall()
        rankings = connection.execute(
            "select profile, count(*), max(day) from ranking_sets group by profile order by profile"
        ).fetchall()
    return Summary(
        papers=papers,
        undated=undated,
        days=days,
        first_day=first_day,
        last_day=last_day,
        vectors=dict(vectors),
        rankings={profile: count for profile, count, _ in rankings},
        last_ranking={profile: last for profile, _, last in rankings},
    )


def _connect(warehouse: Warehouse, *, read_only: bool, ends: float) -> "DuckDBPyConnection":
    import duckdb

    pause = _FIRST_PAUSE
    while True:
        try:
            return duckdb.connect(str(warehouse.path), read_only=read_only)
        except duckdb.IOException as error:
            if "Could not set lock" not in str(error):
                raise
            remaining = ends - time.monotonic()
            if remaining <= 0:
                raise StoreBusy(_busy(warehouse, _holder(str(error)))) from None
        # Uneven pauses, so that waiting processes do not meet again at the same instant.
        time.sleep(min(remaining, pause * random.uniform(0.5, 1.5)))  # noqa: S311
        pause = min(2 * pause, _LONGEST_PAUSE)


def _create_if_missing(path: Path) -> None:
    """A new warehouse appears whole or not at all, and the first of several creators wins.

    DuckDB itself would leave an empty file, which it later refuses to open, if killed while creating. What a killed
    creator has left is swept away by the next one: nobody else can be creating, for the folder is locked.
    """
    import duckdb

    try:
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with _folder_locked(path.parent):
            if path.exists():
                return
            new = path.with_name(f".{path.name}.new")
            try:
                _remove_unfinished(new)
                with duckdb.connect(str(new)) as connection:
                    connection.execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
                    connection.execute("insert into meta values (?)", [SCHEMA_VERSION])
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


@contextmanager
def _folder_locked(folder: Path) -> Iterator[None]:
    """Hold the operating system's lock of the folder itself, which leaves no file behind and ends with its holder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _check_version(connection: "DuckDBPyConnection", path: Path) -> None:
    import duckdb

    try:
        found = value_of(connection, "select max(schema_version) from meta")
    except (duckdb.CatalogException, duckdb.BinderException):
        found = None
    if found is None:
        raise StoreError(f"{path} is a database of something else; move it away or set PAPER_ASSETS_HOME")
    if found != SCHEMA_VERSION:
        remedy = "update paper_assets" if found > SCHEMA_VERSION else "move the file away and import its papers again"
        raise StoreVersion(
            f"{path} has schema version {found}, this paper_assets works with version {SCHEMA_VERSION}; {remedy}"
        )


@contextmanager
def scratch_file(folder: Path) -> Iterator[IO[bytes]]:
    """A temporary file without a name: gone when closed, or the process killed. Raises StoreUnwritable."""
    with scratch_refusals():
        stream = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    try:
        yield stream
    finally:
        with suppress(OSError):  # closing tries once more to write what the disk has refused
            stream.close()


@contextmanager
def scratch_refusals() -> Iterator[None]:
    """Say in one line what the disk refused while a scratch file was written; raises StoreUnwritable."""
    try:
        yield
    except OSError as error:
        raise StoreUnwritable(
            f"no temporary copy beside the warehouse: {error.strerror}; free space on its disk"
        ) from None


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say in one line what the disk or the file refused; faults in our own queries pass unchanged."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        text = " ".join(str(error).split())
        if any(sign in text for sign in _UNWRITABLE):
            raise StoreUnwritable(f"{path} cannot be written: {text}; free space or check permissions") from None
        if "storage version number" in text:
            raise StoreVersion(f"{path} was written by another version of DuckDB: {text}") from None
        if isinstance(error, duckdb.IOException | duckdb.FatalException) or text.startswith("Corrupt"):
            raise StoreError(f"{path} cannot be used: {text}; restore it, or move it away and import again") from None
        raise


def _busy(warehouse: Warehouse, holder: str) -> str:
    return (
        f"{warehouse.path} is held by {holder}; waited {warehouse.deadline:g} s. Let it finish or stop it, "
        "or wait longer with PAPER_ASSETS_STORE_DEADLINE"
    )


def _holder(message: str) -> str:
    """The holding process out of DuckDB's message, with its command line where the machine tells it."""
    found = re.search(r"held in (\S+) \(PID (\d+)\)", message)
    if found is None:
        return "another process"
    program, pid = found.groups()
    with suppress(OSError):
        command = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        program = " ".join(command.split())[:120] or program
    return f"pid {pid} ({program})"
