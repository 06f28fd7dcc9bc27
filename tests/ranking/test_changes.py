import json
import math
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.paper import papers_to_table
from paper_assets.profile import Profile, profile_content
from paper_assets.ranking.changes import Changes, Move, changes_between, difference_in_words, sentences
from paper_assets.ranking.filters import FilterCriteria, filter_papers
from paper_assets.ranking.rank import RankingTask, rank
from paper_assets.settings import ScoringConfig
from paper_assets.sources.bulk_files import read_papers
from paper_assets.stores.rankings import ranking_schema
from paper_assets.weights import DIMENSIONS

ADDED = ("bonus", "soft_penalty", "diversity_penalty")
WEIGHTS = dict(zip(DIMENSIONS, ScoringConfig().weights["general"], strict=True))
HEADER = {
    "weights": WEIGHTS,
    "preference_weight": 10.0,
    "preference_baseline": 0.2,
    "threshold": 0.4,
    "as_of": "2026-03-13",
    "top_k": 2,
}


def rows(*papers: tuple[str, dict[str, Any]], top_k: int = 2) -> pa.Table:
    """A ranking in the given order; each dimension of a paper is 0.5 unless given."""
    records: list[dict[str, Any]] = []
    for place, (paper_id, parts) in enumerate(papers, start=1):
        row = {
            **dict.fromkeys(DIMENSIONS, 0.5),
            **dict.fromkeys(ADDED, 0.0),
            "evaluation_method": "embedding",
            "version": 1,
            **parts,
        }
        final = sum(WEIGHTS[name] * row[name] for name in DIMENSIONS) + sum(row[name] for name in ADDED)
        final += WEIGHTS["semantic_relevance"] * (row.get("learned") or 0.0)
        place_of_row = {"rank": place, "shown": place <= top_k, "paper_id": paper_id, "final": final}
        records.append({"penalty_keywords": [], "tags": [], **row, **place_of_row})
    return pa.Table.from_pylist(records, schema=ranking_schema())


def compared(
    before: pa.Table,
    after: pa.Table,
    *,
    removed: Mapping[str, str] | None = None,
    edits: Mapping[str, str] | None = None,
    **header: Any,
) -> Changes:
    return changes_between(before, after, headers=(HEADER, {**HEADER, **header}), removed=removed or {}, edits=edits)


def reasons(changes: Changes) -> dict[str, str]:
    return {move.paper_id: move.reason for move in changes.moves}


def test_the_same_ranking_has_no_changes() -> None:
    same = rows(("a", {}), ("b", {}), ("c", {}))
    changes = compared(same, same)
    assert (changes.moves, changes.lineage, sentences(changes, {})) == ((), {}, ["nothing has changed"])


def test_a_paper_that_rose_names_the_part_that_rose_most_and_the_parts_add_up() -> None:
    before = rows(("a", {}), ("b", {}), ("c", {"semantic_relevance": 0.2}))
    after = rows(("c", {"semantic_relevance": 0.9, "practicality": 0.4}), ("a", {}), ("b", {}))
    changes = compared(before, after)
    (entered,) = changes.entered
    assert (entered.paper_id, entered.before, entered.after, entered.kind) == ("c", None, 1, "part")
    by = math.log(9) + math.log(4)
    assert entered.reason == f"relevance to your interests +{by:.2f}"
    assert entered.score_before is not None and entered.score_after is not None
    assert sum(entered.parts.values()) == pytest.approx(entered.score_after - entered.score_before)
    assert [(move.paper_id, move.before, move.after) for move in changes.moved] == [("a", 1, 2)]
    assert [(move.paper_id, move.before, move.after) for move in changes.left] == [("b", 2, None)]
    assert reasons(changes)["a"] == reasons(changes)["b"] == "others came or went"


def test_a_part_that_fell_is_no_reason_for_a_paper_that_rose() -> None:
    before = rows(("a", {}), ("b", {}), ("c", {"recency": 1.0}))
    after = rows(("c", {"recency": 0.85, "must_keywords": 0.4}), ("b", {}), ("d", {}))
    changes = compared(before, after)
    assert reasons(changes) == {
        "a": "no longer in the window",
        "c": "others came or went",
    }


def test_a_paper_that_left_says_whether_a_filter_or_the_window_took_it() -> None:
    before = rows(("a", {}), ("b", {}), ("e", {}), top_k=3)
    removed = {"a": "ALREADY_SHOWN", "e": "BLACKLIST_KEYWORD:mud"}
    changes = compared(before, rows(("c", {}), ("d", {})), removed=removed)
    assert {move.paper_id: move.kind for move in changes.left} == {"a": "shown", "b": "window", "e": "removed"}
    assert reasons(changes) == {
        "a": "it was in your list on an earlier day",
        "b": "no longer in the window",
        "e": "it contains your excluded keyword mud",
        "c": "new among the candidates",
        "d": "new among the candidates",
    }
    assert "left: 1 paper that was already shown on an earlier day (a)" in sentences(changes, {})


@pytest.mark.parametrize(
    ("then", "now", "reason"),
    [
        ({}, {"version": 2, "semantic_relevance": 0.9}, "a new version of the paper (v1 → v2): relevance"),
        ({}, {"evaluation_method": "embedding+llm", "semantic_relevance": 0.9}, "a language model's verdict: rel"),
        ({}, {"learned": 0.3}, "what your ratings taught +1.39"),
        ({"soft_penalty": -0.15}, {}, "keywords you avoid +1.50"),
    ],
)
def test_a_version_a_verdict_and_ratings_are_named(then: dict[str, Any], now: dict[str, Any], reason: str) -> None:
    (entered,) = compared(rows(("a", {}), ("b", {}), ("c", then)), rows(("c", now), ("a", {}), ("b", {}))).entered
    assert entered.reason.startswith(reason)


def test_an_edit_and_another_model_are_the_cause_of_the_part_that_they_changed() -> None:
    before = rows(("a", {}), ("b", {}), ("c", {"semantic_relevance": 0.2}))
    after = rows(("c", {"semantic_relevance": 0.9}), ("a", {}), ("b", {}))
    edits = {"interests.primary": "interests.primary: + rain"}
    edited = compared(before, after, profile_hash="new", edits=edits, as_of="2026-03-14")
    assert reasons(edited) == {
        "c": "your edit: relevance to your interests +3.58", "a": "others came or went", "b": "others came or went",
    }  # fmt: skip
    assert sentences(edited, {})[-2] == "the profile was edited: interests.primary: + rain"
    model = compared(before, after, model="m", calibration="c")
    assert reasons(model)["c"] == "another embedding model and another calibration: relevance to your interests +3.58"
    questions = compared(before, after, profile_hash="new", edits={"questions": "questions: + q"}, as_of="2026-03-14")
    assert reasons(questions)["c"] == "relevance to your interests +3.58", "such an edit changes no list"


def test_on_the_same_day_an_edit_is_the_cause_of_all_and_on_another_only_of_what_it_can_change() -> None:
    before, after = rows(("a", {}), ("b", {}), ("c", {}), top_k=2), rows(("a", {}), ("b", {}), ("c", {}), top_k=3)
    edits = {"ranking.top_k": "ranking.top_k: 2 → 3"}
    for day in ("2026-03-13", "2026-03-14"):
        assert reasons(compared(before, after, profile_hash="n", edits=edits, top_k=3, as_of=day)) == {"c": "your edit"}
    other = compared(before, after, profile_hash="n", edits={"keywords.must": "…"}, as_of="2026-03-14")
    assert reasons(other) == {"c": "others came or went"}
    assert reasons(compared(before, after, top_k=3)) == {"c": "other options"}


def test_what_lists_were_computed_from_is_shown_without_hashes() -> None:
    same = rows(("a", {}))
    assert compared(same, same, profile_hash="new").lineage == {"profile_hash": (None, "new")}
    assert difference_in_words("preferences", None, "a83e109bdcb2") == "what the ratings teach has changed"
    assert difference_in_words("llm_model", None, "m") == "language model: none → m"
    assert difference_in_words("threshold", 0.2, 0.31) == "lowest probability: 20 % → 31 %"
    assert difference_in_words("quiet", False, True) == "quiet day: no → yes"


# What is claimed is true: the named part is the one that changed most in the direction of the move.


def own_changes(old: Mapping[str, Any], new: Mapping[str, Any], header: Mapping[str, Any]) -> dict[str, float]:
    """By how much each part of a paper's match differs, written out again."""
    preference_weight, weights = header["preference_weight"], header["weights"]
    changes = {name: preference_weight * weights[name] * (new[name] - old[name]) for name in DIMENSIONS[1:]}
    changes |= {name: preference_weight * (new[name] - old[name]) for name in ADDED}
    odds = [[math.log(p / (1 - p)) for p in probabilities(row)] for row in (old, new)]
    changes["semantic_relevance"] = odds[1][0] - odds[0][0]
    changes["learned"] = (odds[1][1] - odds[1][0]) - (odds[0][1] - odds[0][0])
    return changes


def probabilities(row: Mapping[str, Any]) -> list[float]:
    return [row["semantic_relevance"], row["semantic_relevance"] + (row["learned"] or 0.0)]


def assert_true(move: Move, old: dict[str, Any], new: dict[str, Any], header: Mapping[str, Any], removed: Any) -> None:
    if move.paper_id not in new:
        reason = removed.get(move.paper_id)
        assert move.kind == {None: "window", "ALREADY_SHOWN": "shown"}.get(reason, "removed")
    elif move.paper_id not in old:
        assert move.kind == "new"
    else:
        sign = 1 if move.before is None or (move.after and move.after < move.before) else -1
        own = {name: sign * by for name, by in own_changes(old[move.paper_id], new[move.paper_id], header).items()}
        if move.part:
            assert own[move.part] == pytest.approx(max(own.values())) and sum(own.values()) > 0
        else:
            assert move.kind == "others" and (sum(own.values()) < 0.006 or max(own.values()) < 0.006)


shares = st.floats(0.01, 0.99)
papers_of_a_day = st.dictionaries(
    st.sampled_from("abcdef"),
    st.fixed_dictionaries(
        dict.fromkeys(DIMENSIONS, shares)
        | {"soft_penalty": st.sampled_from([0.0, -0.15]), "learned": st.none() | st.just(0.005)}
    ),
    min_size=3,
)


@given(papers_of_a_day, papers_of_a_day)
def test_a_named_part_is_the_largest_own_change_in_the_direction_of_the_move(
    then: dict[str, Any], now: dict[str, Any]
) -> None:
    before, after = rows(*then.items()), rows(*now.items())
    old, new = ({row["paper_id"]: row for row in table.to_pylist()} for table in (before, after))
    for move in compared(before, after).moves:
        assert_true(move, old, new, HEADER, {})


FIRST, DAYS, WINDOW = date(2026, 2, 24), 31, 7


@pytest.mark.shared_data
def test_on_a_month_of_real_days_every_named_part_is_the_largest_own_change(shared_data: Path) -> None:
    record = json.loads((shared_data / "judged_lists" / "profiles.json").read_text(encoding="utf-8"))["llm-safety"]
    record["ranking"] |= {"top_k": 5, "enable_llm_verification": False}
    profile = Profile(name="llm-safety", content=profile_content(record, source="llm-safety"))
    content = profile.content
    known = [
        paper
        for paper in read_papers(shared_data / "arxiv_papers" / "papers.jsonl.gz")
        if set(content.feed.categories or ()) & set(paper.categories)
    ]
    shown: dict[str, date] = {}
    kinds, earlier = set[str](), None
    for as_of in (FIRST + timedelta(days=count) for count in range(DAYS)):
        first = as_of - timedelta(days=WINDOW - 1)
        shown_ids = frozenset(paper_id for paper_id, day in shown.items() if first <= day)
        criteria = FilterCriteria(
            content=content, options=content.ranking, scoring=ScoringConfig(), shown_ids=shown_ids
        )
        window = papers_to_table([paper for paper in known if paper.day and first <= paper.day <= as_of])
        judged = filter_papers(window, criteria)
        removed = {row["paper_id"]: row["reason"] for row in judged.to_pylist() if row["reason"]}
        candidates = [paper for paper in known if paper.day and first <= paper.day <= as_of]
        ranking = rank(
            RankingTask(
                candidates=papers_to_table([paper for paper in candidates if paper.paper_id not in removed]),
                profile=profile,
                options=content.ranking,
                as_of=as_of,
                scoring=ScoringConfig(),
            )
        )
        shown |= dict.fromkeys(ranking.shown.column("paper_id").to_pylist(), as_of)
        if earlier:
            headers = earlier.header, ranking.header
            changes = changes_between(earlier.rows, ranking.rows, headers=headers, removed=removed, edits={})
            old, new = ({row["paper_id"]: row for row in each.rows.to_pylist()} for each in (earlier, ranking))
            for move in changes.moves:
                assert_true(move, old, new, ranking.header, removed)
                kinds.add(move.kind)
        earlier = ranking
    assert kinds >= {"shown", "new", "others"}
