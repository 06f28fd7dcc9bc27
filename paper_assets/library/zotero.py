"""Read a Zotero library: through its web API (pyzotero), or from a copy of its SQLite file."""

import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from paper_assets.errors import InvalidInput, NetworkError, RateLimited
from paper_assets.library.entries import Entry, clean_field

_NOT_WORKS = ("attachment", "note", "annotation")
_ITEMS = """
    select items.key, fields.fieldName, itemDataValues.value
    from items
    join itemTypes using (itemTypeID)
    join itemData using (itemID)
    join fields using (fieldID)
    join itemDataValues using (valueID)
    where itemTypes.typeName not in ('attachment', 'note', 'annotation')
        and items.itemID not in (select itemID from deletedItems)
    order by items.itemID
"""


def zotero_web(
    library: str, *, kind: Literal["user", "group"], key: str | None, url: str, timeout: float
) -> list[Entry]:
    """Read every work of a library from Zotero's server. Raises InvalidInput (unknown or forbidden), NetworkError."""
    import httpx2
    from pyzotero import zotero
    from pyzotero import zotero_errors as faults

    client = zotero.Zotero(library, kind, key, client=httpx2.Client(timeout=timeout, follow_redirects=True))
    client.endpoint = url.rstrip("/")
    try:
        items = client.everything(client.top())
    except (faults.UserNotAuthorisedError, faults.ResourceNotFoundError):
        raise InvalidInput(
            f"Zotero did not return the {kind} library {library[:40]!r}; check the number and ZOTERO_API_KEY"
        ) from None
    except faults.TooManyRequestsError:
        raise RateLimited("Zotero limits the rate of requests; try again later") from None
    except (faults.PyZoteroError, httpx2.HTTPError, ValueError) as fault:
        raise NetworkError(f"Zotero did not answer: {type(fault).__name__}; try again later") from None
    works = [item for item in items if item["data"].get("itemType") not in _NOT_WORKS]
    return [_entry(item["data"], f"Zotero item {item.get('key', '')}") for item in works]


def zotero_file(file: Path) -> list[Entry]:
    """Read every work in a `zotero.sqlite`, from a copy because Zotero locks the file. Raises InvalidInput."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "zotero.sqlite")
        try:
            shutil.copyfile(file, copy)
            for suffix in ("-wal", "-journal"):
                if (beside := file.with_name(file.name + suffix)).exists():
                    shutil.copyfile(beside, copy.with_name(copy.name + suffix))
            with closing(sqlite3.connect(copy)) as connection:
                rows = connection.execute(_ITEMS).fetchall()
        except OSError as fault:
            raise InvalidInput(f"{file} cannot be read: {fault.strerror}") from None
        except sqlite3.Error as fault:
            raise InvalidInput(f"{file} is not a Zotero library: {fault}") from None
    works: dict[str, dict[str, Any]] = {}
    for key, name, value in rows:
        works.setdefault(key, {})[name] = value
    return [_entry(data, f"{file.name}, item {key}") for key, data in works.items()]


def _entry(data: Mapping[str, Any], where: str) -> Entry:
    texts = [str(data.get(name, "")) for name in ("archiveID", "url", "extra", "libraryCatalog", "repository")]
    named = [creator for creator in data.get("creators") or () if isinstance(creator, Mapping)]
    return Entry(
        where=where,
        title=clean_field(data.get("title")),
        abstract=clean_field(data.get("abstractNote")),
        authors=tuple(
            clean_field(each.get("name") or f"{each.get('firstName', '')} {each.get('lastName', '')}") for each in named
        ),
        year=clean_field(data.get("date"))[:4],
        doi=clean_field(data.get("DOI")),
        arxiv=clean_field(
            next((text for text in texts if "arxiv" in text.lower() and any(map(str.isdigit, text))), "")
        ),
        url=clean_field(data.get("url")),
    )
