"""Lock stores and folders, identify processes, and keep files private to their user.

`store_lock` gives a store one holder at a time: a file beside the store (`<store>.lock`), so that the lock outlives a
store that is deleted and recreated; the system frees it when its holder is killed. `folder_locked` locks a folder
itself, leaves no file behind and ends with its holder.

A process number alone does not identify a process, because the system reuses it. Together with its start time and the
machine's boot id it does. Other modules decide what to do with files of a dead process.

Private folders and files are readable only by their user (SPEC 8); existing ones keep their permissions.
"""

import fcntl
import json
import os
import random
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

from paper_assets.errors import StoreBusy, StoreUnwritable

_held = threading.local()  # .stores: held by this thread; another thread of the process waits like another process


@contextmanager
def store_lock(store: Path, *, deadline: float) -> Iterator[None]:
    """Hold the lock of `store` (a file or folder that need not exist yet), waiting at most `deadline` seconds.

    Raises StoreBusy naming the holder, StoreUnwritable if the lock cannot be created, and RuntimeError (a programming
    error, which would otherwise deadlock) if this thread holds it already.
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
    """Record the holder, for messages only: the lock itself belongs to the operating system."""
    try:
        note.write_text(str(this_process()), encoding="utf-8")
    except OSError as fault:
        raise StoreUnwritable(f"cannot write {note}: {fault.strerror or fault}; free some disk space") from None


def _holder(note: Path) -> str:
    """Describe the holder of a lock. The note of a killed holder may still exist."""
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
    """Remove the notes of killed holders among `places`. Removing one too many only makes a message less specific."""
    for note in places:
        with suppress(OSError, ValueError):
            holder = parse_process(note.read_text(encoding="utf-8"))
            if holder is None or is_gone(holder):
                note.unlink()


_LONGEST_PAUSE = 0.05  # seconds between two tries


@contextmanager
def folder_locked(folder: Path, *, ends: float | None = None) -> Iterator[None]:
    """Hold the lock of an existing folder briefly. Raises OSError.

    `ends`: when to give up waiting (monotonic clock), which raises BlockingIOError.
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


_PROC = Path("/proc")
_SHOWN_COMMAND = 120  # characters of a command line that a message shows


@dataclass(frozen=True, slots=True)
class ProcessId:
    """Identify one process. `started` (clock ticks since boot), `boot` and `space` (of process numbers) are empty where
    the system does not provide them.
    """

    pid: int
    started: str
    boot: str
    space: str
    host: str

    def __str__(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def this_process() -> ProcessId:
    """Return the id of the calling process."""
    return process_named(os.getpid())


def process_named(pid: int) -> ProcessId:
    """Return the id of the process that has this number now."""
    return ProcessId(pid, _started(pid) or "", *_machine(), socket.gethostname())


def parse_process(text: str | None) -> ProcessId | None:
    """Parse what `str` wrote; None for anything else."""
    try:
        found = json.loads(text or "")
        return ProcessId(int(found["pid"]), *(str(found[name]) for name in ("started", "boot", "space", "host")))
    except (ValueError, KeyError, TypeError):
        return None


def is_gone(process: ProcessId) -> bool:
    """Check whether the process has certainly ended; False also for one of another machine, where this is unknown."""
    if process.host != socket.gethostname():
        return False
    if (process.boot, process.space) != _machine():
        return True
    if not process.started:
        return not is_alive(process.pid)
    return _started(process.pid) != process.started


def is_alive(pid: int) -> bool:
    """Check whether a process with this number runs on this machine; it may not be the one that was meant."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs and belongs to another user
        return True
    return True


def command_of(pid: int) -> str:
    """Return the command line of a running process, shortened; empty where the system does not provide it."""
    try:
        command = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
    shown = " ".join(command.split())
    return shown if len(shown) <= _SHOWN_COMMAND else f"{shown[: _SHOWN_COMMAND - 3]}..."


@cache
def _machine() -> tuple[str, str]:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot, str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return "", ""


def _started(pid: int) -> str | None:
    """Return the start time of a running process; None if it has ended or is a zombie."""
    try:
        state = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = state.rpartition(")")[2].split()  # the name before it may contain anything
    return None if fields[0] in "ZX" else fields[19]


_OTHERS = 0o077


def make_files_private() -> None:
    """Make all files that this process and its children create from now on readable by its user only."""
    os.umask(_OTHERS)


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, each readable by its user only. Raises OSError."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
