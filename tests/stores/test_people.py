"""Test the file of people: hashed tokens, private to its user, and one line for every fault."""

import json
from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput
from paper_assets.stores.profiles import add_person, people_file, person_with, read_people, remove_person


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
    ("content", "said"),
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
def test_a_broken_file_admits_no_person_and_says_what_is_wrong(file: Path, content: str, said: str) -> None:
    file.parent.mkdir()
    file.write_text(content, encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(InvalidInput, match=said):
        read_people(file)
