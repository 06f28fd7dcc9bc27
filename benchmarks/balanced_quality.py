"""Compare balanced with plain retrieval of as many documents, on queries with documents for and against.

    python -m benchmarks.balanced_quality --data FOLDER [--per-side 5] [--vectors 1.0]

A labelled set as `python -m benchmarks.evaluate` reads it, whose judgements carry a side. A document that is
judged for a query
is one document for each side it is on; the field `topic_id` holds the side, because papers have no field for it. Plain
retrieval searches all of them, balanced retrieval each side. Recall of a side: share of its relevant documents found.
nDCG judges the list that alternates between the sides. `rank fusion` is reciprocal rank fusion of vector and lexical.
A set without sides is retrieved plainly, all its documents. --vectors: the share of documents that have one, drawn at
random, as after an import that is not embedded yet (R8).
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np

from benchmarks._labelled import filled_corpus
from benchmarks.evaluation.labelled_set import LabelledSet, load_labelled_set
from benchmarks.evaluation.metrics import ndcg
from paper_assets.retrieval.merge import reciprocal_rank_fusion
from paper_assets.retrieval.search import Corpus, search
from paper_assets.stores.documents import Document

DEPTH = 100  # places of each ranking that rank fusion uses

Rank = Callable[[str, str | None, int], list[str]]  # query, side, how many -> ids
Right = dict[str, dict[str, set[str]]]  # query -> side ('' without sides) -> ids of right answers


def judged(labelled: LabelledSet) -> tuple[list[Document], Right]:
    """Return the documents as they are retrieved, and the relevant ones of each query by side."""
    right: Right = defaultdict(lambda: defaultdict(set))
    for query, known in labelled.judgements.items():
        for position, grade, side in zip(known.positions, known.grades, known.interests, strict=True):
            if grade > 0:
                doc_id = labelled.documents[position].doc_id
                right[query][side or ""].add(f"{doc_id}:{side}" if side else doc_id)
    texts = {document.doc_id: document.text for document in labelled.documents}
    answers = {each for sides in right.values() for ids in sides.values() for each in ids}
    ids = sorted(answers if any(":" in each for each in answers) else texts)
    documents = [
        Document(
            doc_id=each,
            text=texts[each.partition(":")[0]],
            paper_id=each.partition(":")[0],
            title="",
            topic_id=each.partition(":")[2] or None,
            data_type="fulltext",
            access_level="public",
        )
        for each in ids
    ]
    return documents, right


def rankers(corpus: Corpus) -> dict[str, Rank]:
    """Return every ranking method by name."""

    def of(method: str) -> Rank:
        def rank(query: str, side: str | None, k: int) -> list[str]:
            where = {"topic_id": side} if side else None
            found = search(corpus, query, data_type="fulltext", where=where, k=k, method=method)  # type: ignore[arg-type]
            return [candidate.doc_id for candidate in found.candidates]

        return rank

    def fused(query: str, side: str | None, k: int) -> list[str]:
        lists = [of(method)(query, side, DEPTH) for method in ("vector", "lexical")]
        return list(reciprocal_rank_fusion(lists))[:k]

    return {"vector": of("vector"), "BM25": of("lexical"), "hybrid": of("hybrid"), "rank fusion": fused}


def figures(lists: dict[str, list[str]], right: Right, sides: list[str], *, k: int) -> dict[str, float]:
    """Means over the queries; `weaker` is the worst recall of a query's sides, where it has all of them."""
    values_of: dict[str, list[float]] = {f"recall {side}".strip(): [] for side in sides}
    for query, ranked in lists.items():
        found = {side: len(answers.intersection(ranked)) / len(answers) for side, answers in right[query].items()}
        for side, value in found.items():
            values_of[f"recall {side}".strip()].append(value)
        if len(found) == len(sides) > 1:
            values_of.setdefault("weaker side", []).append(min(found.values()))
            values_of.setdefault("all seen", []).append(float(min(found.values()) > 0))
        answers = set(chain.from_iterable(right[query].values()))
        grades = np.array([float(each in answers) for each in ranked])
        values_of.setdefault(f"nDCG@{k}", []).append(ndcg(grades, np.ones(len(answers)), k=k))
    return {name: float(np.mean(values)) for name, values in values_of.items()}


def main() -> None:
    """Fill a warehouse, retrieve, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--per-side", type=int, default=5)
    parser.add_argument("--vectors", type=float, default=1.0)
    given = parser.parse_args()
    labelled = load_labelled_set(given.data)
    asked = {query.query_id: query.text for query in labelled.judged_queries}
    documents, right = judged(labelled)
    sides = sorted({side for known in right.values() for side in known})
    total = given.per_side * max(len(sides), 2)
    with tempfile.TemporaryDirectory() as folder:
        corpus = filled_corpus(Path(folder), documents, vectors=given.vectors)
        whole = sum(len(known) == len(sides) for known in right.values())
        print(f"{len(right)} queries, {whole} with every side; {len(documents):,} documents; {total} are retrieved")
        for name, rank in rankers(corpus).items():
            kinds = {"plain": {query: rank(asked[query], None, total) for query in right}}
            if len(sides) > 1:
                kinds["balanced"] = {query: in_turn(rank, asked[query], sides, given.per_side) for query in right}
            for kind, lists in kinds.items():
                means = figures(lists, right, sides, k=total)
                line = "  ".join(f"{metric} {mean:.3f}" for metric, mean in means.items())
                print(f"{name:12} {kind:9} {line}", flush=True)


def in_turn(rank: Rank, query: str, sides: list[str], per_side: int) -> list[str]:
    """Return the best of each side, then the second of each, and so on."""
    places = zip_longest(*(rank(query, side, per_side) for side in sides))
    return [each for place in places for each in place if each is not None]


if __name__ == "__main__":
    main()
