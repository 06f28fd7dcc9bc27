"""Test the merge: the access rule, independence of the order, and the effect of each stage."""

import math
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.retrieval.merge import (
    STAGES,
    Candidate,
    Merged,
    Policy,
    Rules,
    merge,
    most_tokens,
    reciprocal_rank_fusion,
)
from tests.retrieval.plain_merge import plain_merge

rankings = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=5)


def test_two_second_places_beat_one_first_place() -> None:
    fused = reciprocal_rank_fusion([["x", "both"], ["y", "both"]], constant=60)
    assert list(fused) == ["both", "x", "y"]
    assert fused["both"] == pytest.approx(2 / 62)
    assert fused["x"] == fused["y"] == pytest.approx(1 / 61)


def test_a_document_named_twice_in_a_list_counts_once_at_its_better_place() -> None:
    assert reciprocal_rank_fusion([["a", "a", "b", "a"]], constant=0) == {"a": 1.0, "b": 0.5}


def test_nothing_fused_is_nothing() -> None:
    assert reciprocal_rank_fusion([]) == reciprocal_rank_fusion([[], []]) == {}


@given(rankings)
def test_the_order_of_the_lists_changes_no_bit(lists: list[list[str]]) -> None:
    fused = [list(reciprocal_rank_fusion(order).items()) for order in permutations(lists)]
    assert all(each == fused[0] for each in fused)


@given(rankings, st.integers(0, 100))
def test_it_is_the_sum_over_the_lists(lists: list[list[str]], constant: int) -> None:
    fused = reciprocal_rank_fusion(lists, constant=constant)
    for doc_id in "abcdefgh":
        plain = sum(1 / (constant + each.index(doc_id) + 1) for each in lists if doc_id in each)
        assert fused.get(doc_id, 0.0) == pytest.approx(plain)
    assert list(fused.values()) == sorted(fused.values(), reverse=True)


ANYBODY = Policy()
PUBLIC = {"access_level": "public", "language": "en", "owner": None, "version": 1}


def candidate(
    doc_id: str, score: float = 0.5, *, source: str | None = None, text: str = "text", **extra: Any
) -> Candidate:
    source = source or doc_id
    return Candidate(doc_id, text, {**PUBLIC, "paper_id": source, **extra}, score, "similarity", source)


def ids(merged: Merged) -> list[str]:
    return [each.doc_id for each in merged.candidates]


def dropped(merged: Merged) -> dict[str, dict[str, tuple[str, ...]]]:
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for drop in merged.drops:
        found.setdefault(drop.stage, {})[drop.reason] = drop.doc_ids
    return found


scores = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 1.0, math.nan, math.inf, -math.inf]), st.floats(-2, 3, allow_subnormal=False)
)
some_candidates = st.builds(
    lambda doc, text, score, kind, source, extra: Candidate(
        f"d{doc}", text, {"paper_id": f"p{source}", **extra}, score, kind, f"p{source}"
    ),
    st.integers(0, 12),
    st.sampled_from(["one", "two", "a longer text of some words", "한국어 문장"]),
    scores,
    st.sampled_from(["similarity", "distance"]),
    st.integers(0, 4),
    st.fixed_dictionaries(
        {
            "access_level": st.sampled_from(["public", "public", "public", "private"]),
            "owner": st.sampled_from([None, "ann", "bob"]),
            "language": st.sampled_from(["en", "en", "ko", None]),
            "version": st.sampled_from([1, 1, 2, None]),
        }
    ),
)
some_lists = st.lists(st.lists(some_candidates, max_size=8), max_size=4)
some_policies = st.builds(
    Policy,
    owner=st.sampled_from([None, "ann"]),
    language=st.sampled_from([None, "en"]),
    latest=st.sampled_from([{}, {"p0": 2, "p1": 1}]),
)
some_rules = st.fixed_dictionaries(
    {
        "comparable": st.booleans(),
        "max_per_source": st.sampled_from([None, 1, 2]),
        "limit": st.sampled_from([None, 0, 1, 3]),
        "max_tokens": st.sampled_from([None, 1, 5, 12]),
    }
)


@given(some_lists, some_policies, some_rules)
def test_the_merge_is_the_plain_one(lists: list[list[Candidate]], policy: Policy, rules: dict[str, Any]) -> None:
    merged = merge(lists, Rules(policy=policy, **rules))
    kept, gone = plain_merge(lists, policy=policy, **rules)
    assert [(each.doc_id, each.score, each.content) for each in merged.candidates] == kept
    assert {(drop.stage, doc_id) for drop in merged.drops for doc_id in drop.doc_ids} == gone


@given(some_lists, some_policies, some_rules, st.randoms(use_true_random=False))
def test_neither_the_order_of_lists_nor_the_order_within_them_matters(
    lists: list[list[Candidate]], policy: Policy, rules: dict[str, Any], chance: Any
) -> None:
    shuffled = [chance.sample(each, len(each)) for each in chance.sample(lists, len(lists))]
    assert merge(shuffled, Rules(policy=policy, **rules)) == merge(lists, Rules(policy=policy, **rules))


def test_the_same_of_two_equal_entries_is_kept_in_any_order() -> None:
    public, own = candidate("d", 1.0), candidate("d", 1.0, owner="ann")
    other = [candidate("e", 0.5)]
    kept = [merge([each, other], Rules(policy=ANYBODY, comparable=False)) for each in ([public, own], [own, public])]
    assert kept[0] == kept[1]


@given(some_lists, some_candidates, st.sampled_from([None, "ann"]), some_rules, st.data())
def test_what_may_not_be_shown_never_comes_through_whatever_its_score(
    lists: list[list[Candidate]], secret: Candidate, owner: str | None, rules: dict[str, Any], data: st.DataObject
) -> None:
    faults: list[dict[str, Any]] = [
        {"access_level": "private", "owner": None},
        {"access_level": "private", "owner": "bob"},
        {"access_level": None, "owner": None},
        {"access_level": "PUBLIC", "owner": "bob"},
        {"language": "ko"},
        {"language": None},
        {"paper_id": "q", "version": 1},
    ]
    metadata = {**secret.metadata, **PUBLIC, **data.draw(st.sampled_from(faults))}
    score = data.draw(st.sampled_from([1e300, math.inf, 0.9]))
    hidden = replace(secret, doc_id="hidden", score=score, metadata=metadata)
    place = data.draw(st.integers(0, len(lists)))
    with_it = [*lists[:place], [hidden], *lists[place:]]
    policy = Policy(owner=owner, language="en", latest={"q": 2})
    merged = merge(with_it, Rules(policy=policy, **rules))
    assert "hidden" not in ids(merged)
    assert merged.candidates == merge(lists, Rules(policy=policy, **rules)).candidates, "and no other document moves"


def test_a_private_document_is_returned_to_its_owner_only() -> None:
    mine = candidate("mine", access_level="private", owner="ann")
    nobodys = candidate("nobodys", access_level="private", owner=None)
    assert ids(merge([[mine, nobodys]], Rules(policy=Policy(owner="ann")))) == ["mine"]
    assert ids(merge([[mine, nobodys]], Rules(policy=Policy(owner="bob")))) == []
    outcome = merge([[mine, nobodys]], Rules(policy=ANYBODY))
    assert dropped(outcome) == {"policy": {"private to another profile": ("mine", "nobodys")}}


def test_owning_a_document_makes_it_neither_newer_nor_of_another_language() -> None:
    old = candidate("old", source="p", access_level="private", owner="ann", version=1)
    new = candidate("new", source="p", version=2)
    korean = candidate("korean", access_level="private", owner="ann", language="ko")
    outcome = merge([[old, new, korean]], Rules(policy=Policy(owner="ann", language="en")))
    assert ids(outcome) == ["new"]
    assert dropped(outcome)["policy"] == {
        "not in the requested language": ("korean",),
        "not the latest version": ("old",),
    }


def test_a_newer_version_that_is_hidden_from_the_caller_does_not_push_out_the_one_that_is_not() -> None:
    hidden = candidate("hidden", source="p", access_level="private", owner="bob", version=7)
    assert ids(merge([[candidate("shown", source="p", version=1), hidden]], Rules(policy=ANYBODY))) == ["shown"]


def test_scores_become_similarities_and_invalid_numbers_are_dropped() -> None:
    near = replace(candidate("near"), score=0.25, score_type="distance")
    below = replace(candidate("below"), score=-1e-7, score_type="distance")  # a cosine distance may round so
    nan, endless = candidate("nan", math.nan), replace(candidate("endless"), score=math.inf, score_type="distance")
    outcome = merge([[near, below, nan, endless, candidate("like", 0.9)]], Rules(policy=ANYBODY))
    assert [(each.doc_id, each.score, each.score_type) for each in outcome.candidates] == [
        ("below", 1.0, "similarity"),
        ("like", 0.9, "similarity"),
        ("near", 0.8, "similarity"),
    ]
    assert dropped(outcome) == {"normalise": {"its score is not a number": ("endless", "nan")}}


def test_a_document_found_twice_is_kept_once_with_its_better_score() -> None:
    outcome = merge(
        [[candidate("a", 0.3, text="worse")], [candidate("a", 0.7, text="better")]],
        Rules(policy=ANYBODY, comparable=True),
    )
    assert [(each.score, each.content) for each in outcome.candidates] == [(0.7, "better")]
    assert dropped(outcome) == {"dedupe": {"found better elsewhere": ("a",)}}


def test_lists_that_cannot_be_compared_count_by_place() -> None:
    cosines = [candidate("a", 0.9), candidate("b", 0.8), candidate("c", 0.1)]
    bm25 = [candidate("c", 31.0), candidate("b", 12.0)]
    outcome = merge([cosines, bm25], Rules(policy=ANYBODY, fusion_constant=60))
    assert [(each.doc_id, each.score) for each in outcome.candidates] == [
        ("c", pytest.approx(1 / 63 + 1 / 61)),
        ("b", pytest.approx(2 / 62)),
        ("a", pytest.approx(1 / 61)),
    ]
    assert ids(merge([cosines, bm25], Rules(policy=ANYBODY, comparable=True))) == ["c", "b", "a"]
    assert [each.score for each in merge([cosines, []], Rules(policy=ANYBODY)).candidates] == [0.9, 0.8, 0.1], (
        "one list"
    )


def test_no_source_takes_more_than_its_share_and_its_best_stay() -> None:
    passages = [candidate(f"p-{at}", 1 - at / 10, source="p") for at in range(5)]
    other = candidate("q-0", 0.1, source="q")
    outcome = merge([passages, [other]], Rules(policy=ANYBODY, comparable=True, max_per_source=2))
    assert ids(outcome) == ["p-0", "p-1", "q-0"]
    assert dropped(outcome) == {"diversify": {"more than 2 of one source": ("p-2", "p-3", "p-4")}}


def test_a_reranker_orders_what_is_left_and_the_limit_comes_after_it() -> None:
    found = [candidate(name, score) for name, score in (("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6))]
    judged = {"a": 0.1, "b": 5.0, "c": 7.0, "d": math.nan}
    outcome = merge(
        [found], Rules(policy=ANYBODY, limit=2, rerank=lambda shown: [judged[each.doc_id] for each in shown])
    )
    assert [(each.doc_id, each.score) for each in outcome.candidates] == [("c", 7.0), ("b", 5.0)]
    assert dropped(outcome) == {
        "rerank": {"its score is not a number": ("d",)},
        "compress": {"beyond the best 2": ("a",)},
    }


def test_the_longest_of_texts_that_are_too_long_together_are_cut_and_the_best_document_stays() -> None:
    found = [
        candidate("a", 0.9, text="long words " * 60),
        candidate("b", 0.8, text="short words"),
        candidate("c", 0.7, text="한" * 10),
    ]
    outcome = merge([found], Rules(policy=ANYBODY, max_tokens=150))
    assert ids(outcome) == ["a", "b", "c"]
    assert [each.content for each in outcome.candidates][1:] == ["short words", "한" * 10]
    assert outcome.candidates[0].content.endswith(("long…", "words…"))
    assert sum(most_tokens(each.content) for each in outcome.candidates) <= 150
    assert dropped(outcome) == {}
    assert most_tokens("") == 0 and most_tokens("\ud800a") == 1


def test_a_text_that_just_fills_its_share_is_not_cut() -> None:
    exact = "word " * 59 + "words"  # 300 bytes, counted as 100 tokens: the share of each of the two
    found = [candidate("a", 0.9, text="word " * 300), candidate("b", 0.8, text=exact)]
    outcome = merge([found], Rules(policy=ANYBODY, max_tokens=200))
    assert most_tokens(exact) == 100
    assert outcome.candidates[0].content.endswith("…") and outcome.candidates[1].content == exact


def test_if_not_even_a_part_of_each_text_fits_the_best_are_kept() -> None:
    found = [candidate(name, score, text="word " * 200) for name, score in (("a", 0.9), ("b", 0.8), ("c", 0.7))]
    outcome = merge([found], Rules(policy=ANYBODY, max_tokens=250))
    assert ids(outcome) == ["a", "b"]
    assert all(100 < most_tokens(each.content) <= 125 for each in outcome.candidates)
    assert dropped(outcome) == {"compress": {"does not fit into 250 tokens": ("c",)}}


def test_nothing_merged_is_nothing() -> None:
    for lists in ([], [[]], [[], []]):
        assert merge(lists, Rules(policy=ANYBODY, limit=3)) == Merged((), ())


def test_the_policy_comes_first_and_what_costs_most_last() -> None:
    names = [name for name, _ in STAGES]
    assert names == ["policy", "normalise", "merge", "dedupe", "diversify", "rerank", "compress"]


def test_a_candidate_cannot_be_changed_on_its_way() -> None:
    with pytest.raises(FrozenInstanceError):
        candidate("a").score = 1.0  # type: ignore[misc]


def test_every_incoming_document_is_either_kept_or_reported_as_dropped() -> None:
    lists = [[candidate(f"d{at % 7}", at / 10, source=f"s{at % 3}") for at in range(n)] for n in (0, 5, 11)]
    outcome = merge(lists, Rules(policy=ANYBODY, max_per_source=1, limit=2))
    dropped_ids = Counter(doc_id for drop in outcome.drops for doc_id in drop.doc_ids)
    assert dropped_ids + Counter(ids(outcome)) == Counter(each.doc_id for of in lists for each in of)
    assert all(
        merge(order, Rules(policy=ANYBODY, max_per_source=1, limit=2)) == outcome for order in permutations(lists)
    )
