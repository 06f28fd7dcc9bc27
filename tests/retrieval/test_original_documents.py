"""The original documents on merging and on the retrieval nodes: what they state, with values computed by hand."""

from datetime import date
from typing import Any

import numpy as np
import pytest

from paper_assets.retrieval.grading import Grader, Reranker, link_list
from paper_assets.retrieval.merge import Candidate, Policy, Rules, merge
from paper_assets.retrieval.plan import conditions_of, joined, parse_plan

# A candidate: id, score, kind of score ("d": a distance), source (else the id), metadata beside the access.
Row = tuple[Any, ...]
KINDS = {"d": "distance", "s": "similarity"}
MERGING: tuple[tuple[str, list[list[Row]], dict[str, Any], list[tuple[str, float]]], ...] = (
    # statement, lists, rules, what is left with its score
    ("a distance of 0 is a similarity of 1", [[("a", 0, "d")]], {}, [("a", 1.0)]),
    ("a distance of 1 is 1 / (1 + 1)", [[("a", 1, "d")]], {}, [("a", 0.5)]),
    ("a distance of 3 is 1 / (1 + 3)", [[("a", 3, "d")]], {}, [("a", 0.25)]),
    ("a similarity stays", [[("a", 0.9, "s")]], {}, [("a", 0.9)]),
    ("a small distance is better than a large one", [[("a", 4, "d"), ("b", 0.25, "d")]], {}, [("b", 0.8), ("a", 0.2)]),
    (
        "lists are merged after normalising: .6 beats a distance of 1",
        [[("a", 1, "d")], [("b", 0.6, "s")]],
        {},
        [("b", 0.6), ("a", 0.5)],
    ),
    ("what is not public is removed", [[("a", 0.9, "s", "a", {"access_level": "private"})]], {}, []),
    ("what does not say that it is public, too", [[("a", 0.9, "s", "a", {"access_level": None})]], {}, []),
    (
        "another language, too, where one is asked for",
        [[("a", 0.9, "s", "a", {"language": "ko"}), ("b", 0.1, "s", "b", {"language": "en"})]],
        {"policy": Policy(language="en")},
        [("b", 0.1)],
    ),
    (
        "an older version, too, whatever its score",
        [[("a1", 0.9, "s", "a", {"version": 1})], [("a2", 0.2, "s", "a", {"version": 2})]],
        {},
        [("a2", 0.2)],
    ),
    (
        "the policy comes first: a private document takes no place of its source",
        [[("a", 0.9, "s", "x", {"access_level": "private"}), ("b", 0.8, "s", "x"), ("c", 0.7, "s", "x")]],
        {"max_per_source": 2},
        [("b", 0.8), ("c", 0.7)],
    ),
    ("a document found twice is kept once, at its best", [[("a", 0.4, "s")], [("a", 0.7, "s")]], {}, [("a", 0.7)]),
    (
        "of one source at most two, the best",
        [[("a", 0.5, "s", "x"), ("b", 0.9, "s", "x")], [("c", 0.7, "s", "x"), ("d", 0.1, "s", "y")]],
        {"max_per_source": 2},
        [("b", 0.9), ("c", 0.7), ("d", 0.1)],
    ),
    (
        "reranked, best first, and no more than the limit",
        [[("a", 0.1, "s"), ("b", 0.3, "s"), ("c", 0.2, "s")]],
        {"limit": 2},
        [("b", 0.3), ("c", 0.2)],
    ),
    (
        "a reranker's scores replace the others before the limit",
        [[("a", 0.9, "s"), ("b", 0.3, "s"), ("c", 0.2, "s")]],
        {"limit": 2, "rerank": lambda documents: [{"a": 1, "b": 5, "c": 3}[each.doc_id] for each in documents]},
        [("b", 5.0), ("c", 3.0)],
    ),
    (
        "ranks where scores cannot be compared: 1/61 + 1/62 beats 1/61",
        [[("a", 0.9, "s"), ("b", 0.8, "s")], [("b", 40, "s"), ("c", 30, "s")]],
        {"comparable": False},
        [("b", 1 / 62 + 1 / 61), ("a", 1 / 61), ("c", 1 / 62)],
    ),
    ("equal scores are ordered by id", [[("b", 0.5, "s")], [("a", 0.5, "s")]], {}, [("a", 0.5), ("b", 0.5)]),
    ("nothing is merged to nothing", [[], []], {}, []),
)


@pytest.mark.parametrize(("lists", "rules", "left"), [row[1:] for row in MERGING], ids=[row[0] for row in MERGING])
def test_the_merge_is_what_the_document_says(
    lists: list[list[Row]], rules: dict[str, Any], left: list[tuple[str, float]]
) -> None:
    def candidate(doc_id: str, score: float, kind: str, source: str | None = None, metadata: Any = None) -> Candidate:
        about = {"access_level": "public", "paper_id": source or doc_id, **(metadata or {})}
        return Candidate(doc_id, "text", about, score, KINDS[kind], source or doc_id)  # type: ignore[arg-type]

    given = [[candidate(*row) for row in each] for each in lists]
    for order in (given, given[::-1], [each[::-1] for each in given]):
        merged = merge(order, Rules(**{"policy": Policy(), "comparable": True, **rules}))
        assert [(each.doc_id, each.score) for each in merged.candidates] == [
            (doc_id, pytest.approx(score)) for doc_id, score in left
        ]
        assert {each.score_type for each in merged.candidates} <= {"similarity"}


PUBLIC = {"access_level": {"$eq": "public"}}
FILTERS: tuple[tuple[str, dict[str, Any], str | None, list[dict[str, Any]]], ...] = (
    # statement, the plan's filters, side, conditions beside the access
    ("no filter: no condition", {}, None, []),
    ("startdate: date_int from it on", {"startdate": "2024-07-01"}, None, [{"date_int": {"$gte": 20240701}}]),
    ("enddate: until it", {"enddate": "2024-07-25"}, None, [{"date_int": {"$lte": 20240725}}]),
    ("a date that cannot be read drops its condition", {"startdate": "July", "enddate": "2024-13-01"}, None, []),
    ("topic_id", {"topic_id": "election"}, None, [{"topic_id": {"$eq": "election"}}]),
    (
        "all three, in one filter",
        {"startdate": "2024-06-01", "enddate": "2024-07-25", "topic_id": "election"},
        None,
        [{"date_int": {"$gte": 20240601}}, {"date_int": {"$lte": 20240725}}, {"topic_id": {"$eq": "election"}}],
    ),
    (
        "each party under the same conditions",
        {"party": ["cs.CL", "cs.LG"], "startdate": "2024-07-01"},
        "cs.LG",
        [{"primary_category": {"$eq": "cs.LG"}}, {"date_int": {"$gte": 20240701}}],
    ),
)


@pytest.mark.parametrize(
    ("filters", "side", "conditions"), [row[1:] for row in FILTERS], ids=[row[0] for row in FILTERS]
)
def test_a_plan_searches_with_the_filter_of_the_document(
    filters: dict[str, Any], side: str | None, conditions: list[dict[str, Any]]
) -> None:
    plan = parse_plan({"rewritten_question": "q", "filters": filters}, source="plan", default_sides=("cs.CL",))
    assert (plan.k_per_side, plan.data_types) == (2, ("abstract",))
    of = next((each for each in plan.sides if each.name == side), None)
    every = [*conditions, PUBLIC]
    assert joined(conditions_of(plan, of, as_of=date(2026, 3, 1), owner=None)) in (
        {"$and": [*every[:-1], {"date_int": {"$lte": 20260301}}, PUBLIC]},  # nothing after the day of asking
        {"$and": every},
    )


def test_five_chunks_of_300_characters_pass_and_links_take_the_place_of_an_answer() -> None:
    text = " ".join(f"Sentence {at:03} has exactly forty-one characters." for at in range(80))
    found = [
        Candidate(doc_id, text, {"title": title, "url": f"https://example.org/{doc_id}"}, 0.5, "similarity", doc_id)
        for doc_id, title in (("1", "One"), ("2", "Two"))
    ]
    grader = Grader(name="by hand", kind="cross-encoder", score=lambda _, texts: np.arange(len(texts), dtype=float))
    graded = Reranker(question="q", grader=grader).graded(found)
    assert [chunk["doc_id"] for chunk in graded["chunks"]] == ["2"] * 5
    scores = [chunk["raw_score"] for chunk in graded["chunks"]]
    assert scores == sorted(scores, reverse=True)
    assert max(len(chunk["text"]) for chunk in graded["chunks"]) <= 300
    assert link_list(found) == "- [One](https://example.org/1)\n- [Two](https://example.org/2)"
