"""What ratings changed in a list is found from the stored ranking alone."""

from typing import Any

from paper_assets.ranking.changes import ratings_effect

HEADER = {
    "threshold": 0.5,
    "top_k": 2,
    "preference_weight": 10.0,
    "preference_baseline": 0.0,
    "weights": {"semantic_relevance": 0.5},
}


def row(rank: int, paper_id: str, formula: float, learned: float | None, *, shown: bool) -> dict[str, Any]:
    return {
        "rank": rank,
        "paper_id": paper_id,
        "semantic_relevance": formula,
        "learned": learned,
        "final": 0.5 * (formula + (learned or 0.0)),
        "shown": shown,
        "tags": [],
        "learned_words": ["+graph"] if learned else None,
        "learned_near": ["2603.00001"] if learned else None,
    }


def test_papers_that_came_and_went_are_named_with_what_moved_them() -> None:
    rows = [
        row(1, "stays", 0.9, 0.0, shown=True),
        row(2, "came", 0.4, 0.4, shown=True),
        row(3, "pushed out", 0.75, 0.0, shown=False),
        row(4, "sank", 0.7, -0.4, shown=False),
    ]
    effect = ratings_effect(rows, HEADER)
    assert effect
    [came], [went] = effect.came, effect.went
    assert (came.paper_id, came.words, came.near) == ("came", ("+graph",), ("2603.00001",))
    assert (came.without, came.with_ratings) == (0.4, 0.8)
    assert (went.paper_id, went.without, went.with_ratings) == ("pushed out", 0.75, 0.75)


def test_a_rated_paper_is_not_named_as_near_itself() -> None:
    rows = [row(1, "2603.00001", 0.4, 0.4, shown=True), row(2, "sank", 0.5, -0.1, shown=False)]
    effect = ratings_effect(rows, HEADER)
    assert effect and [(each.paper_id, each.near) for each in effect.came] == [("2603.00001", ())]


def test_without_ratings_there_is_no_effect_and_with_ratings_there_may_be_none_on_the_list() -> None:
    rows = [row(1, "a", 0.9, None, shown=True), row(2, "b", 0.2, None, shown=False)]
    assert ratings_effect(rows, HEADER) is None
    assert ratings_effect([], HEADER) is None
    moved = [row(1, "a", 0.9, 0.05, shown=True), row(2, "b", 0.2, -0.1, shown=False)]
    effect = ratings_effect(moved, HEADER)
    assert effect and not effect.came and not effect.went
