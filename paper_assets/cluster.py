"""Embed and score on a Dask cluster, with results equal to the bit to those of this process alone (SPEC X4).

Embedding sends texts and receives vectors. Scoring sends the day's snapshot once and receives a ranking per profile. A
cluster that would compute different bits is refused (everything that must be equal on two machines is compared); a lost
worker or scheduler is handled. Dask is imported only when a cluster is named.
"""

import asyncio
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import paper_assets
from paper_assets.errors import ClusterUnavailable, PaperAssetsError
from paper_assets.models.embedder import Batches, Embedder, load_embedder
from paper_assets.ranking.rank import Ranking, RankingTask, rank
from paper_assets.ranking.verifier import Verifier

if TYPE_CHECKING:
    from distributed import Client, Future

# Packages whose version may change a vector, a ranking or how either is serialized.
_PACKAGES = ("dask", "distributed", "cloudpickle", "numpy", "scipy", "pyarrow", "openvino", "tokenizers")
_OWN = "paper_assets"
_VECTORS = "vectors of a sample"
# Texts of several lengths, more word pieces than the path for a few: the path for many texts is compared.
_SAMPLE = [" ".join(["frogs", "and", "sorting", "networks", "of", "granite"] * times) for times in range(1, 40, 3)]


def identity(model: str | None) -> Mapping[str, str]:
    """Return by name what this process would compute with: versions, the package's files, sample vectors.

    The vectors are those of `model` (None: no model is needed). Raises ModelUnavailable.
    """
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", **_packages(), _OWN: _own_files()}
    return {**found, _VECTORS: _vectors(model)} if model else found


def difference(mine: Mapping[str, str], theirs: Mapping[str, str]) -> str | None:
    """Describe the first difference of another process to this one; None if there is none."""
    for name, own in mine.items():
        other = theirs.get(name)
        if other == own:
            continue
        if name == _VECTORS:
            return "its processor gives other vectors than this machine's"
        if name == _OWN:
            return "another version of paper_assets"
        return f"{name} {other or 'missing'}, here {own}"
    return None


@cache
def _packages() -> Mapping[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


@cache
def _own_files() -> str:
    """Return a digest of every file of the package: its version number does not change with each commit."""
    root = Path(paper_assets.__file__).parent
    files = sorted(file for file in root.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    digest = sha256()
    for file in files:
        digest.update(f"{file.relative_to(root).as_posix()} {sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


@cache
def _vectors(model: str) -> str:
    embedder = load_embedder(model)
    if embedder.of_batch is None:
        return embedder.name
    rows = np.ascontiguousarray(embedder.of_batch(_SAMPLE), dtype=np.float32)
    return f"{embedder.name} {sha256(rows.tobytes()).hexdigest()}"


_ALONE = "or unset PAPER_ASSETS_DASK to work on this machine alone"
_CONNECT = 10.0  # seconds for the first answer
_LOOK = 1.0  # seconds between two checks of the workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A scheduler's URL (`tcp://host:port`), and for how many seconds work waits for a worker.

    A lost worker may return: `dask worker` restarts it automatically.
    """

    address: str
    patience: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Represent a cluster whose workers compute what this process would, with the embedding model `model` if needed."""

    cluster: Cluster
    model: str | None
    identity: Mapping[str, str]
    client: "Client"


@contextmanager
def connected(cluster: Cluster, *, model: str | None) -> Iterator[Connection]:
    """Connect for one piece of work. Raises ClusterUnavailable if the cluster is unreachable or would compute other
    bits.
    """
    with _client(cluster) as client:
        own = dict(identity(model))
        _agree(client, cluster, own, model)
        yield Connection(cluster=cluster, model=model, identity=own, client=client)


def computed(
    connection: Connection, work: Callable[..., Any], tasks: Sequence[Any], *, shared: Any = None
) -> Iterator[tuple[int, Any]]:
    """Compute `work(task)`, or `work(task, shared)`, of each task on the cluster; yield position and result as they
    complete.

    `work` is a function of a module of this package. `shared` is sent to each worker once. The task of a lost worker is
    done by another. Raises ClusterUnavailable if the cluster is lost, and what `work` raises.
    """
    client, cluster = connection.client, connection.cluster
    with _explained(cluster):
        held = [client.scatter(shared, broadcast=True, hash=False)] if shared is not None else []
        places = {
            client.submit(_guarded, work, connection.identity, connection.model, task, *held, pure=False): place
            for place, task in enumerate(tasks)
        }
    yield from _gathered(client, cluster, places)


async def _worker_identity(model: str | None) -> Mapping[str, str]:
    """Return the identity of a worker, in a thread: the sample takes seconds, in which heartbeats must continue."""
    return await asyncio.to_thread(identity, model)


def _guarded(work: Callable[..., Any], expected: Mapping[str, str], model: str | None, task: Any, *shared: Any) -> Any:
    """Run a task on a worker after checking its identity (cached): one that joined late was not checked before."""
    if found := difference(expected, identity(model)):
        raise ClusterUnavailable(f"a Dask worker does not fit: {found}; install the same on all machines, {_ALONE}")
    return work(task, *shared)


def _gathered(client: "Client", cluster: Cluster, places: dict["Future", int]) -> Iterator[tuple[int, Any]]:
    from distributed import wait

    pending, since = set(places), time.monotonic()
    while pending:
        with _explained(cluster):
            try:
                with client.as_current():
                    done = wait(list(pending), timeout=_LOOK, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                done = set()
            if done or client.nthreads():
                since = time.monotonic()
            elif time.monotonic() - since > cluster.patience:
                raise _connection_lost(cluster, "it has no worker left")
        for future in done:
            pending.discard(future)
            yield places.pop(future), _result(future, cluster)
            future.release()


def _result(future: "Future", cluster: Cluster) -> Any:
    from distributed import KilledWorker

    if future.status == "finished":
        with _explained(cluster):
            return future.result(timeout=_CONNECT)
    if future.status == "error":
        fault = future.exception()
        if isinstance(fault, KilledWorker):
            raise _connection_lost(cluster, "several workers died over the same piece of work; give them more memory")
        if isinstance(fault, ImportError | AttributeError):
            raise ClusterUnavailable(
                f"a Dask worker lacks something: {fault}; install the same on all machines"
            ) from None
        raise fault
    raise _connection_lost(cluster, "the scheduler is gone, or has lost the work")


@contextmanager
def _client(cluster: Cluster) -> Iterator["Client"]:
    try:
        from distributed import Client
    except ImportError:
        raise ClusterUnavailable(
            'PAPER_ASSETS_DASK is set, but Dask is not installed; pip install "paper-assets[cluster]", or unset it'
        ) from None
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    try:
        for logger in loggers:  # failures of the cluster are reported in one line, by this module
            logger.setLevel(logging.CRITICAL + 1)
        try:
            with warnings.catch_warnings():  # of versions: compared by this module
                warnings.simplefilter("ignore")
                client = Client(cluster.address, timeout=_CONNECT, set_as_default=False)
        except (OSError, ValueError, RuntimeError):
            raise ClusterUnavailable(
                f"no Dask scheduler answers at {cluster.address} (PAPER_ASSETS_DASK); start `dask scheduler`, {_ALONE}"
            ) from None
        try:
            yield client
        finally:
            client.close(timeout=1)
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _agree(client: "Client", cluster: Cluster, own: Mapping[str, str], model: str | None) -> None:
    """Check that every worker computes what this process would. Raises ClusterUnavailable naming the first that does
    not.
    """
    with _explained(cluster):
        if not client.nthreads():
            raise ClusterUnavailable(
                f"the Dask scheduler at {cluster.address} (PAPER_ASSETS_DASK) has no worker; "
                f"start `dask worker {cluster.address}`, {_ALONE}"
            )
        versions: Any = client.get_versions()
        seen = {"the scheduler": versions["scheduler"], **versions["workers"]}
        for name, worker in seen.items():
            packages = worker["packages"]
            theirs = {
                "python": ".".join(packages["python"].split(".")[:2]),
                **{each: packages[each] for each in ("dask", "distributed", "cloudpickle")},
            }
            _fits(cluster, name, difference({each: own[each] for each in theirs}, theirs))
        for name, answer in client.run(_worker_identity, model, on_error="return").items():
            if isinstance(answer, PaperAssetsError):
                _fits(cluster, name, str(answer))
            elif isinstance(answer, Exception):
                _fits(cluster, name, f"paper_assets cannot be used there ({type(answer).__name__}: {answer})")
            else:
                _fits(cluster, name, difference(own, answer))


def _fits(cluster: Cluster, name: str, fault: str | None) -> None:
    if fault:
        who = name if name.startswith("the ") else f"worker {name}"
        raise ClusterUnavailable(
            f"the Dask cluster at {cluster.address} (PAPER_ASSETS_DASK) does not fit: {who}: {fault}; "
            f"install the same on all machines, {_ALONE}"
        )


@contextmanager
def _explained(cluster: Cluster) -> Iterator[None]:
    """Turn what Dask raises when its scheduler is gone into one line."""
    from distributed.client import ClosedClientError

    try:
        yield
    except PaperAssetsError:
        raise
    except (CancelledError, ClosedClientError):
        raise _connection_lost(cluster, "the scheduler is gone") from None
    except OSError as fault:  # of a connection, including TimeoutError
        raise _connection_lost(cluster, str(fault) or "no answer") from None


def _connection_lost(cluster: Cluster, reason: str) -> ClusterUnavailable:
    return ClusterUnavailable(
        f"the Dask cluster at {cluster.address} (PAPER_ASSETS_DASK) was lost: {reason}; stored results are kept, "
        f"and the same command continues from there; check the cluster, {_ALONE}"
    )


# Calls with at least this many texts are sent; below, connecting takes as long as computing: docs/scaling.md.
FEWEST = 256


def spread(embedder: Embedder, cluster: Cluster, *, model: str, fewest: int = FEWEST) -> Embedder:
    """Return the same embedder, whose calls of at least `fewest` texts are computed by the cluster.

    `model` is the name by which the workers load it. Texts are split into batches here exactly as without a cluster,
    and a worker computes whole batches: what determines a vector's last bits, its neighbours and the padding, is the
    same. Raises ClusterUnavailable when it is used.
    """
    cut, alone = embedder.batches_of, embedder._many
    if cut is None:
        return embedder

    def many(texts: list[str]) -> Batches:
        if len(texts) < fewest:
            yield from alone(texts)
            return
        batches = cut(texts)
        tasks = [(model, [texts[i] for i in batch]) for batch in batches]
        with connected(cluster, model=model) as connection:
            for place, rows in computed(connection, embed_batch, tasks):
                yield batches[place], rows

    return replace(embedder, _many=many)


def embed_batch(task: tuple[str, list[str]]) -> np.ndarray:
    """Compute on a worker the vectors (texts, d) of one batch: some tenths of a second of one core."""
    model, texts = task
    of_batch = load_embedder(model).of_batch
    assert of_batch is not None  # noqa: S101  # the sender has split batches for this model
    return of_batch(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The papers of several tasks, each once, and their vectors (n, d); a row without a vector is 0."""

    papers: pa.Table
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A task without its papers, and their rows (n,) in the snapshot."""

    task: RankingTask
    rows: NDArray[np.int64]
    verifier: Verifier | None


def rankings_of(
    connection: Connection, tasks: Sequence[RankingTask], *, verifier: Verifier | None
) -> Iterator[tuple[int, Ranking | PaperAssetsError]]:
    """Yield position and ranking of each task, as they complete; the error of a failed task takes its place.

    `verifier` is sent along: one that sends no requests. Raises ClusterUnavailable.
    """
    papers, rows = snapshot_of(tasks)
    sent = [
        _Sent(
            task=replace(
                task,
                candidates=task.candidates.slice(0, 0),
                vectors=replace(task.vectors, papers=task.vectors.papers[:0]) if task.vectors else None,
            ),
            rows=own,
            verifier=verifier,
        )
        for task, own in zip(tasks, rows, strict=True)
    ]
    yield from computed(connection, rank_sent, sent, shared=papers)


def snapshot_of(tasks: Sequence[RankingTask]) -> tuple[Snapshot, list[NDArray[np.int64]]]:
    """Return what several tasks share, and each one's rows of it."""
    places: dict[str, int] = {}
    rows, tables = [], []
    for task in tasks:
        ids = task.candidates.column("paper_id").to_pylist()
        new = [at for at, paper_id in enumerate(ids) if paper_id not in places]
        places |= {ids[at]: len(places) + number for number, at in enumerate(new)}
        tables.append(task.candidates.take(pa.array(new, type=pa.int64())))
        rows.append(np.array([places[paper_id] for paper_id in ids], dtype=np.int64))
    width = max((task.vectors.papers.shape[1] for task in tasks if task.vectors), default=0)
    vectors = np.zeros((len(places), width), dtype=np.float32)
    for task, own in zip(tasks, rows, strict=True):
        if task.vectors:
            vectors[own] = task.vectors.papers
    return Snapshot(papers=pa.concat_tables(tables).combine_chunks(), vectors=vectors), rows


def rank_sent(sent: _Sent, snapshot: Snapshot) -> Ranking | PaperAssetsError:
    """Compute on a worker the ranking of one task."""
    vectors = sent.task.vectors
    whole = replace(
        sent.task,
        candidates=snapshot.papers.take(pa.array(sent.rows)),
        vectors=replace(vectors, papers=snapshot.vectors[sent.rows]) if vectors else None,
    )
    try:
        return rank(whole, verifier=sent.verifier)
    except PaperAssetsError as failure:
        return failure
