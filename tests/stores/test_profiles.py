"""Test stored versions of profiles, edits of their files, and the people of a lab."""

import json
from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput, StoreUnwritable
from paper_assets.profile import Profile, profile_content
from paper_assets.stores.profiles import (
    ProfileEdited,
    add_person,
    file_version,
    keep_profile,
    last_good_profile,
    people_file,
    person_with,
    profile_version,
    read_people,
    remove_person,
    write_json,
)
from paper_assets.stores.warehouse import Warehouse


def profile(interest: str) -> Profile:
    content = profile_content({"interests": {"primary": [interest]}}, source="test")
    return Profile(name="ann", content=content, read_ids=frozenset({"2501.12345"}), pdf_names=("2501.12345v1.pdf",))


def test_the_last_good_profile_is_the_one_kept_last_even_when_it_returns(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    first, second = profile("graphs"), profile("proteins")
    assert last_good_profile(warehouse, "ann") is None
    for kept in (first, second, first, first):
        keep_profile(warehouse, kept)
        assert last_good_profile(warehouse, "ann") == kept
    assert profile_version(warehouse, "ann", second.content_hash) == second


def test_one_profile_is_not_another_s_last_good_one(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    keep_profile(warehouse, profile("graphs"))
    assert last_good_profile(warehouse, "bob") is None


# Files: written completely or not at all, and never over an unseen edit


def test_a_file_that_was_edited_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file, turns = tmp_path / "reader" / "profile.json", tmp_path / "edited"
    file.parent.mkdir()
    write_json(file, {"a": 1}, version="none", turns=turns)
    version = file_version(file)
    file.write_text('{"a": 2}', encoding="utf-8")
    with pytest.raises(ProfileEdited, match="edited by another program"):
        write_json(file, {"a": 3}, version=version, turns=turns)
    assert json.loads(file.read_text("utf-8")) == {"a": 2}
    write_json(file, {"a": "é"}, version=file_version(file), turns=turns)
    assert "é" in file.read_text("utf-8"), "as a person would write it"
    assert [each.name for each in file.parent.iterdir()] == ["profile.json"]


def test_a_missing_folder_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreUnwritable, match="cannot be written"):
        write_json(tmp_path / "gone" / "profile.json", {}, version="none", turns=tmp_path / "edited")


# People: hashed tokens in a file private to its user, and one line for every fault


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return people_file(tmp_path / "home")


def test_a_token_opens_its_persons_profiles_until_they_are_removed(file: Path) -> None:
    assert read_people(file) == ()
    ada, bob = add_person(file, "ada", ["graphs", "speech"]), add_person(file, "bob", ["speech"])
    people = read_people(file)
    assert [(each.name, sorted(each.profiles)) for each in people] == [
        ("ada", ["graphs", "speech"]),
        ("bob", ["speech"]),
    ]
    assert [person_with(people, token) for token in (ada, bob)] == list(people)
    assert [person_with(people, token) for token in ("", ada[:-1], f"{ada}x", "ada", people[0].token_sha256)] == [
        None
    ] * 5
    remove_person(file, "ada")
    assert person_with(read_people(file), ada) is None
    assert person_with(read_people(file), bob) == people[1]


def test_the_file_holds_no_token_and_is_for_its_user_alone(file: Path) -> None:
    token = add_person(file, "ada", ["graphs"])
    assert token not in file.read_text(encoding="utf-8")
    assert len(token) >= 40
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    with pytest.raises(InvalidInput, match="can be read by other users; run `chmod 600"):
        read_people(file)


def test_a_name_is_unique_and_a_person_has_a_profile(file: Path) -> None:
    add_person(file, "ada", ["graphs"])
    with pytest.raises(InvalidInput, match="ada already exists"):
        add_person(file, "ada", ["speech"])
    with pytest.raises(InvalidInput, match="needs a profile"):
        add_person(file, "bob", [])
    for name in ("", "Ada", "../x", "a b", "a" * 61):
        with pytest.raises(InvalidInput, match="cannot be a name"):
            add_person(file, name, ["graphs"])
    with pytest.raises(InvalidInput, match="no person is named 'bob'; people: ada"):
        remove_person(file, "bob")
    assert [each.name for each in read_people(file)] == ["ada"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected an object with the list people"),
        ('{"people": [{"name": "ada"}]}', "person 1: expected name, profiles and token_sha256"),
        ('{"people": [{"name": "Ada", "profiles": [], "token_sha256": ""}]}', "person 1: name must be"),
        ('{"people": [{"name": "ada", "profiles": "x", "token_sha256": ""}]}', "person 1: profiles must be a list"),
        ('{"people": [{"name": "ada", "profiles": [], "token_sha256": "1"}]}', "person 1: token_sha256 must be"),
        (json.dumps({"people": [{"name": "a", "profiles": [], "token_sha256": "0" * 64}] * 2}), "two people"),
    ],
    ids=["json", "list", "keys", "name", "profiles", "hash", "twice"],
)
def test_a_broken_file_admits_no_person_and_says_what_is_wrong(file: Path, content: str, message: str) -> None:
    file.parent.mkdir()
    file.write_text(content, encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(InvalidInput, match=message):
        read_people(file)
