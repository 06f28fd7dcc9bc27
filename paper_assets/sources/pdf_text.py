"""Extract the text of PDF files (SPEC I7): cleaned, page by page, or one line that says why there is none.

A file of some kilobytes can hold gigabytes of text, and pdfium is written in C++. So a separate process with little
memory and little time reads each PDF: this module, run as a program.
"""

import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paper_assets.errors import PdfFetchFailed
from paper_assets.paper_id import MARGIN_STAMP
from paper_assets.sources.limited_reading import answer_parent, read_in_child
from paper_assets.text.cleaning import without_controls

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

MOST_BYTES = 50_000_000  # bytes of one file; nearly all papers have less than a tenth
MOST_PAGES = 500  # pages of one file, theses included
MOST_CHARACTERS = 5_000_000  # characters of one file; MOST_PAGES of plain text have a third
MOST_MEMORY = 2_000_000_000  # bytes of address space of the process that reads one file
MOST_SECONDS = 30.0  # of CPU time, for the same process
_HEADER_WITHIN = 1024  # bytes from the start, as other readers allow
_END_WITHIN = 2048  # bytes from the end; some mail and web servers add a few
_NEEDS_PASSWORD = 4  # FPDF_ERR_PASSWORD
_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
# pdfium gives a hyphen at the end of a line, line end included, as one of the first two; some it does not recognise.
_BROKEN = re.compile(r"[\x02\ufffe](?=\w)|[-\u2010\u00ad]\n[ \t]*(?=\w)")
# Not `text/words.py`: the hyphenation of a word is counted here.
_WORD = re.compile(r"\w+(?:[-\u2010]\w+)*")
_LONGEST = 40  # characters of a word compared on either side of a hyphen
_UNWANTED = {"Cn", "Co"}  # unassigned, private use: remains of fonts without a character map
_INVISIBLE = dict.fromkeys([0x00AD, 0x200B, 0x2060, 0xFEFF])  # soft hyphen, zero widths


def pdf_text(
    pdf: Path | bytes, *, name: str | None = None, most_bytes: int = MOST_BYTES, most_pages: int = MOST_PAGES
) -> tuple[str, ...]:
    """Extract the cleaned text of each page of a PDF, given as a file or as its bytes; single pages may be empty.

    `name` stands for the PDF in messages. A file that opens without a password is read, whatever it forbids. Raises
    PdfFetchFailed if it is not a PDF, too large, truncated, damaged, locked by a password, without text, or takes more
    memory or time than MOST_MEMORY and MOST_SECONDS.
    """
    named = name or (pdf.name if isinstance(pdf, Path) else "the PDF")
    content = read_pdf(pdf, name=named, most_bytes=most_bytes) if isinstance(pdf, Path) else pdf
    _refuse_large(len(content), named, most_bytes)
    _refuse_others(content, named)
    options = {"named": named, "most_pages": most_pages, "most_characters": MOST_CHARACTERS}
    pages = read_in_child(
        "paper_assets.sources.pdf_text", content, options, named=named, memory=MOST_MEMORY, seconds=MOST_SECONDS
    )
    return tuple(pages)


def pages_of(content: bytes, *, named: str, most_pages: int, most_characters: int) -> tuple[str, ...]:
    """Extract what `pdf_text` returns, in this process and by one thread at a time.

    pdfium is not thread-safe, not even between two documents. Raises PdfFetchFailed.
    """
    import pypdfium2  # needed by the child process alone

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == _NEEDS_PASSWORD:
            raise PdfFetchFailed(f"{named} is encrypted and needs a password; give a copy without one") from None
        raise PdfFetchFailed(f"{named} is a damaged PDF; fetch or save it again") from None
    try:
        pages = _pages(document, named, most_pages, most_characters)
    finally:
        document.close()
    cleaned = clean_pages(pages)
    if not any(character.isalnum() for character in MARGIN_STAMP.sub("", "\n".join(cleaned))):
        raise PdfFetchFailed(
            f"{named} has no text layer on its {len(pages)} page(s), as scans have none; run it through OCR first"
        )
    return cleaned


def clean_pages(pages: Sequence[str]) -> tuple[str, ...]:
    """Clean the texts of pdfium: join words broken at line ends, spell out ligatures, collapse spaces.

    Line ends are kept. Whether a broken word keeps its hyphen is decided by its spelling elsewhere on the same pages;
    otherwise it loses the hyphen, unless it contains another hyphen or does not continue with a small letter.
    """
    texts = [unicodedata.normalize("NFC", page.translate(_LIGATURES)).replace("\r\n", "\n") for page in pages]
    texts = [text.replace("\r", "\n") for text in texts]
    if any(_BROKEN.search(text) for text in texts):
        spelt = Counter(word.lower().replace("\u2010", "-") for text in texts for word in _WORD.findall(text))
        texts = [_BROKEN.sub(lambda found: _join(found, spelt), text) for text in texts]
    return tuple(map(_tidy, texts))


def _join(found: re.Match[str], spelt: Counter[str]) -> str:
    """Return what joins the halves of a broken word: nothing, a hyphen, or the original if it is not a word."""
    text = found.string
    before = re.search(r"(?:\w[\w\u2010-]*)?\Z", text[max(0, found.start() - _LONGEST) : found.start()])
    after = re.match(r"\w+", text[found.end() : found.end() + _LONGEST])
    first, second = before[0].lower().replace("\u2010", "-") if before else "", after[0] if after else ""
    if not first or first.endswith("-"):
        return found[0] if found[0].startswith(("-", "\u2010")) else "-"
    if not second[:1].islower():
        return "" if found[0].startswith("\u00ad") else "-"
    whole, parted = spelt[first + second], spelt[f"{first}-{second}"]
    return "-" if parted > whole or (parted == whole and "-" in first) else ""


def _tidy(text: str) -> str:
    text = text.translate(_INVISIBLE)
    if not text.isascii() or not text.replace("\n", " ").isprintable():
        text = "".join(c for c in without_controls(text) if unicodedata.category(c) not in _UNWANTED)
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def read_pdf(file: Path, *, name: str | None = None, most_bytes: int = MOST_BYTES) -> bytes:
    """Read the bytes of a file, unless it is too large or not a file. Raises PdfFetchFailed."""
    named = name or file.name
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            raise PdfFetchFailed(f"{named} is not a file; remove it or give its real place")
        _refuse_large(found.st_size, named, most_bytes)
        return file.read_bytes()
    except OSError as error:
        raise PdfFetchFailed(f"{named} cannot be read: {error.strerror}; check the file and its rights") from None


def _refuse_large(size: int, named: str, most_bytes: int) -> None:
    if size > most_bytes:
        raise PdfFetchFailed(
            f"{named} has {size / 1e6:.3g} MB, more than the {most_bytes / 1e6:g} MB that are read; give a smaller file"
        )


def _refuse_others(content: bytes, named: str) -> None:
    """Raise PdfFetchFailed unless the content looks like a complete PDF."""
    beginning = content[:_HEADER_WITHIN]
    if b"%PDF-" not in beginning:
        if not content.strip():
            what = "is empty"
        elif re.match(rb"[\s\xef\xbb\xbf]*<(?:!doctype\s+html|html|\?xml|head)", beginning, re.IGNORECASE):
            what = "is a web page, not a PDF"
        else:
            what = "is not a PDF"
        raise PdfFetchFailed(f"{named} {what}; check the address or the file it came from")
    if b"%%EOF" not in content[-_END_WITHIN:]:
        raise PdfFetchFailed(f"{named} is cut off before its end; fetch or copy it again")


def _pages(document: "PdfDocument", named: str, most_pages: int, most_characters: int) -> list[str]:
    count = len(document)
    if count == 0:
        raise PdfFetchFailed(f"{named} has no pages; fetch or save it again")
    if count > most_pages:
        raise PdfFetchFailed(f"{named} has {count} pages, more than the {most_pages} that are read; give a part of it")
    pages: list[str] = []
    for at in range(count):
        pages.append(_page(document, at, named))
        if sum(map(len, pages)) > most_characters:
            raise PdfFetchFailed(f"{named} has more than {most_characters:,} characters; give a part of it")
    return pages


def _page(document: "PdfDocument", at: int, named: str) -> str:
    from pypdfium2 import PdfiumError

    opened: list[Any] = []
    try:
        opened.append(document[at])
        opened.append(opened[0].get_textpage())
        text: str = opened[1].get_text_bounded()  # get_text_range also returns text outside of the page
    except PdfiumError:
        raise PdfFetchFailed(f"{named}: page {at + 1} is damaged; fetch or save the file again") from None
    finally:
        for part in reversed(opened):
            part.close()
    return text


if __name__ == "__main__":
    answer_parent(pages_of)
