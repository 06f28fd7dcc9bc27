"""Catching up: months of papers by OAI-PMH, each once, from where it stopped, into the days of the API."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from paper_assets.errors import IncompleteFeed, SourceError, StoreBusy
from paper_assets.pipeline.papers import Harvest, Harvested, harvest, minimum_requests
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.settings import load_settings
from paper_assets.sources.arxiv import ARXIV
from paper_assets.stores.harvests import Place, keep_page, place_of
from paper_assets.stores.paper_merging import merge_papers, replace_day
from paper_assets.stores.papers import paper_counts
from tests.invented_papers import paper, stored
from tests.loopback import Answer
from tests.loopback_oai import LoopbackOai, OaiRecord, loopback_oai, oai_error, page, record

NOW = datetime(2026, 3, 10, 6, 0, tzinfo=UTC)
ASKED = Harvest(first=date(2026, 1, 1), last=None, sets=("cs:cs:CL", "cs:cs:LG"))


def months() -> list[OaiRecord]:
    """Papers of three months in two sets, one in both, some revised in a later month."""
    records = []
    for number in range(24):
        month, day = 1 + number % 3, 3 + number % 5
        came, revised = f"2026-{month:02d}-{day:02d}T09:30", f"2026-03-0{1 + number % 7}T10:00"
        changed = date(2026, month, day + 1)
        versions = [came]
        if number % 6 == 0:
            versions, changed = [came, revised], date(2026, 3, 2 + number % 7)
        sets = (("cs:cs:CL",), ("cs:cs:LG",), ("cs:cs:CL", "cs:cs:LG"))[number % 3]
        records.append(replace(record(f"26{month:02d}.{number:05d}", *versions, changed=changed), sets=sets))
    return records


def in_both_formats(records: Sequence[OaiRecord]) -> list[OaiRecord]:
    """Every other record in the format `arXiv`."""
    return [replace(each, older=number % 2 == 1) for number, each in enumerate(records)]


@contextmanager
def desk(folder: Path, records: Sequence[OaiRecord], *, each: int = 3) -> Iterator[tuple[Workspace, LoopbackOai]]:
    with loopback_oai(records, each=each) as oai:
        environ = {
            "PAPER_ASSETS_HOME": str(folder / "data"),
            "PAPER_ASSETS_ARXIV_OAI_URL": oai.url,
            "PAPER_ASSETS_REQUEST_GATE": str(folder / "gate"),
            "PAPER_ASSETS_REQUEST_INTERVAL": "0",
        }
        yield open_workspace(load_settings(environ, folder), environ, clock=lambda: NOW), oai


def bring_in(workspace: Workspace, asked: Harvest = ASKED) -> Harvested:
    return harvest(workspace, ARXIV, asked)


def test_every_paper_comes_once_under_the_day_of_its_first_submission(tmp_path: Path) -> None:
    with desk(tmp_path, months()) as (workspace, oai):
        done = bring_in(workspace)
        assert (done.added, done.updated, len(stored(workspace.warehouse))) == (24, 0, 24)
        assert done.read > 24  # a paper of both sets comes twice
        assert {each: f"{found.published:%F}" for each, found in stored(workspace.warehouse).items()} == {
            each.paper_id: f"{each.versions[0]:%F}" for each in oai.records
        }
        assert bring_in(workspace).unchanged == done.read
        windows = [(query["set"], query["from"], query.get("until")) for query in oai.queries if "set" in query]
    assert windows[:6] == [
        (name, first, last)
        for name in ASKED.sets
        for first, last in (("2026-01-01", "2026-01-31"), ("2026-02-01", "2026-02-28"), ("2026-03-01", None))
    ]


def test_progress_names_every_month_and_the_least_number_of_requests_is_known_before(tmp_path: Path) -> None:
    asked, seen = replace(ASKED, first=date(2025, 11, 15)), list[str]()
    with desk(tmp_path, [], each=100) as (workspace, oai):
        harvest(workspace, ARXIV, asked, progress=lambda read, window: seen.append(window))
        assert len(oai.queries) == minimum_requests(asked, NOW.date()) == 10
    assert seen[:5] == [f"cs:cs:CL {month}" for month in ("2025-11", "2025-12", "2026-01", "2026-02", "2026-03")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, int]:
    """Return what an undisturbed harvest stores, and its number of requests."""
    with desk(tmp_path_factory.mktemp("whole"), months()) as (workspace, oai):
        bring_in(workspace)
        return stored(workspace.warehouse), len(oai.queries)


@pytest.mark.parametrize("at", [1, 2, 4, 7])
def test_a_harvest_stopped_twice_ends_as_an_undisturbed_one(tmp_path: Path, whole: tuple[Any, int], at: int) -> None:
    undisturbed, requests = whole
    with desk(tmp_path / "stopped", months()) as (workspace, oai):
        oai.instead = dict.fromkeys((at, at + 3), Answer(status=404))
        for _ in range(2):
            with pytest.raises(SourceError):
                bring_in(workspace)
        done = bring_in(workspace)
        assert stored(workspace.warehouse) == undisturbed
        assert place_of(workspace.warehouse, ASKED.key(oai.url)) is None
    assert len(oai.queries) == requests + 2  # no page was asked for twice but those that failed
    assert done.resumed + done.pages == requests


def test_a_position_forgotten_overnight_restarts_its_month_without_loss_or_duplicates(tmp_path: Path) -> None:
    with desk(tmp_path / "whole", months()) as (whole, _):
        bring_in(whole)
        undisturbed = stored(whole.warehouse)
    with desk(tmp_path / "stopped", months()) as (workspace, oai):
        oai.instead = {2: Answer(status=404)}
        with pytest.raises(SourceError):
            bring_in(workspace)
        oai.forget()
        done = bring_in(workspace)
        assert done.begun_anew == 1
        assert stored(workspace.warehouse) == undisturbed


def test_a_source_that_forgets_every_place_is_not_asked_for_ever(tmp_path: Path) -> None:
    with desk(tmp_path, months(), each=1) as (workspace, oai):
        lost = {number: oai_error("badResumptionToken", "expired") for number in range(2, 100, 2)}
        oai.instead = lost
        with pytest.raises(SourceError, match=r"no longer knows this position .* 4 times in this run"):
            bring_in(workspace)


def test_a_list_that_goes_round_in_a_circle_is_left(tmp_path: Path) -> None:
    with desk(tmp_path, months()) as (workspace, oai):
        oai.refusals = [page(oai.records[:1], token="again")] * 5
        with pytest.raises(IncompleteFeed, match="circle"):
            bring_in(workspace)


def test_a_new_version_of_an_older_paper_is_kept_only_where_the_paper_is(tmp_path: Path) -> None:
    dates, changed = ("2025-06-02T10:00", "2026-01-07T10:00"), date(2026, 1, 8)
    records = [record("2506.00001", *dates, changed=changed), record("2506.00002", *dates, changed=changed)]
    with desk(tmp_path, records) as (workspace, _):
        merge_papers(workspace.warehouse, [paper("2506.00001", date(2025, 6, 2))])
        done = bring_in(workspace, replace(ASKED, sets=("cs:cs:CL",)))
        kept = stored(workspace.warehouse)
    assert (done.updated, done.left_out) == (1, 1)
    assert [(each, found.version, found.day) for each, found in kept.items()] == [
        ("2506.00001", 2, date(2025, 6, 2)),
    ]


def test_a_deleted_paper_is_kept_and_marked_and_an_unknown_one_is_nothing(tmp_path: Path) -> None:
    changed = date(2026, 1, 8)
    gone = [OaiRecord(paper_id="2601.00001", changed=changed), OaiRecord(paper_id="2601.00009", changed=changed)]
    with desk(tmp_path, gone) as (workspace, _):
        replace_day(workspace.warehouse, date(2026, 1, 5), [paper("2601.00001"), paper("2601.00002")])
        assert bring_in(workspace, replace(ASKED, sets=("cs:cs:CL",))).withdrawn == 1
        assert [found.withdrawn for found in stored(workspace.warehouse).values()] == [True, False]


def test_a_day_fetched_from_the_api_is_not_changed_by_the_same_papers(tmp_path: Path) -> None:
    day = date(2026, 1, 5)
    records = [record("2601.00001", "2026-01-05T12:00", changed=day, comments="differs from the API's")]
    with desk(tmp_path, records) as (workspace, _):
        replace_day(workspace.warehouse, day, [paper("2601.00001")])
        before = stored(workspace.warehouse)
        bring_in(workspace, replace(ASKED, sets=("cs:cs:CL",)))
        assert stored(workspace.warehouse) == before
        replace_day(workspace.warehouse, day, [paper("2601.00001"), paper("2601.00002")])
        assert paper_counts(workspace.warehouse) == {day: 2}


def test_the_slower_of_two_processes_at_one_harvest_stops_with_a_message(tmp_path: Path) -> None:
    start = Place(sets_done=0, first_day=ASKED.first, last_day=None)
    second = replace(start, next_page="2", pages=1)
    with desk(tmp_path, []) as (workspace, _):
        keep_page(workspace.warehouse, "one", [paper()], not_before=ASKED.first, before=None, after=second)
        with pytest.raises(StoreBusy, match="another process is running the same harvest"):
            keep_page(
                workspace.warehouse, "one", [paper("2601.00002")], not_before=ASKED.first, before=None, after=start
            )
        assert place_of(workspace.warehouse, "one") == second
        assert list(stored(workspace.warehouse)) == ["2601.00001"]
