"""Request gate: all processes of the machine that ask one source take turns (SPEC S2).

One request at a time, `interval` seconds from the end of one to the start of the next. An OS file lock keeps the queue
(a killed holder frees it); a small file keeps the earliest time of the next request, so that a `Retry-After` given to
one process holds for all.
"""

import math
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

from paper_assets.errors import InvalidInput, RateLimited

LONGEST_HOLD = 86_400.0  # seconds; a Retry-After of more than a day is taken as a day


class RequestGate:
    """The queue of all processes that share one folder.

    The file `next_request` holds two times: when it was written, and the earliest time of the next request.
    """

    def __init__(
        self, gate: Path, *, interval: float, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self.gate = gate
        self.interval = interval
        self.clock = clock
        self.sleep = sleep

    def take(self, host: str, *, until: float) -> Callable[[float], None]:
        """Wait for the turn; the function returned ends it and closes the gate for some seconds.

        Raises RateLimited if the turn cannot come before `until`.
        """
        while True:
            # 0o666: a gate folder may be shared by several users; its own rights say by whom.
            lock = FileLock(self.gate / "lock", mode=0o666)
            try:
                self.gate.mkdir(parents=True, exist_ok=True)
                lock.acquire(timeout=max(0.0, until - self.clock()))
                wait, hold = self._closed_for()
                if wait <= 0:
                    # Written before the request as well: a process killed during it leaves the gate closed.
                    self._close(self.interval)
            except Timeout:
                raise RateLimited(self._own_queue(host)) from None
            except OSError as error:
                lock.release()
                raise InvalidInput(
                    f"the request gate {self.gate} cannot be used: {error.strerror or error}; "
                    "set PAPER_ASSETS_REQUEST_GATE to a folder that this user can write to"
                ) from None
            if wait <= 0:
                return lambda seconds: self._end(lock, seconds)
            lock.release()
            if self.clock() + wait > until:
                asked_to = hold > self.interval + 0.001  # by the source; our own turns are an interval apart
                raise RateLimited(come_back(host, self.clock() + wait) if asked_to else self._own_queue(host))
            self.sleep(wait)

    def _end(self, lock: Any, seconds: float) -> None:
        try:
            with suppress(OSError):  # the time written at the start of the turn still stands
                self._close(max(seconds, self.interval))
        finally:
            lock.release()

    def _own_queue(self, host: str) -> str:
        return (
            f"our own queue for {host} is too long: requests of this machine go one at a time, {self.interval:g} s "
            f"apart (gate {self.gate}); try again in a moment"
        )

    def _closed_for(self) -> tuple[float, float]:
        """Seconds until the gate opens, and for how many it was closed, never fewer, even if the clock was set back."""
        with self._next_request() as file:
            text = file.read(100)
        if not text:
            return 0.0, 0.0
        try:
            written, opens = map(float, text.split())
        except ValueError:
            written = opens = math.nan
        if not 0 <= opens - written <= LONGEST_HOLD:  # cut off by a kill: as if somebody had asked this very moment
            self._close(self.interval)
            return self.interval, self.interval
        now, hold = self.clock(), opens - written
        if now < written:  # the clock was set back; the length of the hold is all that is known
            self._close(hold)
            return hold, hold
        return opens - now, hold

    def _close(self, seconds: float) -> None:
        now = self.clock()
        with self._next_request() as file:
            file.truncate()
            file.write(f"{now!r} {now + min(seconds, LONGEST_HOLD)!r}\n")

    def _next_request(self) -> IO[str]:
        """The file with the times, made if missing, writable by all users whom the folder lets in, never a link."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self.gate / "next_request", flags, 0o666)
        with suppress(OSError):
            os.fchmod(descriptor, 0o666)
        return os.fdopen(descriptor, "r+", encoding="ascii", errors="replace")


def come_back(host: str, then: float) -> str:
    """The line for somebody who must wait until `then`, in seconds since 1970."""
    return f"{host} asks us to wait; try again after {datetime.fromtimestamp(then, UTC):%Y-%m-%d %H:%M:%S} UTC"
