"""Measure the merge of ten lists of a thousand, against the plain merge of the tests.

    python -m benchmarks.merge [--lists 10] [--each 1000] [--rounds 5]

The lists share documents, as those of several methods and sources do. Both merges must leave the same documents with
the same scores. The plain one compares every candidate with every other.
"""

import argparse
import time

import numpy as np

from paper_assets.retrieval.merge import Candidate, Policy, Rules, merge
from tests.retrieval.plain_merge import plain_merge


def invented_lists(lists: int, each: int) -> list[list[Candidate]]:
    """`lists` of `each` candidates out of half as many documents as candidates, some private, some outdated."""
    chance = np.random.default_rng(1)
    documents = max(1, lists * each // 2)
    access = chance.choice(["public", "private"], p=[0.95, 0.05], size=documents)
    versions = chance.choice([1, 2], p=[0.1, 0.9], size=documents)
    return [
        [
            Candidate(
                f"d{row}",
                f"passage {row} " * 20,
                {
                    "paper_id": f"p{row // 4}",
                    "access_level": str(access[row]),
                    "owner": None,
                    "language": "en",
                    "version": int(versions[row]),
                },
                float(score),
                "similarity",
                f"p{row // 4}",
            )
            for row, score in zip(chance.choice(documents, each, replace=False), chance.random(each), strict=True)
        ]
        for _ in range(lists)
    ]


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, default=10)
    parser.add_argument("--each", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    lists = invented_lists(asked.lists, asked.each)
    policy = Policy(language="en")
    for comparable, limit in ((False, 10), (True, None)):
        ours = np.inf
        for _ in range(asked.rounds):
            start = time.perf_counter()
            merged = merge(lists, Rules(policy=policy, comparable=comparable, max_per_source=2, limit=limit))
            ours = min(ours, time.perf_counter() - start)
        start = time.perf_counter()
        kept, _ = plain_merge(lists, policy=policy, comparable=comparable, max_per_source=2, limit=limit)
        plain = time.perf_counter() - start
        assert [(one.doc_id, one.score, one.content) for one in merged.candidates] == kept, "the two merges differ"
        print(
            f"{asked.lists} lists of {asked.each:,}, {'scores' if comparable else 'places'} count, "
            f"{len(kept):,} left of {asked.lists * asked.each:,}: "
            f"{ours * 1000:.1f} ms, plain {plain:.1f} s: {plain / ours:,.0f} x"
        )


if __name__ == "__main__":
    main()
