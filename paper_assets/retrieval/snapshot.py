"""Keep the documents of a data type in the process, so that a search does not open the database.

The process keeps the types it used last, up to a limit of bytes. If whole documents would take more, their texts and
vectors go to an unnamed file beside the warehouse; if the rest would too, nothing is kept (`search.read_through`).
Before each use the warehouse file is checked: if it was not written to, the snapshot is current. Otherwise the database
reports which documents changed, and only those are read again.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from paper_assets.retrieval.blocks import BLOCK, Block, Spill, block_of
from paper_assets.retrieval.scoring import MatchingDocuments, rows_in_blocks
from paper_assets.stores.checkpoint import file_head
from paper_assets.stores.documents import FIELDS, DataType, Where, condition_of
from paper_assets.stores.holdings import (
    DocumentStates,
    HoldingsSize,
    Keys,
    bound_memory,
    document_states,
    few_vectors,
    holdings_size,
    own_copy,
    read_documents,
    read_vectors,
    vector_length,
)
from paper_assets.stores.scratch import open_scratch
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.bm25 import QueryWord, times_of

_HEADERS = 3 * 4096  # bytes at the start of a DuckDB file, where it counts its checkpoints
_FIELDS_OF_A_DOCUMENT = 500  # bytes in memory: title, categories and the rest, and what is known of its state
_FIELDS_IN_A_FILE = 250  # the same, compressed
_WORDS_OF_A_TEXT = 0.35  # bytes of word counts for each byte of text
_MOST_BLOCKS = 96  # most blocks of a snapshot that is updated in parts; 1,000,000 documents are 31
_MOST_CHANGED = 0.1  # share of changed documents from which all are read again ...
_FEW_CHANGED = 64  # ... but never for fewer than this number


class _SelectedRows:
    """Some rows of each block, numbered through from 0: the methods of `MatchingDocuments`."""

    def __init__(self, blocks: Sequence[tuple[Block, NDArray[np.intp]]], dimension: int) -> None:
        self._blocks, self._dimension = blocks, dimension
        self._ends = np.cumsum([len(rows) for _, rows in blocks])

    def word_counts(self, words: Sequence[QueryWord]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        counts = [times_of(block.words, words, rows) for block, rows in self._blocks]
        lengths = [block.words.lengths[rows] for block, rows in self._blocks]
        if not counts:
            return np.zeros((len(words), 0), dtype=np.int32), np.zeros(0, dtype=np.int64)
        return np.concatenate(counts, axis=1), np.concatenate(lengths)

    def approximate_cosines(self, query_vector: NDArray[np.float32]) -> tuple[NDArray[np.float64], float]:
        found = [
            block.vectors.approximate_cosines(query_vector, rows).astype(np.float64) for block, rows in self._blocks
        ]
        tolerance = max((block.vectors.tolerance for block, _ in self._blocks), default=0.0)
        return np.concatenate(found) if found else np.zeros(0), tolerance

    def exact_vectors(self, positions: NDArray[np.intp]) -> NDArray[np.float32]:
        found = np.zeros((len(positions), self._dimension), dtype=np.float32)
        for block, at, rows in self._by_block(positions):
            found[at] = block.vectors.exact_vectors(rows)
        return found

    def doc_ids(self, positions: NDArray[np.intp]) -> list[str]:
        found = [""] * len(positions)
        for block, at, rows in self._by_block(positions):
            for place, doc_id in zip(at.tolist(), block.doc_ids.take(pa.array(rows)).to_pylist(), strict=True):
                found[place] = doc_id
        return found

    def documents(self, positions: NDArray[np.intp]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{}] * len(positions)
        for block, at, rows in self._by_block(positions):
            numbers, ids = rows.tolist(), block.doc_ids.take(pa.array(rows)).to_pylist()
            documents = zip(at.tolist(), ids, block.texts.at(numbers), block.fields.at(numbers), strict=True)
            for place, doc_id, text, fields in documents:
                found[place] = {"doc_id": doc_id, "text": text, **fields}
        return found

    def _by_block(self, positions: NDArray[np.intp]) -> Iterator[tuple[Block, NDArray[np.intp], NDArray[np.intp]]]:
        """Split the positions by block: yield the block, where they are in `positions`, and their rows in the block."""
        block_numbers = np.searchsorted(self._ends, positions, "right")
        for number in np.unique(block_numbers).tolist():
            block, rows = self._blocks[number]
            at = np.flatnonzero(block_numbers == number)
            yield block, at, rows[positions[at] - (self._ends[number] - len(rows))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Documents in rows 0..n, some of which may have been removed. Several threads may search it at once."""

    blocks: tuple[Block, ...]
    states: DocumentStates  # of the rows
    alive: NDArray[np.bool_]  # (n,)
    fields: DuckDBPyConnection  # table `fields` to filter by, with a column `row`; later snapshots add rows to it
    dimension: int
    undated: bool  # whether there are documents without a date
    spill: Spill | None

    def matching_documents(
        self, where: Where | None, undated: Where | None, only: pa.Array | None = None
    ) -> MatchingDocuments:
        """Return access to the documents that meet the filter. Raises InvalidInput."""
        rows = self._matching(where, only)
        parts = rows_in_blocks(rows, [len(block.doc_ids) for block in self.blocks])
        selected = _SelectedRows([(self.blocks[number], within) for number, within in parts], self.dimension)
        return MatchingDocuments(
            embedded=self.states.embedded[rows],
            undated=len(self._matching(undated)) if undated and self.undated else 0,
            word_counts=selected.word_counts,
            approximate_cosines=selected.approximate_cosines,
            exact_vectors=selected.exact_vectors,
            doc_ids=selected.doc_ids,
            documents=selected.documents,
        )

    def _matching(self, where: Where | None, only: pa.Array | None = None) -> NDArray[np.intp]:
        """Return the rows of the documents that meet the filter, ascending. Raises InvalidInput."""
        condition = condition_of(where)
        if not where and only is None:
            return np.flatnonzero(self.alive)
        with self.fields.cursor() as connection:
            among = ""
            if only is not None:
                connection.register("only_papers", pa.table({"paper_id": only}))
                among = " and paper_id in (select paper_id from only_papers)"
            found = connection.execute(
                f"select row from kept.fields where {condition.sql}{among}",  # noqa: S608
                condition.parameters,
            ).fetchnumpy()
        rows = np.sort(np.asarray(found["row"], dtype=np.intp))
        rows = rows[: np.searchsorted(rows, len(self.alive))]
        kept: NDArray[np.intp] = rows[self.alive[rows]]
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    stamp: object
    snapshot: Snapshot | None  # None: too large to be kept
    size: int


_KEPT: OrderedDict[tuple[Path, DataType, str | None], _Kept] = OrderedDict()  # last used last
_LOCK = Lock()


def snapshot_of(warehouse: Warehouse, data_type: DataType, *, model: str | None, most_bytes: int) -> Snapshot | None:
    """Return the present documents of a type with vectors of `model`; None if they are too many.

    Raises StoreError.
    """
    key = (warehouse.path.absolute(), data_type, model)
    with _LOCK:
        kept = _KEPT.pop(key, None)
        if kept is None or kept.stamp != _stamp(warehouse.path):
            kept = _up_to_date(warehouse, data_type, model, kept, most_bytes)
        _KEPT[key] = kept
        while sum(each.size for each in _KEPT.values()) > most_bytes:
            _KEPT.popitem(last=False)
    return kept.snapshot


def _up_to_date(
    warehouse: Warehouse, data_type: DataType, model: str | None, kept: _Kept | None, most_bytes: int
) -> _Kept:
    with warehouse.reading(own_settings=True) as connection:
        bound_memory(connection)
        stamp = _stamp(warehouse.path)  # an open reader blocks writers
        if kept is not None and kept.snapshot is not None:
            changed = _changed(connection, data_type, model, kept.snapshot)
            if changed is not None:
                return replace(kept, stamp=stamp, snapshot=changed)
        size = holdings_size(connection, data_type, model=model)
        whole, in_file = _bytes_of(size)
        if in_file > most_bytes:
            return _Kept(stamp=stamp, snapshot=None, size=0)
        spill = None if whole <= most_bytes else Spill(open_scratch(warehouse.path.parent))
        snapshot = _read(connection, data_type, model, size.dimension, spill)
    return _Kept(stamp=stamp, snapshot=snapshot, size=whole if spill is None else in_file)


def _bytes_of(size: HoldingsSize) -> tuple[int, int]:
    """Estimate the memory for whole documents, and with texts and vectors in a file."""
    whole = size.documents * (_FIELDS_OF_A_DOCUMENT + 4 * size.dimension) + 2 * size.characters
    in_file = size.documents * (_FIELDS_IN_A_FILE + size.dimension) + int(_WORDS_OF_A_TEXT * size.characters)
    return whole, in_file


def _read(
    connection: DuckDBPyConnection, data_type: DataType, model: str | None, dimension: int, spill: Spill | None
) -> Snapshot:
    """Read all documents of the type."""
    nothing = Snapshot(
        blocks=(),
        states=DocumentStates(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, dtype=bool)),
        alive=np.zeros(0, dtype=bool),
        fields=_new_fields(),
        dimension=dimension,
        undated=False,
        spill=spill,
    )
    read, texts = _with_documents(nothing, connection, data_type, keys=None)
    for rows, vectors in read_vectors(connection, model=model, text_keys=texts["text_key"].to_numpy()):
        _put(read, rows, vectors)
    return read


def _changed(connection: DuckDBPyConnection, data_type: DataType, model: str | None, old: Snapshot) -> Snapshot | None:
    """Update a snapshot with what has changed; None if reading everything is faster."""
    now = document_states(connection, data_type, model=model)
    if vector_length(connection, model) != old.dimension:
        return None
    rows = np.flatnonzero(old.alive)
    rows = rows[np.argsort(old.states.keys[rows])]
    keys = old.states.keys[rows]
    if not len(keys):
        return None
    at = np.minimum(np.searchsorted(keys, now.keys), len(keys) - 1)
    mine = rows[at]
    same = (
        (keys[at] == now.keys)
        & (old.states.contents[mine] == now.contents)
        & (old.states.embedded[mine] == now.embedded)
    )
    new, alive = now.keys[~same], np.zeros(len(old.alive), dtype=bool)
    alive[mine[same]] = True
    if not len(new) and alive.sum() == old.alive.sum():
        return old
    dead = len(alive) - int(np.count_nonzero(alive))
    if len(new) + dead > max(_MOST_CHANGED * len(now.keys), _FEW_CHANGED) or len(old.blocks) >= _MOST_BLOCKS:
        return None
    first = len(alive)
    read, texts = _with_documents(replace(old, alive=alive), connection, data_type, keys=new)
    known = few_vectors(connection, model=model, text_hashes=texts["text_hash"].to_pylist())
    if known is None:
        for at, vectors in read_vectors(connection, model=model, text_keys=texts["text_key"].to_numpy()):
            _put(read, at + first, vectors)
    else:
        for row, text_hash in enumerate(texts["text_hash"].to_pylist(), first):
            if text_hash in known:
                _put(read, np.array([row]), known[text_hash][None])
    return read


def _with_documents(
    old: Snapshot, connection: DuckDBPyConnection, data_type: DataType, *, keys: Keys | None
) -> tuple[Snapshot, pa.Table]:
    """Add documents without vectors, and the hashes of their texts."""
    blocks, states, texts = list(old.blocks), [old.states], []
    row, undated = len(old.alive), old.undated
    for table in read_documents(connection, data_type, at_once=BLOCK, keys=keys):
        known = pa.table({name: own_copy(table[name]) for name in FIELDS})
        doc_ids, content = own_copy(table["doc_id"]), own_copy(table["text"])
        blocks.append(block_of(doc_ids, content, known, dimension=old.dimension, spill=old.spill))
        none = np.zeros(len(table), dtype=bool)
        states.append(DocumentStates(table["key"].to_numpy().copy(), table["content"].to_numpy().copy(), none))
        texts.append(pa.table({name: own_copy(table[name]) for name in ("text_key", "text_hash")}))
        undated |= known["date_int"].null_count > 0
        with old.fields.cursor() as fields:
            numbers = pa.array(np.arange(row, row + len(table)))
            fields.register("incoming", known.append_column("row", numbers))
            fields.execute("insert into kept.fields by name from incoming")
            fields.unregister("incoming")
        row += len(table)
    schema = pa.schema([("text_key", pa.uint64()), ("text_hash", pa.string())])
    read = replace(
        old,
        blocks=tuple(blocks),
        states=DocumentStates(*(np.concatenate(each) for each in zip(*map(_parts, states), strict=True))),
        alive=np.concatenate([old.alive, np.ones(row - len(old.alive), dtype=bool)]),
        undated=undated,
    )
    return read, pa.concat_tables([table.cast(schema) for table in texts]) if texts else schema.empty_table()


def _parts(states: DocumentStates) -> tuple[Keys, Keys, NDArray[np.bool_]]:
    return states.keys, states.contents, states.embedded


def _put(snapshot: Snapshot, rows: NDArray[np.intp], vectors: NDArray[np.float32]) -> None:
    """Set the vectors (n, d) of these rows; only before a search has used the snapshot."""
    ends = np.cumsum([len(block.doc_ids) for block in snapshot.blocks])
    block_numbers = np.searchsorted(ends, rows, "right")
    for number in np.unique(block_numbers).tolist():
        mine, block = block_numbers == number, snapshot.blocks[number]
        block.vectors.put(rows[mine] - (ends[number] - len(block.doc_ids)), vectors[mine])
    snapshot.states.embedded[rows] = True


def _new_fields() -> DuckDBPyConnection:
    """Return an empty in-memory table of fields; DuckDB compresses such tables only on request."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("attach ':memory:' as kept (compress)")
    kinds = {"date_int": "integer", "version": "integer", "categories": "varchar[]"}
    columns = ", ".join(f"{name} {kinds.get(name, 'varchar')}" for name in FIELDS)
    connection.execute(f"create table kept.fields ({columns}, row bigint)")
    return connection


def _stamp(path: Path) -> object:
    """Return what differs on disk after any commit: DuckDB's checkpoint count, sizes and times. None: no file."""
    stamp: list[object] = []
    for file in (path, path.with_name(f"{path.name}.wal")):
        with suppress(FileNotFoundError):  # the log disappears when its writer closes
            known = file.stat()
            stamp += [file.name, known.st_ino, known.st_size, known.st_mtime_ns]
    head = file_head(path, _HEADERS)
    return [*stamp, head] if stamp or head else None
