"""Reach: all that this room may touch outside itself, handed in by a face: stores, sources, keys, time.

Nothing is opened here. Sessions and connections are made for one call and closed with it, so one `Reach` serves all
threads of a server.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from paper_assets.errors import NetworkError, StoreBusy
from paper_assets.settings import Settings
from paper_assets.sources import semantic_scholar
from paper_assets.sources.known_hosts import KnownHosts, guarded_transport, known_hosts
from paper_assets.sources.polite_http import MOST_BYTES, polite_session
from paper_assets.stores.warehouse import Warehouse

if TYPE_CHECKING:
    import requests
    from duckdb import DuckDBPyConnection

Progress = Callable[[int, int, str], None]  # steps done, steps in all, what is being done; may raise to stop the call
SecondsLeft = Callable[[], float]

_LONGEST_REQUEST = 300.0  # seconds for one request with its waits, where the call itself has no deadline
# Of a call with a deadline: if arXiv does not answer, there must be time left to ask Semantic Scholar.
_MOST_FOR_ARXIV, _PART_FOR_ARXIV = 25.0, 0.6  # seconds; of what is left


@dataclass(frozen=True, slots=True)
class WaitedOnce(Warehouse):
    """The warehouse as one call sees it: a holder is waited for once, and later units of work of the call no more."""

    told: list[str] = field(default_factory=list, compare=False)  # what the first wait ended with

    @contextmanager
    def reading(self) -> Iterator["DuckDBPyConnection"]:
        """As `Warehouse.reading`."""
        with self._once(Warehouse.reading) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator["DuckDBPyConnection"]:
        """As `Warehouse.writing`."""
        with self._once(Warehouse.writing) as connection:
            yield connection

    @contextmanager
    def _once(
        self, opened: Callable[[Warehouse], AbstractContextManager["DuckDBPyConnection"]]
    ) -> Iterator["DuckDBPyConnection"]:
        try:
            with opened(Warehouse(self.path, deadline=0.0 if self.told else self.deadline)) as connection:
                yield connection
        except StoreBusy as error:
            self.told.append(str(error))
            raise StoreBusy(self.told[0]) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """`environ` holds the keys, so it is in no repr. `deadline`: seconds for one call with all it asks; None: as long
    as it takes. A server gives each call its own progress: `dataclasses.replace(reach, progress=...)`."""

    settings: Settings
    warehouse: Warehouse
    environ: Mapping[str, str] = field(repr=False)
    deadline: float | None = None
    progress: Progress = lambda done, total, what: None
    clock: Callable[[], float] = time.monotonic
    # Search results by question, each with the moment until which it counts: the pages of a search are of one list.
    searches: dict[tuple[object, ...], tuple[float, Any]] = field(default_factory=dict, repr=False, compare=False)

    def started(self) -> SecondsLeft:
        """A call begins: the function tells how many seconds it has left (infinity without a deadline)."""
        ends = math.inf if self.deadline is None else self.clock() + self.deadline
        return lambda: ends - self.clock()

    def of_one_call(self) -> "Reach":
        """The same reach for all that one call does: it waits for a busy warehouse once only."""
        if isinstance(self.warehouse, WaitedOnce):
            return self
        return replace(self, warehouse=WaitedOnce(self.warehouse.path, deadline=self.warehouse.deadline))

    @property
    def hosts(self) -> KnownHosts:
        """What may be asked on somebody's behalf; the operator's own address of arXiv's PDFs is one of them."""
        return known_hosts((*self.settings.known_hosts, self.settings.arxiv_pdf_url))

    @contextmanager
    def arxiv(self, left: SecondsLeft) -> Iterator["requests.Session"]:
        """A session for arXiv's API, in its turn among all processes of the machine."""
        settings = self.settings
        share = left if self.deadline is None else lambda: min(_MOST_FOR_ARXIV, _PART_FOR_ARXIV * left())
        with _session(settings, share, gate=settings.request_gate, interval=settings.request_interval) as session:
            yield session

    @contextmanager
    def scholar(self, left: SecondsLeft) -> Iterator[semantic_scholar.Scholar]:
        """Semantic Scholar, behind a gate of its own. Raises InvalidInput for a key that is none."""
        settings, key = self.settings, semantic_scholar.api_key(self.environ)
        gate = settings.request_gate / "semantic_scholar"
        interval = min(settings.request_interval, semantic_scholar.INTERVAL)
        with _session(settings, left, gate=gate, interval=interval) as session:
            yield semantic_scholar.Scholar(session=session, url=settings.semantic_scholar_url, key=key)

    @contextmanager
    def pdfs(self, url: str, left: SecondsLeft) -> Iterator["requests.Session"]:
        """A session for PDFs: public machines only, and a size limit. arXiv's own share its gate."""
        settings, host = self.settings, urlsplit(url).hostname or "unknown"
        of_arxiv = url.startswith(settings.arxiv_pdf_url) or host.endswith("arxiv.org")
        with _session(
            settings,
            left,
            gate=settings.request_gate if of_arxiv else settings.request_gate / host,
            interval=settings.request_interval if of_arxiv else min(settings.request_interval, 1.0),
            most_bytes=int(settings.pdf_megabytes * 1_000_000),
            hosts=self.hosts,
        ) as session:
            yield session


def open_reach(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    warehouse: Warehouse | None = None,
    deadline: float | None = None,
    progress: Progress = lambda done, total, what: None,
) -> Reach:
    """The reach of these settings; nothing is opened yet."""
    return Reach(
        settings=settings,
        warehouse=warehouse or Warehouse(settings.warehouse_path, deadline=settings.store_deadline),
        environ=environ,
        deadline=deadline,
        progress=progress,
    )


@contextmanager
def _session(
    settings: Settings,
    left: SecondsLeft,
    *,
    gate: Path,
    interval: float,
    most_bytes: int = MOST_BYTES,
    hosts: KnownHosts | None = None,
) -> Iterator["requests.Session"]:
    seconds = min(left(), _LONGEST_REQUEST)
    if seconds <= 0:
        raise NetworkError("the time for this call is over; ask again, what was found so far is kept")
    with polite_session(
        gate=gate,
        interval=interval,
        timeout=min(settings.request_timeout, seconds),
        contact=settings.contact,
        deadline=seconds,
        most_bytes=most_bytes,
        transport=None if hosts is None else guarded_transport(hosts),
    ) as session:
        yield session
