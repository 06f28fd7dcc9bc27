"""Measure how much faster than sentence-transformers with its defaults papers and a first query are embedded.

    python -m benchmarks.embedding [--data FILE.jsonl[.gz]] [--papers N] [--rounds N]

Both sides load the same files. Throughput: slices of the papers are embedded by one side, then by the other, so that
both meet the same load of the machine; the ratio is that of the summed times, and the vectors must be the same. Cold
start: a fresh process for each, from its start to the vector of one query. Small calls: 1, 5 and 20 abstracts never
seen before, in turn. The limit: the model's matrix products of the same word pieces as plain ones of float32, on all
cores, and nothing else; where the processor multiplies nothing narrower, no encoder that computes the same is faster,
and the line says how many times as fast as sentence-transformers that would be. Ends with 1 if a target is missed.
`--data` takes JSON lines with `title` and `abstract`; without it the abstracts are invented, as long as real ones.
"""

import argparse
import gzip
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._figures import Figure, exit_status, seconds
from paper_assets.models import minilm
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import embedded_text

_SYLLABLES = re.findall("..", "ranetilovesumaconperindisformlatgramentationicalnetworkdatamodelearnbasedo")
TARGET, MEASURED_FROM = 4.5, 20  # as fast, from this number of abstracts on (X2)
_THEM = "sentence-transformers"
_LEAST_COSINE = 0.9999  # between the two sides' vectors
_SLICE = 250  # more than either side's batch, so that sorting by length pays as it does in a day of papers

_OURS = """
from paper_assets.models.embedder import load_embedder
load_embedder().encode(["graph networks for molecules"])
"""
_THEIRS = """
from sentence_transformers import SentenceTransformer
SentenceTransformer({folder!r}).encode(["graph networks for molecules"])
"""


def invented_texts(count: int) -> list[str]:
    """Texts of nonsense words; their lengths spread as those of abstracts do (about 80 to 300 words)."""
    dice = random.Random(7)
    words = ["".join(dice.choices(_SYLLABLES, k=dice.choice((1, 1, 2, 2, 3)))) for _ in range(5_000)]

    def prose(length: float) -> str:
        return " ".join(dice.choices(words, k=int(length)))

    return [
        embedded_text(prose(dice.gauss(10, 3)), prose(min(300, max(40, dice.gauss(135, 40))))) for _ in range(count)
    ]


def recorded_texts(file: Path, count: int) -> list[str]:
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as lines:
        papers = (json.loads(line) for line in islice(lines, count))
        return [embedded_text(paper["title"], paper["abstract"]) for paper in papers]


def figures(texts: list[str], *, rounds: int) -> list[Figure]:
    """A first vector in a new process, then 1, 5 and 20 abstracts, then all texts, and what no encoder undercuts."""
    throughput = _throughput(texts)
    return [_cold_start(rounds), *_small_calls(texts, rounds), throughput, _limit(texts, throughput)]


def _figure(stage: str, seconds: float, baseline_seconds: float, *, target: float | None = None) -> Figure:
    return Figure(stage=stage, baseline=_THEM, seconds=seconds, baseline_seconds=baseline_seconds, target=target)


def _cold_start(rounds: int) -> Figure:
    def started(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True))

    theirs = _THEIRS.format(folder=str(minilm.packaged_folder()))
    ours, others = np.median([(started(_OURS), started(theirs)) for _ in range(rounds)], axis=0)
    return _figure("first vector of a process", ours, others)


def _small_calls(texts: list[str], rounds: int) -> Iterator[Figure]:
    """The sizes of a typical `rank`: both sides warm, no text twice."""
    from sentence_transformers import SentenceTransformer

    ours, theirs = load_embedder(), SentenceTransformer(str(minilm.packaged_folder()))
    ours.encode(invented_texts(40))
    fresh = (f"{number} {text}" for number, text in enumerate(texts * (1 + 26 * rounds // len(texts))))
    for count in (1, 5, 20):
        pairs = []
        for _ in range(rounds):
            part = list(islice(fresh, count))
            pairs.append((seconds(partial(ours.encode, part)), seconds(partial(theirs.encode, part))))
        mine, other = np.median(pairs, axis=0)
        yield _figure(f"embed {count} abstracts", mine, other, target=TARGET if count >= MEASURED_FROM else None)


def _throughput(texts: list[str]) -> Figure:
    """All texts, in slices taken by one side after the other; the sums of their times."""
    from sentence_transformers import SentenceTransformer

    ours, theirs = load_embedder(), SentenceTransformer(str(minilm.packaged_folder()))
    warm_up = invented_texts(40)
    ours.encode(warm_up)
    theirs.encode(warm_up)
    cosines, spent = [], np.zeros(2)
    for start in range(0, len(texts), _SLICE):
        part, kept = texts[start : start + _SLICE], dict[str, Any]()
        for at, (name, encoder) in enumerate({"ours": ours, "theirs": theirs}.items()):
            spent[at] += seconds(partial(_keep, kept, name, encoder, part))
        cosines.append((kept["ours"] * kept["theirs"]).sum(1).min())
    assert min(cosines) > _LEAST_COSINE, f"the vectors are others: cosine {min(cosines):.5f}"
    return _figure(f"embed {len(texts):,} abstracts", spent[0], spent[1], target=TARGET)


def _keep(kept: dict[str, Any], name: str, encoder: Any, texts: list[str]) -> None:
    kept[name] = encoder.encode(texts)


def _limit(texts: list[str], throughput: Figure) -> Figure:
    """The matrix products of all texts alone, by the rate of large ones, beside what sentence-transformers took."""
    _, tokenizer = minilm.read_model(minilm.packaged_folder())
    pieces = np.array([len(ids) for ids, _cut in minilm.word_pieces(tokenizer, texts)], np.float64)
    width, layers = minilm.WIDTH, 6
    linear = 12 * width * width  # a layer's weights: query, key, value, output, and twice 4 between 384 and 1536
    products = layers * 2 * (linear * pieces.sum() + 2 * width * (pieces**2).sum())  # the squares: attention
    return _figure(
        f"  limit: its matrix products alone, {len(texts):,}",
        products / _products_a_second(),
        throughput.baseline_seconds,
    )


def _products_a_second(size: int = 1536, rounds: int = 12) -> float:
    """Floating-point operations a second of large float32 products, one of them on each core at a time; the best."""
    left, right = (np.full((size, size), 0.5, np.float32) for _ in range(2))
    cores = len(os.sched_getaffinity(0))

    def work(_core: int) -> None:
        for _ in range(4):
            left @ right

    with minilm.one_blas_thread(), ThreadPoolExecutor(cores) as pool:
        taken = min(seconds(lambda: list(pool.map(work, range(cores)))) for _ in range(rounds))
    return cores * 4 * 2 * size**3 / taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="JSON lines with title and abstract, may be gzipped")
    parser.add_argument("--papers", type=int, default=1_000, help="how many texts (default 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="cold starts of each side (default 3)")
    given = parser.parse_args()
    texts = recorded_texts(given.data, given.papers) if given.data else invented_texts(given.papers)
    print(f"{len(texts)} texts, {len(load_embedder().cut(texts))} of them longer than {minilm.MOST_PIECES} word pieces")
    found = figures(texts, rounds=given.rounds)
    print("\n".join(map(str, found)))
    return exit_status(found)


if __name__ == "__main__":
    sys.exit(main())
