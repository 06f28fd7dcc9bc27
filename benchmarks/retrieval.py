"""Balanced retrieval with filters over many documents, against Chroma's own filtered query on the same collection.

    python -m benchmarks.retrieval [--papers 100000] [--rounds 15] [--folder KEPT]

Invented papers with clustered vectors; three conditions (category, days, topic), two sides, everything warm. Baseline:
one query of an open Chroma collection with the three conditions of one side, ids alone. Ours: the whole answer to a
plan with two sides (embedding of the question is not in it), policy filter and merge included, by each method. Beside
it the other ways that were weighed: ids chosen by DuckDB and passed to Chroma, and DuckDB's filter on the warehouse
file with the vectors read from it. Recall against brute force in float64. With --folder all is kept for a second run.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from paper_assets.models.embedder import Embedder
from paper_assets.paper import Paper
from paper_assets.retrieval.balanced import retrieve_balanced
from paper_assets.retrieval.evidence import Caller
from paper_assets.retrieval.plan import parse_plan
from paper_assets.retrieval.search import Corpus
from paper_assets.stores import chroma_opening, index_folder
from paper_assets.stores.document_filters import condition_of
from paper_assets.stores.document_index import document_batches
from paper_assets.stores.embeddings import keep_vectors, texts_without_vector
from paper_assets.stores.holdings import read_holdings
from paper_assets.stores.papers import merge_papers
from paper_assets.stores.vectors import VectorIndex, sync
from paper_assets.stores.warehouse import Warehouse

CATEGORIES = ("cs.CL", "cs.LG", "cs.CV", "cs.AI", "stat.ML", "math.OC", "hep-th", "cs.RO")
SIDES = ("cs.CL", "cs.CV")
FIRST, LAST = 20260301, 20260331
DAYS = 90  # the papers are of January to March 2026
MODEL = "invented"
K = 10


def papers(count: int) -> Iterator[Paper]:
    """Papers with 60 words each, days and categories drawn evenly."""
    chance = np.random.default_rng(1)
    letters = np.array(list("etaoinshrdlucm"))
    words = ["".join(chance.choice(letters, size=size)) for size in chance.integers(2, 10, size=20_000)]
    for number in range(count):
        drawn = [words[at] for at in np.minimum(chance.zipf(1.3, size=68), len(words)) - 1]
        yield Paper(
            paper_id=f"26{number // 50_000 + 1:02d}.{number % 50_000:05d}",
            title=" ".join(drawn[:8]),
            abstract=" ".join(drawn[8:]),
            authors=("A. Author",),
            published=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=int(chance.integers(0, DAYS))),
            categories=tuple(chance.choice(CATEGORIES, size=2, replace=False).tolist()),
            primary_category=str(chance.choice(CATEGORIES)),
        )


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def fill(folder: Path, count: int) -> tuple[Warehouse, VectorIndex]:
    """The warehouse and its index, unless they are there."""
    warehouse, index = Warehouse(folder / "warehouse.duckdb", deadline=60), VectorIndex(folder / "chroma", deadline=60)
    hashes: list[str] = []
    if not warehouse.path.exists():
        merge_papers(warehouse, papers(count))
        hashes, _ = texts_without_vector(warehouse, None, None, model=MODEL)
    chance = np.random.default_rng(2)
    centres = unit(chance.normal(size=(200, 384)))
    for start in range(0, len(hashes), 10_000):
        part = hashes[start : start + 10_000]
        rows = unit(centres[chance.integers(0, 200, len(part))] + 0.05 * chance.normal(size=(len(part), 384)))
        keep_vectors(warehouse, part, rows, model=MODEL)
    days = {f"{datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day):%Y-%m-%d}": "1" for day in range(DAYS)}
    start_time = time.perf_counter()
    report = sync(
        index,
        "abstract",
        model=MODEL,
        wanted=days,
        everything=lambda: days,
        batches=lambda names: document_batches(warehouse, "abstract", names, model=MODEL),
    )
    print(f"sync: {report.upserted:,} documents in {time.perf_counter() - start_time:.1f} s")
    return warehouse, index


def best_of(rounds: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest time in milliseconds, and the last result."""
    shortest, result = np.inf, work()
    for _ in range(rounds):
        start = time.perf_counter()
        result = work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest * 1000, result


def recall(found: list[str], truth: list[str]) -> float:
    return len(set(found) & set(truth)) / len(truth)


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--papers", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        measure(*fill(folder, given.papers), rounds=given.rounds)


def measure(warehouse: Warehouse, index: VectorIndex, *, rounds: int) -> None:
    """Time every way on one plan, and print it with its recall."""
    asked = unit(np.random.default_rng(3).normal(size=384))
    embedder = Embedder(
        name=MODEL,
        dimension=384,
        _one=lru_cache(lambda _text: asked),
        _many=lambda _texts: (each for each in ()),
        _too_long=lambda texts: [False] * len(texts),
    )
    corpus = Corpus(warehouse=warehouse, embedder=embedder)
    conditions = [{"date_int": {"$gte": FIRST}}, {"date_int": {"$lte": LAST}}, {"topic_id": "cs"}]
    filters: list[dict[str, Any]] = [{"$and": [{"primary_category": side}, *conditions]} for side in SIDES]
    with warehouse.reading() as connection:
        truths = []
        for where in filters:
            held = read_holdings(connection, "abstract", model=MODEL, where=where)
            scores = held.vectors.astype(np.float64) @ asked.astype(np.float64)
            truths.append([held.documents["doc_id"][int(at)].as_py() for at in np.argsort(-scores)[:K]])
    print(f"one side's filter is met by {len(scores):,} documents")

    assert isinstance(index.place, Path)
    copy, manifest = index_folder.current_copy(index.place / "abstract")
    with chroma_opening.on_disk(index_folder.database(copy), "abstract", count=manifest.count) as opened:

        def chroma(where: Any) -> list[str]:
            answer: Any = opened.rows.query(
                query_embeddings=asked[None], n_results=K, where=where, include=["distances"]
            )
            return list(answer["ids"][0])

        def ids_to_chroma(where: Any) -> list[str]:
            condition = condition_of(where)
            with warehouse.reading() as connection:
                rows = connection.execute(
                    f"select doc_id from retrievable where data_type = 'abstract' and {condition.sql}",
                    condition.parameters,
                ).fetchall()
            answer: Any = opened.rows.query(
                query_embeddings=asked[None], n_results=K, ids=[name for (name,) in rows], include=[]
            )
            return list(answer["ids"][0])

        def from_the_file(where: Any) -> list[str]:
            with warehouse.reading() as connection:
                held = read_holdings(connection, "abstract", model=MODEL, where=where)
            best = np.argsort(-(held.vectors @ asked))[:K]
            return [held.documents["doc_id"][int(at)].as_py() for at in best]

        baseline, found = best_of(rounds, lambda: chroma(filters[0]))
        print(f"{'Chroma, one filtered query':44} {baseline:8.1f} ms  1.00 x  recall {recall(found, truths[0]):.2f}")
        for name, way in (("ids from DuckDB to Chroma", ids_to_chroma), ("DuckDB's filter and vectors", from_the_file)):
            took, found = best_of(max(rounds // 5, 1), lambda way=way: way(filters[0]))
            share = recall(found, truths[0])
            print(f"{name + ', one side':44} {took:8.1f} ms  {took / baseline:.2f} x  recall {share:.2f}")

    for method in ("vector", "lexical", "hybrid"):
        record = {
            "rewritten_question": "etao insh",
            "parameters": {"k_per_side": K, "method": method},
            "filters": {"sides": list(SIDES), "startdate": "2026-03-01", "enddate": "2026-03-31", "topic_id": "cs"},
        }
        plan = parse_plan(record, source="the benchmark", default_sides=())
        start = time.perf_counter()
        retrieve_balanced(corpus, plan, caller=Caller())
        cold = time.perf_counter() - start
        took, sides = best_of(rounds, lambda plan=plan: retrieve_balanced(corpus, plan, caller=Caller()))
        line = f"{f'balanced answer of two sides, {method}':44} {took:8.1f} ms  {took / baseline:.2f} x"
        if method == "vector":
            found = [[each.doc_id for each in side.documents] for side in sides]
            shares = [recall(ids, truth) for ids, truth in zip(found, truths, strict=True)]
            line += f"  recall {np.mean(shares):.2f}"
        print(f"{line}  (the first time {cold:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
