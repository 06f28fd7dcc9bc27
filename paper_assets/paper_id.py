"""Read and write paper ids, and the ids and URLs of arXiv; no other module does.

A stored id is a text: those of arXiv have no prefix (`2501.12345`, `hep-th/9901001`), all others have the name of
their source (`biorxiv:10.1101/2026.01.02.123456`), so ids of two sources never collide. An id has no version.

To support another way of writing an arXiv id, add one row in the test of `split_arxiv_id`, then change the pattern
below.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from paper_assets.errors import InvalidArxivId

_NEW_STYLE = r"\d{4}\.\d{4,5}"
_OLD_STYLE = r"[a-z]+(?:-[a-z]+)*(?:\.[A-Z]{2})?/\d{7}"
_ID = re.compile(rf"(?P<id>{_NEW_STYLE}|{_OLD_STYLE})(?:v(?P<version>[1-9]\d{{0,3}}))?", re.ASCII)
_IN_FRONT = re.compile(
    r"^(?:arxiv:|oai:arxiv\.org:|https?://(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html)/|(?:(?:https?://)?doi\.org/|doi:)?10\.48550/arxiv\.)",
    re.IGNORECASE,
)
_PATH = re.compile(r"/(?:abs|pdf|html|src|e-print|format)/(?P<id>.+?)(?:\.pdf)?/?")
_PDF = re.compile(r"https?://(?:www\.|export\.)?arxiv\.org/pdf/(?P<name>.+?)(?:\.pdf)?")
_HOSTS = frozenset(("arxiv.org", "www.arxiv.org", "export.arxiv.org"))
# Other sites that show arXiv's papers under its ids, by the path before the id. Nothing is requested from them.
_ELSEWHERE = {
    "doi.org": r"/10\.48550/arxiv\.",
    "huggingface.co": r"/papers/",
    "alphaxiv.org": r"/(?:abs|pdf|overview)/",
    "ar5iv.org": r"/(?:abs|html)/",
    "ar5iv.labs.arxiv.org": r"/html/",
    "paperswithcode.com": r"/paper/arxiv:",
}

# Where arXiv had archives before April 2007; other letters before seven digits are not an id.
_ARCHIVES = (
    "acc-phys|adap-org|alg-geom|ao-sci|astro-ph|atom-ph|bayes-an|chao-dyn|chem-ph|cmp-lg|comp-gas|cond-mat|cs|dg-ga|"
    "funct-an|gr-qc|hep-ex|hep-lat|hep-ph|hep-th|math|math-ph|mtrl-th|nlin|nucl-ex|nucl-th|patt-sol|physics|plasm-ph|"
    "q-alg|q-bio|quant-ph|solv-int|supr-con"
)
SLASH_IN_FILE_NAMES = ("_", "-", "")  # `hep-th/9901001` is saved as hep-th_9901001.pdf or the like
_MONTH = r"\d{2}(?:0[1-9]|1[0-2])"
_FILE_NAME = re.compile(
    rf"(?:(?P<new>{_MONTH}\.\d{{4,5}})|(?P<archive>{_ARCHIVES})(?:{'|'.join(SLASH_IN_FILE_NAMES)})"
    rf"(?P<number>{_MONTH}\d{{3}}))(?!\d)(?:v(?P<version>[1-9]\d{{0,3}})(?!\d)|"
    rf"[._ -]v(?P<apart>[1-9]\d{{0,3}})(?![a-z\d]))?",
    re.ASCII,
)
# What browsers and reference managers write before the id: `arXiv_`, or the DOI with its slash replaced.
_BEFORE_ID = re.compile(r"(?:(?:doi[._ -]*)?10\.48550(?:%2f|[._ -]))?arxiv(?:%3a|[._ -])*", re.IGNORECASE | re.ASCII)

# What arXiv prints on the margin of the first page of a PDF, of scans too.
MARGIN_STAMP = re.compile(r"arXiv:\S+\s+\[[\w.-]+\]\s+\d{1,2}\s+\w+\s+\d{4}")


def split_arxiv_id(text: str) -> tuple[str, int | None]:
    """Split `2501.12345v2` or `hep-th/9901001` into identifier and version (None if not given).

    Also accepts an `arXiv:` prefix, the DOI that arXiv gives a paper, and abs, pdf or html addresses of arxiv.org.
    Old-style subject classes (`math.GT/0309136`) are dropped, as arXiv itself does. Raises InvalidArxivId.
    """
    match = _ID.fullmatch(_IN_FRONT.sub("", text.strip()).removesuffix(".pdf"))
    if match is None:
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise InvalidArxivId(f"{shown!r} is not an arXiv id; expected the form 2501.12345 or hep-th/9901001")
    identifier = re.sub(r"\.[A-Z]{2}/", "/", match["id"])
    return identifier, int(match["version"]) if match["version"] else None


def is_arxiv_id(text: str) -> bool:
    """Return whether the text is an arXiv id without version, and nothing else."""
    match = _ID.fullmatch(text)
    return match is not None and match["version"] is None


def split_arxiv_address(url: str) -> tuple[str, int | None] | None:
    """Split a web address of arXiv, or of a site that uses arXiv's ids, into identifier and version.

    Returns None for an address without such an id. Raises InvalidArxivId for a page of arXiv that shows no paper.
    """
    try:
        parts = urlsplit(url.strip())
        host, path, port = (parts.hostname or "").rstrip("."), unquote(parts.path), parts.port
    except ValueError:  # not an address
        return None
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or port not in (None, 80, 443):
        return None
    if host in _HOSTS:
        match = _PATH.fullmatch(path)
        if match is None:
            raise InvalidArxivId(f"the url does not name a paper; expected the form {abs_address('2501.12345')}")
        return split_arxiv_id(match["id"])
    before = _ELSEWHERE.get(host.removeprefix("www.").removeprefix("dx."))
    match = re.fullmatch(rf"(?i:{before})(?P<id>.+?)(?:\.pdf)?/?", path) if before else None
    named = _ID.fullmatch(match["id"]) if match else None
    return split_arxiv_id(named[0]) if named else None


def is_arxiv_host(host: str) -> bool:
    """Return whether a host belongs to arXiv; its hosts share one queue of requests."""
    return host == "arxiv.org" or host.endswith(".arxiv.org")


def html_address(value: str) -> str | None:
    """Return the address of arXiv's HTML of a paper; None before December 2023, when arXiv began to make it."""
    month = value[:4]
    return f"https://arxiv.org/html/{value}" if month.isdigit() and month >= "2312" else None


def abs_address(paper_id: str) -> str:
    """Return the address of a paper's page at arXiv."""
    return f"https://arxiv.org/abs/{paper_id}"


def pdf_address(paper_id: str, version: int | None = None) -> str:
    """Return the address of a PDF (of the newest version if none is given), the same whatever the source."""
    return f"https://arxiv.org/pdf/{paper_id}" + (f"v{version}" if version else "")


def beside_pdfs(address: str) -> str | None:
    """Return the root of a server's HTML and sources, given that of its PDFs; None if it has PDFs only."""
    return address.removesuffix("/pdf") if address.endswith("/pdf") else None


def pdf_name(url: str) -> str | None:
    """Return the name of the PDF in an address of arXiv, which mirrors use too; None for another address."""
    match = _PDF.fullmatch(url)
    return match["name"] if match else None


def is_text_of(url: str, paper_id: str, version: int) -> bool:
    """Return whether the address of a text, at arXiv or a mirror, can only be of this version of this paper."""
    return is_arxiv_id(paper_id) and url.endswith(f"/{paper_id}v{version}")


def names_version(url: str) -> bool:
    """Return whether a PDF's address names a version: without one it may be another PDF tomorrow."""
    return re.search(r"v\d+$", url) is not None


def arxiv_id_of_file(name: str) -> tuple[str, int | None] | None:
    """Return identifier and version (None if not given) of the paper that a PDF file is named after."""
    stem = name[: -len(".pdf")] if name.lower().endswith(".pdf") else name
    match = _FILE_NAME.match(file_stems(stem)[1])
    if match is None:
        return None
    version = match["version"] or match["apart"]
    return match["new"] or f"{match['archive']}/{match['number']}", int(version) if version else None


def file_stems(stem: str) -> tuple[str, str]:
    """Return a file's name unchanged; and in lower case, as arXiv's ids are, without a prefix."""
    lowered = stem.lower()
    before = _BEFORE_ID.match(lowered)
    return stem, lowered[before.end() :] if before else lowered


ARXIV = "arxiv"
_PREFIXED = re.compile(r"(?P<source>[A-Za-z][A-Za-z0-9_-]{0,30}):(?P<value>(?!//)[!-~]{1,200})")


@dataclass(frozen=True, slots=True, order=True)
class PaperId:
    """A source and the name of a paper there; `str()` gives the stored form."""

    source: str
    value: str

    def __str__(self) -> str:
        return self.value if self.source == ARXIV else f"{self.source}:{self.value}"


def split_paper_id(text: str) -> tuple[PaperId, int | None]:
    """Return the id and the version (None if not given) from any usual way to write one. Raises InvalidArxivId."""
    try:
        value, version = split_arxiv_id(text)
    except InvalidArxivId:
        match = _PREFIXED.fullmatch(text.strip())
        if match is None or match["source"].lower() == ARXIV:
            raise
        return PaperId(match["source"], match["value"]), None
    return PaperId(ARXIV, value), version


def unversioned(text: str) -> str:
    """Return the stored form of an id, for comparing (G3); an unknown form is only stripped."""
    try:
        return str(split_paper_id(text)[0])
    except InvalidArxivId:
        return text.strip()
