"""Train the query adapter: the linear map that brings the vector of an interest near the abstracts it names.

    python -m benchmarks.query_adapter --papers FILE [--without FIRST LAST] [--write]

The embedding model was trained on questions and sentences, and an interest is a phrase of two to ten words. So titles
and parts of titles (two to six words) are the queries, the abstract of the same paper is what each should find, and the
other abstracts of a batch are what it should not (InfoNCE). The map starts as the identity and is drawn towards it.
No grades are used. Papers submitted from FIRST to LAST (the judged weeks) take no part in the training; the mean
reciprocal rank of their abstracts is printed before and after. `--write` puts the map, and the mean vector of all
papers, into the package.

It takes about five minutes on two cores, most of which goes into 40,000 embeddings. Everything is seeded.
"""

import argparse
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.models.embedder import load_embedder
from paper_assets.paper import Paper, embedded_text
from paper_assets.ranking.calibration import VECTORS
from paper_assets.sources.bulk_files import read_papers
from paper_assets.text.words import FUNCTION_WORDS

PARTS = 3  # of a title
DRAWS = 12  # until there are as many
SHORTEST, LONGEST = 2, 6  # words of a part
AFTER_COLON = 0.7  # of the parts are taken from behind the last colon
BATCH, ROUNDS, RATE, SEED = 1024, 6, 1e-3, 0
TEMPERATURE = 0.05  # 0.03 ranks abstracts better (.68 for .66) and judged lists and CACM worse
RIDGE = 0.01  # on the squared distance from the identity; 0.001 to 0.03 do as well
_WORD = re.compile(r"[A-Za-z0-9][\w\-]*")

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Pairs:
    """Queries (q, d), the abstracts (n, d), and of which abstract each query is (q,)."""

    queries: Vectors
    abstracts: Vectors
    found: NDArray[np.int64]


def parts_of(title: str, chance: random.Random) -> list[str]:
    """Draw up to three parts of a title, as people write interests: neither end is a function word."""
    words = _WORD.findall(title.split(":")[-1] if chance.random() < AFTER_COLON else title)
    drawn: set[str] = set()
    for _ in range(DRAWS):
        count = chance.randint(SHORTEST, LONGEST)
        if len(drawn) == PARTS or count > len(words):
            continue
        start = chance.randint(0, len(words) - count)
        part = words[start : start + count]
        if not {part[0].lower(), part[-1].lower()} & set(FUNCTION_WORDS):
            drawn.add(" ".join(part) if chance.random() < 0.5 else " ".join(part).lower())
    return sorted(drawn)


def pairs_of(papers: Sequence[Paper], encode: Any) -> Pairs:
    """Embed titles, parts of titles and abstracts."""
    chance = random.Random(SEED)
    parts = [(at, part) for at, paper in enumerate(papers) for part in parts_of(paper.title, chance)]
    queries = encode([paper.title for paper in papers] + [part for _, part in parts])
    found = np.array([*range(len(papers)), *(at for at, _ in parts)], dtype=np.int64)
    return Pairs(_units(queries), _units(encode([paper.abstract for paper in papers])), found)


def trained(pairs: Pairs, learn: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the map (d, d) learned from the queries of the papers in `learn` (n,)."""
    import torch
    from torch.nn.functional import cross_entropy, normalize

    torch.manual_seed(SEED)
    queries, abstracts = torch.tensor(pairs.queries), torch.tensor(pairs.abstracts)
    identity = torch.eye(queries.shape[1])
    adapter = identity.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([adapter], lr=RATE)
    chance, rows = np.random.default_rng(SEED), np.flatnonzero(learn[pairs.found])
    for _ in range(ROUNDS):
        chance.shuffle(rows)
        for start in range(0, len(rows) - BATCH + 1, BATCH):
            batch = rows[start : start + BATCH]
            found = pairs.found[batch]
            scores = normalize(queries[batch] @ adapter.T, dim=1) @ abstracts[found].T / TEMPERATURE
            twice = torch.tensor(found[:, None] == found[None, :]) & ~torch.eye(len(batch), dtype=torch.bool)
            loss = cross_entropy(scores.masked_fill(twice, -1e9), torch.arange(len(batch)))
            loss = loss + RIDGE * ((adapter - identity) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    learned: NDArray[np.float32] = adapter.detach().numpy()
    return learned


def reciprocal_rank(pairs: Pairs, adapter: NDArray[np.float32], among: NDArray[np.bool_]) -> float:
    """Return the mean reciprocal rank of the right abstract among those of the papers `among` (n,)."""
    pool = np.flatnonzero(among)
    rows = np.flatnonzero(among[pairs.found])
    scores = _units(pairs.queries[rows] @ adapter.T) @ pairs.abstracts[pool].T
    right = scores[np.arange(len(rows)), np.searchsorted(pool, pairs.found[rows])]
    return float((1 / (1 + (scores > right[:, None]).sum(axis=1))).mean())


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-9)).astype(np.float32)


def main() -> None:
    """Train, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--papers", type=Path, required=True)
    parser.add_argument("--without", nargs=2, metavar=("FIRST", "LAST"), default=("2026-03-09", "2026-03-22"))
    parser.add_argument("--write", action="store_true", help="keep the map in the package")
    asked = parser.parse_args()
    papers = [*{paper.paper_id: paper for paper in read_papers(asked.papers)}.values()]
    first, last = asked.without
    left_out = np.array([first <= str(paper.day) <= last for paper in papers])
    encode = load_embedder().encode
    pairs = pairs_of(papers, encode)
    adapter = trained(pairs, ~left_out)
    print(f"{len(papers)} papers, {len(pairs.found)} queries, {int((~left_out).sum())} papers learned from")
    if left_out.any():
        identity = np.eye(len(adapter), dtype=np.float32)
        before, after = (reciprocal_rank(pairs, each, left_out) for each in (identity, adapter))
        print(f"mean reciprocal rank among the {int(left_out.sum())} others: {before:.3f}, adapted {after:.3f}")
    if asked.write:
        mean = _units(encode([embedded_text(paper.title, paper.abstract) for paper in papers])).mean(axis=0)
        path = Path(str(files("paper_assets.ranking") / VECTORS))
        np.savez_compressed(path, adapter=adapter.astype(np.float16), mean=mean.astype(np.float32))


if __name__ == "__main__":
    main()
