"""Provide the outside services and stores that one call uses, with its keys and its deadline.

Nothing is opened here. Sessions and connections are opened for one call and closed with it, so that one `Clients`
serves all threads of a server.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import requests
from duckdb import DuckDBPyConnection

from paper_assets.errors import StoreBusy
from paper_assets.paper_id import beside_pdfs, is_arxiv_host
from paper_assets.progress import Progress, ignore_progress
from paper_assets.settings import Settings
from paper_assets.sources.known_hosts import KnownHosts, known_hosts
from paper_assets.sources.source import Access, Question, SecondsLeft, seconds_from_now
from paper_assets.sources.table import sources_of_days
from paper_assets.stores.warehouse import Warehouse

# With a deadline: if arXiv does not answer, there must be time left for Semantic Scholar.
_MOST_FOR_THE_FIRST, _PART_FOR_THE_FIRST = 25.0, 0.6  # seconds; share of the time left


@dataclass(frozen=True, slots=True)
class WaitedOnce(Warehouse):
    """The warehouse of one call: wait once for a busy store; later units of work of the call do not wait."""

    messages: list[str] = field(default_factory=list, compare=False)  # the error of the first wait

    @contextmanager
    def _opened(self, *, read_only: bool, own_settings: bool = False) -> Iterator[DuckDBPyConnection]:
        now = replace(self, deadline=0.0) if self.messages else self
        try:
            with Warehouse._opened(now, read_only=read_only, own_settings=own_settings) as connection:
                yield connection
        except StoreBusy as error:
            self.messages.append(str(error))
            raise StoreBusy(self.messages[0]) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """What a call needs. `environ` holds the keys, so it is left out of repr. `deadline`: seconds for the whole call;
    None: no limit.

    A server gives each call its own progress: `dataclasses.replace(clients, progress=...)`.
    """

    settings: Settings
    warehouse: Warehouse
    environ: Mapping[str, str] = field(repr=False)
    deadline: float | None = None
    progress: Progress = ignore_progress
    clock: Callable[[], float] = time.monotonic
    # Language model calls may outlive the deadline: the caller can repeat the call and join them (I5).
    models_go_on: bool = False
    again: bool = False  # use no answer that a language model gave before
    announce: Callable[[str], None] = lambda line: None  # what a language model may cost, before it is asked
    # Search results by question with their time of expiry, so that the pages of a search come from one list.
    searches: dict[Question, tuple[float, Any]] = field(default_factory=dict, repr=False, compare=False)

    def started(self) -> SecondsLeft:
        """Start a call: return a function for the seconds it has left (infinity without a deadline)."""
        return seconds_from_now(self.deadline, self.clock)

    def of_one_call(self) -> "Clients":
        """Return clients for one call, which waits for a busy warehouse only once."""
        if isinstance(self.warehouse, WaitedOnce):
            return self
        return replace(self, warehouse=WaitedOnce(self.warehouse.path, deadline=self.warehouse.deadline))

    @property
    def hosts(self) -> KnownHosts:
        """Return the hosts that a caller's URL may name: known ones, that of arXiv's PDFs, and those of the sources."""
        chosen = (host for source in sources_of_days(self.settings) for host in source.hosts)
        return known_hosts((*self.settings.known_hosts, self.settings.arxiv_pdf_url, *chosen))

    def access(self, left: SecondsLeft, *, others_follow: bool = False) -> Access:
        """Return access to a source. With a deadline it reserves some of the time for the next source.

        A caller waits, so a source that cannot be connected to is tried once.
        """
        share = left
        if others_follow and self.deadline is not None:
            share = lambda: min(_MOST_FOR_THE_FIRST, _PART_FOR_THE_FIRST * left())  # noqa: E731
        return Access(settings=self.settings, environ=self.environ, left=share, patient=False)

    @contextmanager
    def texts(self, url: str, left: SecondsLeft) -> Iterator[requests.Session]:
        """Return a session for texts: public machines only, limited size. arXiv's hosts share its rate limit."""
        settings, host = self.settings, urlsplit(url).hostname or "unknown"
        ours = beside_pdfs(settings.arxiv_pdf_url) or settings.arxiv_pdf_url
        of_arxiv = url.startswith(f"{ours}/") or is_arxiv_host(host)
        with self.access(left).session(
            gate="" if of_arxiv else host,
            interval=settings.request_interval if of_arxiv else min(settings.request_interval, 1.0),
            most_bytes=int(settings.pdf_megabytes * 1_000_000),
            hosts=self.hosts,
        ) as session:
            yield session


def open_clients(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    warehouse: Warehouse | None = None,
    deadline: float | None = None,
    progress: Progress = ignore_progress,
) -> Clients:
    """Return the clients of these settings without opening anything."""
    return Clients(
        settings=settings,
        warehouse=warehouse or Warehouse(settings.warehouse_path, deadline=settings.store_deadline),
        environ=environ,
        deadline=deadline,
        progress=progress,
    )
