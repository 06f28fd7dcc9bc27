"""The folder of one vector index: which copy is in use, what it holds, and whether it may be opened.

Only files here, no Chroma; the caller holds the store's lock. A store holds one copy, two during a rebuild:

    CURRENT                       name of the copy in use, replaced atomically
    index-<hex>/OPEN              stands from before Chroma opens the copy until all it wrote is on disk
    index-<hex>/manifest.json     model, partitions with their fingerprints, number of vectors, sizes of the files
    index-<hex>/database/         Chroma's own files

Opening a damaged Chroma folder can crash the process or write tens of gigabytes, so a copy is judged by these
files alone. OPEN found under the lock means that its owner died: such a copy is never opened, only replaced.
Reading leaves the mark too, because Chroma writes to its files even when it only reads.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar
from uuid import uuid4

from paper_assets.errors import IndexUnusable, InvalidInput, StoreUnwritable
from paper_assets.small_files import lies_there, read_json, read_text
from paper_assets.stores.private import make_private_folder

_MOST_BYTES = 50_000_000  # of a manifest; 10,000 days with their fingerprints have one
_FORMAT = 2  # 2: abstracts carry all fields that filters name
_COPY = re.compile(r"index-[0-9a-f]{12}")

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a copy holds. A partition without fingerprint (None) may have lost papers to another one: do it again."""

    model: str
    count: int
    partitions: Mapping[str, str | None]
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes of each of Chroma's files when it was closed


def _disk_faults_named(function: Callable[P, R]) -> Callable[P, R]:
    """Turn a fault of the disk into StoreUnwritable with the file's name."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except OSError as fault:
            reason = fault.strerror or str(fault)
            raise StoreUnwritable(f"cannot use {fault.filename}: {reason}; check permissions and free space") from None

    return guarded


def database(copy: Path) -> Path:
    """The folder that belongs to Chroma."""
    return copy / "database"


@_disk_faults_named
def current_copy(store: Path) -> tuple[Path, Manifest]:
    """The copy in use and its manifest. Raises IndexUnusable, without opening anything, if it cannot be trusted."""
    try:
        name = read_text(store / "CURRENT").strip() if lies_there(store / "CURRENT") else None
    except InvalidInput:
        name = ""
    if name is None:
        raise unusable(store, "was not built yet")
    copy = store / name
    if not _COPY.fullmatch(name) or not copy.is_dir():
        raise unusable(store, "has lost its CURRENT copy")
    if (copy / "OPEN").exists():
        raise unusable(store, "was open when the process using it ended")
    try:
        record = read_json(copy / "manifest.json", most_bytes=_MOST_BYTES)
        if not isinstance(record, dict) or record.pop("format", None) != _FORMAT:
            raise ValueError
        manifest = manifest_from(record)
    except (InvalidInput, TypeError, ValueError):
        raise unusable(store, "has no readable manifest") from None
    if not manifest.sizes or manifest.sizes != _sizes(copy):
        raise unusable(store, "does not have the files it was closed with")
    return copy, manifest


def manifest_from(record: object) -> Manifest:
    """A manifest from its JSON value. Raises TypeError or ValueError if it is anything else."""
    if not isinstance(record, dict):
        raise TypeError
    manifest = Manifest(**record)
    partitions = manifest.partitions
    sound = isinstance(manifest.model, str) and type(manifest.count) is int and isinstance(partitions, dict)
    if not sound or not all(fingerprint is None or isinstance(fingerprint, str) for fingerprint in partitions.values()):
        raise ValueError
    return manifest


def unusable(store: Path, reason: str) -> IndexUnusable:
    """The error that says why the index of `store` is not opened and what to do."""
    return IndexUnusable(f"the vector index {store} {reason}; materialize the embeddings again to rebuild it")


@_disk_faults_named
def mark_open(copy: Path) -> None:
    """Leave the mark that the copy is open; it is on disk when this returns."""
    (copy / "OPEN").touch()
    _flush(copy)


@_disk_faults_named
def mark_read(copy: Path, manifest: Manifest) -> None:
    """Chroma has closed the copy after reading: take the mark away."""
    if manifest.sizes != _sizes(copy):
        mark_closed(copy, manifest)
    (copy / "OPEN").unlink(missing_ok=True)


@_disk_faults_named
def mark_closed(copy: Path, manifest: Manifest) -> None:
    """Chroma has closed the copy after writing: put its files and the manifest on disk, then take the mark away."""
    for file in _files(copy):
        _flush(file)
    record = {"format": _FORMAT, **asdict(replace(manifest, sizes=_sizes(copy)))}
    _write_durably(copy / "manifest.json", json.dumps(record, ensure_ascii=False))
    (copy / "OPEN").unlink(missing_ok=True)
    _flush(copy)


@_disk_faults_named
def new_copy(store: Path) -> Path:
    """An empty folder for a rebuild; what a killed rebuild left behind goes first.

    The name is new each time: Chroma keeps a folder that failed to open in a cache of the process.
    """
    make_private_folder(store)
    remove_leftovers(store)
    copy = store / f"index-{uuid4().hex[:12]}"
    database(copy).mkdir(parents=True)
    return copy


@_disk_faults_named
def put_in_use(store: Path, copy: Path) -> None:
    """Point CURRENT to a closed copy, atomically."""
    _write_durably(store / "CURRENT", copy.name)


@_disk_faults_named
def remove_leftovers(store: Path) -> None:
    """Remove every copy but the one that CURRENT names."""
    try:
        in_use = read_text(store / "CURRENT").strip()
    except InvalidInput:
        in_use = ""
    for entry in store.iterdir():
        if _COPY.fullmatch(entry.name) and entry.name != in_use:
            shutil.rmtree(entry)


@_disk_faults_named
def remove_store(store: Path) -> None:
    """Remove the whole folder; CURRENT goes first, so that a half-removed copy is never taken for a good one."""
    (store / "CURRENT").unlink(missing_ok=True)
    if store.is_dir():
        shutil.rmtree(store)


def _files(copy: Path) -> list[Path]:
    return sorted(path for path in database(copy).rglob("*") if path.is_file())


def _sizes(copy: Path) -> dict[str, int]:
    return {path.relative_to(copy).as_posix(): path.stat().st_size for path in _files(copy)}


def _write_durably(path: Path, text: str) -> None:
    """Replace a file in one step: whoever reads sees the old text or the new, also after a power cut."""
    scratch = path.with_name(path.name + ".new")
    scratch.write_text(text, encoding="utf-8")
    _flush(scratch)
    scratch.replace(path)
    _flush(path.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
