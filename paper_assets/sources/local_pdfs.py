"""Which papers lie on this machine as PDF files (SPEC G7 practicality, G13 ALREADY_DOWNLOADED)."""

import re
from collections.abc import Iterable
from pathlib import Path

from paper_assets.errors import InvalidInput

_SLASH_IN_NAMES = ("_", "-", "")  # `hep-th/9901001` lies there as hep-th_9901001.pdf or the like
# Where arXiv had archives before April 2007; other letters before seven digits are no id.
_ARCHIVES = (
    "acc-phys|adap-org|alg-geom|ao-sci|astro-ph|atom-ph|bayes-an|chao-dyn|chem-ph|cmp-lg|comp-gas|cond-mat|cs|dg-ga|"
    "funct-an|gr-qc|hep-ex|hep-lat|hep-ph|hep-th|math|math-ph|mtrl-th|nlin|nucl-ex|nucl-th|patt-sol|physics|plasm-ph|"
    "q-alg|q-bio|quant-ph|solv-int|supr-con"
)
_MONTH = r"\d{2}(?:0[1-9]|1[0-2])"
_ID_IN_NAME = re.compile(
    rf"(?:(?P<new>{_MONTH}\.\d{{4,5}})|(?P<archive>{_ARCHIVES})(?:{'|'.join(_SLASH_IN_NAMES)})"
    rf"(?P<number>{_MONTH}\d{{3}}))(?!\d)(?:v(?P<version>[1-9]\d{{0,3}})(?!\d))?",
    re.ASCII,
)


def pdf_files(folder: Path) -> tuple[str, ...]:
    """Names of the PDF files in a folder, sorted; none if there is no such folder. Raises InvalidInput."""
    if not folder.is_dir():
        return ()
    try:
        return tuple(sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() == ".pdf"))
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be listed: {error.strerror}") from None


def local_pdfs(paper_ids: Iterable[str], pdf_names: Iterable[str]) -> dict[str, str]:
    """Paper id -> file name, for the papers that have a file `<paper_id>*.pdf` (version or title may follow).

    A digit may not follow: `2501.1234` does not lie there as 2501.12345.pdf. Of several the first by name counts.
    """
    names = sorted(pdf_names)
    if not names:
        return {}
    beginnings = {paper_id.replace("/", slash): paper_id for paper_id in paper_ids for slash in _SLASH_IN_NAMES}
    found: dict[str, str] = {}
    for name in names:
        stem = name[: -len(".pdf")]
        for end in range(len(stem), 0, -1):
            if stem[:end] in beginnings and not stem[end : end + 1].isdigit():
                found.setdefault(beginnings[stem[:end]], name)
                break
    return found


def arxiv_id_of(pdf_name: str) -> tuple[str, int | None] | None:
    """Id and version (None: not said) of the paper that a PDF file is named after, as `local_pdfs` matches them."""
    found = _ID_IN_NAME.match(pdf_name)
    if found is None:
        return None
    return found["new"] or f"{found['archive']}/{found['number']}", int(found["version"]) if found["version"] else None
