"""Opening Chroma and closing it for certain: on a folder, or as a client of a server. Cosine space, telemetry off.

`client.close()` frees the folder within the process too: a client opened later sees what others wrote meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from paper_assets.errors import IndexUnusable, StoreError
from paper_assets.stores.index_content import OpenCollection
from paper_assets.stores.index_folder import unusable

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

# Chroma keeps what is newer than sync_threshold in a log and replays it at each opening: at its default of 1,000
# up to 0.9 s, at 100 nothing to speak of, and writing is no slower. At its default of 16 neighbours a search for
# their own vector did not find 10 of 40,000, at 32 it found all, and building took no longer.
_CONFIGURATION: Any = {"hnsw": {"space": "cosine", "max_neighbors": 32, "batch_size": 100, "sync_threshold": 100}}


@contextmanager
def on_disk(database: Path, collection: str, *, count: int | None) -> Iterator[OpenCollection]:
    """The collection in a Chroma folder; it must hold `count` vectors, or is made if that is None.

    The caller holds the lock and has left its mark. What Chroma cannot do with its files raises IndexUnusable.
    """
    import chromadb
    from chromadb.errors import InternalError, NotFoundError

    try:
        client: Any = chromadb.PersistentClient(database, settings=_settings())
    except Exception as fault:
        raise unusable(database, f"does not open ({_first_line(fault)})") from None
    try:
        if count is None:
            rows = client.create_collection(collection, embedding_function=None, configuration=_CONFIGURATION)
        else:
            rows = client.get_collection(collection, embedding_function=None)
            if rows.count() != count:
                raise unusable(database, f"does not hold the {count} vectors that were written")
        yield OpenCollection(rows, client.get_max_batch_size())
    except (InternalError, NotFoundError) as fault:
        raise unusable(database, f"failed ({_first_line(fault)})") from None
    finally:
        client.close()


@contextmanager
def found_on_disk(database: Path, collection: str) -> Iterator[OpenCollection]:
    """A collection that somebody else has written; raises IndexUnusable if there is none or it cannot be read."""
    import chromadb
    from chromadb.errors import InternalError, NotFoundError

    try:
        client: Any = chromadb.PersistentClient(database, settings=_settings())
    except Exception as fault:
        raise IndexUnusable(f"the Chroma folder does not open ({_first_line(fault)}); is it whole?") from None
    try:
        rows = client.get_collection(collection, embedding_function=None)
        yield OpenCollection(rows, client.get_max_batch_size())
    except (InternalError, NotFoundError) as fault:
        raise IndexUnusable(f"no collection {collection} can be read ({_first_line(fault)}); check its name") from None
    finally:
        client.close()


@contextmanager
def on_server(address: str) -> Iterator["ClientAPI"]:
    """A client of the Chroma server at `http://host:port`; what goes wrong there raises StoreError."""
    import chromadb
    import httpx
    from chromadb.errors import InternalError

    parts = urlsplit(address)
    try:
        client: Any = chromadb.HttpClient(
            host=parts.hostname or "", port=parts.port or 8000, ssl=parts.scheme == "https", settings=_settings()
        )
    except ValueError:
        raise StoreError(f"no Chroma server answers at {address}; start it, or set a folder instead") from None
    try:
        yield client
    except (httpx.HTTPError, InternalError) as fault:
        raise StoreError(f"the Chroma server at {address} failed: {_first_line(fault)}; see its log") from None
    finally:
        client.close()


def of_server(client: "ClientAPI", collection: str) -> OpenCollection:
    """A collection of a server. Raises IndexUnusable if there is none."""
    from chromadb.errors import NotFoundError

    try:
        rows = client.get_collection(collection, embedding_function=None)
    except NotFoundError:
        message = f"the Chroma server has no collection {collection}; materialize the embeddings to fill it"
        raise IndexUnusable(message) from None
    return OpenCollection(rows, client.get_max_batch_size())


def new_on_server(client: "ClientAPI", collection: str) -> OpenCollection:
    """An empty collection on a server, in place of the one that may be there."""
    remove_from_server(client, collection)
    rows = client.create_collection(collection, embedding_function=None, configuration=_CONFIGURATION)
    return OpenCollection(rows, client.get_max_batch_size())


def remove_from_server(client: "ClientAPI", collection: str) -> None:
    """Remove a collection, if there is one."""
    from chromadb.errors import NotFoundError

    try:
        client.delete_collection(collection)
    except NotFoundError:
        return


def _settings() -> Any:
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def _first_line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0].replace(";", ",")[:200]
