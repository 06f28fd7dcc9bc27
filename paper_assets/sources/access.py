"""Access: what a source is asked with: addresses and politeness from the settings, keys, and the time there is (S2)."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import requests

from paper_assets.errors import NetworkError
from paper_assets.settings import Settings
from paper_assets.sources.known_hosts import KnownHosts, guarded_transport
from paper_assets.sources.polite_http import MOST_BYTES, polite_session

SecondsLeft = Callable[[], float]

_LONGEST_REQUEST = 300.0  # seconds for one request with its waits, where there is more time than that


def seconds_from_now(seconds: float | None, clock: Callable[[], float]) -> SecondsLeft:
    """How many of so many seconds are left, from now on; infinitely many of None."""
    ends = math.inf if seconds is None else clock() + seconds
    return lambda: ends - clock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """`environ` holds the keys, so it is in no repr; a source may also take its own options from there."""

    settings: Settings
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    left: SecondsLeft = lambda: math.inf

    @contextmanager
    def session(
        self,
        *,
        gate: str,
        interval: float,
        most_bytes: int = MOST_BYTES,
        hosts: KnownHosts | None = None,
    ) -> Iterator[requests.Session]:
        """A polite session, in its turn among all processes of the machine that name the same gate.

        interval: seconds between two requests. hosts: speak to machines of these only. Raises NetworkError if no time
        is left.
        """
        seconds = min(self.left(), _LONGEST_REQUEST)
        if seconds <= 0:
            raise NetworkError("the time for this call is over; ask again, what was found so far is kept")
        with polite_session(
            gate=self.settings.request_gate / gate,
            interval=interval,
            timeout=min(self.settings.request_timeout, seconds),
            contact=self.settings.contact,
            deadline=seconds,
            most_bytes=most_bytes,
            transport=None if hosts is None else guarded_transport(hosts),
        ) as session:
            yield session
