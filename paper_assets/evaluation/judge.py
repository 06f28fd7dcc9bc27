"""Judge a ranker on a labelled set: every metric for every judged query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput
from paper_assets.evaluation.labelled_set import Judgements, LabelledSet, Query
from paper_assets.evaluation.metrics import Floats, interest_coverage, ndcg, recall
from paper_assets.settings import EvaluationConfig

# A scorer answers a query with one score per document of the set (n,), nan or -inf for "not in the list",
# or with document ids, best first.
RankedAnswer = NDArray[np.floating] | Sequence[str]
Scorer = Callable[[Query], RankedAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """`values` (queries, metrics): nan where a metric does not apply, such as coverage without labelled interests."""

    metrics: tuple[str, ...]
    query_ids: tuple[str, ...]
    values: Floats

    def of(self, metric: str) -> Floats:
        """The values (queries,) of one metric."""
        return self.values[:, self.metrics.index(metric)]


def judge(labelled: LabelledSet, scorer: Scorer, *, judging: EvaluationConfig) -> Evaluation:
    """Ask the scorer every judged query. Documents that a query itself names as liked are neither ranked nor counted.

    Equal scores are ordered by a hash of the id, never by position: files are often sorted by topic. Raises
    InvalidInput for an answer that does not fit the set.
    """
    metrics = (
        *(f"ndcg@{k}" for k in judging.ndcg_at),
        *(f"recall@{k}" for k in judging.recall_at),
        *(f"coverage@{k}" for k in judging.coverage_at),
    )
    position_of = {document.doc_id: position for position, document in enumerate(labelled.documents)}
    ties = labelled.tie_order()
    queries, rows = [], []
    for query in labelled.judged_queries:
        liked = np.zeros(len(ties), dtype=np.bool_)
        liked[[position_of[doc_id] for doc_id in query.liked if doc_id in position_of]] = True
        known = labelled.judgements[query.query_id]
        grades = np.zeros(len(ties))
        np.maximum.at(grades, known.positions, known.grades)
        grades[liked] = 0.0
        if not grades.any():
            continue  # everything relevant was already known to the asker
        ranking = _ranking(scorer(query), query, position_of, ties)
        ranking = ranking[~liked[ranking]]
        lanes = _relevant_to(known, len(ties)) & ~liked[:, None]
        ranked, answerable = grades[ranking], np.logical_or.reduce(lanes, axis=0)
        queries.append(query.query_id)
        rows.append(
            [
                *(ndcg(ranked, grades, k=k) for k in judging.ndcg_at),
                *(recall(ranked, grades, k=k) for k in judging.recall_at),
                *(interest_coverage(lanes[ranking], answerable=answerable, k=k) for k in judging.coverage_at),
            ]
        )
    return Evaluation(metrics=metrics, query_ids=tuple(queries), values=np.array(rows).reshape(len(rows), len(metrics)))


def _ranking(
    answer: RankedAnswer, query: Query, position_of: dict[str, int], ties: NDArray[np.uint32]
) -> NDArray[np.intp]:
    """Positions of the documents in the list, best first."""
    if isinstance(answer, np.ndarray):
        if answer.shape != ties.shape:
            raise InvalidInput(f"query {query.query_id}: expected {len(ties)} scores, got an array of {answer.shape}")
        scores = np.where(np.isnan(answer), -np.inf, answer)
        order = np.lexsort((ties, -scores))
        return order[: int((scores > -np.inf).sum())]
    unknown = next((doc_id for doc_id in answer if doc_id not in position_of), None)
    if unknown is not None:
        raise InvalidInput(f"query {query.query_id}: the ranking names {unknown!r}, which is no document of the set")
    return np.array(list(dict.fromkeys(position_of[doc_id] for doc_id in answer)), dtype=np.intp)


def _relevant_to(known: Judgements, documents: int) -> NDArray[np.bool_]:
    """(documents, interests): relevant to each labelled interest; no columns if no interest is labelled."""
    labels = {label: None for label in known.interests if label is not None}
    columns = {label: column for column, label in enumerate(labels)}
    relevant = np.zeros((documents, len(columns)), dtype=np.bool_)
    for position, grade, label in zip(known.positions, known.grades, known.interests, strict=True):
        if label is not None and grade > 0:
            relevant[position, columns[label]] = True
    return relevant
