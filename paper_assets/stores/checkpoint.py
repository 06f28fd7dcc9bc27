"""Write DuckDB's log into its file so that a kill during any write leaves the warehouse intact (A4).

DuckDB keeps 64 pieces of metadata in one block with one checksum, and a checkpoint writes new pieces next to those that
the head of the file still points to: in place. A process killed during that write (the kernel checks for SIGKILL
between two pages) leaves a block with a wrong checksum, and DuckDB can no longer open the file. This module therefore
copies the metadata blocks to a second file first. The next process that opens the warehouse writes them back if the
head is still the old one; the log, which DuckDB removes last, then supplies the rest.
"""

import fcntl
import os
import struct
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from duckdb import DuckDBPyConnection

from paper_assets.small_files import remove_unfinished, write_file

_HEAD = 3 * 4096  # bytes before the first block: the head of the file and two of the database, written in turns
_PLACE = struct.Struct("<QQ")  # precedes the bytes of a block: its position in the file and its length
_NEVER = "1TB"  # the size of a log at which DuckDB would checkpoint automatically


def disable_automatic_checkpoints(connection: DuckDBPyConnection) -> None:
    """Prevent DuckDB from checkpointing automatically, at a commit or when the file is closed."""
    connection.execute(f"set checkpoint_threshold = '{_NEVER}'")
    connection.execute("pragma disable_checkpoint_on_shutdown")


def checkpoint(connection: DuckDBPyConnection, path: Path, before: BinaryIO) -> None:
    """Write the log of a warehouse that is open for writing into its file.

    `before` reads the file; it was opened before `connection` and is closed after it, because closing any handle of a
    file releases the process's locks on it. Raises duckdb.Error, OSError.
    """
    if not log_path(path).exists():
        return
    aside = backup_path(path)
    _back_up_blocks(connection, before.fileno(), aside)
    connection.execute("checkpoint")
    aside.unlink()


def undo_checkpoint(path: Path) -> None:
    """Undo an interrupted checkpoint and remove its unfinished copy; in nearly all cases there is nothing to do.

    The caller has the warehouse's lock and has no connection: closing the file releases this process's locks on it.
    The lock taken here is DuckDB's own, against other programs. Raises BlockingIOError if one has the file open,
    OSError.
    """
    aside = backup_path(path)
    remove_unfinished(aside.parent, aside.name)
    if not aside.exists():
        return
    with path.open("r+b", buffering=0) as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        kept = aside.read_bytes()
        if file.read(_HEAD) == kept[:_HEAD]:  # otherwise the checkpoint was complete
            _write_back(file.fileno(), kept)
        aside.unlink()


def log_path(path: Path) -> Path:
    """Return the path of DuckDB's log: beside the file itself where `path` is a link to it."""
    file = path.resolve()
    return file.with_name(f"{file.name}.wal")


def backup_path(path: Path) -> Path:
    """Return the path of the copied blocks of this warehouse."""
    return path.with_name(f".{path.name}.checkpoint")


def _back_up_blocks(connection: DuckDBPyConnection, before: int, aside: Path) -> None:
    """Write the head, then every block of metadata after its position; the file appears complete or not at all."""
    [(size,)] = connection.execute(
        "select block_size from pragma_database_size() where database_name = current_database()"
    ).fetchall()
    blocks = connection.execute("select distinct block_id from pragma_metadata_info() order by 1").fetchall()
    starts = [_HEAD + block * size for (block,) in blocks]
    copies = ((start, os.pread(before, size, start)) for start in starts)
    packed = (_PLACE.pack(start, len(content)) + content for start, content in copies)
    write_file(aside, chain([os.pread(before, _HEAD, 0)], packed))


def _write_back(handle: int, kept: bytes) -> None:
    rest = memoryview(kept)[_HEAD:]
    while rest:
        start, size = _PLACE.unpack_from(rest)
        os.pwrite(handle, rest[_PLACE.size : _PLACE.size + size], start)
        rest = rest[_PLACE.size + size :]
    os.fsync(handle)
