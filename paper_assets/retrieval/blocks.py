"""Store some thousands of documents for comparison: in memory, or with texts and vectors in a temporary file.

A block in a file keeps one byte for each component of a vector in memory. These bytes select the few documents that may
be among the best, which are then compared by the vectors in the file: the answer is as exact as in memory.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import IO, Any, Protocol

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.stores.scratch import scratch_refusals
from paper_assets.text.bm25 import WordIndex, index_words

BLOCK = 32_768  # documents: row numbers fit into two bytes, and counting their words takes about 100 MB
_AT_ONCE = 4_096  # vectors converted at once
_STEPS = 127  # levels of a component in one byte


class Texts(Protocol):
    """The texts of a block."""

    def all(self) -> pa.Array:
        """Return the texts of all n documents, in their order."""
        ...

    def at(self, rows: Sequence[int]) -> list[str]:
        """Return the texts of the rows, in the order of `rows`."""
        ...


class Fields(Protocol):
    """The metadata of the documents of a block."""

    def at(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return the metadata of the rows, in the order of `rows`."""
        ...


class Vectors(Protocol):
    """The vectors (n, d) of a block, zeros for documents without one."""

    def put(self, rows: NDArray[np.intp], matrix: NDArray[np.float32]) -> None:
        """Replace the vectors of the rows (m,) by `matrix` (m, d)."""
        ...

    def approximate_cosines(self, query_vector: NDArray[np.float32], rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return cosines of the rows, at most `tolerance` from the exact value."""
        ...

    def exact_vectors(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the vectors (m, d) of the rows, as they were put."""
        ...

    @property
    def tolerance(self) -> float:
        """Return by how much a cosine of `approximate_cosines` may differ from the exact one; 0 if it is exact."""
        ...


@dataclass(frozen=True, slots=True)
class TextsInMemory:
    """Texts in an Arrow array."""

    texts: pa.Array

    def all(self) -> pa.Array:
        return self.texts

    def at(self, rows: Sequence[int]) -> list[str]:
        found: list[str] = self.texts.take(pa.array(rows, pa.int64())).to_pylist()
        return found


@dataclass(frozen=True, slots=True)
class FieldsInMemory:
    """Metadata in an Arrow table."""

    table: pa.Table

    def at(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.table.take(pa.array(rows, pa.int64())).to_pylist()
        return found


@dataclass(frozen=True, slots=True)
class VectorsInMemory:
    """Vectors in a float32 matrix."""

    matrix: NDArray[np.float32]

    def put(self, rows: NDArray[np.intp], matrix: NDArray[np.float32]) -> None:
        self.matrix[rows] = matrix

    def approximate_cosines(self, query_vector: NDArray[np.float32], rows: NDArray[np.intp]) -> NDArray[np.float32]:
        many = 4 * len(rows) > len(self.matrix)  # gathering them would take longer than multiplying all
        found: NDArray[np.float32] = (
            _products(self.matrix, query_vector)[rows] if many else _products(self.matrix[rows], query_vector)
        )
        return found

    def exact_vectors(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        return self.matrix[rows]

    @property
    def tolerance(self) -> float:
        """Bound the error of a float32 sum of d products of unit vectors."""
        return self.matrix.shape[1] * float(np.finfo(np.float32).eps)


class Spill:
    """An unnamed temporary file for texts and vectors; removed with the last block that uses it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._end = 0

    def reserve(self, size: int) -> int:
        """Reserve bytes and return their position."""
        begins, self._end = self._end, self._end + size
        return begins

    def write(self, content: bytes | memoryview, place: int) -> None:
        """Write bytes at a position. Raises StoreUnwritable."""
        with scratch_refusals():
            os.pwrite(self._file.fileno(), content, place)

    def read(self, place: int, size: int) -> bytes:
        """Read bytes at a position."""
        return os.pread(self._file.fileno(), size, place)


class TextsInFile:
    """Texts one after the other in a file; only their offsets are in memory."""

    def __init__(self, texts: pa.Array, spill: Spill) -> None:
        texts = pa.concat_arrays([texts.cast(pa.string())])  # its offset is 0
        _, offsets, content = texts.buffers()
        self._offsets = np.frombuffer(offsets, dtype=np.int32)[: len(texts) + 1].copy()
        self._spill = spill
        self._place = spill.reserve(int(self._offsets[-1]))
        if content is not None:
            spill.write(memoryview(content)[: int(self._offsets[-1])], self._place)

    def all(self) -> pa.Array:
        content = self._spill.read(self._place, int(self._offsets[-1]))
        return pa.StringArray.from_buffers(len(self._offsets) - 1, pa.py_buffer(self._offsets), pa.py_buffer(content))

    def at(self, rows: Sequence[int]) -> list[str]:
        return [
            self._spill.read(
                self._place + int(self._offsets[row]), int(self._offsets[row + 1] - self._offsets[row])
            ).decode("utf-8")
            for row in rows
        ]


@dataclass(frozen=True, slots=True)
class FieldsInFile:
    """Metadata as JSON records in a file."""

    records: TextsInFile  # as JSON

    def at(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        return [orjson.loads(record) for record in self.records.at(rows)]


class VectorsInFile:
    """Vectors in a file; in memory one byte for each component and a scale for each vector."""

    def __init__(self, count: int, dimension: int, spill: Spill) -> None:
        self._bytes = np.zeros((count, dimension), dtype=np.int8)
        self._scales = np.zeros(count, dtype=np.float32)
        self._spill, self._place = spill, spill.reserve(count * dimension * 4)
        self._width = dimension * 4
        self._furthest = 0.0  # largest distance between a vector and its bytes

    def put(self, rows: NDArray[np.intp], matrix: NDArray[np.float32]) -> None:
        scales = np.abs(matrix).max(axis=1, initial=0.0) / _STEPS
        steps = np.rint(matrix / np.where(scales > 0, scales, 1)[:, None])
        self._bytes[rows], self._scales[rows] = steps.astype(np.int8), scales
        differences = np.linalg.norm(matrix - steps * scales[:, None], axis=1)
        self._furthest = max(self._furthest, float(differences.max(initial=0.0)))
        content = np.ascontiguousarray(matrix, dtype=np.float32).tobytes()
        for at, row in enumerate(rows.tolist()):
            self._spill.write(content[at * self._width : (at + 1) * self._width], self._place + row * self._width)

    def approximate_cosines(self, query_vector: NDArray[np.float32], rows: NDArray[np.intp]) -> NDArray[np.float32]:
        found = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            approximate = _products(self._bytes[part].astype(np.float32), query_vector)
            found[start : start + _AT_ONCE] = approximate * self._scales[part]
        return found

    def exact_vectors(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        content = b"".join(self._spill.read(self._place + row * self._width, self._width) for row in rows.tolist())
        return np.frombuffer(content, dtype=np.float32).reshape(len(rows), -1)

    @property
    def tolerance(self) -> float:
        """Bound the error by Cauchy-Schwarz for a unit query vector, plus the error of float32."""
        return self._furthest + self._bytes.shape[1] * float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """n documents in no order. Several threads may search it at once."""

    doc_ids: pa.Array
    texts: Texts
    fields: Fields
    vectors: Vectors
    _words: list[WordIndex] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @property
    def words(self) -> WordIndex:
        """Return the word counts of its texts, computed at first use: about 5 s for 100,000 abstracts."""
        with self._lock:
            if not self._words:
                self._words.append(index_words(pa.chunked_array([self.texts.all()])))
            return self._words[0]


def _products(matrix: NDArray[np.float32], query_vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Multiply in one thread: BLAS threads wait for each other, thirty times as long on two busy cores."""
    found: NDArray[np.float32] = np.einsum("ij,j->i", matrix, query_vector)
    return found


def block_of(doc_ids: pa.Array, texts: pa.Array, fields: pa.Table, *, dimension: int, spill: Spill | None) -> Block:
    """Return a block without vectors yet, in memory or, with a spill, in its file. Raises StoreUnwritable."""
    count = len(doc_ids)
    known: Fields = FieldsInMemory(fields)
    if spill:
        records = pa.array([orjson.dumps(record).decode() for record in fields.to_pylist()], pa.string())
        known = FieldsInFile(TextsInFile(records, spill))
    return Block(
        doc_ids=doc_ids,
        texts=TextsInFile(texts, spill) if spill else TextsInMemory(texts),
        fields=known,
        vectors=(
            VectorsInFile(count, dimension, spill)
            if spill
            else VectorsInMemory(np.zeros((count, dimension), dtype=np.float32))
        ),
    )
