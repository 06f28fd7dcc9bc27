"""Test that questions are papers near the interests that would teach most, and differ from each other."""

import numpy as np
from numpy.typing import NDArray

from paper_assets.learning.questions import FIRST_SET, MOST, first_set, most_informative, questions

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
    asked = first_set(rows, (), vectors=vectors)
    counts = [sum(each.startswith(topic) for each in asked) for topic in TOPICS]
    assert len(set(asked)) == FIRST_SET and min(counts) >= 3


def test_the_first_set_begins_with_the_most_probable_paper_and_does_not_repeat_it() -> None:
    rows, vectors = papers(0.3)
    more = {"graphs 1": 0.9, "graphs 2": 0.89, "roads 3": 0.7, "speech 4": 0.35}
    rows = [{**each, "semantic_relevance": more.get(str(each["paper_id"]), 0.01)} for each in rows]
    asked = first_set(rows, (), vectors=vectors)
    assert asked[:3] == ["graphs 1", "roads 3", "graphs 2"], "a little less probable, but not the same again"
    assert first_set(rows, {"graphs 1"}, vectors=vectors)[:2] == ["roads 3", "graphs 2"], "nor what is rated"


def test_the_first_set_is_complete_even_if_few_papers_are_near_the_interests() -> None:
    rows, vectors = papers(0.01)
    asked = first_set(rows, {"roads 3"}, vectors=vectors)
    assert len(set(asked)) == FIRST_SET and "roads 3" not in asked
    few = {each: vectors[each] for each in list(vectors)[:7]}
    assert len(first_set(rows, {"graphs 3"}, vectors=few)) == 6
    assert first_set([], {"graphs 3"}, vectors=vectors) == []


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
