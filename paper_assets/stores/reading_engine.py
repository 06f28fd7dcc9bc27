"""One DuckDB engine a process for all that is read: a file is attached to it for one unit of work, and let go again.

DuckDB takes 20 ms of the processor to begin an engine, whatever file it opens, and 3 ms to attach a file to one that
runs; a day of a profile is read dozens of times. The engine itself holds nothing: no file, no table, no setting.
"""

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import gettempdir
from threading import Lock

import duckdb
from duckdb import DuckDBPyConnection

from paper_assets.stores.creation import NO_EXTENSIONS

_ENGINES: dict[int, DuckDBPyConnection] = {}  # by process: the threads of an engine do not live on in a fork
_NUMBERS, _ONE_AT_A_TIME = count(), Lock()


@contextmanager
def attached(path: Path) -> Iterator[DuckDBPyConnection]:
    """A connection that reads the file and nothing else; the file is open, and locked, as long as the block lasts.

    Raises duckdb.Error as DuckDB does that opens the file by itself.
    """
    engine, name, place = _engine(), f"file_{next(_NUMBERS)}", str(path).replace("'", "''")
    with _another(engine) as connection:
        connection.execute(f"attach '{place}' as {name} (type duckdb, read_only)")
        try:
            connection.execute(f"use {name}")
            yield connection
        except duckdb.Error:
            _forget(engine)  # an engine that has met a broken file may refuse all others
            raise
        finally:
            connection.close()
            with _another(engine) as ending:
                ending.execute(f"detach {name}")


def _engine() -> DuckDBPyConnection:
    with _ONE_AT_A_TIME:
        if os.getpid() not in _ENGINES:
            # An engine without a file would spill what memory does not hold into the folder where the user stands.
            spilled = Path(gettempdir(), f"paper_assets-{os.getuid()}-{os.getpid()}.tmp")
            _ENGINES[os.getpid()] = duckdb.connect(config={**NO_EXTENSIONS, "temp_directory": str(spilled)})
        return _ENGINES[os.getpid()]


def _another(engine: DuckDBPyConnection) -> DuckDBPyConnection:
    """A connection of its own to the engine, for one thread."""
    with _ONE_AT_A_TIME:
        return engine.cursor()


def _forget(engine: DuckDBPyConnection) -> None:
    with _ONE_AT_A_TIME:
        if _ENGINES.get(os.getpid()) is engine:
            del _ENGINES[os.getpid()]


@atexit.register
def _end() -> None:
    """Before the interpreter goes, or DuckDB complains of what is left."""
    _ENGINES.pop(os.getpid(), None)
