"""Test that a replay shows what a subscriber saw: no paper twice, quiet days, and what was never shown."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from benchmarks.evaluation.judged_lists import (
    JudgedLists,
    ReplayedDay,
    load_judged_lists,
    replay_figures,
    replay_table,
    shown_papers,
)
from benchmarks.evaluation.replay import ReplayOptions, replayed_days
from paper_assets.errors import InvalidInput
from paper_assets.models.embedder import load_embedder
from paper_assets.settings import load_settings
from paper_assets.stores.warehouse import Warehouse
from tests.evaluation.judged import paper, warehouse_of, write_lists

LAST = date(2026, 3, 12)


@pytest.fixture
def lists(tmp_path: Path) -> JudgedLists:
    return load_judged_lists(write_lists(tmp_path / "lists"))


@pytest.fixture
def warehouse() -> Iterator[Warehouse]:
    with warehouse_of() as filled:
        yield filled


def day(number: int, *shown: str, candidates: tuple[str, ...] = (), quiet: bool = False) -> ReplayedDay:
    return ReplayedDay(day=date(2026, 3, number), shown=shown, candidates=frozenset(candidates or shown), quiet=quiet)


def replay(
    warehouse: Warehouse, lists: JudgedLists, folder: Path, *, days: int = 5, top_k: int = 2, mode: str | None = None
) -> dict[str, tuple[ReplayedDay, ...]]:
    embedder = load_embedder()
    return dict(
        replayed_days(
            warehouse,
            lists,
            ReplayOptions(days=days, top_k=top_k, interest_mode=mode),
            last=LAST,
            embedder=embedder,
            embed=embedder.encode,
            settings=load_settings({}, folder),
        )
    )


def test_what_is_shown_is_counted_once_and_unjudged_papers_apart(lists: JudgedLists) -> None:
    frogs = lists.profiles[0]
    days = [
        day(10, "2603.00001", "2603.00005", candidates=("2603.00001", "2603.00002", "2603.00005")),
        day(11, "2603.00004", quiet=True),
        day(12, quiet=True),
    ]
    found = replay_figures(frogs, days)
    assert (found.days, found.quiet_days) == (3, 2)
    assert (found.shown, found.judged, found.on_topic, found.unjudged) == (3, 2, 1, 1)
    assert found.share == 0.5
    assert found.relevant == 3
    assert found.never_shown == ("2603.00002",)  # it was a candidate on the tenth
    assert found.removed == ("2603.00007",)  # no day's candidate


def test_the_table_adds_the_profiles_up(lists: JudgedLists) -> None:
    figures = [replay_figures(judged, [day(10, "2603.00001", "2603.00003")]) for judged in lists.profiles]
    header, rows = replay_table(figures)
    assert {len(row) for row in rows} == {len(header)}
    assert [row[0] for row in rows] == ["frogs", "stones", "together"]
    together = dict(zip(header, rows[-1], strict=True))
    assert (together["shown"], together["on topic"], together["of judged"]) == ("4", "2", "2")
    assert together["share on topic"] == "1.000"


def test_the_lists_can_be_read_day_by_day(lists: JudgedLists) -> None:
    lines = shown_papers(lists.profiles[0], [day(10, "2603.00001", "2603.00005")], {"2603.00001": "frogs"})
    assert [(line["place"], line["title"], line["grade"]) for line in lines] == [(1, "frogs", 3), (2, "", None)]


def test_a_subscriber_sees_no_paper_twice_and_k_a_day(lists: JudgedLists, warehouse: Warehouse, tmp_path: Path) -> None:
    seen = replay(warehouse, lists, tmp_path)
    frogs = [paper_id for one in seen["frogs"] for paper_id in one.shown]
    assert len(frogs) == len(set(frogs))
    assert all(len(one.shown) <= 2 for one in seen["frogs"])
    assert [one.day.day for one in seen["frogs"]] == [8, 9, 10, 11, 12]
    for earlier, later in zip(seen["frogs"], seen["frogs"][1:], strict=False):
        assert not set(earlier.shown) & later.candidates
    assert {"2603.00001", "2603.00002", "2603.00007"} <= set(frogs)


def test_a_replay_is_the_same_in_every_run(lists: JudgedLists, tmp_path: Path) -> None:
    with warehouse_of() as one, warehouse_of() as other:
        assert replay(one, lists, tmp_path, days=2) == replay(other, lists, tmp_path, days=2)


def test_days_before_the_first_paper_are_none_that_anybody_saw(
    lists: JudgedLists, warehouse: Warehouse, tmp_path: Path
) -> None:
    assert len(replay(warehouse, lists, tmp_path, days=300, top_k=1)["stones"]) == 5


def test_days_on_which_no_paper_is_possible_are_quiet_and_days_with_fewer_than_k_are_not(
    lists: JudgedLists, warehouse: Warehouse, tmp_path: Path
) -> None:
    seen = replay(warehouse, lists, tmp_path)
    days = [*seen["frogs"], *seen["stones"]]
    assert [one.quiet for one in days] == [not one.shown for one in days]
    assert any(one.quiet and one.candidates for one in days)
    assert any(not one.quiet and len(one.shown) < 2 for one in days)


def test_nothing_is_written_outside_the_scratch_warehouse(
    lists: JudgedLists, warehouse: Warehouse, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    replay(warehouse, lists, tmp_path, days=1)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_day_before_all_papers_and_a_mode_that_is_none_are_refused(
    warehouse: Warehouse, lists: JudgedLists, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="interest_mode"):
        replay(warehouse, lists, tmp_path, mode="magic")
    with (
        warehouse_of([paper(1, "frogs", day=20)]) as later,
        pytest.raises(InvalidInput, match="no paper is known up to"),
    ):
        replay(later, lists, tmp_path)
