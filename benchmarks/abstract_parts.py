"""Measure how well sentences of an abstract are chosen for its problem, task, idea and result.

    python -m benchmarks.abstract_parts --data FOLDER [--fit]

FOLDER has `abstracts.jsonl.gz`: abstracts with the character spans that readers marked (label problem, task, idea or
result). A sentence is right for a label if it contains most of a span of that label; counted are the abstracts in which
at least one sentence is right. Beside the first sentence, the last one and LexRank. The model is fitted in twenty
folds: each abstract is judged by weights from the others. `--fit` prints the weights from all of them, for
`paper_assets/text/abstracts.py`. The data has no titles, so the overlap with a title cannot be compared on it.
"""

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from pathlib import Path

import numpy as np

from paper_assets.text.abstracts import PARTS, TRAITS, best_sentence, scores, traits_of
from paper_assets.text.sentences import sentence_spans

FOLDS = 20
PENALTY = 3.0  # on squared weights
_DAMPING, _ALIKE = 0.85, 0.1  # of LexRank


@dataclass(frozen=True, slots=True)
class Marked:
    """Sentences of an abstract, the traits of each, and whether it is right for each of PARTS."""

    sentences: tuple[str, ...]
    traits: np.ndarray
    right: np.ndarray


def read(folder: Path) -> list[Marked]:
    """Return the abstracts with more than one sentence."""
    found = []
    with gzip.open(folder / "abstracts.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            spans = sentence_spans(record["abstract"])
            right = np.zeros((len(spans), len(PARTS)), dtype=bool)
            for mark in record["spans"]:
                for at, (start, end) in enumerate(spans):
                    common = min(end, mark["end"]) - max(start, mark["start"])
                    if common > 0.5 * (mark["end"] - mark["start"]):
                        right[at, PARTS.index(mark["label"])] = True
            sentences = tuple(record["abstract"][start:end] for start, end in spans)
            if len(sentences) > 1:
                found.append(Marked(sentences, np.array(traits_of(sentences)), right))
    return found


def lexrank(sentences: Sequence[str]) -> int:
    """Return the sentence most central by cosine of tf-idf (Erkan and Radev, 2004)."""
    bags = [Counter(re.findall(r"[a-z]+", each.lower())) for each in sentences]
    seen = Counter(word for bag in bags for word in bag)
    vectors = [{word: times * log(len(bags) / seen[word]) for word, times in bag.items()} for bag in bags]
    sizes = [sqrt(sum(value**2 for value in vector.values())) or 1.0 for vector in vectors]
    alike = np.array(
        [
            [
                sum(value * other.get(word, 0.0) for word, value in vector.items()) / (sizes[at] * sizes[beside])
                for beside, other in enumerate(vectors)
            ]
            for at, vector in enumerate(vectors)
        ]
    )
    links = np.where(alike > _ALIKE, alike, 0.0) + 1e-9
    links /= links.sum(axis=1, keepdims=True)
    share = np.full(len(bags), 1 / len(bags))
    for _ in range(60):
        share = (1 - _DAMPING) / len(bags) + _DAMPING * share @ links
    return int(share.argmax())


def fitted(marked: Sequence[Marked], part: int) -> np.ndarray:
    """Fit a logistic regression by Newton's method."""
    rows = np.vstack([each.traits for each in marked])
    right = np.concatenate([each.right[:, part] for each in marked]).astype(float)
    weights = np.zeros(len(TRAITS))
    for _ in range(30):
        probable = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        curve = rows.T @ (rows * (probable * (1 - probable) + 1e-6)[:, None]) + PENALTY * np.eye(len(weights))
        step = np.linalg.solve(curve, rows.T @ (right - probable) - PENALTY * weights)
        weights += step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def held_out(marked: Sequence[Marked], part: int) -> list[int]:
    """Return for each abstract the sentence chosen by weights from the other folds."""
    chosen = [0] * len(marked)
    for fold in range(FOLDS):
        weights = fitted([each for at, each in enumerate(marked) if at % FOLDS != fold], part)
        for at in range(fold, len(marked), FOLDS):
            chosen[at] = int((marked[at].traits @ weights).argmax())
    return chosen


def share_right(marked: Sequence[Marked], chosen: Sequence[int], part: int) -> tuple[float, float, float]:
    """Return the share of abstracts with a right sentence in which it was chosen, with its 95 % interval."""
    hits = np.array(
        [each.right[at, part] for each, at in zip(marked, chosen, strict=True) if each.right[:, part].any()], float
    )
    means = np.random.default_rng(1).choice(hits, (2_000, len(hits))).mean(axis=1)
    return float(hits.mean()), float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--fit", action="store_true")
    given = parser.parse_args()
    marked = read(given.data)
    if given.fit:
        by_part = [fitted(marked, number) for number in range(len(PARTS))]
        for trait, weights in zip(TRAITS, zip(*by_part, strict=True), strict=True):
            print(f'    "{trait}": ({", ".join(f"{each:.2f}" for each in weights)}),')
        return
    methods: dict[str, Callable[[int], list[int]]] = {
        "first sentence": lambda _: [0] * len(marked),
        "last sentence": lambda _: [len(each.sentences) - 1 for each in marked],
        "LexRank": lambda _: [lexrank(each.sentences) for each in marked],
        "model, held out": lambda number: held_out(marked, number),
        "model as it is": lambda number: [
            max(range(len(each.sentences)), key=lambda at: scores(each.sentences)[at][number]) for each in marked
        ],
        "key sentence": lambda _: [best_sentence(each.sentences) for each in marked],
    }
    counts = [sum(each.right[:, number].any() for each in marked) for number in range(len(PARTS))]
    print(f"{len(marked)} abstracts; {', '.join(f'{part} {count}' for part, count in zip(PARTS, counts, strict=True))}")
    for name, choose in methods.items():
        shares = [share_right(marked, choose(number), number) for number in range(len(PARTS))]
        row = "  ".join(
            f"{part} {mean:.3f} [{low:.3f}, {high:.3f}]" for part, (mean, low, high) in zip(PARTS, shares, strict=True)
        )
        print(f"{name:16} {row}", flush=True)


if __name__ == "__main__":
    main()
