"""Balanced retrieval against plain retrieval of as many documents, on claims with perspectives for and against.

    python -m benchmarks.balanced_quality --data PERSPECTRUM-FOLDER [--per-side 5]

The folder holds docs.jsonl, queries.jsonl and qrels.tsv with a column `side`. A perspective that is judged for a claim
is a document for each side it is on; the field `topic_id` holds the side, because papers have no field for it. Plain
retrieval searches all of them, balanced retrieval each side. Recall of a side: found among its right answers. The list
that nDCG judges is the sides in turn, best first. `rank fusion` is reciprocal rank fusion of vector and lexical.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np

from paper_assets.evaluation.files import found_file, read_qrels, read_records
from paper_assets.evaluation.metrics import ndcg
from paper_assets.models.embedder import load_embedder
from paper_assets.retrieval.fusion import reciprocal_rank_fusion
from paper_assets.retrieval.search import Corpus, search
from paper_assets.stores.documents import Document, replace_documents, texts_to_embed
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.warehouse import Warehouse

SIDES = ("SUPPORT", "UNDERMINE")
DEPTH = 100  # places of each ranking that rank fusion looks at

Rank = Callable[[str, str | None, int], list[str]]  # claim, side, how many -> ids


def judged(folder: Path) -> tuple[dict[str, str], list[Document], dict[str, dict[str, set[str]]]]:
    """Claims by id, documents, and the right answers of each claim by side."""
    claims = {str(record["id"]): str(record["text"]) for _, record in read_records(found_file(folder, ("queries",)))}
    texts = {str(record["id"]): str(record["text"]) for _, record in read_records(found_file(folder, ("docs",)))}
    right: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for claim, doc_id, grade, side in read_qrels(found_file(folder, ("qrels",))):
        if claim in claims and grade > 0 and side:
            right[claim][side].add(f"{doc_id}:{side}")
    ids = sorted({each for sides in right.values() for answers in sides.values() for each in answers})
    documents = [
        Document(
            doc_id=each,
            text=texts[each.partition(":")[0]],
            paper_id=each.partition(":")[0],
            title="",
            topic_id=each.partition(":")[2],
            data_type="fulltext",
            access_level="public",
        )
        for each in ids
    ]
    return claims, documents, right


def rankers(corpus: Corpus) -> dict[str, Rank]:
    """Every way to rank, by name."""

    def of(method: str) -> Rank:
        def rank(claim: str, side: str | None, k: int) -> list[str]:
            where = {"topic_id": side} if side else None
            found = search(corpus, claim, data_type="fulltext", where=where, k=k, method=method)  # type: ignore[arg-type]
            return [candidate.doc_id for candidate in found.candidates]

        return rank

    def fused(claim: str, side: str | None, k: int) -> list[str]:
        lists = [of(method)(claim, side, DEPTH) for method in ("vector", "lexical")]
        return list(reciprocal_rank_fusion(lists))[:k]

    return {"vector": of("vector"), "BM25": of("lexical"), "hybrid": of("hybrid"), "rank fusion": fused}


def figures(lists: dict[str, list[str]], right: dict[str, dict[str, set[str]]], *, k: int) -> dict[str, float]:
    """Means over the claims; `weaker` is the worse of the two recalls, of the claims that have both sides."""
    recalls: dict[str, list[float]] = defaultdict(list)
    for claim, ranked in lists.items():
        found = {side: len(answers.intersection(ranked)) / len(answers) for side, answers in right[claim].items()}
        for side, value in found.items():
            recalls[f"recall {side}"].append(value)
        if len(found) == len(SIDES):
            recalls["weaker side"].append(min(found.values()))
            recalls["both seen"].append(float(min(found.values()) > 0))
        answers = set(chain.from_iterable(right[claim].values()))
        grades = np.array([float(each in answers) for each in ranked])
        recalls[f"nDCG@{2 * k}"].append(ndcg(grades, np.ones(len(answers)), k=2 * k))
    return {name: float(np.mean(values)) for name, values in recalls.items()}


def main() -> None:
    """Fill a warehouse, retrieve, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--per-side", type=int, default=5)
    given = parser.parse_args()
    k: int = given.per_side
    claims, documents, right = judged(given.data)
    model = load_embedder()
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(warehouse=Warehouse(Path(folder) / "warehouse.duckdb", deadline=60), embedder=model)
        replace_documents(corpus.warehouse, "fulltext", origin="judged", documents=documents)
        hashes, texts = texts_to_embed(corpus.warehouse, "fulltext", model=model.name)
        keep_vectors(corpus.warehouse, hashes, model.encode(texts), model=model.name)
        both = sum(len(sides) == len(SIDES) for sides in right.values())
        print(f"{len(right)} claims ({both} with both sides), {len(documents):,} documents, {k} a side against {2 * k}")
        for name, rank in rankers(corpus).items():
            plain = {claim: rank(claims[claim], None, 2 * k) for claim in right}
            balanced = {
                claim: list(chain.from_iterable(zip(*(rank(claims[claim], side, k) for side in SIDES), strict=False)))
                for claim in right
            }
            for kind, lists in (("plain", plain), ("balanced", balanced)):
                told = "  ".join(f"{metric} {value:.3f}" for metric, value in figures(lists, right, k=k).items())
                print(f"{name:12} {kind:9} {told}", flush=True)


if __name__ == "__main__":
    main()
