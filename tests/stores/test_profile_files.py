"""Test that a profile's file is written completely or not at all, and never over an unseen edit."""

import json
from pathlib import Path

import pytest

from paper_assets.errors import StoreUnwritable
from paper_assets.stores.profiles import ProfileEdited, file_version, write_json


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


def test_a_folder_that_is_gone_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreUnwritable, match="cannot be written"):
        write_json(tmp_path / "gone" / "profile.json", {}, version="none", turns=tmp_path / "edited")
