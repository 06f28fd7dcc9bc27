"""What is told of a stored ranking, by the command line and over MCP alike."""

from datetime import date
from pathlib import Path

from paper_assets.interfaces.ranking_answers import shown_ranking
from tests.mcp.ranked_desk import DAYS, ranked_desk


def test_a_ranked_paper_that_is_no_longer_stored_keeps_its_place_and_its_reasons(tmp_path: Path) -> None:
    desk, day = ranked_desk(tmp_path), date.fromisoformat(DAYS[-1])
    before = shown_ranking(desk.warehouse, "traffic", day)["papers"]
    with desk.warehouse.writing() as connection:
        connection.execute("delete from papers where paper_id = ?", [before[0]["paper_id"]])
    after = shown_ranking(desk.warehouse, "traffic", day)["papers"]
    assert after == [{**before[0], "title": "(no longer stored)", "authors": []}, before[1]]
