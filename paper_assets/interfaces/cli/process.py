"""How the process of a command ends: on a signal, on an error of the disk, on a bug.

Signals end a process at once, wherever it is. Nothing needs a tidy end: whatever a killed process leaves is whole, or
the next command repairs it. So a separate thread waits for the signal and ends the process, and no library can catch,
retry or delay it: Dagster's retry policies would take an interrupt for a failure.
"""

import atexit
import errno
import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CLEANUP_SECONDS = 1.0  # for all clean-ups before the end; then they are left undone
STOPPED = "stopped; nothing is half-written, the same command continues from here"
_SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it

# Errors of the disk. The stores name their own files; these come from Dagster's databases (SQLite behind several
# layers) and from files that other libraries write.
_REFUSALS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO))
_SQLITE = ("disk I/O error", "disk is full", "readonly database", "unable to open", "malformed", "not a database")

ERROR_LOG = "errors.log"  # in the data folder
_MAX_LOG_BYTES = 1_000_000  # then the log starts again

_cleanups: list[Callable[[], None]] = []


def end_on_signals() -> None:
    """Make the three signals end this process with exit code 128 + their number. Call it in the main thread.

    Child processes inherit the blocked signals; those that live longer than a moment must unblock them.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    atexit.register(_restore_signals)
    Thread(target=_wait, name="stopping", daemon=True).start()


def before_the_end(cleanup: Callable[[], None]) -> None:
    """Register a clean-up for the case that a signal ends the process. It may be cut off, or not be called at all."""
    _cleanups.append(cleanup)


def disk_fault(error: BaseException) -> str | None:
    """Describe an error that comes from the disk or from a damaged file of Dagster, in one line; None for others."""
    home = os.environ.get("DAGSTER_HOME", "DAGSTER_HOME")
    for each in _chain(error):
        # Compared by name: neither is imported where no command needs it.
        if type(each).__module__.partition(".")[0] == "yaml" or type(each).__name__ == "DagsterInvalidConfigError":
            reason = " ".join(str(each).split())[:300]
            return f"{home}/dagster.yaml is not valid: {reason}; fix it, or restore the one of the project"
        if isinstance(each, sqlite3.Error) and any(sign in str(each) for sign in _SQLITE):
            return (
                f"Dagster's history in {home} cannot be used: {each}; free space and check permissions, then run the "
                "command again; if the history is damaged, move everything but dagster.yaml away, no papers are in it"
            )
        if isinstance(each, OSError) and each.errno in _REFUSALS:
            return (
                f"{each.filename or 'the disk'}: {each.strerror}; free space and check permissions, then run the "
                "command again"
            )
    return None


def log_unexpected(error: BaseException, *, what: str = "the command") -> str:
    """Append the traceback of a bug to the error log and describe the bug in one line."""
    from paper_assets.interfaces.cli.terminal import read_settings
    from paper_assets.text.secrets import Secrets

    secrets = Secrets(os.environ)
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" at {Path(last[0].filename).name}:{last[0].lineno}" if last else ""
    reason = " ".join(secrets.hide(str(error)).split())[:200]
    line = f"{what} failed unexpectedly: {type(error).__name__}{f': {reason}' if reason else ''}{place}"
    text = secrets.hide("".join(traceback.format_exception(error)))
    try:
        home = read_settings().home
        home.mkdir(parents=True, exist_ok=True)
        file = home / ERROR_LOG
        full = file.exists() and file.stat().st_size > _MAX_LOG_BYTES
        with file.open("w" if full else "a", encoding="utf-8", errors="replace") as log:
            log.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC: {' '.join(sys.argv[:3])}: {what}\n{text}\n")
    except Exception:  # without a place for the log the line must do
        return f"{line}; the traceback could not be written"
    return f"{line}; the traceback is in {file}"


def _wait() -> None:
    number = signal.sigwait(_SIGNALS)
    last = Thread(target=_clean_up, daemon=True)
    last.start()
    last.join(timeout=_CLEANUP_SECONDS)
    with suppress(OSError):
        shown = _SHOW_CURSOR if os.isatty(2) else ""
        # Not through sys.stderr, whose lock the main thread may hold.
        os.write(2, f"{shown}{STOPPED}\n".encode())
    os._exit(128 + number)


def _clean_up() -> None:
    for cleanup in _cleanups:
        with suppress(Exception):  # the next command repairs what is left undone
            cleanup()


def _restore_signals() -> None:
    """Restore the system's own handling: while the interpreter shuts down, the waiting thread no longer runs."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Give the error, then its causes."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__
