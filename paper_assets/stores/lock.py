"""One holder at a time: an operating-system lock per store, freed by the system when its holder dies.

The lock is a file beside the store (`<store>.lock`), so that it outlives a store that is deleted and made anew.
"""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from paper_assets.errors import StoreBusy, StoreUnwritable
from paper_assets.stores.private import make_private_folder
from paper_assets.stores.processes import command_of, is_gone, parse_process, this_process

_held = threading.local()  # .stores: what this thread holds; another thread of the process waits like a process


@contextmanager
def store_lock(store: Path, *, deadline: float) -> Iterator[None]:
    """Hold the lock of `store` (a file or folder that need not exist yet), waiting at most `deadline` seconds.

    Raises StoreBusy naming the holder, StoreUnwritable if the lock cannot be made, and RuntimeError (a mistake
    in the program, which would otherwise wait for itself) if this thread holds it already.
    """
    name = os.path.realpath(store)
    stores: set[str] = _held.__dict__.setdefault("stores", set())
    if name in stores:
        raise RuntimeError(f"{store} is locked already by this thread; store locks are never nested")
    lock_file, note = Path(f"{name}.lock"), Path(f"{name}.lock.holder")
    try:
        make_private_folder(lock_file.parent)
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
    try:
        note.write_text(str(this_process()), encoding="utf-8")
    except OSError as fault:
        raise StoreUnwritable(f"cannot write {note}: {fault.strerror or fault}; free some disk space") from None


def _holder(note: Path) -> str:
    """Who holds a lock that was found held. The note of a holder that was killed may still lie there."""
    try:
        holder = parse_process(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        holder = None
    if holder is None or is_gone(holder):
        return "another process"
    if holder.pid == os.getpid():
        return "another thread of this process"
    return f"process {holder.pid} ({command_of(holder.pid) or 'unknown'})"


def sweep_notes(places: Iterable[Path]) -> None:
    """Remove the notes of killed holders among `places`. A note that is swept too much costs a message its name."""
    for note in places:
        with suppress(OSError, ValueError):
            holder = parse_process(note.read_text(encoding="utf-8"))
            if holder is None or is_gone(holder):
                note.unlink()
