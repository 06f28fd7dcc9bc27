"""Test that all reads of one opening see one state and cannot write."""

from pathlib import Path

import pytest

from paper_assets.profile import Profile, profile_content
from paper_assets.stores.papers import latest_day, paper_counts, papers_by_id, submission_days
from paper_assets.stores.profiles import keep_profile, last_good_profile, profile_version
from paper_assets.stores.warehouse import Warehouse
from tests.stores.invented_warehouse import fill


def test_many_questions_are_asked_in_one_opening_and_none_of_them_writes(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse.duckdb", deadline=5)
    fill(warehouse)
    with warehouse.read_together() as opened:
        assert latest_day(opened) == max(paper_counts(opened))
        with pytest.raises(RuntimeError, match="for reading only"), opened.writing():
            pass
    with warehouse.writing() as connection:  # closed again
        connection.execute("select 1").fetchall()


def test_a_profile_asked_for_in_between_leaves_the_opening_to_the_next_question(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse.duckdb", deadline=5)
    kept = Profile(name="ann", content=profile_content({"interests": {"primary": ["graphs"]}}, source="test"))
    keep_profile(warehouse, kept)
    with warehouse.read_together() as opened:
        assert last_good_profile(opened, "ann") == kept
        assert submission_days(opened, ["2603.00001"]) == {}
        assert profile_version(opened, "ann", kept.content_hash) == kept
        assert papers_by_id(opened, ["2603.00001"]).num_rows == 0
