"""Test plans: what is valid, what is refused in one line, and what is ignored and reported."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from paper_assets.errors import InvalidInput, InvalidProfile
from paper_assets.profile import load_profile
from paper_assets.retrieval.plan import (
    Plan,
    Side,
    categories_of,
    conditions_of,
    joined,
    parse_plan,
    questions_of,
)
from paper_assets.settings import RetrievalConfig, load_settings
from paper_assets.stores.documents import condition_of
from tests.example_profiles import FOLDERS

SETTINGS = load_settings({}, Path("/nowhere"))


def plan(**record: Any) -> Plan:
    return parse_plan({"rewritten_question": "what", **record}, source="plan.json", default_sides=("cs.CL", "cs.LG"))


def refused(record: object) -> str:
    with pytest.raises(InvalidInput) as fault:
        parse_plan(record, source="plan.json", default_sides=())
    assert "\n" not in str(fault.value) and "plan.json" in str(fault.value)
    return str(fault.value).removeprefix("plan.json: ")


def where_of(asked: Plan, side: int | None = None, *, owner: str | None = None, as_of: date | None = None) -> Any:
    return joined(conditions_of(asked, None if side is None else asked.sides[side], as_of=as_of, owner=owner))


def test_a_short_plan_gets_the_default_numbers_and_the_sides_of_the_caller() -> None:
    asked = plan()
    config = RetrievalConfig()
    assert asked.question == asked.rewritten_question == "what"
    assert (asked.k, asked.k_per_side, asked.max_per_source) == (config.k, 2, 2)
    assert asked.data_types == ("abstract",)
    assert asked.sides == (
        Side(name="cs.CL", where={"primary_category": {"$eq": "cs.CL"}}),
        Side(name="cs.LG", where={"primary_category": {"$eq": "cs.LG"}}),
    )
    assert not asked.generation_required and asked.notes == ()


def test_a_side_is_a_value_or_has_its_condition_or_wording() -> None:
    asked = plan(
        filters={
            "sides": [
                "math",
                {"name": "recent", "where": {"date_int": {"$gte": 20260301}}},
                {"name": "against", "query": "evidence against it"},
            ],
            "side_field": "topic_id",
        }
    )
    assert asked.sides == (
        Side(name="math", where={"topic_id": {"$eq": "math"}}),
        Side(name="recent", where={"date_int": {"$gte": 20260301}}),
        Side(name="against", query="evidence against it"),
    )


def test_a_paper_is_on_the_side_of_each_of_its_categories_where_that_is_asked() -> None:
    asked = plan(filters={"sides": ["cs.IR"], "side_field": "categories"})
    assert asked.sides[0].where == {"categories": {"$contains": "cs.IR"}}
    assert plan(filters={"sides": [2], "side_field": "version"}).sides[0].where == {"version": {"$eq": 2}}


def test_party_is_another_name_for_sides() -> None:
    named = plan(filters={"party": ["a", "b"]})
    assert replace(named, by_party=False) == plan(filters={"sides": ["a", "b"]})
    assert named.by_party, "it is answered with `documents_by_party` too"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "expected an object with the key rewritten_question, got list"),
        ({}, "rewritten_question: field required"),
        ({"rewritten_question": "  "}, "rewritten_question: "),
        ({"rewritten_question": "🤖 \u200b?"}, "rewritten_question: a question needs words"),
        (
            {"rewritten_question": "q", "filters": {"sides": [{"name": "b", "query": "?"}]}},
            "filters.sides.0.query: a q",
        ),
        ({"rewritten_question": "q", "sides": ["a"]}, "sides: unknown key"),
        ({"rewritten_question": "q", "filters": {"side": ["a"]}}, "filters.side: unknown key"),
        ({"rewritten_question": "q", "filters": {"sides": "a"}}, "filters.sides: "),
        ({"rewritten_question": "q", "filters": {"sides": [1.5]}}, "filters.sides.0: "),
        ({"rewritten_question": "q", "filters": {"sides": [True]}}, "filters.sides.0: "),
        ({"rewritten_question": "q", "filters": {"sides": ["a", {"name": "b"}]}}, "filters.sides.1: give the side"),
        (
            {"rewritten_question": "q", "filters": {"sides": [{"name": "b", "value": 1}]}},
            "filters.sides.0.value: ",
        ),
        ({"rewritten_question": "q", "filters": {"sides": ["a", "a"]}}, "filters: side 'a' is given twice"),
        ({"rewritten_question": "q", "filters": {"sides": ["a"], "party": ["a"]}}, "filters: sides and party"),
        ({"rewritten_question": "q", "filters": {"side_field": "stance"}}, "filters.side_field: "),
        ({"rewritten_question": "q", "filters": {"sides": [str(at) for at in range(51)]}}, "filters.sides: "),
        ({"rewritten_question": "q", "parameters": {"k_per_side": "2"}}, "parameters.k_per_side: "),
        ({"rewritten_question": "q", "parameters": {"k": 0}}, "parameters.k: "),
        ({"rewritten_question": "q", "data_type": ["pdf"]}, "data_type.0: "),
        ({"rewritten_question": "q", "data_type": []}, "data_type: "),
        ({"rewritten_question": "q", "generation_required": "no"}, "generation_required: "),
    ],
)
def test_an_invalid_plan_is_refused_with_its_key(record: object, message: str) -> None:
    assert refused(record).startswith(message)


@pytest.mark.parametrize("day", ["2026-02-30", "20260301", "2026-W09-7", "soon", "2026-3-1", 20260301, ["2026-03-01"]])
def test_a_date_that_cannot_be_read_drops_its_condition_and_is_reported(day: object) -> None:
    asked = plan(filters={"startdate": day, "enddate": "2026-03-10"})
    assert asked.first is None and asked.last == date(2026, 3, 10)
    assert len(asked.notes) == 1 and asked.notes[0].startswith(f"startdate {day!r} is not a day")
    assert where_of(asked) == {"$and": [{"date_int": {"$lte": 20260310}}, {"access_level": {"$eq": "public"}}]}


def test_dates_that_no_document_can_meet_cause_a_note() -> None:
    asked = plan(filters={"startdate": "2026-03-10", "enddate": "2026-03-01"})
    assert asked.notes == ("startdate 2026-03-10 is after enddate 2026-03-01: no document meets both",)


def test_what_is_not_asked_is_not_in_the_filter() -> None:
    empty = plan(filters={"startdate": "", "enddate": None, "topic_id": "", "sides": []})
    assert where_of(empty) == {"access_level": {"$eq": "public"}}
    assert empty.sides == plan().sides and empty.notes == ()


def test_all_conditions_of_a_side_are_in_one_filter_that_searches_understand() -> None:
    asked = plan(
        filters={"sides": ["cs.CL"], "startdate": "2026-03-01", "enddate": "2026-03-10", "topic_id": ["cs", "math"]},
        parameters={"language": "en"},
    )
    where = where_of(asked, 0, owner="ann", as_of=date(2026, 3, 5))
    own_and_undated = {"$and": [{"owner": {"$eq": "ann"}}, {"date_int": {"$eq": None}}]}
    assert where == {
        "$and": [
            {"primary_category": {"$eq": "cs.CL"}},
            {"date_int": {"$gte": 20260301}},
            {"date_int": {"$lte": 20260310}},
            {"topic_id": {"$in": ["cs", "math"]}},
            {"language": {"$eq": "en"}},
            {"$or": [{"date_int": {"$lte": 20260305}}, own_and_undated]},
            {"$or": [{"access_level": {"$eq": "public"}}, {"owner": {"$eq": "ann"}}]},
        ]
    }
    condition_of(where)  # and is understood


def test_a_day_that_ends_before_the_day_of_asking_needs_no_second_bound() -> None:
    asked = plan(filters={"enddate": "2026-03-10"})
    assert str(where_of(asked, as_of=date(2026, 3, 11))).count("date_int") == 1
    assert str(where_of(asked, as_of=date(2026, 3, 9))).count("date_int") == 2


def test_plans_that_say_the_same_have_the_same_hash_and_others_another() -> None:
    same = [plan(), plan(question="what", filters={"sides": ["cs.CL", "cs.LG"]}, data_type=["abstract", "abstract"])]
    others = [plan(parameters={"k": 3}), plan(filters={"sides": ["cs.LG", "cs.CL"]}), plan(generation_required=True)]
    assert same[0].content_hash == same[1].content_hash
    assert len({each.content_hash for each in [*same, *others]}) == 4


def test_the_questions_of_the_bundled_profiles_are_plans() -> None:
    for folder in FOLDERS:
        asked = questions_of(load_profile(folder), SETTINGS)
        assert len(asked) >= 2
        assert all(len(each.sides) >= 2 and not each.notes for each in asked)


def test_a_profile_without_categories_takes_those_that_are_fetched(tmp_path: Path) -> None:
    folder = tmp_path / "ann"
    folder.mkdir()
    (folder / "profile.json").write_text('{"interests": {"primary": ["x"]}}', encoding="utf-8")
    assert categories_of(load_profile(folder), SETTINGS) == categories_of(None, SETTINGS) == SETTINGS.categories
    (folder / "profile.json").write_text(
        '{"interests": {"primary": ["x"]}, "feed": {"categories": ["math.ST"]}}', encoding="utf-8"
    )
    assert categories_of(load_profile(folder), SETTINGS) == ("math.ST",)


def test_invalid_questions_are_a_fault_of_the_profile_that_names_file_entry_and_key(tmp_path: Path) -> None:
    folder = tmp_path / "ann"
    folder.mkdir()
    (folder / "profile.json").write_text('{"interests": {"primary": ["x"]}}', encoding="utf-8")
    (folder / "questions.json").write_text(
        json.dumps([{"rewritten_question": "q"}, {"rewritten_question": "q", "k": 1}]), encoding="utf-8"
    )
    with pytest.raises(InvalidProfile, match=r"ann/questions\.json: entry 2: k: unknown key"):
        questions_of(load_profile(folder))
