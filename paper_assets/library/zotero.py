"""Read a Zotero library: through its web API (pyzotero), or from a copy of its SQLite file."""

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Mapping, Sequence, Set
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from paper_assets.errors import InvalidInput, NetworkError, RateLimited
from paper_assets.library.entries import Entry, arxiv_named, clean_field
from paper_assets.library.formats import read_library
from paper_assets.retrying import RetryPolicy, limited, retry_after

if TYPE_CHECKING:
    import httpx2
    from pyzotero import zotero

_PAGE = 100  # items of an answer, the most that Zotero's server gives
_MOST_PAGES = 2_000  # 200,000 works, more than libraries have; a faulty server could link pages without end
_LONGEST_PAUSE = 30.0  # seconds between two requests, if the server asks for a pause; pyzotero would sleep for hours
_RETRY = RetryPolicy(tries=3, first_wait=2.0)
_NOT_WORKS = ("attachment", "note", "annotation")
# Libraries of RSS feeds hold what others published, not what the reader chose.
_ITEMS = """
    select items.itemID, items.key, fields.fieldName, itemDataValues.value
    from items
    join itemTypes using (itemTypeID)
    join itemData using (itemID)
    join fields using (fieldID)
    join itemDataValues using (valueID)
    where itemTypes.typeName not in ('attachment', 'note', 'annotation')
        and items.itemID not in (select itemID from deletedItems)
        {chosen}
    order by items.itemID
"""
_NOT_OF_A_FEED = (  # the tables that mark feeds, in every schema of Zotero since feeds exist
    (("feedItems",), "items.itemID not in (select itemID from feedItems)"),
    (("libraries",), "items.libraryID not in (select libraryID from libraries where type = 'feed')"),
)
_IN_COLLECTIONS = """items.itemID in (
    with recursive chosen(collectionID) as (
        select collectionID from collections where lower(collectionName) in ({marks})
        union
        select collections.collectionID from collections join chosen on parentCollectionID = chosen.collectionID
    )
    select itemID from collectionItems join chosen using (collectionID)
)"""


def read_libraries(files: Sequence[Path], collections: Sequence[str] = ()) -> list[Entry]:
    """Return the entries of library files; of a Zotero library only those in `collections`, if there are any."""
    return [
        entry
        for file in files
        for entry in (zotero_file(file, collections) if file.suffix == ".sqlite" else read_library(file))
    ]


def zotero_web(
    library: str,
    *,
    kind: Literal["user", "group"],
    key: str | None,
    url: str,
    timeout: float,
    collections: Sequence[str] = (),
) -> list[Entry]:
    """Read a library from Zotero's server, 100 works at a time, each answer within `timeout` seconds.

    With `collections` only the works in one of them, or in one within it.

    Raises InvalidInput (unknown or forbidden library, unknown collection), NetworkError, RateLimited.
    """
    import httpx2
    from pyzotero import zotero
    from pyzotero import zotero_errors as faults

    client = zotero.Zotero(library, kind, key, client=_client(timeout))
    client.endpoint = url.rstrip("/")
    try:
        chosen = _chosen(_all_pages(client, client.collections()), collections) if collections else None
        items = _all_pages(client, client.top(limit=_PAGE))
        works = [
            item
            for item in items
            if item["data"].get("itemType") not in _NOT_WORKS
            and (chosen is None or chosen & set(item["data"].get("collections") or ()))
        ]
        return [_entry(item["data"], f"Zotero item {item.get('key', '')}") for item in works]
    except (faults.UserNotAuthorisedError, faults.ResourceNotFoundError):
        raise InvalidInput(
            f"Zotero did not return the {kind} library {library[:40]!r}; check the number and ZOTERO_API_KEY"
        ) from None
    except (faults.TooManyRequestsError, faults.TooManyRetriesError):
        raise RateLimited("Zotero limits the rate of requests; try again later") from None
    except (httpx2.TimeoutException, TimeoutError):
        raise NetworkError(f"Zotero gave no whole answer within {timeout:g} s; try again later") from None
    except (faults.PyZoteroError, httpx2.HTTPError, ValueError) as fault:
        raise NetworkError(f"Zotero did not answer: {type(fault).__name__}; try again later") from None
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError):  # such as the login page of a network
        raise NetworkError(
            "the answer is not a Zotero library; check PAPER_ASSETS_ZOTERO_URL and the network"
        ) from None


def _client(timeout: float) -> "httpx2.Client":
    """Return a client whose answers must be whole within `timeout` seconds, and that refuses to pause for long."""
    import httpx2

    class Client(httpx2.Client):
        pause = 0.0

        def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            if self.pause > _LONGEST_PAUSE:
                raise RateLimited(f"Zotero asks us to wait {self.pause:.0f} s; try again then")
            request.extensions["timeout"] = httpx2.Timeout(timeout).as_dict()  # pyzotero sets 30 s
            send = partial(super().send, request, **options)
            response = _RETRY.call(
                lambda number: _accepted(limited(timeout, send)),
                is_temporary=lambda failure: isinstance(failure, RateLimited),
                ends=time.monotonic() + _LONGEST_PAUSE,
            )
            backoff = retry_after({"retry-after": response.headers.get("backoff", "")})
            if backoff and backoff > _LONGEST_PAUSE:
                self.pause, response.headers["backoff"] = backoff, "0"  # the last answer needs no pause
            return response

    return Client(follow_redirects=True)


def _accepted(response: "httpx2.Response") -> "httpx2.Response":
    """Return an answer of Zotero, or raise RateLimited where it asks to come back later."""
    if response.status_code not in (429, 503):
        return response
    wait = retry_after(response.headers)
    failure = RateLimited(f"Zotero asks us to wait{'' if wait is None else f' {wait:.0f} s'}; try again then")
    failure.retry_after = wait
    raise failure


def _all_pages(client: "zotero.Zotero", first_page: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return what the first page has and the pages that follow it. Raises NetworkError if they do not end."""
    found = list(first_page)
    links: set[str] = set()
    while link := (client.links or {}).get("next"):
        if link in links or len(links) + 1 == _MOST_PAGES:
            raise NetworkError(
                f"Zotero's pages do not end (stopped after {len(links) + 1}); check PAPER_ASSETS_ZOTERO_URL"
            )
        links.add(link)
        found += client.follow()
    return found


def _chosen(collections: Sequence[Mapping[str, Any]], named: Sequence[str]) -> set[str]:
    """Return the keys of the collections named, and of those within them. Raises InvalidInput for an unknown one."""
    names = {each["key"]: str(each["data"].get("name", "")).lower() for each in collections}
    _check_names(named, set(names.values()))
    chosen = {key for key, name in names.items() if name in {each.lower() for each in named}}
    while more := {each["key"] for each in collections if each["data"].get("parentCollection") in chosen} - chosen:
        chosen |= more
    return chosen


def _check_names(collections: Sequence[str], known: Set[str]) -> None:
    for name in collections:
        if name.lower() not in known:
            raise InvalidInput(f"the library has no collection {name[:60]!r}")


def zotero_file(file: Path, collections: Sequence[str] = ()) -> list[Entry]:
    """Read the works in a `zotero.sqlite`, from a copy because Zotero locks the file. Raises InvalidInput.

    Items of RSS feeds are left out. With `collections` only the works in one of them, or in one within it.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "zotero.sqlite")
        try:
            shutil.copyfile(file, copy)
            for suffix in ("-wal", "-journal"):
                if (beside := file.with_name(file.name + suffix)).exists():
                    shutil.copyfile(beside, copy.with_name(copy.name + suffix))
            with closing(sqlite3.connect(copy)) as connection:
                rows = _selected(connection, collections)
        except OSError as fault:
            raise InvalidInput(f"{file} cannot be read: {fault.strerror}") from None
        except sqlite3.Error as fault:
            raise InvalidInput(f"{file} is not a Zotero library: {fault}") from None
    works: dict[int, dict[str, Any]] = {}
    keys: dict[int, str] = {}
    for number, key, name, value in rows:
        works.setdefault(number, {})[name] = value
        keys[number] = key
    return [_entry(data, f"{file.name}, item {keys[number]}") for number, data in works.items()]


def _selected(connection: sqlite3.Connection, collections: Sequence[str]) -> list[tuple[int, str, str, Any]]:
    tables = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
    conditions = [condition for needed, condition in _NOT_OF_A_FEED if tables.issuperset(needed)]
    if collections:
        known = connection.execute("select lower(collectionName) from collections")
        _check_names(collections, {name for (name,) in known})
        conditions.append(_IN_COLLECTIONS.format(marks=", ".join("?" * len(collections))))
    chosen = "".join(f" and {condition}" for condition in conditions)
    return connection.execute(_ITEMS.format(chosen=chosen), [name.lower() for name in collections]).fetchall()


def _entry(data: Mapping[str, Any], where: str) -> Entry:
    places = ("archiveID", "url", "extra", "libraryCatalog", "repository", "publicationTitle", "volume")
    return Entry(
        where=where,
        title=clean_field(data.get("title")),
        abstract=clean_field(data.get("abstractNote")),
        doi=clean_field(data.get("DOI")),
        arxiv=arxiv_named(*map(data.get, places)),
        url=clean_field(data.get("url")),
    )
