"""Ctrl-C, SIGTERM and SIGHUP end a command at once, wherever it is (A3).

Nothing of ours needs a tidy end: whatever a killed process leaves is whole, or mended by the next command (A4). So a
thread of its own waits for the signal and ends the process, and nobody can catch, retry or delay it: not Dagster, whose
retry policies take an interrupt for a failure, not a library that is computing for seconds.
"""

import atexit
import os
import signal
from collections.abc import Callable
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
