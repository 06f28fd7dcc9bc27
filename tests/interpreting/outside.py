"""The outside world on loopback for one test: arXiv with its PDFs, Semantic Scholar, and the clients of both."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from paper_assets.interpreting.clients import Clients, open_clients
from paper_assets.paper import Paper
from paper_assets.settings import load_settings
from tests.loopback import Answer, refusing_port
from tests.loopback_arxiv import LoopbackArxiv, invented_paper, loopback_arxiv
from tests.loopback_semantic_scholar import LoopbackScholar, loopback_semantic_scholar

DAY = date(2026, 1, 5)
_TAKEN = ExitStack()  # as long as the process runs
NOWHERE = f"http://127.0.0.1:{_TAKEN.enter_context(refusing_port())}"


def titled(number: int, title: str, **more: Any) -> Paper:
    return invented_paper(number, DAY, title=title, **more)


def pdf_answer(content: bytes) -> Answer:
    return Answer(body=content, headers={"Content-Type": "application/pdf"})


@dataclass(frozen=True)
class Outside:
    arxiv: LoopbackArxiv
    scholar: LoopbackScholar
    folder: Path

    def clients(self, *, deadline: float | None = None, **environ: str) -> Clients:
        """The clients of a user whose environment points here; `environ` adds to it."""
        given = {
            "PAPER_ASSETS_HOME": str(self.folder / "data"),
            "PAPER_ASSETS_REQUEST_GATE": str(self.folder / "gate"),
            "PAPER_ASSETS_REQUEST_INTERVAL": "0",
            "PAPER_ASSETS_REQUEST_TIMEOUT": "60",
            "PAPER_ASSETS_ARXIV_URL": self.arxiv.url,
            "PAPER_ASSETS_ARXIV_PDF_URL": self.arxiv.pdf_url,
            "PAPER_ASSETS_SEMANTIC_SCHOLAR_URL": self.scholar.url,
            **environ,
        }
        return open_clients(load_settings(given, self.folder), given, deadline=deadline)

    @property
    def asked(self) -> tuple[int, int]:
        """Requests so far: arXiv (API and PDFs), Semantic Scholar."""
        return len(self.arxiv.requests), len(self.scholar.requests)


@contextmanager
def outside(
    folder: Path, papers: list[Paper] | None = None, scholar: list[dict[str, Any]] | None = None
) -> Iterator[Outside]:
    with loopback_arxiv(papers or []) as arxiv, loopback_semantic_scholar(scholar or []) as semantic:
        yield Outside(arxiv=arxiv, scholar=semantic, folder=folder)
