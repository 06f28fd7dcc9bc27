"""Measure diversity and contrast over many candidates, against the plain greedy choice of the tests.

    python -m benchmarks.diversity_contrast [--papers 10000] [--top-k 20] [--rounds 5] [--data VECTORS.npy]

The baseline compares, at each step, every paper that is left with every chosen one; both must lower the same papers
and give the same order. The contrastive pick is timed beside it. Vectors are invented in clusters, so that there is
something to lower, unless a file with an array (n, d) is given; titles and abstracts are invented from the phrases of
the taxonomy. "All alike, no contrast" is the worst case: every vector and every abstract has to be looked at, while
the baseline is at its best (the first comparison settles a paper).
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.ranking.contrast import contrastive_paper
from paper_assets.ranking.scoring import best_first, repeating
from paper_assets.ranking.traits import standard_taxonomy
from paper_assets.settings import ScoringConfig
from tests.ranking.plain_greedy import greedy

SCORING = ScoringConfig()


def clustered(count: int, spread: float) -> NDArray[np.float32]:
    """Unit vectors (count, 384) around 100 centres; with a spread of 0.02 most pairs of a cluster repeat each other."""
    chance = np.random.default_rng(1)
    centres = chance.normal(size=(100, 384))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rows = centres[chance.integers(0, 100, count)] + spread * chance.normal(size=(count, 384))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def invented_texts(count: int) -> pa.ChunkedArray:
    """Some 1,200 characters each: filler, and a phrase of each dimension, the n-th trait 1/n times as often."""
    chance = np.random.default_rng(2)
    taxonomy = standard_taxonomy()
    phrase_of = {column: phrase for phrase, columns in taxonomy.shows.items() for column in columns}
    letters = np.array(list("etaoinshrdlu"))
    filler = ["".join(chance.choice(letters, size=size)) for size in chance.integers(2, 10, size=5_000)]
    texts = [" ".join([filler[at] for at in words]) for words in chance.integers(0, len(filler), size=(count, 180))]
    for columns in taxonomy.columns.values():
        traits = np.arange(len(taxonomy.names))[columns]
        often = 1 / np.arange(1, len(traits) + 1)
        drawn = chance.choice(chance.permutation(traits), size=count, p=often / often.sum())
        texts = [f"{text}. {phrase_of[trait]}" for text, trait in zip(texts, drawn.tolist(), strict=True)]
    return pa.chunked_array([pa.array(texts)])


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--papers", type=int, default=10_000)
    parser.add_argument("--top-k", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    given = np.load(asked.data)[: asked.papers].astype(np.float32) if asked.data else None
    count = asked.papers if given is None else len(given)
    chance = np.random.default_rng(3)
    final, days = np.clip(chance.normal(0.5, 0.1, count), -0.5, 1.5), chance.integers(0, 7, count).astype(float)
    lowered = np.maximum(final + SCORING.diversity_penalty, SCORING.final_floor)
    names = [f"2603.{row:05d}" for row in range(count)]
    ids = pa.chunked_array([pa.array(names)])
    texts = invented_texts(count)
    same = pa.chunked_array([pa.array(["a transformer for segmentation. " + "filler words " * 90] * count)])
    cases = {"given" if asked.data else "clusters": (clustered(count, 0.02) if given is None else given, texts)}
    cases["all alike, no contrast"] = (np.repeat(clustered(1, 0.02), count, axis=0), same)
    standard_taxonomy()
    for name, (vectors, words) in cases.items():
        diversity = contrast = np.inf
        for _ in range(asked.rounds):
            start = time.perf_counter()
            repeats = repeating(
                final,
                lowered,
                vectors,
                days=days,
                paper_ids=ids,
                places=asked.top_k,
                similarity=SCORING.diversity_similarity,
            )
            order = best_first(np.where(repeats, lowered, final), days, ids)
            between = time.perf_counter()
            pick = contrastive_paper(words, order, chosen=asked.top_k - 1, kind="method", taxonomy=standard_taxonomy())
            diversity, contrast = min(diversity, between - start), min(contrast, time.perf_counter() - between)
        ties = [(-day, paper_id) for day, paper_id in zip(days.tolist(), names, strict=True)]
        rows = vectors.astype(np.float64)
        start = time.perf_counter()
        plain_order, plain_repeats = greedy(
            final.tolist(),
            lowered.tolist(),
            rows,
            ties,
            places=asked.top_k,
            similarity=SCORING.diversity_similarity,
        )
        plain = time.perf_counter() - start
        assert plain_repeats == repeats.tolist() and plain_order == order.tolist(), "the two choices differ"
        print(
            f"{name}: {count:,} papers, top {asked.top_k}, {int(repeats.sum()):,} lowered, "
            f"pick at place {pick.place + 1 if pick else None}\n"
            f"  diversity {diversity * 1000:.1f} ms, contrast {contrast * 1000:.1f} ms, plain diversity {plain:.1f} s: "
            f"{plain / diversity:,.0f} x, with contrast {plain / (diversity + contrast):,.0f} x"
        )


if __name__ == "__main__":
    main()
