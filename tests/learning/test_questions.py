"""Questions: papers near the interests whose answers say most about other papers, and not the same twice."""

import numpy as np
from numpy.typing import NDArray

from paper_assets.learning.questions import FIRST_SET, MOST, most_informative, questions

TOPICS = ("graphs", "speech", "roads")


def vector(topic: int, number: int) -> NDArray[np.float32]:
    chance = np.random.default_rng([topic, number])
    found = 3.0 * np.eye(6)[topic] + 0.3 * chance.normal(size=6)
    return (found / np.linalg.norm(found)).astype(np.float32)


def row(paper_id: str, probability: float, *, shown: bool = False, rank: int = 1) -> dict[str, object]:
    return {"paper_id": paper_id, "semantic_relevance": probability, "learned": None, "shown": shown, "rank": rank}


def papers(
    probability: float = 0.5, *, each: int = 10
) -> tuple[list[dict[str, object]], dict[str, NDArray[np.float32]]]:
    vectors = {f"{name} {number}": vector(topic, number) for topic, name in enumerate(TOPICS) for number in range(each)}
    return [row(paper_id, probability, rank=at) for at, paper_id in enumerate(vectors)], vectors


def test_each_question_is_about_another_topic() -> None:
    rows, vectors = papers()
    asked = questions(rows, (), vectors=vectors)
    assert len(asked) == MOST and {each.split()[0] for each in asked} == set(TOPICS)


def test_it_asks_where_least_is_known() -> None:
    rows, vectors = papers()
    rated = {each for each in vectors if each.startswith(("graphs", "roads")) and not each.endswith("9")}
    assert questions(rows, rated, vectors=vectors, count=1)[0].startswith("speech")
    assert not rated & set(questions(rows, rated, vectors=vectors))


def test_shown_hopeless_and_certain_papers_are_not_asked_about() -> None:
    rows, vectors = papers(0.01)
    assert questions(rows, (), vectors=vectors) == []
    rows = [{**each, "semantic_relevance": 0.6, "shown": each["paper_id"] != "roads 3"} for each in rows]
    assert questions(rows, (), vectors=vectors) == ["roads 3"]
    assert questions(rows, (), vectors={}) == [] and questions([], (), vectors=vectors) == []


def test_the_first_set_is_spread_over_all_topics_and_may_hold_shown_papers() -> None:
    rows, vectors = papers(each=30)
    rows = [{**each, "shown": True} for each in rows]
    asked = questions(rows, (), vectors=vectors, count=FIRST_SET, shown_too=True)
    counts = [sum(each.startswith(topic) for each in asked) for topic in TOPICS]
    assert len(set(asked)) == FIRST_SET and min(counts) >= 3


def test_the_first_set_is_complete_even_if_few_papers_are_near_the_interests() -> None:
    rows, vectors = papers(0.01)
    rows = [{**each, "semantic_relevance": 0.04 if each["paper_id"] == "roads 9" else 0.01} for each in rows]
    rows[4]["semantic_relevance"] = 0.6
    rated = {"roads 3"}
    asked = questions(rows, rated, vectors=vectors, count=FIRST_SET, shown_too=True)
    assert asked[:2] == ["graphs 4", "roads 9"], "the uncertain one, then the most probable"
    assert len(set(asked)) == FIRST_SET and not rated & set(asked)
    few = {each: vectors[each] for each in list(vectors)[:7]}
    assert len(questions(rows, rated, vectors=few, count=FIRST_SET, shown_too=True)) == 7


def test_each_choice_reduces_the_expected_variance_most() -> None:
    """The plain twin: condition a Gaussian on each paper in turn, and compare."""
    vectors = np.array([vector(topic, number) for topic in range(3) for number in range(4)])
    probability = np.random.default_rng(0).uniform(0.1, 0.9, len(vectors))
    [first] = most_informative(
        vectors, probability, np.ones(12, dtype=bool), known=np.zeros((0, 6), dtype=np.float32), count=1
    )
    covariance = 5.0 * vectors.astype(np.float64) @ vectors.T.astype(np.float64)

    def left(at: int) -> float:
        noise = 1 / (probability[at] * (1 - probability[at]))
        after = covariance - np.outer(covariance[:, at], covariance[at]) / (covariance[at, at] + noise)
        return float((probability * after.diagonal()).sum())

    assert first == min(range(12), key=left)
