"""Lock stores between processes: one holder at a time, named to those who wait.

The lock is a file beside the store (`<store>.lock`), so that it outlives a store that is deleted and recreated. The
system frees it when its holder is killed. The file names the latest holder, for messages only.
"""

import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from paper_assets.errors import StoreBusy, StoreUnwritable
from paper_assets.processes import command_of, is_gone, parse_process, this_process
from paper_assets.small_files import make_private_folder

_held = threading.local()  # .stores: held by this thread; another thread of the process waits like another process
_PAUSES = 0.005, 0.05  # seconds between two tries; random, so that waiting processes do not collide again


@contextmanager
def store_lock(store: Path, *, deadline: float, mode: int = 0o600) -> Iterator[None]:
    """Hold the lock of `store` (a file or folder that need not exist yet), waiting at most `deadline` seconds.

    `mode`: the permissions of a new lock file, for a store that several users share. Raises StoreBusy naming the
    holder, StoreUnwritable if the lock cannot be created, and RuntimeError (a programming error, which would otherwise
    deadlock) if this thread holds it already.
    """
    name = os.path.realpath(store)
    stores: set[str] = _held.__dict__.setdefault("stores", set())
    if name in stores:
        raise RuntimeError(f"{store} is locked already by this thread; store locks are never nested")
    file = Path(f"{name}.lock")
    lock = FileLock(file, mode=mode)
    try:
        make_private_folder(file.parent)
        lock.acquire(timeout=max(deadline, 0.0), poll_interval=random.uniform(*_PAUSES))  # noqa: S311
    except Timeout:
        raise StoreBusy(f"{store} is held by {lock_holder(store)}; try again, or end that process") from None
    except OSError as fault:
        raise StoreUnwritable(f"cannot lock {store}: {fault.strerror or fault}; is its folder writable?") from None
    try:
        stores.add(name)
        with suppress(OSError):  # the disk is full: the holder then has no name
            file.write_text(f"{this_process()}", encoding="utf-8")
        yield
    finally:
        stores.discard(name)
        lock.release()


def lock_holder(store: Path) -> str:
    """Describe the process that holds the lock of `store`."""
    try:
        holder = parse_process(Path(f"{os.path.realpath(store)}.lock").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        holder = None
    if holder is None or is_gone(holder):  # the file still names an earlier one
        return "another process"
    if holder.pid == os.getpid():
        return f"another thread of this process (pid {holder.pid})"
    return f"pid {holder.pid} ({command_of(holder.pid) or 'unknown'})"
