"""Test where data is stored if no variable sets it: in a checkout, beside existing data, else in the user's folder."""

import os
import subprocess
from pathlib import Path

import pytest

from paper_assets.settings import default_folder, is_desk_folder, load_settings
from tests.desk import COMMAND

ROOT = Path(__file__).parent.parent


def test_a_checkout_and_a_folder_with_data_keep_their_data(tmp_path: Path) -> None:
    assert default_folder({}, ROOT) == ROOT
    assert not is_desk_folder(tmp_path)
    (tmp_path / "profiles" / "a").mkdir(parents=True)
    (tmp_path / "profiles" / "a" / "profile.json").write_text("{}", encoding="utf-8")
    assert default_folder({}, tmp_path) == tmp_path


def test_elsewhere_the_users_data_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("HOME", str(tmp_path))
    found = default_folder({}, tmp_path)
    assert found.name == "paper-assets"
    assert found.is_relative_to(tmp_path)
    assert default_folder({"PAPER_ASSETS_HOME": "x"}, tmp_path) == tmp_path


def test_a_variable_goes_before_the_default_folder_and_is_taken_from_the_working_folder(tmp_path: Path) -> None:
    settings = load_settings({"PAPER_ASSETS_PROFILES": "mine"}, tmp_path, default_folder=tmp_path / "share")
    assert settings.profiles_dir == tmp_path / "mine"
    assert settings.home == tmp_path / "share" / "data"


def test_with_nothing_but_a_home_a_profile_is_made_and_found_from_any_folder(tmp_path: Path) -> None:
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.mkdir()
    other.mkdir()
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}

    def run(folder: Path, *arguments: str) -> str:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=folder, env=environ, capture_output=True, text=True, check=True
        )
        return done.stdout

    run(empty, "profile", "new", "frogs", "--interest", "frogs", "--category", "q-bio.PE")
    assert "frogs" in run(other, "profile", "list")
    assert list(empty.iterdir()) == []
