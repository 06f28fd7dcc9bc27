"""Measure one ranking: nDCG, precision, recall and interest coverage, on arrays in ranked order.

A grade is a number from 0; a document with a grade above 0 is relevant. `nan` means that a metric does not apply to a
query (no relevant document is known); such queries are left out of means.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.evaluation.labelled_set import Judgements, LabelledSet, Query
from paper_assets.errors import InvalidInput

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def ndcg(ranked: Floats, known: Floats, *, k: int) -> float:
    """Return the normalised discounted cumulated gain of the first k places (Järvelin & Kekäläinen, TOIS 20(4), 2002).

    `ranked`: grades (n,) of the ranked documents, best place first, 0 where unjudged; `known`: all grades of the
    query in any order, found or not. DCG = Σ grade / log2(place + 1), places from 1, linear gain as in trec_eval
    and BEIR (not 2^grade - 1), divided by the DCG of the best possible order.
    """
    best = _dcg(-np.sort(-np.maximum(known, 0.0)), k)
    return _dcg(np.maximum(ranked, 0.0), k) / best if best > 0 else float("nan")


def recall(ranked: Floats, known: Floats, *, k: int) -> float:
    """Return the share of all relevant documents that are in the first k places, as recall_k of trec_eval.

    The divisor is not limited to k: with more than k relevant documents the highest possible value is below 1.
    """
    relevant = int((known > 0).sum())
    return float((ranked[:k] > 0).sum() / relevant) if relevant else float("nan")


def precision(relevant: Bools, *, k: int) -> float:
    """Return the share of relevant documents in the first k places; empty places of a shorter list count as wrong."""
    return float(relevant[:k].sum() / k)


def exponential_gain(grades: Floats) -> Floats:
    """Return 2^grade - 1 (Burges 2005): one paper of grade 3 counts more than two of grade 2."""
    gain: Floats = np.exp2(np.maximum(grades, 0.0)) - 1.0
    return gain


def interest_coverage(ranked: Bools, *, answerable: Bools, k: int) -> float:
    """Return the share of a profile's interests with at least one relevant document in the first k places.

    `ranked`: (n, interests), whether each ranked document is relevant to each interest; `answerable`: (interests,),
    whether the set holds a relevant document at all: interests without one are not counted. This is subtopic recall
    (Zhai, Cohen & Lafferty, SIGIR 2003) with interests as subtopics.
    """
    if not answerable.any():
        return float("nan")
    return float(np.logical_or.reduce(ranked[:k], axis=0)[answerable].mean())


def _dcg(grades: Floats, k: int) -> float:
    top = grades[:k]
    return float((top / np.log2(np.arange(2, len(top) + 2))).sum())


# A scorer answers a query with one score per document of the set (n,), nan or -inf for "not in the list",
# or with document ids, best first.
RankedAnswer = NDArray[np.floating] | Sequence[str]
Scorer = Callable[[Query], RankedAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """How rankings are judged on labelled sets (docs/evaluation.md)."""

    ndcg_at: tuple[int, ...] = (10, 20)
    recall_at: tuple[int, ...] = (20, 100)
    coverage_at: tuple[int, ...] = (5, 10)  # 5 = the default top_k, what a reader sees
    resamples: int = 10_000  # the ends of the interval then move by about 0.001 from seed to seed
    confidence: float = 0.95
    seed: int = 20260313  # any number; fixed so that a figure can be printed again


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """`values` (queries, metrics): nan where a metric does not apply, such as coverage without labelled interests."""

    metrics: tuple[str, ...]
    query_ids: tuple[str, ...]
    values: Floats

    def of(self, metric: str) -> Floats:
        """Return the values (queries,) of one metric."""
        return self.values[:, self.metrics.index(metric)]


def judge(labelled: LabelledSet, scorer: Scorer, *, judging: EvaluationConfig) -> Evaluation:
    """Measure a scorer on every judged query. The documents that a query likes are neither ranked nor counted.

    Equal scores are ordered by a hash of the id, not by position, because files are often sorted by topic. Raises
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
        judgements = labelled.judgements[query.query_id]
        grades = np.zeros(len(ties))
        np.maximum.at(grades, judgements.positions, judgements.grades)
        grades[liked] = 0.0
        if not grades.any():
            continue  # the query likes every relevant document
        ranking = _ranking(scorer(query), query, position_of, ties)
        ranking = ranking[~liked[ranking]]
        lanes = _relevant_to(judgements, len(ties)) & ~liked[:, None]
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
    """Return the positions of the documents in the list, best first."""
    if isinstance(answer, np.ndarray):
        if answer.shape != ties.shape:
            raise InvalidInput(f"query {query.query_id}: expected {len(ties)} scores, got an array of {answer.shape}")
        scores = np.where(np.isnan(answer), -np.inf, answer)
        order = np.lexsort((ties, -scores))
        return order[: int((scores > -np.inf).sum())]
    unknown = next((doc_id for doc_id in answer if doc_id not in position_of), None)
    if unknown is not None:
        raise InvalidInput(f"query {query.query_id}: the ranking names {unknown!r}, which is not a document of the set")
    return np.array(list(dict.fromkeys(position_of[doc_id] for doc_id in answer)), dtype=np.intp)


def _relevant_to(known: Judgements, documents: int) -> NDArray[np.bool_]:
    """Return (documents, interests) whether each is relevant to each labelled interest; no columns without labels."""
    labels = {label: None for label in known.interests if label is not None}
    columns = {label: column for column, label in enumerate(labels)}
    relevant = np.zeros((documents, len(columns)), dtype=np.bool_)
    for position, grade, label in zip(known.positions, known.grades, known.interests, strict=True):
        if label is not None and grade > 0:
            relevant[position, columns[label]] = True
    return relevant


_AT_ONCE = 1_000  # resamples drawn together: 8 MB at a thousand queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean of a metric over the queries to which it applies, with its interval; all nan without such queries."""

    metric: str
    mean: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The second ranker minus the first, paired by query.

    `p_value` is the probability of a difference at least as large if the two do not differ.
    """

    metric: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float
    better: int  # queries on which the second is better
    worse: int
    equal: int


def means(outcome: Evaluation, *, judging: EvaluationConfig) -> list[Mean]:
    """Return each metric's mean with its bootstrap interval."""
    summary = []
    for metric in outcome.metrics:
        values = _applicable(outcome.of(metric))
        mean, low, high = bootstrap_mean(
            values, seed=judging.seed, resamples=judging.resamples, confidence=judging.confidence
        )
        summary.append(Mean(metric=metric, mean=mean, low=low, high=high, queries=len(values)))
    return summary


def compare(first: Evaluation, second: Evaluation, *, judging: EvaluationConfig) -> list[Comparison]:
    """Compare two rankers on the same queries, paired. Raises InvalidInput if the queries or metrics are not the
    same.
    """
    if first.metrics != second.metrics or first.query_ids != second.query_ids:
        raise InvalidInput("only outcomes of the same labelled set and the same metrics can be compared")
    comparisons = []
    for metric in first.metrics:
        before, after = first.of(metric), second.of(metric)
        both = ~(np.isnan(before) | np.isnan(after))
        before, after = before[both], after[both]
        differences = after - before
        mean, low, high = bootstrap_mean(
            differences, seed=judging.seed, resamples=judging.resamples, confidence=judging.confidence
        )
        unlike = ~np.isclose(differences, 0.0, atol=1e-12)
        comparisons.append(
            Comparison(
                metric=metric,
                first=_mean(before),
                second=_mean(after),
                difference=mean,
                low=low,
                high=high,
                p_value=randomisation_p_value(differences, seed=judging.seed, resamples=judging.resamples),
                better=int((unlike & (differences > 0)).sum()),
                worse=int((unlike & (differences < 0)).sum()),
                equal=int((~unlike).sum()),
            )
        )
    return comparisons


def bootstrap_mean(values: Floats, *, seed: int, resamples: int, confidence: float) -> tuple[float, float, float]:
    """Return the mean of values (n,) and the ends of its percentile bootstrap interval (Efron & Tibshirani, 1993,
    ch. 13).
    """
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    drawn = [
        values[rng.integers(0, len(values), size=(count, len(values)))].mean(axis=1) for count in _batches(resamples)
    ]
    low, high = np.quantile(np.concatenate(drawn), [(1 - confidence) / 2, (1 + confidence) / 2])
    return _mean(values), float(low), float(high)


def randomisation_p_value(differences: Floats, *, seed: int, resamples: int) -> float:
    """Test differences (n,) by two-sided paired randomisation: signs are flipped at random.

    The test that Smucker, Allan & Carterette (CIKM 2007) recommend for retrieval. Counts the observed signs as one
    of the draws, so the value is never 0.
    """
    if not len(differences):
        return float("nan")
    rng = np.random.default_rng(seed)
    observed = abs(differences.sum()) - 1e-12  # sums of the same numbers in another order differ in the last bits
    reached = sum(
        int((np.abs((rng.integers(0, 2, size=(count, len(differences))) * 2 - 1) @ differences) >= observed).sum())
        for count in _batches(resamples)
    )
    return (reached + 1) / (resamples + 1)


def _batches(resamples: int) -> Iterator[int]:
    for start in range(0, resamples, _AT_ONCE):
        yield min(_AT_ONCE, resamples - start)


def _applicable(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
