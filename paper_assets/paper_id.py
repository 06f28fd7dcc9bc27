"""Read and write paper ids: the source of a paper, and its name there.

A stored id is a text: those of arXiv have no prefix (`2501.12345`, `hep-th/9901001`), all others have the name of
their source (`biorxiv:10.1101/2026.01.02.123456`), so ids of two sources never collide. An id has no version.
"""

import re
from dataclasses import dataclass

from paper_assets.arxiv_ids import split_arxiv_id
from paper_assets.errors import InvalidArxivId

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
        found = _PREFIXED.fullmatch(text.strip())
        if found is None or found["source"].lower() == ARXIV:
            raise
        return PaperId(found["source"], found["value"]), None
    return PaperId(ARXIV, value), version


def unversioned(text: str) -> str:
    """Return the stored form of an id, for comparing (G3); an unknown form is only stripped."""
    try:
        return str(split_paper_id(text)[0])
    except InvalidArxivId:
        return text.strip()
