"""The text of a paper: the passages kept in the warehouse, else its PDF, put together in the same way (SPEC R1, I7).

A text is the same whether it comes from the warehouse or the PDF, so that what a language model is asked about it is
the same question (I5). Only what anybody may fetch is kept: never somebody's own PDF (M3).
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from paper_assets.errors import InvalidInput, PdfFetchFailed, StoreError
from paper_assets.interpreting.reach import Reach, SecondsLeft
from paper_assets.paper import Paper, is_arxiv_id
from paper_assets.sources.arxiv_api import pdf_address
from paper_assets.sources.known_hosts import RefusedAddress
from paper_assets.sources.pdf_download import download_pdf
from paper_assets.stores.fulltexts import PARTED_BY, Fulltext, public_fulltext

_AT_ARXIV = re.compile(r"https?://(?:www\.|export\.)?arxiv\.org/pdf/(.+?)(?:\.pdf)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A text, where it came from, and why it could not be kept."""

    text: str
    source: Literal["warehouse", "pdf"]
    warning: str | None = None


def content_of(reach: Reach, paper: Paper, left: SecondsLeft) -> Content:
    """The paper's text. Raises PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable."""
    kept: Fulltext | None = None
    with suppress(StoreError):  # a warehouse that cannot be asked now does not hold up a PDF
        kept = public_fulltext(reach.warehouse, paper.paper_id)
    if kept is not None and kept.version == paper.version:
        return Content(text=kept.text, source="warehouse")
    address = _address(reach, paper)
    try:
        pages = pdf_pages(reach, address, named=f"the PDF of {paper.paper_id}", left=left)
    except RefusedAddress as error:
        raise PdfFetchFailed(f"the PDF of {paper.paper_id} is not fetched: {error}") from None
    newest = kept is None or kept.version < paper.version
    warning = _keep(reach, paper, pages) if newest and _is_of(paper, address) else None
    return Content(text=put_together(pages), source="pdf", warning=warning)


def pdf_pages(reach: Reach, url: str, *, named: str, left: SecondsLeft) -> tuple[str, ...]:
    """The text of each page of the PDF behind an address, which is kept in the folder `pdfs`.

    Raises RefusedAddress, PdfFetchFailed, RateLimited, NetworkError, StoreUnwritable.
    """
    from paper_assets.sources.pdf_text import pdf_text

    url = reach.hosts.check(url)  # what a source says lies somewhere need not be an address
    file = reach.settings.home / "pdfs" / f"{digest(url)}.pdf"
    with reach.pdfs(url, left) as session:
        # Without a version the same address of arXiv may be another PDF tomorrow.
        again = url.startswith(reach.settings.arxiv_pdf_url) and not re.search(r"v\d+$", url)
        download_pdf(url, to=file, session=session, hosts=reach.hosts, again=again)
    try:
        return pdf_text(file, name=named, most_bytes=int(reach.settings.pdf_megabytes * 1_000_000))
    except PdfFetchFailed:
        file.unlink(missing_ok=True)  # it may come whole another time
        raise


def put_together(pages: tuple[str, ...]) -> str:
    """The text of pages as that of the passages they are kept as."""
    from paper_assets.retrieval.chunks import chunks_of
    from paper_assets.retrieval.fulltext import PASSAGE

    return PARTED_BY.join(chunks_of("\n".join(pages), size=PASSAGE, overlap=0))


def digest(url: str) -> str:
    """32 hex digits that stand for an address."""
    return sha256(url.encode()).hexdigest()[:32]


def _address(reach: Reach, paper: Paper) -> str:
    address = paper.pdf_url or ""
    at_arxiv = _AT_ARXIV.fullmatch(address)
    if at_arxiv is None and is_arxiv_id(paper.paper_id):
        at_arxiv = _AT_ARXIV.fullmatch(pdf_address(paper.paper_id, paper.version))
    if at_arxiv is not None:
        return f"{reach.settings.arxiv_pdf_url}/{at_arxiv[1]}"
    if not address:
        raise PdfFetchFailed(f"no source says where a PDF of {paper.paper_id} lies; ask without its content")
    return address


def _is_of(paper: Paper, address: str) -> bool:
    """Whether the address can only be of this version of an arXiv paper."""
    return is_arxiv_id(paper.paper_id) and address.endswith(f"/{paper.paper_id}v{paper.version}")


def _keep(reach: Reach, paper: Paper, pages: tuple[str, ...]) -> str | None:
    """Keep the text for retrieval; the reason if that is not possible now. Vectors come with the next retrieval."""
    from paper_assets.retrieval.fulltext import keep_fulltext

    try:
        keep_fulltext(reach.warehouse, None, paper, pages)
    except (StoreError, InvalidInput) as error:
        return f"the text was not kept: {error}"
    return None
