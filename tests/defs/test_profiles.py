"""What the profile sensor decides, without a sensor."""

import json
from pathlib import Path

from paper_assets.defs.profiles import ProfilesFound, find_profiles, profile_changes

CONTENT = {"interests": {"primary": ["graph neural networks"]}}


def write(folder: Path, name: str, content: object = CONTENT) -> Path:
    file = folder / name / "profile.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def hashes(found: ProfilesFound) -> dict[str, str | None]:
    return {name: profile.content_hash for name, profile in found.readable.items()}


def test_a_new_profile_is_added_and_reported(tmp_path: Path) -> None:
    write(tmp_path, "lab")
    changes = profile_changes({}, find_profiles(tmp_path))
    assert (changes.added, changes.changed, changes.removed) == (("lab",), ("lab",), ())


def test_the_same_content_written_differently_is_no_change(tmp_path: Path) -> None:
    write(tmp_path, "lab")
    known = hashes(find_profiles(tmp_path))
    reordered = {"keywords": {"must_include": []}, "interests": {"secondary": [], **CONTENT["interests"]}}
    write(tmp_path, "lab", json.dumps(reordered, indent=8))
    assert profile_changes(known, find_profiles(tmp_path)).changed == ()


def test_only_the_edited_profile_changes(tmp_path: Path) -> None:
    write(tmp_path, "lab")
    write(tmp_path, "other")
    known = hashes(find_profiles(tmp_path))
    write(tmp_path, "lab", {"interests": {"primary": ["diffusion models"]}})
    assert profile_changes(known, find_profiles(tmp_path)).changed == ("lab",)


def test_reading_a_paper_or_adding_a_pdf_or_a_question_changes_the_profile(tmp_path: Path) -> None:
    write(tmp_path, "lab")
    known = hashes(find_profiles(tmp_path))
    questions = ("questions.json", '[{"rewritten_question": "why"}]')
    for name, text in (("read_papers.json", '["2501.12345"]'), questions, ("pdf/2501.12345.pdf", "")):
        file = tmp_path / "lab" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        found = find_profiles(tmp_path)
        assert profile_changes(known, found).changed == ("lab",), name
        known = hashes(found)


def test_a_half_written_profile_changes_nothing_deletes_nothing_and_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, "lab")
    known = hashes(find_profiles(tmp_path))
    file.write_text('{"interests": {"prim', encoding="utf-8")
    found = find_profiles(tmp_path)
    changes = profile_changes(known, found)
    assert (changes.added, changes.changed, changes.removed) == ((), (), ())
    assert str(file) in found.faults["lab"]


def test_a_removed_profile_leaves_and_the_others_stay(tmp_path: Path) -> None:
    file = write(tmp_path, "lab")
    write(tmp_path, "other")
    known = hashes(find_profiles(tmp_path))
    file.unlink()
    assert profile_changes(known, find_profiles(tmp_path)).removed == ("lab",)


def test_a_folder_name_that_would_break_a_partition_key_is_a_named_fault(tmp_path: Path) -> None:
    write(tmp_path, "a|b")
    found = find_profiles(tmp_path)
    assert not found.readable
    assert "a|b" in found.faults["a|b"]
