"""Return the text of a paper: the passages stored in the warehouse, else the source's text, in the same form (R1, I7,
I9).

The best form is used: arXiv's HTML, then LaTeX, then PDF. A text from the warehouse equals the text from the source, so
that a language model gets the same prompt (I5). Only public texts are stored, never a person's own PDF (M3).
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
from paper_assets.sources.arxiv_full_text import written_text
from paper_assets.sources.known_hosts import RefusedAddress
from paper_assets.sources.pdf_files import download_pdf, download_text
from paper_assets.sources.pdf_text import pdf_text
from paper_assets.sources.source import PaperText, SecondsLeft
from paper_assets.sources.table import texts_of
from paper_assets.stores.documents import PARTED_BY, Fulltext, public_fulltext
from paper_assets.text.chunks import chunks_of

ContentSource = Literal["warehouse", "html", "latex", "pdf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A text, its source, and why it could not be stored."""

    text: str
    source: ContentSource
    warning: str | None = None


def content_of(clients: Clients, paper: Paper, left: SecondsLeft) -> Content:
    """Return the paper's text. Raises PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable."""
    kept: Fulltext | None = None
    with suppress(StoreError):  # a busy warehouse must not delay a PDF
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
    """Return the first readable text of those that the source offers, with its address and form."""
    failure = PdfFetchFailed(f"no source says where the PDF of {paper.paper_id} is; retry without its content")
    for text in texts_of(paper, clients.settings):
        try:
            if text.form == "pdf":
                return text.url, "pdf", pdf_pages(clients, text.url, named=f"the PDF of {paper.paper_id}", left=left)
            return text.url, text.form, (_written(clients, text, paper, left),)
        except RefusedAddress as error:
            failure = PdfFetchFailed(f"the PDF of {paper.paper_id} is not fetched: {error}")
        except PdfFetchFailed as error:  # try the next form
            failure = error
    raise failure


def _written(clients: Clients, text: PaperText, paper: Paper, left: SecondsLeft) -> str:
    """Return the text of an HTML page or a LaTeX source."""
    clients.hosts.check(text.url)
    with clients.texts(text.url, left) as session:
        content = download_text(text.url, session=session, hosts=clients.hosts)
    kind = "HTML" if text.form == "html" else "LaTeX source"
    return written_text(text.form, content, name=f"the {kind} of {paper.paper_id}")


def pdf_pages(clients: Clients, url: str, *, named: str, left: SecondsLeft) -> tuple[str, ...]:
    """Return the text of each page of the PDF at an address; the PDF is stored in the folder `pdfs`.

    Raises RefusedAddress, PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable.
    """
    url = clients.hosts.check(url)  # a source's answer may not be a valid URL
    file = clients.settings.home / "pdfs" / f"{digest(url)}.pdf"
    with clients.texts(url, left) as session:
        # Without a version, arXiv may serve another PDF at this address tomorrow.
        again = url.startswith(clients.settings.arxiv_pdf_url) and not names_version(url)
        download_pdf(url, to=file, session=session, hosts=clients.hosts, again=again)
    try:
        return pdf_text(file, name=named, most_bytes=int(clients.settings.pdf_megabytes * 1_000_000))
    except PdfFetchFailed:
        file.unlink(missing_ok=True)  # the next download may be complete
        raise


def put_together(pages: tuple[str, ...]) -> str:
    """Join the pages as the passages are joined that they are stored as."""
    return PARTED_BY.join(chunks_of("\n".join(pages), size=PASSAGE, overlap=0))


def digest(url: str) -> str:
    """Return 32 hex digits that identify an address."""
    return sha256(url.encode()).hexdigest()[:32]


def _keep(clients: Clients, paper: Paper, pages: tuple[str, ...]) -> str | None:
    """Store the text for retrieval; return the reason if that is not possible now. The next retrieval embeds it."""
    try:
        keep_fulltext(clients.warehouse, None, paper, pages)
    except (StoreError, InvalidInput) as error:
        return f"the text was not kept: {error}"
    return None
