"""Compare the sentences that an extractive answer quotes with the best documents of BM25, on a labelled set.

    python -m benchmarks.answers --data FOLDER [--questions 150]

A labelled set as `python -m benchmarks.evaluate` reads it; its queries are the questions.
`hit`: share of questions with at
least one relevant document among those quoted; `recall`: share of the relevant documents that are quoted, at most five
of them; `right`: share of the quoted documents that are relevant. Intervals: 95 % by bootstrap over the questions.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks._labelled import as_documents, filled_corpus
from benchmarks.evaluation.labelled_set import load_labelled_set
from paper_assets.retrieval.merge import access
from paper_assets.retrieval.question_answering import EXTRACTED, extractive_answer, gather_passages
from paper_assets.retrieval.search import search


def figures(quoted: Sequence[Sequence[str]], right: Sequence[set[str]]) -> dict[str, np.ndarray]:
    """Return a value for each question, (questions,), by name."""
    found = [len(answers.intersection(ids)) for ids, answers in zip(quoted, right, strict=True)]
    return {
        "hit": np.array([float(count > 0) for count in found]),
        "recall": np.array([n / min(len(answers), EXTRACTED) for n, answers in zip(found, right, strict=True)]),
        "right": np.array([n / max(len(ids), 1) for n, ids in zip(found, quoted, strict=True)]),
    }


def interval(values: np.ndarray) -> tuple[float, float]:
    chance = np.random.default_rng(1)
    means = values[chance.integers(0, len(values), (2_000, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Fill a warehouse, answer, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=150)
    given = parser.parse_args()
    labelled = load_labelled_set(given.data)
    queries = list(labelled.judged_queries)[: given.questions]
    right = [
        {
            labelled.documents[position].doc_id
            for position, grade in zip(known.positions, known.grades, strict=True)
            if grade > 0
        }
        for known in (labelled.judgements[query.query_id] for query in queries)
    ]
    asked = [(query.text, answers) for query, answers in zip(queries, right, strict=True) if answers]
    documents = as_documents(labelled.documents)
    with tempfile.TemporaryDirectory() as folder:
        corpus = filled_corpus(Path(folder), documents)

        def quoted(question: str) -> list[str]:
            passages = gather_passages(corpus, question, where=access(None), data_types=("fulltext",))
            answer = extractive_answer(question, passages, embedder=corpus.embedder)
            return [cited.paper_id for sentence in answer.sentences for cited in sentence.citations]

        def best(question: str) -> list[str]:
            found = search(corpus, question, data_type="fulltext", where=access(None), k=EXTRACTED, method="lexical")
            return [candidate.doc_id for candidate in found.candidates]

        print(f"{len(asked)} questions, {len(documents):,} documents, at most {EXTRACTED} quoted")
        rankers: dict[str, Callable[[str], list[str]]] = {"extractive answer": quoted, "BM25": best}
        for name, rank in rankers.items():
            values = figures([rank(question) for question, _ in asked], [answers for _, answers in asked])
            means = {metric: (each.mean(), *interval(each)) for metric, each in values.items()}
            print(
                f"{name:18}", "  ".join(f"{metric} {m:.3f} [{a:.3f}, {b:.3f}]" for metric, (m, a, b) in means.items())
            )


if __name__ == "__main__":
    main()
