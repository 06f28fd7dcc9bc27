"""Test that judged lists are read unchanged, and that an invalid one is reported in one line."""

import json
from pathlib import Path

import pytest

from benchmarks.evaluation.judged_lists import UNJUDGED, load_judged_lists
from benchmarks.evaluation.rankers import shipped_lists
from paper_assets.errors import InvalidInput
from paper_assets.sources.bulk_files import read_papers
from tests.evaluation.judged import FROGS, GRADES, PROFILES, write_lists


def test_a_profile_knows_its_grades_and_takes_no_unjudged_paper_for_a_zero(tmp_path: Path) -> None:
    lists = load_judged_lists(write_lists(tmp_path / "mine"))
    assert (lists.name, [judged.name for judged in lists.profiles]) == ("mine", ["frogs", "stones"])
    frogs = lists.profiles[0]
    assert frogs.grades_of(["2603.00006", "2603.00005", "2603.00001"]).tolist() == [0, UNJUDGED, 3]
    assert frogs.profile.content.ranking.top_k == 3
    assert len(lists.paper_ids) == 6


def test_a_version_in_a_graded_id_does_not_matter(tmp_path: Path) -> None:
    grades = {**GRADES, "stones": {"2603.00003v2": 3}}
    assert load_judged_lists(write_lists(tmp_path, grades=grades)).profiles[1].grades == {"2603.00003": 3}


@pytest.mark.parametrize(
    ("profiles", "grades", "message"),
    [
        ("[]", GRADES, "profiles.json: expected an object of profiles by name, got list"),
        ("{}", "{}", "profiles.json: names no profile"),
        ('{"frogs": ', GRADES, "profiles.json: not valid JSON at line 1"),
        ({"frogs": {"interest": {}}}, {}, "profiles.json: frogs: interest: unknown key"),
        ({"frogs": []}, {}, "profiles.json: frogs: expected an object"),
        ({"my frogs": FROGS}, {}, "profiles.json: 'my frogs' is not a valid name of a profile"),
        (PROFILES, {**GRADES, "toads": {}}, "grades.json: 'toads' is not a profile of profiles.json"),
        (PROFILES, {"frogs": GRADES["frogs"]}, "grades.json: stones: expected an object of grades"),
        (PROFILES, {**GRADES, "stones": [1]}, "grades.json: stones: expected an object of grades"),
        (PROFILES, {**GRADES, "stones": {"2603.00003": 4}}, "stones: 2603.00003: a grade is 0, 1, 2 or 3, got '4'"),
        (PROFILES, {**GRADES, "stones": {"2603.00003": True}}, "a grade is 0, 1, 2 or 3, got 'True'"),
        (PROFILES, {**GRADES, "stones": {"2603.00003": "3"}}, "a grade is 0, 1, 2 or 3, got '3'"),
        (PROFILES, '{"frogs": {"x": NaN}, "stones": {"x": 1}}', "frogs: x: a grade is 0, 1, 2 or 3, got 'nan'"),
        (PROFILES, {**GRADES, "stones": {"2603.00003": 1, "2603.00003v1": 2}}, "is graded twice, and not alike"),
    ],
)
def test_an_invalid_judged_list_is_refused_in_one_line(
    profiles: object, grades: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_judged_lists(write_lists(tmp_path, profiles=profiles, grades=grades))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_without_the_files_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere is not a folder with profiles\.json and grades\.json"):
        load_judged_lists(tmp_path / "nowhere")
    (tmp_path / "profiles.json").write_text(json.dumps(PROFILES))
    with pytest.raises(InvalidInput, match=r"grades\.json does not exist"):
        load_judged_lists(tmp_path)


def test_the_shipped_lists_grade_papers_of_the_example_and_leave_some_out() -> None:
    folder, papers = shipped_lists()
    known = {paper.paper_id for paper in read_papers(papers)}
    lists = load_judged_lists(folder)
    assert len(lists.profiles) == 2
    for judged in lists.profiles:
        assert set(judged.grades) < known
        assert {0, 1, 2, 3} == set(judged.grades.values())
