"""How much faster than sentence-transformers with its defaults a day of papers and a first query are embedded.

    python -m benchmarks.embedding [--data FILE.jsonl[.gz]] [--papers N] [--rounds N]

Both sides load the same files. Throughput: slices of the papers are embedded by one side, then by the other, so
that both meet the same load of the machine; the ratio is that of the summed times. Cold start: a fresh process for
each, from its start to the vector of one query. Small calls: 1, 5 and 20 abstracts never seen before, in turn.
`--data` takes JSON lines with `title` and `abstract`; without it the abstracts are invented, as long as real ones.
"""

import argparse
import gzip
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np

from paper_assets.models import minilm
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import embedded_text

_SYLLABLES = re.findall("..", "ranetilovesumaconperindisformlatgramentationicalnetworkdatamodelearnbasedo")
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


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def throughput(texts: list[str]) -> None:
    from sentence_transformers import SentenceTransformer

    ours, theirs = load_embedder(), SentenceTransformer(str(minilm.packaged_folder()))
    print(f"{len(texts)} texts, {len(ours.cut(texts))} of them longer than {minilm.MOST_PIECES} word pieces")
    warm_up = invented_texts(40)
    ours.encode(warm_up)
    theirs.encode(warm_up)
    ratios, cosines, spent = [], [], np.zeros(2)
    for start in range(0, len(texts), _SLICE):
        part, kept = texts[start : start + _SLICE], {}
        pair = np.array(
            [
                seconds(lambda part=part, kept=kept: kept.update(ours=ours.encode(part))),
                seconds(lambda part=part, kept=kept: kept.update(theirs=theirs.encode(part))),
            ]
        )
        spent += pair
        ratios.append(pair[1] / pair[0])
        cosines.append((kept["ours"] * kept["theirs"]).sum(1).min())
    print(f"ours {len(texts) / spent[0]:.0f} texts/s, sentence-transformers {len(texts) / spent[1]:.0f} texts/s")
    print(f"throughput ratio {spent[1] / spent[0]:.2f} (slices {min(ratios):.2f} to {max(ratios):.2f})")
    print(f"smallest cosine to its float32 vectors {min(cosines):.5f}")


def small_calls(texts: list[str], rounds: int) -> None:
    """The sizes of a typical `rank`: both sides warm, no text twice."""
    from sentence_transformers import SentenceTransformer

    ours, theirs = load_embedder(), SentenceTransformer(str(minilm.packaged_folder()))
    ours.encode(invented_texts(40))
    fresh = (f"{number} {text}" for number, text in enumerate(texts * (1 + 26 * rounds // len(texts))))
    for count in (1, 5, 20):
        pairs = []
        for _ in range(rounds):
            part = list(islice(fresh, count))
            pairs.append((seconds(lambda part=part: ours.encode(part)), seconds(lambda part=part: theirs.encode(part))))
        spent = np.array(pairs)
        middle, ratio = np.median(spent, axis=0), np.median(spent[:, 1] / spent[:, 0])
        print(f"{count} abstracts: ours {middle[0]:.2f} s, sentence-transformers {middle[1]:.2f} s, ratio {ratio:.1f}")


def cold_start(rounds: int) -> None:
    def started(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True))

    theirs = _THEIRS.format(folder=str(minilm.packaged_folder()))
    pairs = np.array([(started(_OURS), started(theirs)) for _ in range(rounds)])
    ours, others = np.median(pairs, axis=0)
    print(f"first vector after {ours:.1f} s, sentence-transformers {others:.1f} s: ratio {others / ours:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="JSON lines with title and abstract, may be gzipped")
    parser.add_argument("--papers", type=int, default=1_000, help="how many texts (default 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="cold starts of each side (default 3)")
    given = parser.parse_args()
    cold_start(given.rounds)
    texts = recorded_texts(given.data, given.papers) if given.data else invented_texts(given.papers)
    small_calls(texts, given.rounds)
    throughput(texts)


if __name__ == "__main__":
    main()
