"""The text of a paper: the passages kept in the warehouse, else what its source has, put together alike (R1, I7, I9).

The best text that a source has is taken: arXiv's HTML, then the LaTeX, then the PDF. A text is the same whether it
comes from the warehouse or the source, so that what a language model is asked about it is the same question (I5). Only
what anybody may fetch is kept: never somebody's own PDF (M3).
"""

from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from paper_assets.arxiv_ids import is_text_of, names_version
from paper_assets.errors import InvalidInput, PdfFetchFailed, StoreError
from paper_assets.ingestion.fulltexts import PASSAGE, keep_fulltext
from paper_assets.interpreting.clients import Clients
from paper_assets.paper import Paper
from paper_assets.sources.access import SecondsLeft
from paper_assets.sources.html_text import html_text
from paper_assets.sources.known_hosts import RefusedAddress
from paper_assets.sources.latex_text import latex_text
from paper_assets.sources.pdf_download import download_pdf, download_text
from paper_assets.sources.pdf_text import pdf_text
from paper_assets.sources.source import PaperText
from paper_assets.sources.table import texts_of
from paper_assets.stores.fulltexts import PARTED_BY, Fulltext, public_fulltext
from paper_assets.text.chunks import chunks_of

ContentSource = Literal["warehouse", "html", "latex", "pdf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A text, where it came from, and why it could not be kept."""

    text: str
    source: ContentSource
    warning: str | None = None


def content_of(clients: Clients, paper: Paper, left: SecondsLeft) -> Content:
    """The paper's text. Raises PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable."""
    kept: Fulltext | None = None
    with suppress(StoreError):  # a warehouse that cannot be asked now does not hold up a PDF
        kept = public_fulltext(clients.warehouse, paper.paper_id)
    if kept is not None and kept.version == paper.version:
        return Content(text=kept.text, source="warehouse")
    address, form, pages = _read(clients, paper, left)
    newest = kept is None or kept.version < paper.version
    warning = _keep(clients, paper, pages) if newest and is_text_of(address, paper.paper_id, paper.version) else None
    return Content(text=put_together(pages), source=form, warning=warning)


def _read(
    clients: Clients, paper: Paper, left: SecondsLeft
) -> tuple[str, Literal["html", "latex", "pdf"], tuple[str, ...]]:
    """The first text that can be read of those that the source names, with its address and form."""
    failure = PdfFetchFailed(f"no source says where a PDF of {paper.paper_id} lies; ask without its content")
    for text in texts_of(paper, clients.settings):
        try:
            if text.form == "pdf":
                return text.url, "pdf", pdf_pages(clients, text.url, named=f"the PDF of {paper.paper_id}", left=left)
            return text.url, text.form, (_written(clients, text, paper, left),)
        except RefusedAddress as error:
            failure = PdfFetchFailed(f"the PDF of {paper.paper_id} is not fetched: {error}")
        except PdfFetchFailed as error:  # the next form may be there
            failure = error
    raise failure


def _written(clients: Clients, text: PaperText, paper: Paper, left: SecondsLeft) -> str:
    """The text of a page or a LaTeX source."""
    clients.hosts.check(text.url)
    with clients.texts(text.url, left) as session:
        content = download_text(text.url, session=session, hosts=clients.hosts)
    if text.form == "html":
        return html_text(content, name=f"the HTML of {paper.paper_id}")
    return latex_text(content, name=f"the LaTeX source of {paper.paper_id}")


def pdf_pages(clients: Clients, url: str, *, named: str, left: SecondsLeft) -> tuple[str, ...]:
    """The text of each page of the PDF behind an address, which is kept in the folder `pdfs`.

    Raises RefusedAddress, PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable.
    """
    url = clients.hosts.check(url)  # what a source says lies somewhere need not be an address
    file = clients.settings.home / "pdfs" / f"{digest(url)}.pdf"
    with clients.texts(url, left) as session:
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


def _keep(clients: Clients, paper: Paper, pages: tuple[str, ...]) -> str | None:
    """Keep the text for retrieval; the reason if that is not possible now. Vectors come with the next retrieval."""
    try:
        keep_fulltext(clients.warehouse, None, paper, pages)
    except (StoreError, InvalidInput) as error:
        return f"the text was not kept: {error}"
    return None
