"""The first bytes of a database file, read without giving up the locks that DuckDB holds on it in this process."""

import os
from pathlib import Path
from threading import Lock

_HANDLES: dict[Path, int] = {}
_LOCK = Lock()


def file_head(path: Path, size: int) -> bytes | None:
    """The first `size` bytes; None if there is no file.

    The handle stays open: closing any handle of a file gives up all of the process's locks on that file, and other
    processes could write while one of our threads reads, or writes.
    """
    with _LOCK:
        try:
            now = path.stat()
            handle = _HANDLES.get(path)
            if handle is None or not os.path.samestat(os.fstat(handle), now):
                _HANDLES[path] = os.open(path, os.O_RDONLY)
                if handle is not None:
                    os.close(handle)  # of a file that has been replaced
        except FileNotFoundError:
            return None
        return os.pread(_HANDLES[path], size, 0)
