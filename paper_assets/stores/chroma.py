"""Open Chroma: a folder that plain `chromadb.PersistentClient` opens, or a server.

Chroma is not safe between processes, and a killed writer can damage the folder so that opening it crashes. So:

1. A client is used inside the lock of the folder only. Writers wait for the lock, a search does not.
2. While a process opens the folder or writes to it, a mark is beside it (`chroma.unfinished`), which stays if it is
   killed.
3. Opening and loading takes a hundred times as long as a query. So a process keeps the client of its last search, which
   reads no file any more, and uses it again inside the lock as long as no file of the folder has changed: a client
   answers from what it has loaded, whatever others write. Its own writers close it first.

With the URL of a Chroma server instead of a folder the same code talks to the server, which needs no lock and no mark.
"""

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from paper_assets.errors import IndexUnusable, InvalidInput, StoreBusy, StoreError, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.small_files import file_state, make_private_folder

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+[A-Za-z0-9]")  # Chroma's rule
_MOST_BYTES = 20_000_000_000  # of another program's folder; anything larger is not a collection of rewrites
_LONGEST_TURN = 1.0  # seconds that a search waits for another thread's, which takes some milliseconds
AT_ONCE = 2_000  # entries read or written by one call; Chroma takes at most 5,461
# Chroma keeps the newest changes, up to sync_threshold, in a log that it replays each time it is opened. With one
# thread the graph depends on the order of the entries alone. ef_search: candidates of a query; recall@10 on
# 100,000 mixtures of real vectors was .965 at 200, .992 at 400, .998 at 800 and 1.0 at 1,600, in 2 to 7 ms.
_CONFIGURATION: Any = {
    "hnsw": {
        "space": "cosine",
        "max_neighbors": 32,
        "ef_search": 1_600,
        "batch_size": 100,
        "sync_threshold": 100,
        "num_threads": 1,
    }
}


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """Locate Chroma: a folder, or the URL of a server (`http://host:port`)."""

    place: Path | str
    _: KW_ONLY
    deadline: float  # seconds that a writer waits for another process

    @property
    def mark(self) -> Path | None:
        """Return the file that exists while a process has the folder open; None for a server."""
        return None if isinstance(self.place, str) else self.place.with_name(f"{self.place.name}.unfinished")


class _Reader(NamedTuple):
    """A client that stays open between two searches, and the state of the folder's files after it had loaded them."""

    client: Any  # a ClientAPI; the protocol lacks `close`
    files: str


_readers: dict[Path, _Reader] = {}  # of this process, at most one
_turn = threading.Lock()  # of the threads that search


@contextmanager
def opened(index: VectorIndex) -> Iterator["ClientAPI"]:
    """Open Chroma to read it, inside the lock. Raises StoreBusy, IndexUnusable, StoreError."""
    if isinstance(index.place, str):
        with client_of(index.place) as client:
            yield client
        return
    with store_lock(index.place, deadline=index.deadline), _marked(index), client_of(index.place) as client:
        yield client


@contextmanager
def kept_client(index: VectorIndex) -> Iterator["ClientAPI"]:
    """Return the client that this process keeps, inside the lock, after opening it if the folder has changed.

    Raises StoreBusy, IndexUnusable, StoreError.
    """
    if isinstance(index.place, str):
        with client_of(index.place) as server:
            yield server
        return
    if not _turn.acquire(timeout=_LONGEST_TURN):
        raise StoreBusy(f"{index.place} is in use by another search")
    try:
        with store_lock(index.place, deadline=0), ExitStack() as opened:
            reader = _readers.pop(index.place, None)
            if reader and (is_marked(index) or reader.files != file_state([index.place])):
                reader.client.close()
                reader = None
            if reader is None:
                for place in list(_readers):
                    _close_reader(place)
                opened.enter_context(_marked(index))
            client = reader.client if reader else _connect(index.place)
            try:
                with _explained(index.place):
                    yield client
                files = reader.files if reader else file_state([index.place])
            except BaseException:
                client.close()
                raise
            if files is None:
                client.close()
            else:
                _readers[index.place] = _Reader(client, files)
    finally:
        _turn.release()


@contextmanager
def _marked(index: VectorIndex) -> Iterator[None]:
    """Mark the folder while it is being opened to read it: Chroma writes to its files even then, and a damaged one can
    crash the process. Raises IndexUnusable if there is no folder or a mark.
    """
    if not (Path(index.place) / "chroma.sqlite3").is_file():
        raise unusable(index, "does not exist yet")
    if is_marked(index):
        raise unusable(index, "was in use when a process was killed")
    set_mark(index)
    try:
        yield
    finally:
        if index.mark:
            index.mark.unlink(missing_ok=True)


def is_marked(index: VectorIndex) -> bool:
    return index.mark is not None and index.mark.exists()


def _close_reader(place: Path) -> None:
    """Close the client that this process keeps of a folder, if any; the system behind it is shared with new clients."""
    if reader := _readers.pop(place, None):
        reader.client.close()


@contextmanager
def client_of(place: Path | str) -> Iterator["ClientAPI"]:
    """Open and close a client. Raises IndexUnusable for a fault of Chroma, StoreError for a missing server."""
    if not isinstance(place, str):
        _close_reader(place)
    client = _connect(place)
    try:
        with _explained(place):
            yield client
    finally:
        client.close()


def _connect(place: Path | str) -> Any:
    """Return a client. Raises IndexUnusable, StoreUnwritable, StoreError."""
    import chromadb
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    if isinstance(place, str):
        parts = urlsplit(place)
        try:
            return chromadb.HttpClient(
                host=parts.hostname or "", port=parts.port or 8000, ssl=parts.scheme == "https", settings=settings
            )
        except ValueError:
            raise StoreError(f"no Chroma server answers at {place}; start it, or set a folder instead") from None
    try:
        make_private_folder(place)
        return chromadb.PersistentClient(place, settings=settings)
    except OSError as fault:
        raise StoreUnwritable(f"cannot use {place}: {fault.strerror}; check permissions and free space") from None
    except Exception as fault:
        raise IndexUnusable(f"the Chroma folder {place} does not open ({_first_line(fault)})") from None


@contextmanager
def _explained(place: Path | str) -> Iterator[None]:
    """Turn a fault of Chroma into IndexUnusable, that of a server into StoreError."""
    import httpx
    from chromadb.errors import InternalError, NotFoundError

    try:
        yield
    except httpx.HTTPError as fault:
        raise StoreError(f"the Chroma server at {place} failed: {_first_line(fault)}; see its log") from None
    except (InternalError, NotFoundError) as fault:
        raise IndexUnusable(f"Chroma at {place} failed ({_first_line(fault)})") from None


def collection_of(client: "ClientAPI", name: str) -> "Collection":
    """Return a collection. Raises IndexUnusable if there is none."""
    from chromadb.errors import NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        raise IndexUnusable(f"Chroma has no collection {name}; check its name, or materialize the embeddings") from None


def new_collection(client: "ClientAPI", name: str) -> "Collection":
    """Create an empty collection; one that the database does not know is removed."""
    from chromadb.errors import NotFoundError

    with suppress(NotFoundError):
        client.delete_collection(name)
    return client.create_collection(name, embedding_function=None, configuration=_CONFIGURATION)


def remove_folder(index: VectorIndex) -> None:
    if not isinstance(index.place, str) and index.place.exists():
        _close_reader(index.place)
        try:
            shutil.rmtree(index.place)
        except OSError as fault:
            raise StoreUnwritable(f"{fault.filename} cannot be removed: {fault.strerror}; check permissions") from None


def unusable(index: VectorIndex, reason: str) -> IndexUnusable:
    return IndexUnusable(f"the Chroma folder {index.place} {reason}; `paper-assets run` fills it again")


def reason_in(fault: StoreError) -> str:
    return str(fault).split(";")[0]


def _first_line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0].replace(";", ",")[:200]


def set_mark(index: VectorIndex) -> None:
    """Create the mark; it is on disk when this returns. Raises StoreUnwritable."""
    if index.mark is None:
        return
    try:
        make_private_folder(index.mark.parent)
        index.mark.touch()
        _flush_file(index.mark.parent)
    except OSError as fault:
        raise StoreUnwritable(f"cannot write {index.mark}: {fault.strerror}; free space or check permissions") from None


def flush(index: VectorIndex) -> None:
    """Write what Chroma wrote to the disk, before the mark goes."""
    if not isinstance(index.place, str):
        for file in _files(index.place):
            _flush_file(file)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _flush_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_name(collection: str) -> None:
    """Raise InvalidInput for a name that Chroma does not accept."""
    if not _NAME.fullmatch(collection):
        raise InvalidInput(f"{collection!r} cannot name a collection: at least 3 letters, digits, dots, - or _")


class ForeignRow(NamedTuple):
    """Represent one entry as it was read."""

    id: str
    document: str | None
    metadata: dict[str, Any]


def foreign_rows(
    index: VectorIndex, collection: str, *, folder: Path | None = None, at_once: int
) -> Iterator[list[ForeignRow]]:
    """Read the entries of a collection that another program wrote, ascending by id, in batches.

    `folder`: a Chroma folder, which is read from a copy, because Chroma writes even when it only reads; None: our own.
    Raises InvalidInput, IndexUnusable, StoreUnwritable.
    """
    check_name(collection)
    with ExitStack() as opened:
        place = index.place if folder is None else folder
        if not isinstance(place, str):
            if not (place / "chroma.sqlite3").is_file():
                raise IndexUnusable(f"{place} has no collection {collection}; name its folder with --chroma")
            copy = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="chroma-", ignore_cleanup_errors=True)))
            try:
                size, free = sum(file.stat().st_size for file in _files(place)), shutil.disk_usage(copy).free
                if size > min(_MOST_BYTES, free):
                    raise IndexUnusable(
                        f"{place} holds {size / 1e9:,.0f} GB, of which at most {min(_MOST_BYTES, free) / 1e9:.0f} are "
                        "read; is it damaged?"
                    )
                shutil.copytree(place, copy, dirs_exist_ok=True)
            except OSError as fault:
                raise StoreUnwritable(f"{place} cannot be copied: {fault.strerror or fault}") from None
            place = copy
        client = opened.enter_context(client_of(place))
        rows = collection_of(client, collection)
        ids: list[str] = []
        while part := rows.get(include=[], limit=AT_ONCE, offset=len(ids))["ids"]:
            ids += part
        ids.sort()
        for start in range(0, len(ids), at_once):
            found: Any = rows.get(ids=ids[start : start + at_once], include=["documents", "metadatas"])
            entries = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
            yield sorted(ForeignRow(identifier, text, dict(metadata or {})) for identifier, text, metadata in entries)
