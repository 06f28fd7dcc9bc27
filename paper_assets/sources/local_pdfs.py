"""Which papers lie on this machine as PDF files (SPEC G7 practicality, G13 ALREADY_DOWNLOADED)."""

from collections.abc import Iterable
from pathlib import Path

from paper_assets.arxiv_ids import SLASH_IN_FILE_NAMES, file_stems
from paper_assets.errors import InvalidInput
from paper_assets.small_files import is_folder


def pdf_files(folder: Path) -> tuple[str, ...]:
    """Names of the PDF files in a folder, sorted; none if there is no such folder. Raises InvalidInput."""
    if not is_folder(folder):
        return ()
    try:
        return tuple(sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() == ".pdf"))
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be listed: {error.strerror}") from None


def local_pdfs(paper_ids: Iterable[str], pdf_names: Iterable[str]) -> dict[str, str]:
    """Paper id -> file name, for the papers that have a file `<paper_id>*.pdf` (version or title may follow).

    A digit may not follow: `2501.1234` does not lie there as 2501.12345.pdf. `arXiv`, or arXiv's DOI prefix, may stand
    before an arXiv id, in any case: `10.48550_arXiv.2501.12345.pdf`. Of several the first by name counts.
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
