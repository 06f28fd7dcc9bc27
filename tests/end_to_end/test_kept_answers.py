"""A kept answer is shown, exported, asked again with what is new, and removed."""

import json
from datetime import date
from pathlib import Path

import pytest

from paper_assets.stores.paper_merging import merge_papers
from tests.desk import Desk
from tests.invented_papers import paper

FIRST = paper(
    "2603.00021",
    date(2026, 3, 2),
    title="Frost and early apples",
    abstract="We look at orchards. Late frost halves the crop of early apples in every valley that we visited.",
)
LATER = paper(
    "2603.00022",
    date(2026, 3, 9),
    title="Apples under nets",
    abstract="Nets are cheap. Late frost does not lower the crop of early apples that grow under nets.",
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    merge_papers(desk.warehouse, [FIRST])
    return desk


def test_a_kept_question_shows_later_what_is_new(desk: Desk) -> None:
    desk.run("ask", "--extractive", "--keep", "Does late frost lower the crop of early apples?")
    [kept] = json.loads(desk.run("answers", "list", "--json"))
    merge_papers(desk.warehouse, [LATER])
    again = json.loads(desk.run("answers", "again", str(kept["number"]), "--json"))
    assert again["new"] == {LATER.paper_id: LATER.title} and again["no_longer"] == {}
    assert FIRST.title in desk.run("answers", "show", "1") and LATER.title not in desk.run("answers", "show", "1")
    assert "```bibtex" in desk.run("answers", "show", "2", "--markdown")
    desk.run("answers", "remove", "1")
    assert [each["number"] for each in json.loads(desk.run("answers", "list", "--json"))] == [2]
    assert "`paper-assets answers list`" in desk.refused("answers", "show", "1")
