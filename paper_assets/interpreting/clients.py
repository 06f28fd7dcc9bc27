"""Clients: the outside services and the stores that one call uses, with its keys and its time.

Nothing is opened here. Sessions and connections are made for one call and closed with it, so one `Clients` serves all
threads of a server.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import requests
from duckdb import DuckDBPyConnection

from paper_assets.arxiv_ids import beside_pdfs, is_arxiv_host
from paper_assets.errors import StoreBusy
from paper_assets.progress import Progress, nobody
from paper_assets.settings import Settings
from paper_assets.sources.access import Access, SecondsLeft, seconds_from_now
from paper_assets.sources.known_hosts import KnownHosts, known_hosts
from paper_assets.sources.source import Question
from paper_assets.sources.table import sources_of_days
from paper_assets.stores.warehouse import Warehouse

# Of a call with a deadline: if arXiv does not answer, there must be time left to ask Semantic Scholar.
_MOST_FOR_THE_FIRST, _PART_FOR_THE_FIRST = 25.0, 0.6  # seconds; of what is left


@dataclass(frozen=True, slots=True)
class WaitedOnce(Warehouse):
    """The warehouse as one call sees it: a holder is waited for once, and later units of work of the call no more."""

    messages: list[str] = field(default_factory=list, compare=False)  # what the first wait ended with

    @contextmanager
    def reading(self, *, own_settings: bool = False) -> Iterator[DuckDBPyConnection]:
        """As `Warehouse.reading`."""
        with self._once(partial(Warehouse.reading, own_settings=own_settings)) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[DuckDBPyConnection]:
        """As `Warehouse.writing`."""
        with self._once(Warehouse.writing) as connection:
            yield connection

    @contextmanager
    def _once(
        self, opened: Callable[[Warehouse], AbstractContextManager[DuckDBPyConnection]]
    ) -> Iterator[DuckDBPyConnection]:
        try:
            deadline = 0.0 if self.messages else self.deadline
            with opened(Warehouse(self.path, deadline=deadline, opened=self.opened)) as connection:
                yield connection
        except StoreBusy as error:
            self.messages.append(str(error))
            raise StoreBusy(self.messages[0]) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """What a call is made with. `environ` holds the keys, so it is in no repr. `deadline`: seconds for one call with
    all it asks; None: as long as it takes. A server gives each call its own progress:
    `dataclasses.replace(clients, progress=...)`.
    """

    settings: Settings
    warehouse: Warehouse
    environ: Mapping[str, str] = field(repr=False)
    deadline: float | None = None
    progress: Progress = nobody
    clock: Callable[[], float] = time.monotonic
    # The deadline is not that of a language model's answers: whoever waits for them may go and ask again (I5).
    models_go_on: bool = False
    # Search results by question, each with the moment until which it counts: the pages of a search are of one list.
    searches: dict[Question, tuple[float, Any]] = field(default_factory=dict, repr=False, compare=False)

    def started(self) -> SecondsLeft:
        """A call begins: the function tells how many seconds it has left (infinity without a deadline)."""
        return seconds_from_now(self.deadline, self.clock)

    def of_one_call(self) -> "Clients":
        """The same clients for all that one call does: it waits for a busy warehouse once only."""
        if isinstance(self.warehouse, WaitedOnce):
            return self
        return replace(self, warehouse=WaitedOnce(self.warehouse.path, deadline=self.warehouse.deadline))

    @property
    def hosts(self) -> KnownHosts:
        """What may be asked on somebody's behalf; the operator's own address of arXiv's PDFs is one of them, and so are
        the hosts of the sources whose days are fetched.
        """
        chosen = (host for source in sources_of_days(self.settings) for host in source.hosts)
        return known_hosts((*self.settings.known_hosts, self.settings.arxiv_pdf_url, *chosen))

    def access(self, left: SecondsLeft, *, others_follow: bool = False) -> Access:
        """What a source is asked with. With a deadline it leaves some of the time to others that may be asked next."""
        share = left
        if others_follow and self.deadline is not None:
            share = lambda: min(_MOST_FOR_THE_FIRST, _PART_FOR_THE_FIRST * left())  # noqa: E731
        return Access(settings=self.settings, environ=self.environ, left=share)

    @contextmanager
    def texts(self, url: str, left: SecondsLeft) -> Iterator[requests.Session]:
        """A session for texts: public machines only, and a size limit. arXiv's own share its gate."""
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
    progress: Progress = nobody,
) -> Clients:
    """The clients of these settings; nothing is opened yet."""
    return Clients(
        settings=settings,
        warehouse=warehouse or Warehouse(settings.warehouse_path, deadline=settings.store_deadline),
        environ=environ,
        deadline=deadline,
        progress=progress,
    )
