"""The operating system's lock of a folder itself: it leaves no file behind and ends with its holder."""

import fcntl
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST_PAUSE = 0.05  # seconds between two tries


@contextmanager
def folder_locked(folder: Path, *, ends: float | None = None) -> Iterator[None]:
    """Hold the lock of an existing folder, for what takes a moment. Raises OSError.

    `ends`: when to give up waiting (by the monotonic clock), which raises BlockingIOError.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        if ends is None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        else:
            _lock_by(handle, ends)
        yield
    finally:
        os.close(handle)


def _lock_by(handle: int, ends: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > ends:
                raise
        time.sleep(_LONGEST_PAUSE * random.uniform(0.1, 1.0))  # noqa: S311
