"""Test that a day loses papers only if the source proves their removal, and that incomplete days are reported (A6)."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from paper_assets.paper import Paper
from paper_assets.paper_id import ARXIV
from paper_assets.stores.harvests import (
    KeptListing,
    asked_days,
    day_troubles,
    follow_days,
    keep_listing,
    note_failure,
)
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.papers import paper_counts
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import MONDAY, TUESDAY, WEDNESDAY, at, paper, papers_of, stored

NOW = datetime(2026, 1, 9, 8, tzinfo=UTC)
FRIDAY, SATURDAY, NEXT_MONDAY = date(2026, 1, 9), date(2026, 1, 10), date(2026, 1, 12)
SIXTEEN = papers_of(MONDAY, 16)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=5)


def keep(
    warehouse: Warehouse, papers: list[Paper], *, day: date = MONDAY, hours: float = 0, believe: bool = False
) -> KeptListing:
    now = NOW + timedelta(hours=hours)
    return keep_listing(warehouse, day, papers, source=ARXIV, now=now, believe=believe)


def troubles(warehouse: Warehouse) -> list[tuple[date, str]]:
    return [(trouble.day, trouble.kind) for trouble in day_troubles(warehouse, sources=[ARXIV])]


@pytest.mark.parametrize("answered", [0, 1, 8, 15])
def test_far_fewer_papers_than_before_erase_nothing_and_are_named(warehouse: Warehouse, answered: int) -> None:
    keep(warehouse, SIXTEEN)
    kept = keep(warehouse, SIXTEEN[:answered], hours=30)
    assert kept.change.removed == 0 and len(stored(warehouse)) == 16
    assert f"the answer has {answered} papers where 16 are stored" in str(kept.doubt)
    assert troubles(warehouse) == [(MONDAY, "doubted")]


def test_the_only_paper_of_a_day_is_not_erased_by_an_empty_answer(warehouse: Warehouse) -> None:
    keep(warehouse, SIXTEEN[:1])
    assert keep(warehouse, []).doubt is not None
    assert len(stored(warehouse)) == 1


def test_one_paper_in_twenty_that_is_gone_goes_at_once(warehouse: Warehouse) -> None:
    forty = papers_of(MONDAY, 40)
    keep(warehouse, forty)
    assert keep(warehouse, forty[2:]).change.removed == 2
    assert len(stored(warehouse)) == 38 and troubles(warehouse) == []
    assert keep(warehouse, forty[4:]).doubt is not None


def test_what_a_doubtful_answer_brings_is_kept(warehouse: Warehouse) -> None:
    keep(warehouse, SIXTEEN[:10])
    kept = keep(warehouse, [*SIXTEEN[:2], SIXTEEN[15]])
    assert kept.doubt is not None and kept.change.added == 1
    assert set(stored(warehouse)) == {each.paper_id for each in [*SIXTEEN[:10], SIXTEEN[15]]}


@pytest.mark.parametrize(("hours", "believed"), [(0.0, False), (0.9, False), (1.0, True), (200.0, True)])
def test_the_same_answer_an_hour_later_is_believed(warehouse: Warehouse, hours: float, believed: bool) -> None:
    keep(warehouse, SIXTEEN)
    keep(warehouse, SIXTEEN[:8])
    assert (keep(warehouse, SIXTEEN[7::-1], hours=hours).doubt is None) is believed
    assert len(stored(warehouse)) == (8 if believed else 16)
    assert troubles(warehouse) == ([] if believed else [(MONDAY, "doubted")])


def test_another_doubtful_answer_is_a_new_first_one(warehouse: Warehouse) -> None:
    keep(warehouse, SIXTEEN)
    keep(warehouse, SIXTEEN[:8])
    assert keep(warehouse, SIXTEEN[:7], hours=2).doubt is not None
    assert keep(warehouse, SIXTEEN[:8], hours=2.5).doubt is not None
    assert len(stored(warehouse)) == 16


def test_a_clock_that_was_set_back_believes_nothing_too_soon(warehouse: Warehouse) -> None:
    keep(warehouse, SIXTEEN)
    keep(warehouse, SIXTEEN[:8])
    assert keep(warehouse, SIXTEEN[:8], hours=-5000).doubt is not None
    assert keep(warehouse, SIXTEEN[:8], hours=-4999.5).doubt is not None
    assert len(stored(warehouse)) == 16
    assert keep(warehouse, SIXTEEN[:8], hours=-4999).doubt is None, "and does not doubt for ever"


def test_an_operator_who_confirms_the_removal_is_believed_at_once(warehouse: Warehouse) -> None:
    keep(warehouse, SIXTEEN)
    keep(warehouse, [])
    assert keep(warehouse, [], believe=True).change.removed == 16
    assert stored(warehouse) == {} and troubles(warehouse) == [(MONDAY, "empty")]


def test_a_whole_answer_ends_the_doubt(warehouse: Warehouse) -> None:
    keep(warehouse, SIXTEEN)
    keep(warehouse, SIXTEEN[:8])
    keep(warehouse, SIXTEEN)
    assert troubles(warehouse) == []
    assert keep(warehouse, SIXTEEN[:8], hours=5).doubt is not None, "it is forgotten, not confirmed"


def test_the_same_answer_again_changes_nothing_but_the_time_of_the_answer(warehouse: Warehouse) -> None:
    def content() -> list[object]:
        with warehouse.reading() as connection:
            papers = connection.execute("select * from papers order by paper_id").fetchall()
            return [papers, connection.execute("select * exclude (asked_at) from day_listings").fetchall()]

    keep(warehouse, SIXTEEN)
    before = content()
    again = keep(warehouse, SIXTEEN, hours=50)
    follow_days(warehouse, [MONDAY], source=ARXIV)
    assert (again.change.unchanged, content()) == (16, before)
    [asked] = asked_days(warehouse, source=ARXIV, categories=(), since=MONDAY).values()
    assert asked.asked_at == NOW + timedelta(hours=50)


def test_a_paper_listed_for_a_day_that_is_not_its_own_is_kept_under_its_own(warehouse: Warehouse) -> None:
    stray = paper("stray", MONDAY, published=at(MONDAY, 23))
    for day, papers in ((MONDAY, SIXTEEN), (TUESDAY, [*papers_of(TUESDAY, 3), stray])) * 3:
        keep(warehouse, papers, day=day)
        assert {each.paper_id for each in SIXTEEN} <= set(stored(warehouse))
    assert paper_counts(warehouse) == {MONDAY: 17, TUESDAY: 3}
    assert keep(warehouse, papers_of(TUESDAY, 3), day=TUESDAY).change.removed == 0, "now its own day's list decides"
    assert keep(warehouse, [*SIXTEEN, stray]).change.unchanged == 17
    assert keep(warehouse, SIXTEEN, believe=True).change.removed == 1


def test_one_empty_answer_keeps_papers_of_another_day_that_only_this_list_contained(warehouse: Warehouse) -> None:
    stray = paper("stray", MONDAY, published=at(MONDAY, 23))
    keep(warehouse, [*SIXTEEN, stray])
    keep(warehouse, [stray], day=TUESDAY)
    keep(warehouse, SIXTEEN)
    assert keep(warehouse, [], day=TUESDAY).doubt is not None
    assert keep(warehouse, SIXTEEN).change.removed == 0
    assert troubles(warehouse) == [(TUESDAY, "doubted")]
    assert keep(warehouse, [], day=TUESDAY, hours=2).doubt is None
    assert keep(warehouse, SIXTEEN, believe=True).change.removed == 1


def test_days_are_named_until_they_are_whole(warehouse: Warehouse) -> None:
    assert troubles(warehouse) == []
    follow_days(warehouse, [MONDAY, TUESDAY], source=ARXIV)
    keep(warehouse, SIXTEEN)
    keep(warehouse, [], day=WEDNESDAY)
    note_failure(warehouse, [FRIDAY], "arXiv asks us to slow down", source=ARXIV)
    keep(warehouse, [], day=SATURDAY)
    keep(warehouse, papers_of(NEXT_MONDAY, 2), day=NEXT_MONDAY)
    thursday, sunday = FRIDAY - timedelta(days=1), SATURDAY + timedelta(days=1)
    assert troubles(warehouse) == [
        (TUESDAY, "missing"),  # asked for by a run that was killed
        (WEDNESDAY, "empty"),
        (thursday, "missing"),  # never asked for
        (FRIDAY, "failed"),
        (sunday, "missing"),  # an empty Saturday is not a problem; a Sunday that was not fetched may have papers
    ]
    for day in (TUESDAY, WEDNESDAY, thursday, FRIDAY, sunday):
        keep(warehouse, papers_of(day, 1), day=day)
    assert troubles(warehouse) == []


def test_a_failure_leaves_what_is_stored_and_is_named(warehouse: Warehouse) -> None:
    keep(warehouse, SIXTEEN)
    note_failure(warehouse, [MONDAY], "cut off", source=ARXIV)
    assert len(stored(warehouse)) == 16 and troubles(warehouse) == [(MONDAY, "failed")]
    keep(warehouse, SIXTEEN)
    assert troubles(warehouse) == []


def test_a_day_that_only_a_file_filled_is_not_missing_but_one_with_a_stray_paper_is(warehouse: Warehouse) -> None:
    keep(warehouse, SIXTEEN)
    keep(warehouse, [*papers_of(FRIDAY, 2), paper("stray", FRIDAY - timedelta(days=1))], day=FRIDAY)
    merge_papers(warehouse, papers_of(TUESDAY, 2))
    thursday = FRIDAY - timedelta(days=1)
    assert troubles(warehouse) == [(WEDNESDAY, "missing"), (thursday, "missing")]


def test_an_empty_friday_is_no_alarm_before_its_papers_are_announced(warehouse: Warehouse) -> None:
    sunday_morning = datetime(2026, 11, 22, 6, 30, tzinfo=UTC)
    for now, expected in ((sunday_morning, []), (sunday_morning + timedelta(days=3), [(date(2026, 11, 20), "empty")])):
        keep_listing(warehouse, date(2026, 11, 20), [], source=ARXIV, now=now)
        assert troubles(warehouse) == expected, f"{now}"
