"""The documents of a data type in memory, so that a search opens no database: vectors, fields to filter by, words.

The process keeps those that it read last, up to a limit of bytes. Before each use the warehouse file is looked at: if
nobody has written since, the snapshot is what a reader would find; if somebody has, a fingerprint of the documents,
taken by the database, says whether they are still the same, and if not they are read again.
"""

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paper_assets.retrieval.lexical import WordIndex, index_words
from paper_assets.stores.document_filters import Where, condition_of
from paper_assets.stores.documents import FIELDS, DataType
from paper_assets.stores.holdings import Holdings, holdings_fingerprint, holdings_size, read_holdings
from paper_assets.stores.warehouse import Warehouse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_HEADERS = 3 * 4096  # bytes at the start of a DuckDB file, where it counts its checkpoints


class Snapshot:
    """n documents in the order of their ids. Searches of several threads may share one."""

    def __init__(self, holdings: Holdings) -> None:
        import duckdb
        import pyarrow as pa

        self.documents = holdings.documents.combine_chunks()
        self.vectors: NDArray[np.float32] = holdings.vectors
        self.embedded: NDArray[np.bool_] = holdings.embedded
        self._words: WordIndex | None = None
        self._lock = Lock()
        self._fields: DuckDBPyConnection = duckdb.connect(config={"threads": 1})
        fields = self.documents.select(FIELDS).append_column("row", pa.array(np.arange(len(self.embedded))))
        self._fields.register("incoming", fields)
        self._fields.execute("create table fields as from incoming")
        self._fields.unregister("incoming")

    def matching(self, where: Where | None) -> NDArray[np.intp]:
        """Rows of the documents that meet the filter, ascending. Raises InvalidInput."""
        condition = condition_of(where)
        if not where:
            return np.arange(len(self.embedded))
        with self._fields.cursor() as connection:
            found = connection.execute(
                f"select row from fields where {condition.sql}",  # noqa: S608
                condition.parameters,
            ).fetchnumpy()
        return np.sort(np.asarray(found["row"], dtype=np.intp))

    @property
    def words(self) -> WordIndex:
        """The words of all texts, counted when first asked for: some 5 s for 100,000 abstracts."""
        with self._lock:
            if self._words is None:
                self._words = index_words(self.documents.column("text"))
            return self._words


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    stamp: object
    fingerprint: str
    snapshot: Snapshot | None  # None: too large to be kept
    size: int


_KEPT: OrderedDict[tuple[Path, DataType, str | None], _Kept] = OrderedDict()  # last used last
_LOCK = Lock()


def snapshot_of(
    warehouse: Warehouse, data_type: DataType, *, model: str | None, where: Where | None, most_bytes: int
) -> Snapshot:
    """The documents of a type as they stand in the warehouse now, vectors of `model`.

    Where all of them would take more than `most_bytes`, only those that meet the filter, read for this one search.
    Raises InvalidInput, StoreError.
    """
    key = (warehouse.path.absolute(), data_type, model)
    with _LOCK:
        kept = _KEPT.pop(key, None)
        if kept is None or kept.stamp != _stamp(warehouse.path):
            kept = _up_to_date(warehouse, data_type, model, kept, most_bytes)
        _KEPT[key] = kept
        while sum(each.size for each in _KEPT.values()) > most_bytes:
            _KEPT.popitem(last=False)
    if kept.snapshot is not None:
        return kept.snapshot
    with warehouse.reading() as connection:
        holdings = read_holdings(connection, data_type, model=model, where=where)
    return Snapshot(holdings)


def _up_to_date(
    warehouse: Warehouse, data_type: DataType, model: str | None, kept: _Kept | None, most_bytes: int
) -> _Kept:
    with warehouse.reading() as connection:
        stamp = _stamp(warehouse.path)  # nobody can write meanwhile
        fingerprint = holdings_fingerprint(connection, data_type, model=model)
        if kept is not None and kept.fingerprint == fingerprint:
            return replace(kept, stamp=stamp)
        size = holdings_size(connection, data_type, model=model)
        if size > most_bytes:
            return _Kept(stamp=stamp, fingerprint=fingerprint, snapshot=None, size=0)
        holdings = read_holdings(connection, data_type, model=model)
    return _Kept(stamp=stamp, fingerprint=fingerprint, snapshot=Snapshot(holdings), size=size)


def _stamp(path: Path) -> object:
    """What differs on the disk after any commit: DuckDB's count of checkpoints, sizes and times. None: no file."""
    told: list[object] = []
    for file in (path, path.with_name(f"{path.name}.wal")):
        with suppress(FileNotFoundError):  # the log is gone as soon as its writer has closed
            known = file.stat()
            told += [file.name, known.st_ino, known.st_size, known.st_mtime_ns]
    with suppress(FileNotFoundError), path.open("rb") as database:
        told.append(database.read(_HEADERS))
    return told or None
