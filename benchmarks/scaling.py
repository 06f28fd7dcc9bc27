"""Measure from which size on each engine beyond this process pays (X4, docs/scaling.md).

    python -m benchmarks.scaling [embed] [score] [history] [vectors] [--sizes 256 1024] [--rounds 3]
                                 [--long] [--papers 60]

Servers are started on loopback and ended again. `embed`: texts of about 15 words (`--long`: of about 180, an abstract),
alone and on one and two Dask workers of one thread each. `score`: the profiles of one day over a week of papers
(`--papers` a day), in the same way. `history`: runs of one small asset, kept in SQLite files and on PostgreSQL.
`vectors`: vectors written to a Chroma folder and a Chroma server. Each figure is the least of `--rounds`, taken in
turn; a line is a size. What is not installed is left out with its reason.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dagster as dg

from benchmarks.scoring import unit_vectors
from paper_assets.cluster import Cluster, connected, rankings_of, spread
from paper_assets.defs.instance import open_instance
from paper_assets.models.embedder import Embedder, load_embedder
from paper_assets.paper import papers_to_table
from paper_assets.ranking.rank import RankingTask, Vectors, rank
from paper_assets.ranking.relevance import interest_queries
from paper_assets.settings import ScoringConfig
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.embeddings import keep_vectors, texts_without_vector
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.vectors import mark_for_rebuild, nearest, update
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.forward_index import forget_texts
from tests.scale import invented
from tests.scale.postgres import postgres, why_not
from tests.scale.servers import chroma_server, dask_scheduler

MODEL = "all-MiniLM-L6-v2"
SCORING = ScoringConfig()
SIZES = {
    "embed": (64, 256, 1_024, 4_096),
    "score": (1, 5, 20, 100),
    "history": (5, 20),
    "vectors": (1_000, 10_000),
}
UNITS = {"embed": "texts", "score": "profiles of a day", "history": "runs", "vectors": "vectors"}

Ways = Mapping[str, Callable[[int], object]]


@contextmanager
def clusters(folder: Path) -> Iterator[dict[str, Cluster]]:
    """A cluster of one worker and one of two."""
    found = {}
    with ExitStack() as stack:
        for workers in (1, 2):
            home = folder / f"{workers}"
            home.mkdir()
            servers = stack.enter_context(dask_scheduler(home))
            for _ in range(workers):
                stack.enter_context(servers.worker())
            found[f"{workers} worker{'s' if workers > 1 else ''}"] = Cluster(address=servers.address)
        yield found


def _encoded(embedder: Embedder, texts: Callable[[int], list[str]], count: int) -> None:
    embedder.encode(texts(count))


@contextmanager
def embed(folder: Path, *, long: bool) -> Iterator[Ways]:
    """Texts to vectors."""

    def texts(count: int) -> list[str]:
        short = invented.texts(count * (12 if long else 1))
        return [" ".join(short[at::count]) for at in range(count)]

    alone = load_embedder()
    with clusters(folder) as found:
        on = {name: spread(alone, each, model=MODEL, fewest=1) for name, each in found.items()}
        for each in (alone, *on.values()):
            each.encode(invented.texts(200))  # compiled, and the workers have said who they are
        yield {
            "alone": lambda count: alone.encode(texts(count)),
            **{name: partial(_encoded, each, texts) for name, each in on.items()},
        }


def tasks(profiles: int, per_day: int) -> list[RankingTask]:
    """Return the ranking tasks of one day over a week of `per_day` papers a day."""
    table = papers_to_table(invented.papers(7, per_day))
    vectors, found = unit_vectors(table.num_rows + 9), []
    for profile in invented.profiles(profiles):
        queries = interest_queries(profile.content.interests, options=profile.content.ranking, scoring=SCORING)
        found.append(
            RankingTask(
                candidates=table,
                profile=profile,
                options=profile.content.ranking,
                as_of=invented.days_from_first(7)[-1],
                scoring=SCORING,
                queries=queries,
                vectors=Vectors(papers=vectors[:-9], queries=vectors[-len(queries.texts) :]),
            )
        )
    return found


@contextmanager
def score(folder: Path, *, per_day: int) -> Iterator[Ways]:
    """Rankings of a day, connecting included; a day's papers are new to every process."""
    asked = cache(partial(tasks, per_day=per_day))

    def alone(count: int) -> None:
        forget_texts()
        for task in asked(count):
            rank(task)

    def together(count: int, cluster: Cluster) -> None:
        with connected(cluster, model=None) as connection:
            connection.client.run(forget_texts)
            assert len(dict(rankings_of(connection, asked(count), verifier=None))) == count

    with clusters(folder) as found:
        yield {
            "alone": alone,
            **{name: partial(together, cluster=each) for name, each in found.items()},
        }


@dg.asset
def nothing() -> None:
    """An asset that makes nothing: what is measured is its history."""


@contextmanager
def history(folder: Path) -> Iterator[Ways]:
    """Runs one after the other in this process, each with its events."""

    def runs(home: Path, count: int, environment: Mapping[str, str]) -> None:
        os.environ.update(environment)
        try:
            with open_instance(home) as instance:
                for _ in range(count):
                    loggers = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
                    assert dg.materialize([nothing], instance=instance, run_config=loggers).success
        finally:
            for name in environment:
                del os.environ[name]

    with ExitStack() as stack:
        ways: dict[str, Callable[[int], object]] = {"SQLite files": lambda count: runs(folder / "files", count, {})}
        if reason := "dagster-postgres is not installed" if find_spec("dagster_postgres") is None else why_not():
            print(f"PostgreSQL left out: {reason}")
        else:
            address = {"PAPER_ASSETS_POSTGRES": stack.enter_context(postgres())}
            ways["PostgreSQL"] = lambda count: runs(folder / "server", count, address)
        yield ways


@contextmanager
def vectors(folder: Path) -> Iterator[Ways]:
    """A new collection written whole, then asked once."""

    def write(place: Path | str, count: int) -> None:
        warehouse = Warehouse(folder / f"{count}.duckdb", deadline=60)
        if not warehouse.path.exists():
            merge_papers(warehouse, invented.papers(1, count))
            hashes, _ = texts_without_vector(warehouse, None, None, model=MODEL)
            keep_vectors(warehouse, hashes, unit_vectors(len(hashes)), model=MODEL)
        index = VectorIndex(place, deadline=60)
        if index.mark is None or index.mark.parent.exists():
            mark_for_rebuild(index)
        update(index, warehouse, ["abstract"], model=MODEL)
        with warehouse.reading() as connection:
            assert nearest(index, connection, "abstract", unit_vectors(1)[0], k=10, model=MODEL).reason is None

    with chroma_server(folder) as address:
        yield {
            "folder": lambda count: write(folder / "index", count),
            "server": lambda count: write(address, count),
        }


def curve(ways: Ways, sizes: Sequence[int], *, rounds: int) -> dict[int, dict[str, float]]:
    """Least seconds of each way at each size."""
    found: dict[int, dict[str, float]] = {}
    for size in sizes:
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, work in ways.items():
                start = time.perf_counter()
                work(size)
                taken[name].append(time.perf_counter() - start)
        found[size] = {name: min(each) for name, each in taken.items()}
        summary = "  ".join(f"{name} {seconds:9.2f} s" for name, seconds in found[size].items())
        print(f"{size:>8,}  {summary}", flush=True)
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*UNITS, []], default=[])
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", action="store_true", help="texts as long as an abstract")
    parser.add_argument("--papers", type=int, default=60, help="of a day, for score, which looks at a week")
    asked = parser.parse_args()
    parts: dict[str, Callable[[Path], Any]] = {
        "embed": lambda folder: embed(folder, long=asked.long),
        "score": lambda folder: score(folder, per_day=asked.papers),
        "history": history,
        "vectors": vectors,
    }
    for name in asked.parts or UNITS:
        if name in ("embed", "score") and find_spec("distributed") is None:
            print(f'{name} left out: Dask is not installed; pip install "paper-assets[cluster]"')
            continue
        print(f"{name}, by {UNITS[name]}; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        with tempfile.TemporaryDirectory() as folder, parts[name](Path(folder)) as ways:
            curve(ways, asked.sizes or SIZES[name], rounds=asked.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
