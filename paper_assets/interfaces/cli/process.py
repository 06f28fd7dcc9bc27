"""End the process of a command: on signals, and on errors of the disk or of Dagster's files."""

import atexit
import errno
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FAREWELL_SECONDS = 1.0  # for what is done before the end; then it is left undone
STOPPED = "stopped; nothing is half-written, the same command goes on where this one ended"
_SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it

_farewells: list[Callable[[], None]] = []


def end_on_signals() -> None:
    """From now on the three signals end this process with exit code 128 + their number. For main threads only.

    Child processes inherit that the signals are held back; those that outlive a moment must undo it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    atexit.register(_as_before)
    Thread(target=_wait, name="stopping", daemon=True).start()


def before_the_end(farewell: Callable[[], None]) -> None:
    """Have this called, from another thread, if a signal ends the process. It may be cut off, or not called at all."""
    _farewells.append(farewell)


def _wait() -> None:
    number = signal.sigwait(_SIGNALS)
    last = Thread(target=_say_farewell, daemon=True)
    last.start()
    last.join(timeout=_FAREWELL_SECONDS)
    with suppress(OSError):
        shown = _SHOW_CURSOR if os.isatty(2) else ""
        # Not by sys.stderr, whose lock the main thread may hold.
        os.write(2, f"{shown}{STOPPED}\n".encode())
    os._exit(128 + number)


def _say_farewell() -> None:
    for farewell in _farewells:
        with suppress(Exception):  # what is left undone is mended by the next command
            farewell()


def _as_before() -> None:
    """While the interpreter shuts down no thread of ours runs any more: the system's own way of ending holds again."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


_REFUSALS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO))
_SQLITE = ("disk I/O error", "disk is full", "readonly database", "unable to open", "malformed", "not a database")


def refusal_of_the_disk(error: BaseException) -> str | None:
    """The line for an error that the disk, or a damaged database of Dagster's, is behind; None for any other."""
    home = os.environ.get("DAGSTER_HOME", "DAGSTER_HOME")
    for each in _chain(error):
        # Known by name: neither is imported where no command needs it.
        if type(each).__module__.partition(".")[0] == "yaml" or type(each).__name__ == "DagsterInvalidConfigError":
            reason = " ".join(str(each).split())[:300]
            return (
                f"{home}/dagster.yaml cannot be used: {reason}; mend it, or put back the one that came with the project"
            )
        if isinstance(each, sqlite3.Error) and any(sign in str(each) for sign in _SQLITE):
            return (
                f"Dagster's history in {home} cannot be used: {each}; free space and check permissions, then the same "
                "command again; a damaged one may be moved away without dagster.yaml, nothing of the desk is in it"
            )
        if isinstance(each, OSError) and each.errno in _REFUSALS:
            return (
                f"{each.filename or 'the disk'}: {each.strerror}; free space and check permissions, then the same "
                "command again"
            )
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__
