"""The text of a paper: the passages kept in the warehouse, else its PDF, put together in the same way (SPEC R1, I7).

A text is the same whether it comes from the warehouse or the PDF, so that what a language model is asked about it is
the same question (I5). Only what anybody may fetch is kept: never somebody's own PDF (M3).
"""

from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from paper_assets.arxiv_ids import is_pdf_of, names_version
from paper_assets.errors import InvalidInput, PdfFetchFailed, StoreError
from paper_assets.ingestion.fulltexts import PASSAGE, keep_fulltext
from paper_assets.interpreting.clients import Clients
from paper_assets.paper import Paper
from paper_assets.sources.access import SecondsLeft
from paper_assets.sources.known_hosts import RefusedAddress
from paper_assets.sources.pdf_download import download_pdf
from paper_assets.sources.pdf_text import pdf_text
from paper_assets.sources.table import texts_of
from paper_assets.stores.fulltexts import PARTED_BY, Fulltext, public_fulltext
from paper_assets.text.chunks import chunks_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A text, where it came from, and why it could not be kept."""

    text: str
    source: Literal["warehouse", "pdf"]
    warning: str | None = None


def content_of(clients: Clients, paper: Paper, left: SecondsLeft) -> Content:
    """The paper's text. Raises PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable."""
    kept: Fulltext | None = None
    with suppress(StoreError):  # a warehouse that cannot be asked now does not hold up a PDF
        kept = public_fulltext(clients.warehouse, paper.paper_id)
    if kept is not None and kept.version == paper.version:
        return Content(text=kept.text, source="warehouse")
    address = _address(clients, paper)
    try:
        pages = pdf_pages(clients, address, named=f"the PDF of {paper.paper_id}", left=left)
    except RefusedAddress as error:
        raise PdfFetchFailed(f"the PDF of {paper.paper_id} is not fetched: {error}") from None
    newest = kept is None or kept.version < paper.version
    warning = _keep(clients, paper, pages) if newest and is_pdf_of(address, paper.paper_id, paper.version) else None
    return Content(text=put_together(pages), source="pdf", warning=warning)


def pdf_pages(clients: Clients, url: str, *, named: str, left: SecondsLeft) -> tuple[str, ...]:
    """The text of each page of the PDF behind an address, which is kept in the folder `pdfs`.

    Raises RefusedAddress, PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable.
    """
    url = clients.hosts.check(url)  # what a source says lies somewhere need not be an address
    file = clients.settings.home / "pdfs" / f"{digest(url)}.pdf"
    with clients.pdfs(url, left) as session:
        # Without a version the same address of arXiv may be another PDF tomorrow.
        again = url.startswith(clients.settings.arxiv_pdf_url) and not names_version(url)
        download_pdf(url, to=file, session=session, hosts=clients.hosts, again=again)
    try:
        return pdf_text(file, name=named, most_bytes=int(clients.settings.pdf_megabytes * 1_000_000))
    except PdfFetchFailed:
        file.unlink(missing_ok=True)  # it may come whole another time
        raise


def put_together(pages: tuple[str, ...]) -> str:
    """The text of pages as that of the passages they are kept as."""
    return PARTED_BY.join(chunks_of("\n".join(pages), size=PASSAGE, overlap=0))


def digest(url: str) -> str:
    """32 hex digits that stand for an address."""
    return sha256(url.encode()).hexdigest()[:32]


def _address(clients: Clients, paper: Paper) -> str:
    address = next((text.url for text in texts_of(paper, clients.settings) if text.form == "pdf"), None)
    if address is None:
        raise PdfFetchFailed(f"no source says where a PDF of {paper.paper_id} lies; ask without its content")
    return address


def _keep(clients: Clients, paper: Paper, pages: tuple[str, ...]) -> str | None:
    """Keep the text for retrieval; the reason if that is not possible now. Vectors come with the next retrieval."""
    try:
        keep_fulltext(clients.warehouse, None, paper, pages)
    except (StoreError, InvalidInput) as error:
        return f"the text was not kept: {error}"
    return None
