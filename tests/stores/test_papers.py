"""Test that a paper is one row in its newest version, whatever the origin and order of its records."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper_assets.paper import Paper, paper_schema, papers_from_table
from paper_assets.stores.paper_merging import DayChange, merge_papers, replace_day
from paper_assets.stores.papers import (
    day_fingerprints,
    find_paper,
    latest_day,
    paper_counts,
    papers_between,
    papers_by_id,
)
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import MONDAY, TUESDAY, WEDNESDAY, at, listing, paper, papers_of, stored


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=5)


FULL = Paper(
    paper_id="hep-th/9901001",
    title="Größen und 논문: “quotes”\ttabs, NUL-free",
    abstract="Zeile eins\nline two '); drop table papers; --",
    authors=("Müller, Jörg", "김철수", "O'Neil"),
    version=3,
    published=datetime(2026, 1, 5, 23, 59, 59, 999_999, tzinfo=UTC),
    updated=at(WEDNESDAY),
    categories=("hep-th", "math.QA"),
    primary_category="hep-th",
    comment="12 pages, ∞ figures",
    doi="10.1/xyz",
    journal_ref="J. Inv. 1",
    pdf_url="https://example.org/a.pdf",
    github_url="https://github.com/a/b",
    affiliations=("MIT",),
    withdrawn=True,
)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Seoul", "America/Los_Angeles"])
def test_a_paper_is_read_back_unchanged_in_any_time_zone(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        replace_day(warehouse, MONDAY, [FULL])
        merge_papers(warehouse, [paper("bare", None, authors=(), categories=(), primary_category=None)])
        assert stored(warehouse) == {
            FULL.paper_id: FULL,
            "bare": paper("bare", None, authors=(), categories=(), primary_category=None),
        }
        assert paper_counts(warehouse) == {MONDAY: 1}
    finally:
        monkeypatch.undo()
        time.tzset()


def test_writing_a_day_replaces_that_day(warehouse: Warehouse) -> None:
    first, second, third = papers_of(MONDAY, 3)
    replace_day(warehouse, MONDAY, [first, second])
    replace_day(warehouse, TUESDAY, papers_of(TUESDAY, 1))
    mended = paper(second.paper_id, title="Mended")
    assert replace_day(warehouse, MONDAY, [mended, third]) == DayChange(added=1, updated=1, removed=1, unchanged=0)
    assert stored(warehouse) == {each.paper_id: each for each in [mended, third, *papers_of(TUESDAY, 1)]}


def test_writing_a_day_leaves_the_papers_that_came_from_files(warehouse: Warehouse) -> None:
    merge_papers(warehouse, [paper("only-in-file"), paper("in-both")])
    assert replace_day(warehouse, MONDAY, [paper("in-both")]).unchanged == 1
    assert replace_day(warehouse, MONDAY, []).removed == 1  # the API gave it, the API withdrew it
    assert set(stored(warehouse)) == {"only-in-file"}


def test_the_same_day_again_changes_nothing_not_even_the_file(warehouse: Warehouse) -> None:
    papers = papers_of(MONDAY, 50)
    replace_day(warehouse, MONDAY, papers)
    before, content = day_fingerprints(warehouse, MONDAY, MONDAY), warehouse.path.read_bytes()
    again = replace_day(warehouse, MONDAY, list(reversed(papers)))
    assert again == DayChange(added=0, updated=0, removed=0, unchanged=50)
    assert day_fingerprints(warehouse, MONDAY, MONDAY) == before
    assert warehouse.path.read_bytes() == content


def test_a_newer_version_is_never_replaced_by_an_older_one(warehouse: Warehouse) -> None:
    newer = paper(version=2, title="Second")
    replace_day(warehouse, MONDAY, [newer])
    assert replace_day(warehouse, MONDAY, [paper(version=1)]).unchanged == 1
    assert merge_papers(warehouse, [paper(version=1, title="Older")]).unchanged == 1
    assert stored(warehouse) == {newer.paper_id: newer}


def test_a_paper_moves_to_another_day_and_is_not_doubled(warehouse: Warehouse) -> None:
    replace_day(warehouse, MONDAY, [paper("moves", MONDAY), paper("stays", MONDAY)])
    report = merge_papers(warehouse, [paper("moves", TUESDAY, version=2)])
    assert report.days == {MONDAY: 1, TUESDAY: 1}
    assert paper_counts(warehouse) == {MONDAY: 1, TUESDAY: 1}
    replace_day(warehouse, WEDNESDAY, [paper("stays", WEDNESDAY)])
    assert paper_counts(warehouse) == {TUESDAY: 1, WEDNESDAY: 1}


def test_a_paper_seen_twice_in_one_stream_is_one_row_in_its_newest_version(warehouse: Warehouse) -> None:
    versions = [paper(version=number, title=f"Version {number}") for number in (2, 3, 1)]
    report = merge_papers(warehouse, [*versions, *versions, paper("other")])
    assert (report.read, report.repeated, report.added) == (7, 5, 2)
    assert stored(warehouse)[versions[0].paper_id] == versions[1]


def test_the_same_of_two_records_of_one_version_is_kept_in_any_order(tmp_path: Path) -> None:
    for number in range(4):
        kept = []
        for name, order in (("one", 1), ("other", -1)):
            warehouse = Warehouse(tmp_path / f"{name}{number}.duckdb", deadline=5)
            merge_papers(warehouse, [paper(title=f"This {number}"), paper(title=f"That {number}")][::order])
            kept.append(stored(warehouse))
        assert kept[0] == kept[1]


def test_the_api_takes_precedence_over_a_file_of_the_same_version(warehouse: Warehouse) -> None:
    replace_day(warehouse, MONDAY, [paper(title="From the API")])
    assert merge_papers(warehouse, [paper(title="From a file")]).unchanged == 1
    assert merge_papers(warehouse, [paper(title="From a file", version=2)]).updated == 1
    assert replace_day(warehouse, MONDAY, [paper(title="From the API", version=2)]).updated == 1
    assert stored(warehouse)[paper().paper_id].title == "From the API"


def test_papers_without_a_date_are_kept_and_belong_to_no_day(warehouse: Warehouse) -> None:
    report = merge_papers(warehouse, [paper("dated"), paper("undated", None)])
    assert (report.added, report.undated, report.days) == (2, 1, {MONDAY: 1})
    assert set(stored(warehouse)) == {"dated", "undated"}
    assert papers_between(warehouse, MONDAY, None)["paper_id"].to_pylist() == ["dated"]
    assert list(day_fingerprints(warehouse, None, None)) == [MONDAY]


def test_a_stream_that_breaks_off_leaves_nothing(warehouse: Warehouse) -> None:
    def broken() -> Iterator[Paper]:
        yield from papers_of(MONDAY, 4_500)
        raise OSError("the source's own fault, not the disk's")

    merge_papers(warehouse, papers_of(TUESDAY, 3))
    before = stored(warehouse)
    reported: list[int] = []
    with pytest.raises(OSError, match="the source's own fault"):
        merge_papers(warehouse, broken(), progress=reported.append)
    assert reported == [2_000, 4_000]
    assert stored(warehouse) == before
    assert listing(warehouse.path.parent) == {warehouse.path.name}


def test_an_empty_stream_changes_nothing(warehouse: Warehouse) -> None:
    assert merge_papers(warehouse, []).days == {}
    assert stored(warehouse) == {}


def test_progress_counts_to_the_end_of_a_long_stream(warehouse: Warehouse) -> None:
    reported: list[int] = []
    assert merge_papers(warehouse, iter(papers_of(MONDAY, 4_001)), progress=reported.append).added == 4_001
    assert reported == [2_000, 4_000, 4_001]


def test_fingerprints_follow_the_content_of_each_day_alone(warehouse: Warehouse) -> None:
    replace_day(warehouse, MONDAY, papers_of(MONDAY, 5))
    replace_day(warehouse, TUESDAY, papers_of(TUESDAY, 5))
    before = day_fingerprints(warehouse, None, None)
    assert day_fingerprints(warehouse, TUESDAY, None) == {TUESDAY: before[TUESDAY]}
    merge_papers(warehouse, [paper(papers_of(TUESDAY, 1)[0].paper_id, TUESDAY, version=2)])
    after = day_fingerprints(warehouse, None, None)
    assert after[MONDAY] == before[MONDAY]
    assert after[TUESDAY] != before[TUESDAY]


def test_fingerprints_do_not_depend_on_how_the_papers_were_added(warehouse: Warehouse, tmp_path: Path) -> None:
    other = Warehouse(tmp_path / "other.duckdb", deadline=5)
    replace_day(warehouse, MONDAY, papers_of(MONDAY, 9))
    merge_papers(other, reversed(papers_of(MONDAY, 9)))
    assert day_fingerprints(warehouse, None, None) == day_fingerprints(other, None, None)


def test_papers_are_found_by_days_categories_and_ids(warehouse: Warehouse) -> None:
    wanted = paper("c", TUESDAY, categories=("stat.ML", "cs.LG"))
    merge_papers(warehouse, [wanted, paper("b", TUESDAY), paper("a", MONDAY, categories=())])
    between = papers_between(warehouse, MONDAY, TUESDAY)
    assert between.schema == paper_schema()
    assert between["paper_id"].to_pylist() == ["a", "b", "c"]
    assert papers_from_table(papers_between(warehouse, None, None, categories=["cs.LG", "cs.AI"])) == [wanted]
    assert papers_between(warehouse, None, None, categories=[]).num_rows == 0
    assert papers_between(warehouse, TUESDAY, MONDAY).num_rows == 0
    assert papers_by_id(warehouse, ["c", "unknown", "a"])["paper_id"].to_pylist() == ["c", "a"]
    assert papers_by_id(warehouse, []).schema == paper_schema()


def test_a_paper_is_found_by_its_id_with_or_without_version(warehouse: Warehouse) -> None:
    merge_papers(warehouse, [paper("2601.00007", version=2)])
    assert (
        find_paper(warehouse, "2601.00007v1") == find_paper(warehouse, " 2601.00007 ") == paper("2601.00007", version=2)
    )
    assert find_paper(warehouse, "2601.00008") is None


def test_the_latest_day_is_the_newest_that_has_papers(warehouse: Warehouse) -> None:
    assert latest_day(warehouse) is None
    merge_papers(warehouse, [paper("a", MONDAY), paper("b", WEDNESDAY), paper("c", None)])
    assert latest_day(warehouse) == WEDNESDAY
    assert latest_day(warehouse, until=TUESDAY) == MONDAY


records = st.builds(
    paper,
    st.sampled_from("pqrst"),
    st.sampled_from([MONDAY, TUESDAY, None]),
    version=st.integers(1, 3),
    title=st.sampled_from(["one", "two"]),
)


def acceptable(incoming: list[Paper], before: Paper | None, *, from_api: bool) -> list[Paper]:
    """What may stand for a paper after a merge, by the plain rule; more than one only within one stream."""
    version = max(each.version for each in incoming)
    newest = [each for each in incoming if each.version == version]
    if before and (version < before.version or (version == before.version and from_api)):
        return [before]
    return newest


@settings(max_examples=settings().max_examples // 2)
@given(known=st.lists(records, max_size=5), stream=st.lists(records, max_size=12), data=st.data())
def test_a_merge_follows_the_plain_rule_and_not_the_order_of_the_lines(
    tmp_path_factory: pytest.TempPathFactory, known: list[Paper], stream: list[Paper], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    one, other = (Warehouse(folder / name, deadline=5) for name in ("one.duckdb", "other.duckdb"))
    for warehouse in (one, other):
        replace_day(warehouse, MONDAY, known)
    before = stored(one)
    report = merge_papers(one, stream)
    merge_papers(other, data.draw(st.permutations(stream)))
    after = stored(one)
    assert stored(other) == after
    assert set(after) == {each.paper_id for each in [*known, *stream]}
    for paper_id, kept in after.items():
        incoming = [each for each in stream if each.paper_id == paper_id]
        if incoming:
            assert kept in acceptable(incoming, before.get(paper_id), from_api=paper_id in before)
        else:
            assert kept == before[paper_id]
    changed = {paper_id for paper_id in after if paper_id in before and after[paper_id] != before[paper_id]}
    assert (report.added, report.updated) == (len(after) - len(before), len(changed))
    assert report.read == len(stream) == report.repeated + report.added + report.updated + report.unchanged
    assert merge_papers(one, stream).days == {}
