"""Blocks: some thousands of documents as a search compares them, whole in memory or with texts and vectors in a file.

A block in a file keeps in memory one byte for each number of a vector, which tells the few documents that may be among
the best; those are then compared by the vectors in the file, so that the answer is as exact as that of a whole block.
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

BLOCK = 32_768  # documents; their rows fit into two bytes, and counting their words takes some 100 MB
_AT_ONCE = 4_096  # vectors widened at once
_STEPS = 127  # of a number in one byte


class Texts(Protocol):
    """The texts of a block."""

    def all(self) -> pa.Array: ...

    def at(self, rows: Sequence[int]) -> list[str]: ...


class Fields(Protocol):
    """What is known of the documents of a block beside their texts."""

    def at(self, rows: Sequence[int]) -> list[dict[str, Any]]: ...


class Vectors(Protocol):
    """The vectors (n, d) of a block, zeros where there is none."""

    def put(self, rows: NDArray[np.intp], matrix: NDArray[np.float32]) -> None: ...

    def rough(self, asked: NDArray[np.float32], rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Cosines of the rows, no further than `tolerance` from the truth."""
        ...

    def exact(self, rows: NDArray[np.intp]) -> NDArray[np.float32]: ...

    @property
    def tolerance(self) -> float: ...


@dataclass(frozen=True, slots=True)
class TextsInMemory:
    texts: pa.Array

    def all(self) -> pa.Array:
        return self.texts

    def at(self, rows: Sequence[int]) -> list[str]:
        found: list[str] = self.texts.take(pa.array(rows, pa.int64())).to_pylist()
        return found


@dataclass(frozen=True, slots=True)
class FieldsInMemory:
    table: pa.Table

    def at(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.table.take(pa.array(rows, pa.int64())).to_pylist()
        return found


@dataclass(frozen=True, slots=True)
class VectorsInMemory:
    matrix: NDArray[np.float32]

    def put(self, rows: NDArray[np.intp], matrix: NDArray[np.float32]) -> None:
        self.matrix[rows] = matrix

    def rough(self, asked: NDArray[np.float32], rows: NDArray[np.intp]) -> NDArray[np.float32]:
        many = 4 * len(rows) > len(self.matrix)  # gathering them would take longer than multiplying all
        found: NDArray[np.float32] = (
            _products(self.matrix, asked)[rows] if many else _products(self.matrix[rows], asked)
        )
        return found

    def exact(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        return self.matrix[rows]

    @property
    def tolerance(self) -> float:
        """No two float32 sums of d products of unit vectors are further from the truth than this."""
        return self.matrix.shape[1] * float(np.finfo(np.float32).eps)


class Spill:
    """A file without a name that texts and vectors are written to; gone with the last block that lies in it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._end = 0

    def reserve(self, size: int) -> int:
        """A place for so many bytes."""
        begins, self._end = self._end, self._end + size
        return begins

    def write(self, content: bytes | memoryview, place: int) -> None:
        """Raises StoreUnwritable."""
        with scratch_refusals():
            os.pwrite(self._file.fileno(), content, place)

    def read(self, place: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, place)


class TextsInFile:
    """Texts one after the other in a file; in memory only where each begins."""

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
    records: TextsInFile  # as JSON

    def at(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        return [orjson.loads(record) for record in self.records.at(rows)]


class VectorsInFile:
    """Vectors in a file; in memory one byte for each number, times a scale for each vector."""

    def __init__(self, count: int, dimension: int, spill: Spill) -> None:
        self._bytes = np.zeros((count, dimension), dtype=np.int8)
        self._scales = np.zeros(count, dtype=np.float32)
        self._spill, self._place = spill, spill.reserve(count * dimension * 4)
        self._width = dimension * 4
        self._furthest = 0.0  # length of the longest difference between a vector and its bytes

    def put(self, rows: NDArray[np.intp], matrix: NDArray[np.float32]) -> None:
        scales = np.abs(matrix).max(axis=1, initial=0.0) / _STEPS
        steps = np.rint(matrix / np.where(scales > 0, scales, 1)[:, None])
        self._bytes[rows], self._scales[rows] = steps.astype(np.int8), scales
        differences = np.linalg.norm(matrix - steps * scales[:, None], axis=1)
        self._furthest = max(self._furthest, float(differences.max(initial=0.0)))
        content = np.ascontiguousarray(matrix, dtype=np.float32).tobytes()
        for at, row in enumerate(rows.tolist()):
            self._spill.write(content[at * self._width : (at + 1) * self._width], self._place + row * self._width)

    def rough(self, asked: NDArray[np.float32], rows: NDArray[np.intp]) -> NDArray[np.float32]:
        found = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            rough = _products(self._bytes[part].astype(np.float32), asked)
            found[start : start + _AT_ONCE] = rough * self._scales[part]
        return found

    def exact(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        content = b"".join(self._spill.read(self._place + row * self._width, self._width) for row in rows.tolist())
        return np.frombuffer(content, dtype=np.float32).reshape(len(rows), -1)

    @property
    def tolerance(self) -> float:
        """By Cauchy and Schwarz, for a question of length 1; the second part is that of float32."""
        return self._furthest + self._bytes.shape[1] * float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """n documents in no order. Searches of several threads may share one."""

    doc_ids: pa.Array
    texts: Texts
    fields: Fields
    vectors: Vectors
    _words: list[WordIndex] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @property
    def words(self) -> WordIndex:
        """The words of its texts, counted when first asked for: some 5 s for 100,000 abstracts."""
        with self._lock:
            if not self._words:
                self._words.append(index_words(pa.chunked_array([self.texts.all()])))
            return self._words[0]


def _products(matrix: NDArray[np.float32], asked: NDArray[np.float32]) -> NDArray[np.float32]:
    """The product by one thread: those of BLAS wait for one another, on two busy cores thirty times as long."""
    found: NDArray[np.float32] = np.einsum("ij,j->i", matrix, asked)
    return found


def block_of(doc_ids: pa.Array, texts: pa.Array, fields: pa.Table, *, dimension: int, spill: Spill | None) -> Block:
    """A block without vectors yet, in memory or, with a spill, in its file. Raises StoreUnwritable."""
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
