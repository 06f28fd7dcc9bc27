"""Which papers lie on this machine as PDF files (SPEC G7 practicality, G13 ALREADY_DOWNLOADED)."""

from collections.abc import Iterable
from pathlib import Path

from paper_assets.errors import InvalidInput

_SLASH_IN_NAMES = ("_", "-", "")  # `hep-th/9901001` lies there as hep-th_9901001.pdf or the like


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
