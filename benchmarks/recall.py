"""Measure recall from an archive of best practices: whether the right one is found, and how fast.

    python -m benchmarks.recall --data PAPERS-FOLDER [--draws 3] [--seed 1]
    python -m benchmarks.recall [--practices 10000] [--rounds 20]

With --data: 44 best practices of one level, whose originals are the first halves of 44 real abstracts of one category;
14 of them score 99, 30 score 95. The second half of each abstract asks, and the right example is that of its first
half. It is found if it is among the two that a prompt shows. Beside it the mean cosine of what is shown, and that of
the two nearest. Each draw takes other papers. Exits with 1 where the right one is found in less than 95 of 100 at
either score.

Without --data: how fast, against building BM25 at every call. Invented originals of 150 words and invented
vectors, a third of them at each level. Both answer the same questions from the same rows in memory and must give the
same best practices. The baseline reads nothing and embeds nothing; it only builds the index of words of the level
(bm25s) that ours keeps. Ours is timed as a caller meets it: warm, when nothing was written since and the question's
vector is remembered, as from the second attempt on; with a question to be embedded; after a write to another table;
after a new best practice.
"""

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from paper_assets.models.embedder import load_embedder
from paper_assets.paper import text_hash
from paper_assets.retrieval.merge import reciprocal_rank_fusion
from paper_assets.rewriting.best_practices import Archive, retrieve_best_practices
from paper_assets.settings import RetrievalConfig, RewritingConfig
from paper_assets.stores.best_practices import BestPractice, add_missing, with_vectors
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.llm_answers import keep_answers
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.sentences import sentence_spans
from paper_assets.text.words import FUNCTION_WORDS, words_in

_AT_SCORE = {99: 14, 95: 30}
_SENTENCES = 4  # of an abstract that has two halves
_LEAST = 0.95
LEVELS = ("public", "student", "expert")


def invented(count: int) -> list[BestPractice]:
    """Return originals of 150 words, the n-th word of the language 1/n times as often, no word in the plural."""
    chance = np.random.default_rng(1)
    letters = np.array(list("etaoinrhdlu"))
    language = ["".join(chance.choice(letters, size=size)) for size in chance.integers(2, 10, size=20_000)]
    often = 1 / np.arange(1, len(language) + 1)
    drawn = chance.choice(len(language), size=(count, 150), p=often / often.sum())
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        BestPractice(
            id=f"{number:08x}-0000-4000-8000-000000000000",
            text="A rewrite. " * 60,
            original_text=" ".join([language[word] for word in words]),
            score=int(chance.integers(92, 101)),
            target_level=LEVELS[number % 3],
            keywords=("one", "two"),
            made_at=start + timedelta(minutes=number),
            model_version="invented",
            paper_id=f"2601.{number:05d}",
            category="cs.CL",
        )
        for number, words in enumerate(drawn.tolist())
    ]


def keep(archive: Archive, practices: list[BestPractice]) -> None:
    """Put best practices with invented vectors into the warehouse."""
    assert archive.embedder is not None
    hashes = [text_hash(practice.original_text) for practice in practices]
    rows = np.random.default_rng(int(hashes[0], 16)).normal(size=(len(practices), archive.embedder.dimension))
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    keep_vectors(archive.warehouse, hashes, vectors, model=archive.embedder.name)
    add_missing(archive.warehouse, practices, collection=archive.collection)


def rebuilding(archive: Archive, practices: list[BestPractice], vectors: np.ndarray) -> Callable[[str, str], list[str]]:
    """The baseline: recall over rows in memory that builds the word index of the level at every call."""
    import bm25s

    by_id = {practice.id: practice for practice in practices}
    embedder, config = archive.embedder, archive.config
    assert embedder is not None

    def recall(question: str, level: str) -> list[str]:
        rows = [row for row, practice in enumerate(practices) if practice.target_level == level]
        texts = [f"{practices[row].original_text} {' '.join(practices[row].keywords)}" for row in rows]
        words = bm25s.BM25(k1=RetrievalConfig().bm25_k1, b=RetrievalConfig().bm25_b)
        words.index(bm25s.tokenize(texts, stopwords=None, show_progress=False), show_progress=False)
        wanted = [word for word in words_in(question) if word not in FUNCTION_WORDS]
        rankings = []
        meanings = vectors[rows] @ embedder.encode([question])[0]
        near = meanings >= config.recall_floor
        for scores in (words.get_scores(wanted), meanings):
            order = [at for at in np.argsort(-scores, kind="stable") if near[at]][: config.recall_depth]
            rankings.append([practices[rows[at]].id for at in order])
        relevant = list(reciprocal_rank_fusion(rankings))[:3]
        return sorted(relevant, key=lambda identifier: -by_id[identifier].score)

    return recall


def halves(abstract: str) -> tuple[str, str]:
    """The first half of its sentences, and the rest."""
    sentences = [abstract[start:end] for start, end in sentence_spans(abstract)]
    return " ".join(sentences[: len(sentences) // 2]), " ".join(sentences[len(sentences) // 2 :])


def find_the_right_one(folder: Path, *, draws: int, seed: int) -> int:
    """Keep, ask, count, print; 1 where too few are found."""
    with gzip.open(folder / "papers.jsonl.gz", "rt", encoding="utf-8") as lines:
        papers = [paper for paper in map(json.loads, lines) if len(sentence_spans(paper["abstract"])) >= _SENTENCES]
    chance = np.random.default_rng(seed)
    embedder = load_embedder()
    found: dict[int, list[bool]] = {99: [], 95: []}
    shown_cosines: list[float] = []
    nearest: list[float] = []
    nothing = 0
    for _ in range(draws):
        category = str(chance.choice(["cs.CL", "cs.CV", "cs.LG"]))
        pool = [paper for paper in papers if paper["primary_category"] == category]
        drawn = [pool[at] for at in chance.choice(len(pool), size=sum(_AT_SCORE.values()), replace=False)]
        scores = [score for score, count in _AT_SCORE.items() for _ in range(count)]
        practices = [
            replace(
                each, original_text=halves(paper["abstract"])[0], keywords=(), score=score, target_level="public",
                paper_id=f"right-{paper['id']}",
            )
            for each, paper, score in zip(invented(len(drawn)), drawn, scores, strict=True)
        ]  # fmt: skip
        with tempfile.TemporaryDirectory() as home:
            archive = Archive(
                Warehouse(Path(home) / "warehouse.duckdb", deadline=60),
                VectorIndex(Path(home) / "chroma", deadline=60),
                embedder,
            )
            add_missing(archive.warehouse, practices, collection=archive.collection)
            vectors = embedder.encode([each.original_text for each in practices])
            row = {each.id: at for at, each in enumerate(practices)}
            for right, paper in zip(practices, drawn, strict=True):
                question = halves(paper["abstract"])[1]
                shown = retrieve_best_practices(archive, question, "public", 2)
                found[right.score].append(right.id in [each.id for each in shown])
                cosines = vectors @ embedder.encode([question])[0]
                shown_cosines += [float(cosines[row[each.id]]) for each in shown]
                nearest += sorted(cosines.tolist())[-len(shown) :] if shown else []
                nothing += not shown
    for score, right_ones in found.items():
        print(f"right example of {score}: {sum(right_ones)} of {len(right_ones)} ({np.mean(right_ones):.1%})")
    print(f"mean cosine of what is shown {np.mean(shown_cosines):.2f}, of as many nearest {np.mean(nearest):.2f}")
    print(f"nothing above the floor of {RewritingConfig().recall_floor}: {nothing}")
    return int(any(np.mean(right_ones) < _LEAST for right_ones in found.values()))


def median(times: list[float]) -> float:
    return float(np.median(times)) * 1000


def main() -> int:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--practices", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.data:
        return find_the_right_one(asked.data, draws=asked.draws, seed=asked.seed)
    practices = invented(asked.practices + 2 * asked.rounds)
    held, questions, later = (
        practices[: asked.practices],
        [practice.original_text for practice in practices[asked.practices : asked.practices + asked.rounds]],
        practices[asked.practices + asked.rounds :],
    )
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(
            Warehouse(Path(folder) / "warehouse.duckdb", deadline=60),
            VectorIndex(Path(folder) / "chroma", deadline=60),
            load_embedder(),
            config=RewritingConfig(recall_floor=-1),  # invented vectors are near to nothing
        )
        keep(archive, held)
        began = time.perf_counter()
        retrieve_best_practices(archive, "anything", "public")
        first = time.perf_counter() - began
        stored, vectors = with_vectors(
            archive.warehouse, archive.collection, [each.id for each in held], model=load_embedder().name
        )
        baseline = rebuilding(archive, stored, vectors)
        warm, again, plain, elsewhere, added = (list[float]() for _ in range(5))
        for round, question in enumerate(questions):
            level = LEVELS[round % 3]
            times = [time.perf_counter()]
            found = [practice.id for practice in retrieve_best_practices(archive, question, level)]
            times.append(time.perf_counter())
            retrieve_best_practices(archive, question, level)  # its vector is remembered
            times.append(time.perf_counter())
            same = baseline(question, level)
            times.append(time.perf_counter())
            assert found == same, "the two recalls differ"
            for kept, start, end in zip((warm, again, plain), times, times[1:], strict=False):
                kept.append(end - start)
        for round, question in enumerate(questions):
            keep_answers(archive.warehouse, {f"{round}": "null"}, model="invented")
            times = [time.perf_counter()]
            retrieve_best_practices(archive, question, LEVELS[round % 3])
            times.append(time.perf_counter())
            keep(archive, [later[round]])
            times.append(time.perf_counter())
            retrieve_best_practices(archive, question, LEVELS[round % 3])
            elsewhere.append(times[1] - times[0])
            added.append(time.perf_counter() - times[2])
    print(
        f"{len(held):,} best practices, {asked.rounds} questions, medians in ms\n"
        f"  warm                    {median(again):8.1f}\n"
        f"  warm, to be embedded    {median(warm):8.1f}\n"
        f"  after another write     {median(elsewhere):8.1f}\n"
        f"  after a new one         {median(added):8.1f}\n"
        f"  first in the process    {first * 1000:8.1f}\n"
        f"  BM25 built at each call {median(plain):8.1f}: {median(plain) / median(again):.0f} x"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
