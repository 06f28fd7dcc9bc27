"""Provide invented data for the vector index, and a process that writes and reads it (`vector_process`).

A truth is partition -> ids; a vector follows from its id alone, so that every process makes the same.
"""

import hashlib
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from paper_assets.stores.index_storage import VectorBatch
from paper_assets.stores.vectors import SyncReport, VectorIndex, _reading, sync

COLLECTION, MODEL, DIMENSION = "abstract", "invented", 16
TWO_GIGABYTES = 2 << 30  # a damaged index can grow without limit, so memory is limited

Truth = Mapping[str, Sequence[str]]


def vectors_of(ids: Sequence[str]) -> np.ndarray:
    """Return unit vectors, float32 (n, DIMENSION)."""
    seeds = [int.from_bytes(hashlib.sha256(each.encode()).digest()[:8]) for each in ids]
    rows = np.array([np.random.default_rng(seed).standard_normal(DIMENSION) for seed in seeds], dtype=np.float32)
    rows = rows.reshape(-1, DIMENSION)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def ids_of(partition: str, count: int) -> list[str]:
    return [f"{partition}.{number:05d}" for number in range(count)]


def all_ids(truth: Truth) -> list[str]:
    return sorted({each for ids in truth.values() for each in ids})


def fingerprints(truth: Truth) -> dict[str, str]:
    return {name: hashlib.sha256(",".join(ids).encode()).hexdigest() for name, ids in truth.items()}


def nothing_happens(partition: str) -> None:
    """The default of `put(before=...)`."""


def put(
    index: VectorIndex,
    truth: Truth,
    *names: str,
    model: str = MODEL,
    before: Callable[[str], None] = nothing_happens,
) -> SyncReport:
    """Sync the named partitions of a truth, or all; `before` is called with each partition as it is asked for."""

    def batches(partitions: Sequence[str]) -> Iterator[VectorBatch]:
        for name in partitions:
            before(name)
            ids = list(truth.get(name, ()))
            metadatas: list[dict[str, Any]] = [{"primary_category": "cs.CL"} for _ in ids]
            yield VectorBatch(partition=name, ids=ids, vectors=vectors_of(ids), metadatas=metadatas)

    whole = fingerprints(truth)
    wanted = {name: whole[name] for name in names} if names else whole
    return sync(index, COLLECTION, model=model, partitions=wanted, everything=lambda: whole, batches=batches)


def query(
    index: VectorIndex, collection: str, vectors: np.ndarray, *, k: int, where: Any = None
) -> tuple[list[list[str]], np.ndarray]:
    """Search the index as another tool does: the k nearest ids of each of m vectors, and their cosines (m, k)."""
    similarities = np.full((len(vectors), k), np.nan, dtype=np.float32)
    with _reading(index, collection) as opened:
        answer: Any = opened.rows.query(query_embeddings=vectors, n_results=k, where=where, include=["distances"])
    for row, distances in enumerate(answer["distances"]):
        similarities[row, : len(distances)] = 1.0 - np.asarray(distances, dtype=np.float32)
    return answer["ids"], similarities


def found(index: VectorIndex, ids: Sequence[str]) -> list[str]:
    """Return the nearest id for the vector of each id."""
    return [nearest[0] for nearest in query(index, COLLECTION, vectors_of(ids), k=1)[0]]


class VectorProcess:
    """A separate process that executes one command at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def begin(self, folder: Path, **order: Any) -> None:
        """Send a command: sync `truth` (only `names`, if given), `stall` before that partition, then `find` ids."""
        self._write({**order, "folder": str(folder)})

    def go_on(self) -> None:
        """End a stall that a command requested."""
        self._write(None)

    def _write(self, order: Any) -> None:
        self._pipe(self.process.stdin).write(json.dumps(order) + "\n")
        self._pipe(self.process.stdin).flush()

    def answer(self) -> Any:
        """Return its next message; fail if it has died."""
        line = self._pipe(self.process.stdout).readline()
        assert line, "the process died"
        return json.loads(line)

    def do(self, folder: Path, **order: Any) -> Any:
        self.begin(folder, **order)
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


@contextmanager
def vector_process(*, largest_file: int = TWO_GIGABYTES) -> Iterator[VectorProcess]:
    """Start a process that cannot write files beyond a size in bytes; kill it at the end."""
    command = [sys.executable, __file__, str(largest_file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield VectorProcess(process)
        finally:
            process.kill()


def _say(thing: Any) -> None:
    sys.stdout.write(json.dumps(thing) + "\n")
    sys.stdout.flush()


def _obey(largest_file: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    for line in sys.stdin:
        order = json.loads(line)
        index = VectorIndex(Path(order["folder"]), deadline=60)

        def stall(partition: str, at: str | None = order.get("stall")) -> None:
            if partition == at:
                _say("stalled")
                sys.stdin.readline()

        try:
            report = put(index, order["truth"], *order.get("names", ()), before=stall)
            answer: dict[str, Any] = {"upserted": report.upserted, "rebuilt": report.rebuilt}
            answer["found"] = found(index, order["find"]) if "find" in order else []
        except Exception as fault:
            answer = {"fault": type(fault).__name__, "text": str(fault)}
        _say(answer)


if __name__ == "__main__":
    _obey(int(sys.argv[1]))
