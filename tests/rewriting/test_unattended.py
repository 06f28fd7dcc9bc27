"""Auto: nobody is asked, and the loop still ends."""

from pathlib import Path

import pytest

from paper_assets.rewriting.unattended import run_to_end
from paper_assets.stores.warehouse import Warehouse
from tests.loopback_llm import loopback_llm
from tests.rewriting.scripted import Play, opened, writer_of


@pytest.mark.parametrize(
    ("scores", "kept", "outcome"),
    [
        ((86, 93), 2, "passed"),
        ((88, 86, 87, 89, 85), 5, "accepted"),
        ((70, 88, 70, 70, 70), 2, "best"),
    ],
)
def test_a_rewrite_runs_to_its_end_without_a_person(
    tmp_path: Path, scores: tuple[int, ...], kept: int, outcome: str
) -> None:
    warehouse = Warehouse(tmp_path / "warehouse.duckdb", deadline=5)
    with loopback_llm(Play(*scores)) as server:
        [item] = opened(warehouse)
        stands = run_to_end(warehouse, writer_of(server), item.item)
    assert (stands.outcome, stands.kept, len(stands.attempts)) == (outcome, kept, len(scores))
