import json
import os
from pathlib import Path

import pytest

from paper_assets.errors import InvalidProfile
from paper_assets.profile import (
    Profile,
    load_profile,
    profile_content,
    profile_folders,
    profile_from_mapping,
    profile_to_mapping,
)

GOOD = {"interests": {"primary": ["graphs"]}}


def written(folder: Path, **files: object) -> Path:
    """Create a profile's folder with these files; bytes unchanged, anything else as JSON."""
    folder.mkdir(parents=True)
    for name, content in {"profile": GOOD, **files}.items():
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        (folder / f"{name}.json").write_bytes(raw)
    return folder


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ({}, "interests"),
        ({"interests": {"primary": "graphs"}}, "interests.primary"),
        ({"interests": {"primary": ["  "]}}, "interests.primary.0"),
        ({"interests": {"primary": ["\x01\u200b"]}}, "interests.primary.0: it has no visible character"),
        ({**GOOD, "keyword": {}}, "keyword: unknown key"),
        ({**GOOD, "keywords": {"exclude": {"hards": []}}}, "keywords.exclude.hards: unknown key"),
        ({**GOOD, "ranking": {"top_k": "5"}}, "ranking.top_k"),
        ({**GOOD, "ranking": {"top_k": 0}}, "ranking.top_k"),
        ({**GOOD, "ranking": {"purpose": "fun"}}, "ranking.purpose"),
        ({**GOOD, "constraints": {"require_code": 1}}, "constraints.require_code"),
        ({**GOOD, "feed": {"window_days": 0}}, "feed.window_days"),
        ({**GOOD, "ranking": {"interest_mode": "lane"}}, "ranking.interest_mode"),
        ({"interests": {"papers": [5]}}, "interests.papers.0"),
        ({"interests": {"papers": ["  "]}}, "interests.papers.0"),
        ({"interests": {"papers": [{"abstract": "No title."}]}}, "interests.papers.0: give a paper id, or"),
        ({"interests": {"papers": [{"title": "T", "year": 2026}]}}, "interests.papers.0.year: unknown key"),
    ],
)
def test_a_wrong_key_or_type_is_named_with_the_file(record: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidProfile) as refusal:
        profile_content(record, source="ann/profile.json")
    assert str(refusal.value).startswith("ann/profile.json: ")
    assert named in str(refusal.value)


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (b'{"interests": {"pri', "line 1"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"[1, 2]", "object"),
        (b"[" * 100_000, "nested"),
        (b'{"interests": {"primary": ["a"], "primary": ["b"]}}', "the key 'primary' appears twice"),
    ],
)
def test_an_unreadable_profile_is_named_with_the_remedy(tmp_path: Path, raw: bytes, named: str) -> None:
    file = tmp_path / "ann" / "profile.json"
    file.parent.mkdir()
    file.write_bytes(raw)
    with pytest.raises(InvalidProfile, match=named) as refusal:
        load_profile(file.parent)
    assert str(file) in str(refusal.value)


def test_control_characters_and_half_characters_are_removed_from_a_profile(tmp_path: Path) -> None:
    texts = ["\x1b[31mgra\u202ephs", "half \ud800of a pair", "👩\u200d🔬 می\u200cخواهم"]
    folder = written(tmp_path / "ann", profile={"interests": {"primary": texts}})
    assert load_profile(folder).content.interests.primary == ["[31mgraphs", "half of a pair", texts[2]]


def test_the_history_is_part_of_the_profile_and_its_ids_have_no_version(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "profile.json").write_text(json.dumps(GOOD), encoding="utf-8-sig")
    (tmp_path / "ann" / "read_papers.json").write_text('["2501.12345v2", {"paper_id": "2501.54321"}]', encoding="utf-8")
    profile = load_profile(tmp_path / "ann")
    assert profile.read_ids == {"2501.12345", "2501.54321"}
    assert profile_from_mapping("ann", profile_to_mapping(profile)) == profile


@pytest.mark.parametrize(
    ("part", "key", "lowest", "highest", "without"),
    [
        ("constraints", "min_year", 1900, 9999, None),
        ("feed", "window_days", 1, 366, 7),
        ("ranking", "top_k", 1, 1000, 5),
        ("rewriting", "papers", 0, 100, 3),
    ],
)
def test_a_number_is_taken_up_to_its_bounds_and_no_further(
    part: str, key: str, lowest: int, highest: int, without: int | None
) -> None:
    def value(record: dict[str, object]) -> object:
        return getattr(getattr(profile_content(record, source="ann"), part), key)

    assert value(GOOD) == without
    assert [value({**GOOD, part: {key: number}}) for number in (lowest, highest)] == [lowest, highest]
    for number in (lowest - 1, highest + 1):
        with pytest.raises(InvalidProfile, match=rf"{part}\.{key}"):
            value({**GOOD, part: {key: number}})


def test_a_long_value_is_shown_by_its_beginning() -> None:
    with pytest.raises(InvalidProfile, match=r"ranking\.purpose") as refusal:
        profile_content({**GOOD, "ranking": {"purpose": "fun" * 100}}, source="ann")
    assert str(refusal.value).endswith(", got 'funfunfunfunfunfunfunfunfunfunfunfunfunfunfunfunfunfunfu...")
    with pytest.raises(InvalidProfile, match=r"got 'fun'$"):
        profile_content({**GOOD, "ranking": {"purpose": "fun"}}, source="ann")


def test_a_profile_without_interests_is_refused_with_the_keys_to_fill() -> None:
    with pytest.raises(InvalidProfile, match=r"^ann: interests: name at least one interest"):
        profile_content({}, source="ann")


@pytest.mark.parametrize("name", ["Ann", "-ann", "ann lab", "ann.lab", "änn"])
def test_a_folder_with_a_name_that_is_not_a_partition_key_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidProfile, match="a-z, 0-9, _ and - only"):
        load_profile(written(tmp_path / name))


def test_profiles_are_the_folders_that_hold_one_by_name(tmp_path: Path) -> None:
    for name in ("zoe", "ann"):
        written(tmp_path / name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "README.txt").write_text("no profile", encoding="utf-8")
    assert [folder.name for folder in profile_folders(tmp_path)] == ["ann", "zoe"]
    with pytest.raises(
        InvalidProfile, match=r"nowhere does not exist; `paper-assets profile new` makes a profile there"
    ):
        profile_folders(tmp_path / "nowhere")
    with pytest.raises(InvalidProfile, match=r"README\.txt cannot be listed"):
        profile_folders(tmp_path / "README.txt")


def test_names_that_are_not_utf_8_can_be_shown_and_stored(tmp_path: Path) -> None:
    written(tmp_path / "ann")
    written(tmp_path / os.fsdecode(b"caf\xe9"))
    (tmp_path / "ann" / "pdf").mkdir()
    (tmp_path / "ann" / "pdf" / os.fsdecode(b"caf\xe9.pdf")).touch()
    ann, other = profile_folders(tmp_path)
    assert load_profile(ann).pdf_names == ("caf?.pdf",)
    with pytest.raises(InvalidProfile, match=r"profile folder 'caf\?': name it with"):
        load_profile(other)


def test_a_missing_profile_and_one_too_large_to_be_one_are_named(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    with pytest.raises(InvalidProfile, match=r"profile\.json does not exist"):
        load_profile(tmp_path / "ann")
    good = json.dumps(GOOD).encode()
    assert load_profile(written(tmp_path / "large", profile=good.ljust(5_000_000))).name == "large"
    with pytest.raises(InvalidProfile, match=r"profile\.json is larger than 5 MB"):
        load_profile(written(tmp_path / "larger", profile=good.ljust(5_000_001)))


def test_an_invalid_id_in_the_history_is_named_by_its_position(tmp_path: Path) -> None:
    with pytest.raises(InvalidProfile, match=r"read_papers\.json: entry 2 is not a paper id"):
        load_profile(written(tmp_path / "ann", read_papers=["2501.12345", 7]))


def test_questions_are_part_of_the_profile_and_must_be_a_list_of_plans(tmp_path: Path) -> None:
    plan = {"rewritten_question": "are frogs loud"}
    asking = load_profile(written(tmp_path / "asking", questions=[plan]))
    assert asking.questions == (plan,)
    assert profile_from_mapping("asking", profile_to_mapping(asking)) == asking
    assert asking.content_hash != load_profile(written(tmp_path / "silent")).content_hash
    for name, broken in (("object", plan), ("texts", [plan, "are frogs loud"])):
        with pytest.raises(InvalidProfile, match=r"questions\.json"):
            load_profile(written(tmp_path / name, questions=broken))


def test_a_broken_history_is_a_fault_of_the_profile(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "profile.json").write_text(json.dumps(GOOD), encoding="utf-8")
    (tmp_path / "ann" / "read_papers.json").write_text('{"2501.12345": true}', encoding="utf-8")
    with pytest.raises(InvalidProfile, match=r"read_papers\.json"):
        load_profile(tmp_path / "ann")


def test_a_liked_paper_is_an_id_or_a_text_and_alone_enough() -> None:
    content = profile_content(
        {"interests": {"papers": ["2501.12345v2", {"title": "Mine", "abstract": "Text."}]}}, source="ann"
    )
    first, second = content.interests.papers
    assert (first.paper_id, first.title) == ("2501.12345", None)
    assert (second.paper_id, second.title, second.abstract) == (None, "Mine", "Text.")
    profile = Profile(name="ann", content=content)
    assert profile_from_mapping("ann", profile_to_mapping(profile)) == profile


def test_a_liked_paper_is_part_of_the_content_and_its_version_is_not() -> None:
    def content_hash(*papers: str) -> str:
        record = {"interests": {"primary": ["graphs"], "papers": list(papers)}}
        return Profile(name="ann", content=profile_content(record, source="ann")).content_hash

    assert content_hash("2501.12345") != content_hash()
    assert content_hash("2501.12345") != content_hash("2501.54321")
    assert content_hash("2501.12345v1") == content_hash("2501.12345")


OTHERS = ("must_keywords", "author_trust", "institution_trust", "recency", "practicality")
EVEN = {"semantic_relevance": 0.5, **dict.fromkeys(OTHERS, 0.1)}


def with_ranking(**options: object) -> Profile:
    record = {"interests": {"primary": ["graph neural networks"]}, "ranking": options}
    return Profile(name="lab", content=profile_content(record, source="lab"))


def test_a_profile_without_weights_has_an_unchanged_hash() -> None:
    plain = profile_content({"interests": {"primary": ["graph neural networks"]}}, source="lab")
    assert Profile(name="lab", content=plain).content_hash == "dfb458c16694680cdaf0d963f1f955f4"
    assert with_ranking(weights=None).content_hash == "dfb458c16694680cdaf0d963f1f955f4"


def test_weights_are_part_of_the_profile_and_survive_the_store() -> None:
    profile = with_ranking(weights=EVEN)
    assert profile.content_hash != with_ranking(weights=None).content_hash
    assert profile_from_mapping("lab", profile_to_mapping(profile)) == profile


def test_an_empty_list_of_categories_follows_all_as_a_missing_one_does() -> None:
    assert profile_content({**GOOD, "feed": {"categories": []}}, source="ann") == profile_content(GOOD, source="ann")


def test_a_threshold_is_part_of_the_profile_only_if_it_is_set() -> None:
    assert with_ranking(threshold=None).content_hash == with_ranking(weights=None).content_hash
    assert with_ranking(threshold=0.3).content_hash != with_ranking(threshold=None).content_hash
    assert profile_from_mapping("lab", profile_to_mapping(with_ranking(threshold=1))).content.ranking.threshold == 1.0


@pytest.mark.parametrize("threshold", [1.2, -0.1, "high", True])
def test_a_threshold_outside_of_0_to_1_is_an_error_that_names_the_key(threshold: object) -> None:
    with pytest.raises(InvalidProfile, match=r"ranking\.threshold: "):
        with_ranking(threshold=threshold)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (dict.fromkeys([*OTHERS[:4], "semantic_relevance"], 0.2), "ranking.weights.practicality: field required"),
        ({**EVEN, "novelty": 0.0}, "ranking.weights.novelty: unknown key"),
        ({**EVEN, "recency": 0.3}, "ranking.weights: the weights sum to 1.2; they must sum to 1"),
        ({**EVEN, "recency": -0.1}, "ranking.weights.recency: "),
        ([0.5, 0.5], "ranking.weights: "),
    ],
)
def test_invalid_weights_are_refused_with_the_key(weights: object, message: str) -> None:
    with pytest.raises(InvalidProfile) as refused:
        with_ranking(weights=weights)
    assert f"lab: {message}" in str(refused.value)
