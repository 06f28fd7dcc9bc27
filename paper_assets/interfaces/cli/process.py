"""Start and end the process of a command: its imports, a signal, an error of the disk, a bug.

Signals end a process at once, wherever it is. No clean-up is required: files of a killed process are complete, or
the next command repairs them. So a separate thread waits for the signal and ends the process, and no library can catch,
retry or delay it: Dagster's retry policies would take an interrupt for a failure.
"""

import atexit
import gc
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from threading import Thread

from paper_assets.errors import causes, disk_fault, named_error

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CLEANUP_SECONDS = 1.0  # seconds for all clean-ups before the end; after that the rest is skipped
STOPPED = "stopped; nothing is half-written, the same command continues from here"
_SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it

ERROR_LOG = "errors.log"  # in the data folder
_MAX_LOG_BYTES = 1_000_000  # then the log starts again

_cleanups: list[Callable[[], None]] = []


@contextmanager
def importing() -> Iterator[None]:
    """Import modules without garbage collection, and exclude them from later collections: one takes 40 ms."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def prepare_streams() -> None:
    """Open streams that the caller closed, so that no database gets their numbers; write UTF-8 into files and pipes.

    A terminal of another encoding shows a question mark for what it lacks. Lines go into files and pipes at once,
    so that the journal, or `| tee`, has the address of a server that does not end.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, TextIOWrapper):
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="replace", line_buffering=True)


def end_on_signals() -> None:
    """Make the three signals end this process with exit code 128 + their number. Call it in the main thread.

    A command that was started by nohup continues when its terminal closes. Child processes inherit the blocked signals;
    those that live longer than a moment must unblock them.
    """
    signals = ending_signals()
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    atexit.register(_restore_signals, signals)
    Thread(target=_wait, args=(signals,), name="stopping", daemon=True).start()


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end a command: without SIGHUP if it was started by nohup."""
    by_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return tuple(signal_number for signal_number in _SIGNALS if not (by_nohup and signal_number is signal.SIGHUP))


def before_the_end(cleanup: Callable[[], None]) -> None:
    """Register a clean-up for the case that a signal ends the process. It may be cut off, or not be called at all."""
    _cleanups.append(cleanup)


def describe_disk_fault(error: BaseException) -> str | None:
    """Describe an error that comes from the disk or from a damaged file of Dagster, in one line; None for others."""
    home = os.environ.get("DAGSTER_HOME", "DAGSTER_HOME")
    for cause in causes(error):
        # Compared by name: neither is imported where no command needs it.
        if type(cause).__module__.partition(".")[0] == "yaml" or type(cause).__name__ == "DagsterInvalidConfigError":
            reason = " ".join(str(cause).split())[:300]
            return f"{home}/dagster.yaml is not valid: {reason}; fix it, or restore the one of the project"
    return disk_fault(error)


class _ErrorLogHandler(logging.Handler):
    """Writes tracebacks of errors that stopped only one profile, day or paper where `log_unexpected` writes."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            _append_traceback(error, record.getMessage())


def keep_tracebacks_in_the_log() -> None:
    """Send tracebacks of unexpected errors to the error log instead of the terminal, which gets one line."""
    logger = logging.getLogger(named_error.__module__)
    logger.addHandler(_ErrorLogHandler())
    logger.propagate = False


def log_unexpected(error: BaseException, *, what: str = "the command") -> str:
    """Append the traceback of a bug to the error log and describe the bug in one line."""
    from paper_assets.text.secrets import Secrets

    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" at {Path(last[0].filename).name}:{last[0].lineno}" if last else ""
    reason = " ".join(Secrets(os.environ).hide(str(error)).split())[:200]
    line = f"{what} failed unexpectedly: {type(error).__name__}{f': {reason}' if reason else ''}{place}"
    file = _append_traceback(error, what)
    return f"{line}; the traceback is in {file}" if file else f"{line}; the traceback could not be written"


def _append_traceback(error: BaseException, what: str) -> Path | None:
    """Append a traceback without secrets to the error log; returns its file, None where it cannot be written."""
    from paper_assets.interfaces.cli.terminal import read_settings
    from paper_assets.text.secrets import Secrets

    text = Secrets(os.environ).hide("".join(traceback.format_exception(error)))
    try:
        home = read_settings().home
        home.mkdir(parents=True, exist_ok=True)
        file = home / ERROR_LOG
        full = file.exists() and file.stat().st_size > _MAX_LOG_BYTES
        with file.open("w" if full else "a", encoding="utf-8", errors="replace") as log:
            log.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC: {' '.join(sys.argv[:3])}: {what}\n{text}\n")
    except Exception:  # without a log file, the line is all there is
        return None
    return file


def _wait(signals: tuple[signal.Signals, ...]) -> None:
    number = signal.sigwait(signals)
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
        with suppress(Exception):  # the next command repairs an unfinished clean-up
            cleanup()


def _restore_signals(signals: tuple[signal.Signals, ...]) -> None:
    """Restore the system's own handling: while the interpreter shuts down, the waiting thread no longer runs."""
    for number in signals:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
