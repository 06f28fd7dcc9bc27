"""A Chroma collection that another program, or an earlier warehouse, has left behind: read from a copy, never touched.

Chroma writes to what it merely reads and can be crashed by a damaged folder; a copy may be spoilt.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from paper_assets.errors import IndexUnusable, InvalidInput, StoreUnwritable
from paper_assets.stores import chroma_opening, index_folder
from paper_assets.stores.index_content import OpenCollection
from paper_assets.stores.lock import store_lock
from paper_assets.stores.vectors import VectorIndex

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+[A-Za-z0-9]")
_OWN_FILES = re.compile(r"chroma\.sqlite3.*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # what Chroma itself writes
_MOST_BYTES = 20_000_000_000  # ten million vectors of this desk's; more is no collection of rewrites


class ForeignRow(NamedTuple):
    """One entry as it was found."""

    id: str
    document: str | None
    metadata: dict[str, Any]


def foreign_rows(
    index: VectorIndex, collection: str, *, folder: Path | None = None, at_once: int
) -> Iterator[list[ForeignRow]]:
    """The entries of a collection in a Chroma folder, or where the index lies (None), ascending by id, in batches.

    Raises InvalidInput for a name that Chroma does not take, IndexUnusable if there is no such collection or it
    cannot be read.
    """
    if not _NAME.fullmatch(collection):
        raise InvalidInput(f"{collection!r} cannot name a collection: at least 3 letters, digits, dots, - or _")
    with _opened(index, collection, folder) as opened:
        ids = sorted(opened.rows.get(include=[])["ids"])
        for at in range(0, len(ids), min(at_once, opened.limit)):
            part = ids[at : at + min(at_once, opened.limit)]
            found: Any = opened.rows.get(ids=part, include=["documents", "metadatas"])
            rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
            yield sorted(ForeignRow(identifier, text, dict(metadata or {})) for identifier, text, metadata in rows)


@contextmanager
def _opened(index: VectorIndex, collection: str, folder: Path | None) -> Iterator[OpenCollection]:
    if folder is None and isinstance(index.place, str):
        with chroma_opening.on_server(index.place) as client:
            yield chroma_opening.of_server(client, collection)
        return
    place = Path(index.place) if folder is None else folder
    scratch = Path(tempfile.gettempdir()) if not place.parent.is_dir() else place.parent
    with tempfile.TemporaryDirectory(prefix=".chroma-copy-", dir=scratch, ignore_cleanup_errors=True) as copy:
        _copy_database(place, collection, Path(copy), deadline=index.deadline)
        with chroma_opening.found_on_disk(Path(copy), collection) as opened:
            yield opened


def _copy_database(place: Path, collection: str, copy: Path, *, deadline: float) -> None:
    """Chroma's files of the collection: of our own index of this name, else of the folder itself."""
    try:
        if (place / collection).is_dir():
            with store_lock(place / collection, deadline=deadline):
                shutil.copytree(
                    index_folder.database(index_folder.current_copy(place / collection)[0]), copy, dirs_exist_ok=True
                )
            return
        if not (place / "chroma.sqlite3").is_file():
            raise IndexUnusable(f"{place} has no collection {collection}; name its folder with --chroma")
        entries = [entry for entry in place.iterdir() if _OWN_FILES.fullmatch(entry.name)]
        size = sum(_bytes(entry) for entry in entries)
        if size > _MOST_BYTES:
            raise IndexUnusable(
                f"{place} holds {size / 1e9:,.0f} GB, of which at most {_MOST_BYTES / 1e9:.0f} are read; is it damaged?"
            )
        if size > (free := shutil.disk_usage(copy).free):
            raise StoreUnwritable(
                f"{place} cannot be copied: it holds {size / 1e9:,.1f} GB, beside it {free / 1e9:,.1f} are free"
            )
        for entry in entries:
            (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, copy / entry.name)
    except OSError as fault:
        raise StoreUnwritable(f"{place} cannot be copied: {fault.strerror or fault}; free space on its disk") from None


def _bytes(entry: Path) -> int:
    files = entry.rglob("*") if entry.is_dir() else (entry,)
    return sum(each.stat().st_size for each in files if each.is_file())
