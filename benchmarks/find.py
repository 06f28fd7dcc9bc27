"""Measure a search of the desk over 100,000 stored papers, and how well it ranks on a labelled set.

    python -m benchmarks.find [--papers 100000] [--rounds 7] [--labelled FOLDER]

Invented papers with clustered vectors; the question is embedded by the real model, so that its time counts. Each kind
of query is answered once to warm up, then `rounds` times; a kind's figure is its median, the stage's figure the slowest
kind. Baselines: the limit of 300 ms, and the same words as a BM25 full-text query of DuckDB over an inverted index in
tables (what its extension `fts` makes; the extension itself is a download). --labelled: nDCG@10 of the search and of
BM25 alone on a labelled set as `python -m benchmarks.evaluate` reads it, with 95 % intervals over the queries.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import numpy as np

from benchmarks._figures import Figure, exit_status
from benchmarks._labelled import as_documents, filled_corpus
from benchmarks.evaluation.labelled_set import load_labelled_set
from benchmarks.evaluation.metrics import ndcg
from benchmarks.retrieval import AT_ONCE, papers, unit
from paper_assets.models.embedder import load_embedder
from paper_assets.retrieval.desk_search import search_desk
from paper_assets.retrieval.search import Corpus, search
from paper_assets.retrieval.search_query import parse_search_query
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse

LIMIT = 0.3  # seconds, warm
PROFILE = "reader"

_INDEX = """
create table words as
with split as (
    select paper_id, unnest(regexp_extract_all(lower(title || ' ' || abstract), '[a-z]+')) as word
    from papers
)
select word, paper_id, count(*)::integer as times from split group by all order by word;
create table lengths as select paper_id, sum(times)::integer as words from words group by paper_id;
create table frequencies as select word, count(*)::integer as papers from words group by word;
"""
_BM25 = """
with
asked as (
    select word, ln(1 + ((select count(*) from lengths) - papers + 0.5) / (papers + 0.5)) as weight
    from frequencies
    where list_contains($words, word)
)
select paper_id, sum(weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * words / $average))) as score
from words join asked using (word) join lengths using (paper_id)
where list_contains($words, word)
group by paper_id
order by score desc, paper_id
limit 20
"""


def filled(folder: Path, count: int) -> Corpus:
    """Return a warehouse of invented papers whose vectors have the real model's name."""
    model = load_embedder()
    warehouse = Warehouse(folder / "warehouse.duckdb", deadline=60)
    merge_papers(warehouse, papers(count))
    with warehouse.reading() as connection:
        rows = connection.execute("select distinct text_hash from papers order by text_hash").fetchall()
    chance = np.random.default_rng(2)
    centres = unit(chance.normal(size=(200, model.dimension)))
    for start in range(0, len(rows), AT_ONCE):
        part = [text_hash for (text_hash,) in rows[start : start + AT_ONCE]]
        noise = chance.standard_normal(size=(len(part), model.dimension), dtype=np.float32)
        vectors = unit(centres[chance.integers(0, 200, len(part))] + 0.05 * noise)
        keep_vectors(warehouse, part, vectors, model=model.name)
    return Corpus(warehouse=warehouse, embedder=model)


def queries(corpus: Corpus) -> Mapping[str, str]:
    """Return a query of each kind, of words that occur in the papers."""
    with corpus.warehouse.reading() as connection:
        [(title,)] = connection.execute("select title from papers where paper_id = '1001.00007'").fetchall()
    words = title.split()
    return {
        "words": " ".join(words[:4]),
        "many words": title,
        "a phrase": f'"{words[2]} {words[3]}"',
        "words and a category": f"{words[0]} {words[5]} category:cs.CL",
        "words and an author": f"{words[0]} {words[5]} author:Author",
        "words and days": f"{words[0]} {words[5]} from:2026-02 to:2026-02",
        "words, unseen": f"{words[0]} {words[5]} is:unseen",
        "filters alone": "category:cs from:2026-03-01",
        "the tenth page": " ".join(words[:4]),
    }


def median_of(rounds: int, work: Callable[[], object]) -> float:
    """Return the median time in seconds, after one call to warm up."""
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def figures(folder: Path, *, count: int, rounds: int) -> tuple[list[Figure], str]:
    """Fill, measure each kind of query, and measure DuckDB's full-text query of the first kind."""
    corpus = filled(folder, count)
    asked = queries(corpus)
    start = time.perf_counter()
    search_desk(corpus, parse_search_query(asked["words"]), profile=PROFILE)
    cold = time.perf_counter() - start
    took = {
        kind: median_of(
            rounds,
            lambda text=text, kind=kind: search_desk(  # type: ignore[misc]
                corpus, parse_search_query(text), profile=PROFILE, offset=180 if kind == "the tenth page" else 0
            ),
        )
        for kind, text in asked.items()
    }
    slowest = max(took, key=lambda kind: took[kind])
    duck = duckdb.connect()
    with corpus.warehouse.reading() as connection:
        table = connection.sql("select paper_id, title, abstract from papers").to_arrow_table()
    duck.register("papers", table)
    duck.execute(_INDEX)
    [(average,)] = duck.execute("select avg(words) from lengths").fetchall()
    given = {"words": asked["words"].lower().split(), "average": average}
    beside = median_of(rounds, lambda: duck.execute(_BM25, given).fetchall())
    summary = f"find, {count:,} papers, ms: " + ", ".join(f"{kind} {1000 * each:.0f}" for kind, each in took.items())
    summary += f"; the first search of a process {cold:.1f} s"
    stage = f"search {count:,} papers"
    return [
        Figure(
            stage=f"{stage}: {slowest}",
            baseline="the limit of 300 ms",
            seconds=took[slowest],
            baseline_seconds=LIMIT,
            target=1.0,
        ),
        Figure(
            stage=f"{stage}: words",
            baseline="DuckDB full text, BM25",
            seconds=took["words"],
            baseline_seconds=beside,
            target=None,
        ),
    ], summary


def quality(labelled_folder: Path, folder: Path) -> list[str]:
    """Return a line for each way to rank: nDCG@10 on a labelled set with its interval."""
    labelled = load_labelled_set(labelled_folder)
    corpus = filled_corpus(folder, as_documents(labelled.documents))
    lines, chance = [], np.random.default_rng(1)
    for name, method in (("the desk's search", corpus.config.method), ("BM25 alone", "lexical"), ("vectors", "vector")):
        values = []
        for query in labelled.judged_queries:
            known = labelled.judgements[query.query_id]
            grades = {
                labelled.documents[position].doc_id: max(float(grade), 0.0)
                for position, grade in zip(known.positions, known.grades, strict=True)
            }
            found = search(corpus, query.text, data_type="fulltext", where=None, k=10, method=method)  # type: ignore[arg-type]
            ranked = np.array([grades.get(each.doc_id, 0.0) for each in found.candidates])
            values.append(ndcg(ranked, np.array(list(grades.values())), k=10))
        means = np.array(values)[chance.integers(0, len(values), (2_000, len(values)))].mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        lines.append(f"{name:18} nDCG@10 {np.mean(values):.3f} [{low:.3f}, {high:.3f}], {len(values)} queries")
    return lines


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--papers", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--labelled", type=Path)
    given = parser.parse_args()
    if given.labelled:
        with tempfile.TemporaryDirectory() as folder:
            print(*quality(given.labelled, Path(folder)), sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found, summary = figures(Path(folder), count=given.papers, rounds=given.rounds)
    print(summary, *found, sep="\n")
    return exit_status(found)


if __name__ == "__main__":
    raise SystemExit(main())
