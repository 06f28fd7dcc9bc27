"""Test that the stamp of a run without work is valid exactly while its files are untouched."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from paper_assets.learning.ratings import erase_ratings
from paper_assets.small_files import file_state
from paper_assets.stores.stamps import forget_stamps, keep_stamp, stamped_answer
from paper_assets.stores.warehouse import Warehouse

ANSWER = [{"profile": "graphs", "papers": []}]


@pytest.fixture
def stamped(tmp_path: Path) -> Path:
    """A folder with a stamp for the question `today`, resting on a store, a folder and a log that is not there."""
    (tmp_path / "profiles" / "graphs").mkdir(parents=True)
    (tmp_path / "profiles" / "graphs" / "profile.json").write_text("{}", encoding="utf-8")
    (tmp_path / "store").write_bytes(b"papers")
    files = [tmp_path / name for name in ("store", "store.wal", "profiles")]
    keep_stamp(tmp_path / "store", "run", "today", files, file_state(files), ANSWER)
    return tmp_path


def replaced_with_the_old_date(folder: Path) -> None:
    """Other bytes of the same number under the old time of change, as a restored back-up has it."""
    file = folder / "store"
    before = file.stat()
    file.with_name("new").write_bytes(b"others")
    file.with_name("new").replace(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


TOUCHED: dict[str, Callable[[Path], object]] = {
    "the store is another": replaced_with_the_old_date,
    "the store is gone": lambda folder: (folder / "store").unlink(),
    "the store has a log": lambda folder: (folder / "store.wal").write_bytes(b"more"),
    "a profile is edited": lambda folder: (folder / "profiles" / "graphs" / "profile.json").write_text('{"a": 1}'),
    "a profile has come": lambda folder: (folder / "profiles" / "speech").mkdir(),
    "a paper was read": lambda folder: (folder / "profiles" / "graphs" / "read_papers.json").write_text("[]"),
    "the stamp is damaged": lambda folder: (folder / "store.run").write_text('{"question": "today"'),
    "the stamp is not an object": lambda folder: (folder / "store.run").write_text("[]"),
}


def test_what_is_untouched_has_its_answer_however_often_it_is_asked(stamped: Path) -> None:
    (stamped / "store.wal").touch()  # an empty log says nothing
    assert [stamped_answer(stamped / "store", "run", "today") for _ in range(2)] == [ANSWER] * 2
    assert (stamped / "store.run").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("change", TOUCHED)
def test_what_was_touched_has_to_be_looked_at(stamped: Path, change: str) -> None:
    TOUCHED[change](stamped)
    assert stamped_answer(stamped / "store", "run", "today") is None


def test_what_a_killed_writer_left_of_a_stamp_goes_with_the_next_one_and_with_the_stamps(stamped: Path) -> None:
    half = stamped / ".unfinished-store.run-1"
    half.write_text("papers")
    keep_stamp(stamped / "store", "run", "today", [stamped / "store"], file_state([stamped / "store"]), ANSWER)
    assert not half.exists()
    half.write_text("papers")
    forget_stamps(stamped / "store")
    assert not half.exists()


def test_another_question_or_command_has_no_answer(stamped: Path) -> None:
    assert stamped_answer(stamped / "store", "run", "tomorrow") is None
    assert stamped_answer(stamped / "store", "status", "today") is None


def test_a_folder_that_leads_round_to_itself_or_cannot_be_read_has_no_state(tmp_path: Path) -> None:
    (tmp_path / "round").mkdir()
    (tmp_path / "round" / "again").symlink_to(tmp_path / "round")
    assert file_state([tmp_path / "round"]) is None
    assert file_state([tmp_path / ("name" * 100)]) is None


def test_a_stamp_does_not_describe_erased_ratings(tmp_path: Path) -> None:
    warehouse, profiles = Warehouse(tmp_path / "warehouse.duckdb", deadline=5), tmp_path / "profiles"
    (profiles / "graphs").mkdir(parents=True)
    (profiles / "graphs" / "profile.json").write_text("{}", encoding="utf-8")
    keep_stamp(warehouse.path, "run", "today", [], file_state([]), ANSWER)
    keep_stamp(warehouse.path, "status", "today", [], file_state([]), ANSWER)
    erase_ratings(warehouse, "graphs", profiles_dir=profiles)
    assert not [file for file in tmp_path.iterdir() if file.name.endswith((".run", ".status"))]
