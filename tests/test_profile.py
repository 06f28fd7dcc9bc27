import json
from pathlib import Path

import pytest

from paper_assets.errors import InvalidProfile
from paper_assets.profile import Profile, load_profile, profile_content, profile_from_mapping, profile_to_mapping

GOOD = {"interests": {"primary": ["graphs"]}}


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ({}, "interests"),
        ({"interests": {"primary": "graphs"}}, "interests.primary"),
        ({"interests": {"primary": ["  "]}}, "interests.primary.0"),
        ({**GOOD, "keyword": {}}, "keyword: unknown key"),
        ({**GOOD, "keywords": {"exclude": {"hards": []}}}, "keywords.exclude.hards: unknown key"),
        ({**GOOD, "ranking": {"top_k": "5"}}, "ranking.top_k"),
        ({**GOOD, "ranking": {"top_k": 0}}, "ranking.top_k"),
        ({**GOOD, "ranking": {"purpose": "fun"}}, "ranking.purpose"),
        ({**GOOD, "constraints": {"require_code": 1}}, "constraints.require_code"),
        ({**GOOD, "feed": {"window_days": 0}}, "feed.window_days"),
        ({**GOOD, "ranking": {"interest_mode": "lane"}}, "ranking.interest_mode"),
        ({**GOOD, "ranking": {"hybrid_of": []}}, "ranking.hybrid_of"),
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
    ],
)
def test_an_unreadable_profile_is_named_with_the_mend(tmp_path: Path, raw: bytes, named: str) -> None:
    file = tmp_path / "ann" / "profile.json"
    file.parent.mkdir()
    file.write_bytes(raw)
    with pytest.raises(InvalidProfile, match=named) as refusal:
        load_profile(file.parent)
    assert str(file) in str(refusal.value)


def test_the_history_is_part_of_the_profile_and_its_ids_have_no_version(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "profile.json").write_text(json.dumps(GOOD), encoding="utf-8-sig")
    (tmp_path / "ann" / "read_papers.json").write_text('["2501.12345v2", {"paper_id": "2501.54321"}]', encoding="utf-8")
    profile = load_profile(tmp_path / "ann")
    assert profile.read_ids == {"2501.12345", "2501.54321"}
    assert profile_from_mapping("ann", profile_to_mapping(profile)) == profile


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
