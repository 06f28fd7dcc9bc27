"""What the command line and MCP answer about a stored ranking."""

from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paper_assets.errors import NotComputed, PaperNotFound
from paper_assets.interfaces import ranking_answers
from paper_assets.interfaces.cli.run import show_ranking
from paper_assets.interfaces.ranking_answers import brief_ranking, explanation, list_day, shown_ranking
from paper_assets.paper import paper_from_mapping
from paper_assets.profile import load_profile
from paper_assets.stores.harvests import follow_days, keep_listing, note_failure
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.profiles import keep_profile
from paper_assets.stores.rankings import ranking
from tests.mcp.ranked_desk import DAYS, ranked_desk


def test_a_ranked_paper_that_is_no_longer_stored_keeps_its_place_and_its_reasons(tmp_path: Path) -> None:
    desk, day = ranked_desk(tmp_path), date.fromisoformat(DAYS[-1])
    before = shown_ranking(desk.warehouse, "traffic", day, settings=desk.settings)["papers"]
    desk.warehouse.run("delete from papers where paper_id = ?", [before[0]["paper_id"]])
    after = shown_ranking(desk.warehouse, "traffic", day, settings=desk.settings)["papers"]
    assert after == [
        {
            **before[0],
            "title": "(no longer stored)",
            "authors": [],
            "why": after[0]["why"],
            "reason": after[0]["reason"],
        },
        before[1],
    ]


def test_a_day_that_was_never_fetched_is_not_a_day_without_papers(tmp_path: Path) -> None:
    desk, day = ranked_desk(tmp_path, papers_a_day=0), date.fromisoformat(DAYS[-1])
    follow_days(desk.warehouse, [day], source="arxiv")  # as a fetch that was killed before its answer leaves it

    def sentences() -> tuple[str, ...]:
        shown = shown_ranking(desk.warehouse, "traffic", day, settings=desk.settings)
        brief = brief_ranking(desk.warehouse, "traffic", day)
        return shown["headline"], shown["window"], brief["headline"], brief["warnings"][-1]

    assert all(f"not fetched yet: `paper-assets fetch --day {day}`" in sentence for sentence in sentences())
    keep_listing(desk.warehouse, day, [], source="arxiv", now=datetime(2026, 3, 9, tzinfo=UTC))
    assert sentences()[1] == "No new papers." and not any("not fetched" in sentence for sentence in sentences())


def test_a_missing_list_says_whether_its_day_was_never_fetched_or_failed_or_only_lacks_a_run(tmp_path: Path) -> None:
    desk = ranked_desk(tmp_path)
    never, failed, quiet = (date(2026, 2, number) for number in (2, 3, 4))
    note_failure(desk.warehouse, [failed], "arXiv answered 503", source="arxiv")
    keep_listing(desk.warehouse, quiet, [], source="arxiv", now=datetime(2026, 3, 9, tzinfo=UTC))

    def missing(day: date) -> str:
        with pytest.raises(NotComputed) as refused:
            list_day(desk.warehouse, "traffic", day, settings=desk.settings)
        return f"{refused.value}".partition(". ")[2]

    made = "`paper-assets run --profile traffic --as-of {}` makes it"
    fetch = "`paper-assets fetch --day {}`, then "
    assert missing(never) == f"The papers of 2 February 2026 are not fetched yet: {(fetch + made).format(never, never)}"
    assert missing(failed) == (
        "The papers of 3 February 2026 could not be fetched (arXiv answered 503): "
        + (fetch + made).format(failed, failed)
    )
    assert missing(quiet) == made.format(quiet)
    assert list_day(desk.warehouse, "traffic", None, settings=desk.settings) == date.fromisoformat(DAYS[-1])


def test_terminal_and_assistants_get_the_same_sentence_and_the_likely_papers_that_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk, day = ranked_desk(tmp_path), date.fromisoformat(DAYS[-1])
    after = [row["paper_id"] for row in ranking(desk.warehouse, day, "traffic").rows.to_pylist() if not row["shown"]]
    with desk.warehouse.writing() as connection:
        connection.execute("update ranking_sets set header = json_merge_patch(header, '{\"more_likely\": 1}')")
        connection.execute("update rankings set semantic_relevance = 0.6 where not shown")
    for shown in (partial(shown_ranking, settings=desk.settings), brief_ranking):
        answer = shown(desk.warehouse, "traffic", day)
        assert answer["headline"].startswith("2 papers for you") and answer["headline"].endswith("1 more likely")
        assert [(each["paper_id"], each["level"]) for each in answer["more_likely"]] == [(after[0], "likely")]
        assert {each["level"] for each in answer["papers"]} <= {"very likely", "likely", "possible"}
    monkeypatch.setenv("COLUMNS", "200")
    ran = {
        "days_ranked": 0,
        "rewrites": {},
        "digest": "",
        **shown_ranking(desk.warehouse, "traffic", day, settings=desk.settings),
    }
    show_ranking(ran, with_why=False)
    printed = capsys.readouterr().out
    assert f"also likely: {after[0]}" in printed and after[1] not in printed
    assert not any("empty" in line for line in brief_ranking(desk.warehouse, "traffic", day)["warnings"])
    desk.warehouse.run("update rankings set shown = false")
    window = shown_ranking(desk.warehouse, "traffic", day, settings=desk.settings)["window"]
    assert window == "6 new of 12 papers. 2 filtered out: in your list on an earlier day."
    assert f"the list is empty: {window}" in brief_ranking(desk.warehouse, "traffic", day)["warnings"]


@pytest.mark.parametrize(
    ("paper_id", "values", "reason"),
    [
        ("2601.00001", {"published": "2026-01-05"}, "It was submitted on"),
        ("2603.09999", {"published": None}, "It has no date"),
        ("2603.09998", {"published": DAYS[-1]}, "It was not stored when the list was made"),
    ],
)
def test_a_stored_paper_that_was_not_considered_is_explained(
    tmp_path: Path, paper_id: str, values: dict[str, Any], reason: str
) -> None:
    desk = ranked_desk(tmp_path)
    record = {"paper_id": paper_id, "title": "Late", "abstract": "x", "authors": ["A B"], "categories": ["cs.LG"]}
    merge_papers(desk.warehouse, [paper_from_mapping(record | values)])
    keep_profile(desk.warehouse, load_profile(desk.folder / "profiles" / "traffic"))
    answer = explanation(desk.warehouse, "traffic", f"{paper_id}v1")
    assert answer["why"][0] == "It was not considered for this list."
    assert answer["why"][1].startswith(reason)
    assert (answer["score"], answer["candidate"]["title"]) == (None, "Late")
    shown = desk.run("explain", "traffic", paper_id)
    assert f"{paper_id} Late" in shown and reason in shown


def test_an_unknown_paper_is_reported_as_not_stored(tmp_path: Path) -> None:
    with pytest.raises(PaperNotFound, match=r"2603\.77777 is not stored"):
        explanation(ranked_desk(tmp_path).warehouse, "traffic", "2603.77777")


def test_a_listed_paper_whose_reasons_fail_is_named_and_the_others_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, day = ranked_desk(tmp_path), date.fromisoformat(DAYS[-1])
    lists = (partial(shown_ranking, settings=desk.settings), brief_ranking)
    first, second = lists[0](desk.warehouse, "traffic", day)["papers"]
    whole = [shown(desk.warehouse, "traffic", day)["papers"] for shown in lists]
    for name in ("why", "reason"):
        monkeypatch.setattr(ranking_answers, name, failing_for(first["paper_id"], getattr(ranking_answers, name)))
    for shown, (_, untouched) in zip(lists, whole, strict=True):
        broken, other = shown(desk.warehouse, "traffic", day)["papers"]
        assert other == untouched and other["paper_id"] == second["paper_id"]
        assert (broken["rank"], broken["title"]) == (first["rank"], first["title"])
        assert f"{first['paper_id']}: unexpected IndexError" in f"{broken['why']}"


def failing_for(paper_id: str, function: Any) -> Any:
    def call(row: Any, *more: Any, **named: Any) -> Any:
        if row["paper_id"] == paper_id:
            raise IndexError("planted")
        return function(row, *more, **named)

    return call
