"""Which profiles can be used, what changes them, and what is wrong with the others."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paper_assets.errors import InvalidProfile
from paper_assets.pipeline.profiles import find_profiles, load_valid_profile
from paper_assets.pipeline.ranking_call import RankingFiles, rank_and_filter_papers
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.settings import load_settings
from tests.invented_papers import MONDAY

CONTENT = {"interests": {"primary": ["graph neural networks"]}}


def write(folder: Path, name: str, content: object = CONTENT) -> Path:
    file = folder / name / "profile.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def hash_of(folder: Path) -> str:
    return find_profiles(folder).readable["lab"].content_hash


def test_the_same_content_written_differently_is_not_a_change(tmp_path: Path) -> None:
    write(tmp_path, "lab")
    before = hash_of(tmp_path)
    reordered = {"keywords": {"must_include": []}, "interests": {"secondary": [], **CONTENT["interests"]}}
    write(tmp_path, "lab", json.dumps(reordered, indent=8))
    assert hash_of(tmp_path) == before


def test_reading_a_paper_or_adding_a_pdf_or_a_question_changes_the_profile(tmp_path: Path) -> None:
    write(tmp_path, "lab")
    before = hash_of(tmp_path)
    questions = ("questions.json", '[{"rewritten_question": "why"}]')
    for name, text in (("read_papers.json", '["2501.12345"]'), questions, ("pdf/2501.12345.pdf", "")):
        file = tmp_path / "lab" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        assert hash_of(tmp_path) != before, name
        before = hash_of(tmp_path)


def test_a_folder_name_that_would_break_a_partition_key_is_a_named_fault(tmp_path: Path) -> None:
    write(tmp_path, "a|b")
    found = find_profiles(tmp_path)
    assert not found.readable
    assert "a|b" in found.faults["a|b"]


def test_an_invalid_question_is_a_fault_for_every_reader_of_the_profile(tmp_path: Path) -> None:
    folder = write(tmp_path, "lab").parent
    (folder / "questions.json").write_text('[{"rewritten_question": "q", "k": 1}]', encoding="utf-8")
    message = "lab/questions.json: entry 1: k: unknown key"
    with pytest.raises(InvalidProfile, match=message):
        load_valid_profile(folder)
    assert message in find_profiles(tmp_path).faults["lab"]
    settings = load_settings({}, tmp_path)
    result = rank_and_filter_papers(
        [{"paper_id": "2601.00001", "title": "On graphs", "abstract": "Graphs.", "authors": ["Ada Moreau"]}],
        desk=open_workspace(settings, {}, clock=lambda: datetime(2026, 1, 7, tzinfo=UTC)),
        as_of=MONDAY,
        files=RankingFiles(profile_path=folder),
        save=False,
    )
    assert not result["success"]
    assert message in result["error"]


def test_telling_the_state_of_the_profiles_loads_no_dagster() -> None:
    code = "import sys, paper_assets.interfaces.cli.run; print('dagster' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
