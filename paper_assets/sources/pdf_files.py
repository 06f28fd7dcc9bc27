"""Download PDF files from known hosts, complete or not at all, and find PDFs on this machine (SPEC I7, I8, G7, G13)."""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import requests

from paper_assets.errors import InvalidInput, PdfFetchFailed, StoreUnwritable
from paper_assets.paper_id import SLASH_IN_FILE_NAMES, file_stems
from paper_assets.small_files import is_folder, write_file
from paper_assets.sources.known_hosts import KnownHosts, PrivateMachine, RefusedAddress
from paper_assets.sources.polite_http import AnswerTooLarge, ask

_MOST_REDIRECTS = 5
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_HEADER_WITHIN = 1024  # bytes in which the marker of a PDF must appear


def download_pdf(url: str, *, to: Path, session: requests.Session, hosts: KnownHosts, again: bool = False) -> Path:
    """Download the PDF behind `url` as the file `to`; an existing file is fetched again only if `again` is set.

    session: a polite one over `guarded_transport(hosts)`, with the size limit. Raises RefusedAddress for `url`;
    PdfFetchFailed for a redirect or answer that is refused; RateLimited, NetworkError, StoreUnwritable.
    """
    url = hosts.check(url)
    if not again and _is_pdf_file(to):
        return to
    content = _fetch(url, session=session, hosts=hosts)
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        write_file(to, content)
    except OSError as error:
        raise StoreUnwritable(
            f"{to.parent} cannot take the PDF: {error.strerror}; free space, check permissions or set PAPER_ASSETS_HOME"
        ) from None
    return to


def download_text(url: str, *, session: requests.Session, hosts: KnownHosts, form: str) -> bytes:
    """Download an HTML page or a LaTeX source (`form`, in words); nothing is stored. Raises as `download_pdf`."""
    return _answer(hosts.check(url), session=session, hosts=hosts, form=form)[0]


def _fetch(url: str, *, session: requests.Session, hosts: KnownHosts) -> bytes:
    content, host = _answer(url, session=session, hosts=hosts, form="PDF")
    if b"%PDF-" not in content[:_HEADER_WITHIN]:
        start = content[:_HEADER_WITHIN].lstrip().lower()
        looks = "a web page" if start.startswith((b"<!doctype html", b"<html")) else "something else"
        raise PdfFetchFailed(f"{host} gave {looks if content else 'nothing'} instead of a PDF; check the address")
    return content


def _answer(url: str, *, session: requests.Session, hosts: KnownHosts, form: str) -> tuple[bytes, str | None]:
    """Return the body of the last answer and the first host; redirects are followed to known hosts only."""
    host = urlsplit(url).hostname
    for _ in range(_MOST_REDIRECTS + 1):
        try:
            response = ask(session, "GET", url, allow_redirects=False)
        except (AnswerTooLarge, PrivateMachine) as error:
            raise PdfFetchFailed(str(error)) from None
        if response.status_code not in _REDIRECTS:
            if response.status_code != 200:
                status = response.status_code
                raise PdfFetchFailed(f"{host} gave no {form} (HTTP {status}); check the id or the address")
            return response.content, host
        try:
            url = hosts.check(urljoin(url, response.headers.get("Location", "")))
        except (RefusedAddress, ValueError) as error:
            raise PdfFetchFailed(f"{host} sends us to an address that is not followed: {error}") from None
    raise PdfFetchFailed(f"{host} sends us in circles; check the address")


def _is_pdf_file(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return b"%PDF-" in stream.read(_HEADER_WITHIN)
    except OSError:
        return False


def pdf_files(folder: Path) -> tuple[str, ...]:
    """Return the names of the PDF files in a folder, sorted; empty if there is no such folder. Raises InvalidInput."""
    if not is_folder(folder):
        return ()
    try:
        return tuple(sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() == ".pdf"))
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be listed: {error.strerror}") from None


def local_pdfs(paper_ids: Iterable[str], pdf_names: Iterable[str]) -> dict[str, str]:
    """Map paper id to file name, for the papers that have a file `<paper_id>*.pdf` (version or title may follow).

    A digit may not follow: 2501.12345.pdf is not the file of `2501.1234`. `arXiv`, or arXiv's DOI prefix, may precede
    an arXiv id, in any case: `10.48550_arXiv.2501.12345.pdf`. Of several files the first by name counts.
    """
    names = sorted(pdf_names)
    if not names:
        return {}
    beginnings = {paper_id.replace("/", slash): paper_id for paper_id in paper_ids for slash in SLASH_IN_FILE_NAMES}
    found: dict[str, str] = {}
    for name in names:
        for stem in file_stems(name[: -len(".pdf")]):
            ends = (end for end in range(len(stem), 0, -1) if not stem[end : end + 1].isdigit())
            end = next((end for end in ends if stem[:end] in beginnings), 0)
            if end:
                found.setdefault(beginnings[stem[:end]], name)
                break
    return found
