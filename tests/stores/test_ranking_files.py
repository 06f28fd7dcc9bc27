"""Test that a ranking's file is complete or absent, and that no file is overwritten (G15)."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paper_assets.errors import InvalidProfile, StoreUnwritable
from paper_assets.stores.ranking_files import find_saved, save_ranking
from tests.invented_papers import allow_files_of, listing, process

NOW = datetime(2026, 1, 5, 9, 8, 7, tzinfo=UTC)


def test_the_file_is_named_after_profile_and_time_and_contains_its_path(tmp_path: Path) -> None:
    path = save_ranking(tmp_path / "new", "vision", {"success": True, "summary": {"purpose": "논문"}}, now=NOW)
    assert path == tmp_path / "new" / "vision" / "2026-01-05_090807_ranked.json"
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "success": True,
        "summary": {"purpose": "논문"},
        "output_path": str(path),
    }
    assert "논문" in path.read_text(encoding="utf-8")
    assert listing(path.parent) == {path.name}


def test_without_a_profile_the_name_of_the_folder_shows_it(tmp_path: Path) -> None:
    assert save_ranking(tmp_path, None, {}, now=NOW).parent.name == "no_profile"


@pytest.mark.parametrize("name", ["", "..", "a/b", "/tmp", "Vision"])
def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidProfile):
        save_ranking(tmp_path / "inner", name, {}, now=NOW)
    assert listing(tmp_path) == set()


def test_a_ranking_in_the_same_second_gets_another_name(tmp_path: Path) -> None:
    paths = [save_ranking(tmp_path, "p", {"number": number}, now=NOW) for number in range(3)]
    assert [path.name.removeprefix("2026-01-05_090807_") for path in paths] == [
        "ranked.json",
        "ranked_2.json",
        "ranked_3.json",
    ]
    assert [json.loads(path.read_text(encoding="utf-8"))["number"] for path in paths] == [0, 1, 2]


def test_a_saved_ranking_is_found_again_by_its_content(tmp_path: Path) -> None:
    save_ranking(tmp_path, "p", {"number": 1}, now=NOW)
    second = save_ranking(tmp_path, "p", {"number": 2}, now=NOW)
    assert find_saved(tmp_path, "p", {"number": 2}, now=NOW) == second
    assert find_saved(tmp_path, "p", {"number": 3}, now=NOW) is None


def test_half_a_surrogate_pair_is_still_json(tmp_path: Path) -> None:
    path = save_ranking(tmp_path, "p", {"title": "broken \ud835 here"}, now=NOW)
    assert json.loads(path.read_bytes())["title"] == "broken \ud835 here"


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("x", encoding="utf-8")
    with pytest.raises(StoreUnwritable, match="set OUTPUT_DIR"):
        save_ranking(tmp_path, "p", {}, now=NOW)


def test_what_json_cannot_hold_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_ranking(tmp_path, "p", {"score": float("nan")}, now=NOW)
    assert listing(tmp_path / "p") == set()


def _save_many(answers, folder: Path, writer: int) -> None:  # type: ignore[no-untyped-def]
    answers.send("ready")
    answers.recv()
    for number in range(15):
        save_ranking(folder, "p", {"from": [writer, number], "long": "x" * 50_000}, now=NOW)
    answers.send("done")


def test_processes_in_the_same_second_do_not_take_each_others_names(tmp_path: Path) -> None:
    with process(_save_many, tmp_path, 1) as (_, one), process(_save_many, tmp_path, 2) as (_, two):
        for message in ("ready", "done"):
            for writer in (one, two):
                assert writer.recv() == message
                if message == "ready":
                    writer.send("go")
    saved = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "p").iterdir()]
    assert sorted(each["from"] for each in saved) == [[writer, number] for writer in (1, 2) for number in range(15)]


def _save_on_a_full_disk(answers, folder: Path) -> None:  # type: ignore[no-untyped-def]
    allow_files_of(10_000)
    try:
        save_ranking(folder, "p", {"long": "x" * 50_000}, now=NOW)
    except StoreUnwritable as refused:
        answers.send(str(refused))


def test_a_full_disk_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    with process(_save_on_a_full_disk, tmp_path) as (_, answers):
        assert "free space" in answers.recv()
    assert listing(tmp_path / "p") == set()
