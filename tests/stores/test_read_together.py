"""One opening for many questions: what is read is one state, and nothing is written through it."""

from pathlib import Path

import pytest

from paper_assets.stores.papers import latest_day, paper_counts
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
