"""One holder at a time: an operating-system lock per store, freed by the system when its holder dies.

The lock is a file beside the store (`<store>.lock`), so that it outlives a store that is deleted and made anew.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from paper_assets.errors import StoreBusy, StoreUnwritable

_SHOWN_COMMAND = 80  # characters of the holder's command line that a message shows
_held = threading.local()  # .stores: what this thread holds; another thread of the process waits like a process


@contextmanager
def store_lock(store: Path, *, deadline: float) -> Iterator[None]:
    """Hold the lock of `store` (a file or folder that need not exist yet), waiting at most `deadline` seconds.

    Raises StoreBusy naming the holder, StoreUnwritable if the lock cannot be made, and RuntimeError (a mistake
    in the program, which would otherwise wait for itself) if this thread holds it already.
    """
    from filelock import FileLock, Timeout

    name = os.path.realpath(store)
    stores: set[str] = _held.__dict__.setdefault("stores", set())
    if name in stores:
        raise RuntimeError(f"{store} is locked already by this thread; store locks are never nested")
    lock_file, note = Path(f"{name}.lock"), Path(f"{name}.lock.holder")
    try:
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(lock_file, timeout=deadline)
        lock.acquire()
    except Timeout:
        raise StoreBusy(f"{store} is held by {_holder(note)}; try again, or end that process") from None
    except OSError as fault:
        raise StoreUnwritable(f"cannot lock {store}: {fault.strerror or fault}; is its folder writable?") from None
    try:
        stores.add(name)
        _leave_note(note)
        yield
    finally:
        stores.discard(name)
        with suppress(OSError):
            note.unlink()
        lock.release()


def _leave_note(note: Path) -> None:
    """Say who holds the lock, for messages only: the lock itself is the operating system's."""
    command = " ".join(sys.orig_argv).replace("\n", " ")
    command = command if len(command) <= _SHOWN_COMMAND else command[: _SHOWN_COMMAND - 3] + "..."
    try:
        note.write_text(json.dumps({"pid": os.getpid(), "command": command}), encoding="utf-8")
    except OSError as fault:
        raise StoreUnwritable(f"cannot write {note}: {fault.strerror or fault}; free some disk space") from None


def _holder(note: Path) -> str:
    """Who holds a lock that was found held. The note of a holder that was killed may still lie there."""
    try:
        told = json.loads(note.read_text(encoding="utf-8"))
        pid, command = int(told["pid"]), str(told["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    if pid == os.getpid():
        return "another thread of this process"
    return f"process {pid} ({command})" if _alive(pid) else "another process"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives and is another user's
        return True
    return True
