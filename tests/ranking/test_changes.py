from typing import Any

import pyarrow as pa
import pytest

from paper_assets.ranking.changes import changes_between, difference_in_words
from paper_assets.stores.rankings import ranking_schema
from paper_assets.weights import DIMENSIONS

ADDED = ("bonus", "soft_penalty", "diversity_penalty")
WEIGHTS = dict(zip(DIMENSIONS, (0.3, 0.1, 0.15, 0.1, 0.2, 0.15), strict=True))


def rows(*papers: tuple[str, dict[str, float]], top_k: int = 2) -> pa.Table:
    """A ranking in the given order; each paper's parts are 0.5 unless given."""
    records: list[dict[str, Any]] = []
    for place, (paper_id, parts) in enumerate(papers, start=1):
        values = {
            **dict.fromkeys(DIMENSIONS, 0.5),
            "bonus": 0.0,
            "soft_penalty": 0.0,
            "diversity_penalty": 0.0,
            **parts,
        }
        final = sum(WEIGHTS[name] * values[name] for name in DIMENSIONS) + values["soft_penalty"]
        records.append(
            {
                **values,
                "rank": place,
                "shown": place <= top_k,
                "paper_id": paper_id,
                "final": final,
                "penalty_keywords": [],
                "evaluation_method": "embedding",
                "tags": [],
            }
        )
    return pa.Table.from_pylist(records, schema=ranking_schema())


def compared(before: pa.Table, after: pa.Table, removed: dict[str, str] | None = None, **header: Any) -> Any:
    headers = ({"weights": WEIGHTS}, {"weights": WEIGHTS, **header})
    return changes_between(before, after, headers=headers, removed=removed or {})


def test_the_same_ranking_has_no_changes() -> None:
    same = rows(("a", {}), ("b", {}), ("c", {}))
    changes = compared(same, same)
    assert (changes.entered, changes.left, changes.moved, changes.lineage) == ((), (), (), {})


def test_a_paper_that_rose_into_the_list_names_the_dimension_that_moved_it() -> None:
    before = rows(("a", {}), ("b", {}), ("c", {"semantic_relevance": 0.2}))
    after = rows(("c", {"semantic_relevance": 0.9, "recency": 0.4}), ("a", {}), ("b", {}))
    changes = compared(before, after)
    (entered,) = changes.entered
    assert (entered.paper_id, entered.before, entered.after) == ("c", None, 1)
    assert entered.reason == "relevance to your interests +0.210"
    assert abs(sum(entered.parts.values()) - (entered.score_after - entered.score_before)) < 1e-9
    assert [(move.paper_id, move.before, move.after) for move in changes.moved] == [("a", 1, 2)]
    assert [(move.paper_id, move.before, move.after) for move in changes.left] == [("b", 2, None)]


def test_a_paper_that_rises_by_new_scores_names_a_part_that_rose_even_where_another_fell_more() -> None:
    before = rows(("a", {}), ("b", {}), ("c", {"must_keywords": 0.4}))
    after = rows(("b", {}), ("c", {"must_keywords": 0.0, "recency": 0.6}), ("a", {"semantic_relevance": 0.1}))
    (entered,) = compared(before, after, calibration="new").entered
    assert (entered.paper_id, entered.reason) == ("c", "another calibration: how recent it is +0.020")


def test_a_paper_that_left_says_whether_a_filter_or_the_window_took_it() -> None:
    before = rows(("a", {}), ("b", {}))
    changes = compared(before, rows(("c", {}), ("d", {})), removed={"a": "ALREADY_SHOWN"})
    assert {move.paper_id: move.reason for move in changes.left} == {
        "a": "already shown: it was in your list on an earlier day",
        "b": "no longer in the window",
    }
    assert {move.reason for move in changes.entered} == {"new among the candidates"}


def test_a_soft_penalty_counts_as_a_part() -> None:
    before = rows(("a", {}), ("b", {}), ("c", {}))
    changes = compared(before, rows(("b", {}), ("a", {"soft_penalty": -0.15}), ("c", {})))
    assert {move.paper_id: move.reason for move in changes.moved} == {
        "a": "soft penalty -0.150",
        "b": "its score is the same; others came or went: 1 paper fell below it (a)",
    }


@pytest.mark.parametrize("earlier_shown", [True, False])
def test_a_doubtful_paper_that_only_the_first_list_shows_has_that_reason(
    earlier_shown: bool,
) -> None:
    def header(*, first_list: bool) -> dict[str, Any]:
        rule = {"lowest": 0.2, "right": 0.6, "first_list": first_list, "alone": 0.05}
        return {"weights": WEIGHTS, "top_k": 2, "nudge": 10.0, "line": 0.1 if first_list else 0.2, "line_rule": rule}

    doubtful = {"semantic_relevance": 0.1}
    empty, one = (rows(("a", doubtful), ("b", {"semantic_relevance": 0.01}), top_k=places) for places in (0, 1))
    before, after = (one, empty) if earlier_shown else (empty, one)
    headers = header(first_list=earlier_shown), header(first_list=not earlier_shown)
    changes = changes_between(before, after, headers=headers, removed={})
    (move,) = changes.left if earlier_shown else changes.entered
    assert move.paper_id == "a"
    assert move.reason == (
        "only the first list for these interests shows doubtful papers"
        if earlier_shown
        else "the first list for these interests also shows doubtful papers"
    )


def test_another_profile_content_is_named_as_lineage() -> None:
    same = rows(("a", {}))
    assert compared(same, same, profile_hash="new").lineage == {"profile_hash": (None, "new")}


def test_what_lists_were_computed_from_is_shown_without_hashes() -> None:
    assert difference_in_words("preferences", None, "a83e109bdcb2") == "what the ratings teach has changed"
    assert difference_in_words("llm_model", None, "m") == "language model: none → m"
    assert difference_in_words("line", 0.2, 0.31) == "lowest threshold: 20 % → 31 %"
    assert difference_in_words("quiet", False, True) == "quiet day: no → yes"
