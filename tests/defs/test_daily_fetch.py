"""Test the daily fetch: what is due, once for each hour of the settings, and again where nothing was announced."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from paper_assets.defs import resources
from paper_assets.defs.due import PASSING, Tried, tried_runs
from paper_assets.defs.fetching import daily_fetch, daily_tick
from paper_assets.settings import Settings, load_settings
from paper_assets.stores.rankings import latest_ranking_day, ranking
from tests.defs.test_due import Daemon
from tests.loopback_arxiv import loopback_arxiv
from tests.pipeline.test_due_days import announced, submitted, workspace_of

PAPERS = [dg.AssetKey("arxiv_papers")]


def hours(weekdays: str = "mon-sun") -> Settings:
    return load_settings({"PAPER_ASSETS_FETCH_WEEKDAYS": weekdays}, Path("/home"))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def tick(
    now: str, cursor: str | None, *, weekdays: str = "mon-sun", due: Sequence[str] = ("2026-11-23",)
) -> dg.SensorResult:
    return daily_tick(cursor, moment(now), hours(weekdays), due=lambda: [date.fromisoformat(day) for day in due])


def requested(result: dg.SensorResult) -> list[tuple[str, str]]:
    return [
        (request.tags["dagster/asset_partition_range_start"], request.tags["dagster/asset_partition_range_end"])
        for request in result.run_requests or ()
    ]


def test_a_new_home_waits_for_its_first_hour_and_fetches_once() -> None:
    first = tick("2026-11-25 01:00", None)
    assert requested(first) == []
    assert "Wednesday, 2026-11-25 01:30 UTC" in str(first.skip_reason)
    due = tick("2026-11-25 01:31", first.cursor)
    assert requested(due) == [("2026-11-23", "2026-11-23")]
    assert requested(tick("2026-11-25 01:32", due.cursor)) == []
    assert requested(tick("2026-11-26 01:31", due.cursor, due=["2026-11-25", "2026-11-24"])) == [
        ("2026-11-24", "2026-11-25")
    ]


def test_a_home_that_start_has_filled_is_asked_at_once_by_the_first_up() -> None:
    found = daily_tick(
        None,
        moment("2026-11-23 08:00"),
        hours("mon-sun"),
        due=lambda: [date(2026, 11, 20), date(2026, 11, 22)],
        has_fetched=lambda: True,
    )
    assert requested(found) == [("2026-11-20", "2026-11-22")]
    assert requested(tick("2026-11-23 08:01", found.cursor)) == []


def test_an_hour_later_it_asks_once_more_if_something_is_still_due() -> None:
    handled = tick("2026-11-25 01:31", moment("2026-11-24 01:30").isoformat()).cursor
    assert requested(tick("2026-11-25 02:31", handled, due=[])) == []
    again = tick("2026-11-25 02:31", handled)
    assert requested(again) == [("2026-11-23", "2026-11-23")]
    assert requested(tick("2026-11-25 09:00", again.cursor)) == []


def test_a_machine_that_slept_through_several_mornings_catches_up_with_one_request() -> None:
    awake = tick("2026-11-25 14:00", moment("2026-11-19 01:30").isoformat(), due=["2026-11-24", "2026-11-19"])
    assert requested(awake) == [("2026-11-19", "2026-11-24")]
    assert requested(tick("2026-11-25 14:01", awake.cursor)) == []


def test_a_weekend_without_a_fetch_waits_for_monday() -> None:
    friday = moment("2026-11-20 03:00").isoformat()
    assert requested(tick("2026-11-22 12:00", friday, weekdays="mon-fri")) == []
    assert requested(tick("2026-11-23 01:30", friday, weekdays="mon-fri")) == [("2026-11-23", "2026-11-23")]


def test_a_clock_that_was_set_back_does_not_stop_the_fetch() -> None:
    result = tick("2026-11-25 07:00", moment("2027-01-01 00:00").isoformat())
    assert requested(result) == []
    assert requested(tick("2026-11-26 07:00", result.cursor)) == [("2026-11-23", "2026-11-23")]


def test_a_fetch_that_failed_is_requested_again_after_growing_pauses_until_the_evening() -> None:
    handled = moment("2026-11-25 06:30").isoformat()
    settings = load_settings({"PAPER_ASSETS_FETCH_AT": "05:30"}, Path("/home"))

    def after(now: str, tried: list[Tried]) -> list[str | None]:
        result = daily_tick(handled, moment(now), settings, due=lambda: [date(2026, 11, 23)], tried=lambda key: tried)
        return [request.run_key for request in result.run_requests or ()]

    failure = Tried({}, PASSING, moment("2026-11-25 06:40"))
    failed = [failure] * 40
    assert after("2026-11-25 07:00", failed) == []
    assert after("2026-11-25 07:10", failed) == ["daily-2026-11-25T0630-41"]
    assert after("2026-11-25 06:41", [failure]) == []
    assert after("2026-11-25 06:42", [failure]) == ["daily-2026-11-25T0630-2"]
    assert after("2026-11-25 18:31", failed) == []
    assert after("2026-11-25 07:10", [replace(failure, failure=None)]) == []
    assert after("2026-11-25 07:10", []) == []


def test_the_runs_of_a_fetch_are_found_by_its_key(tmp_path: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        assert tried_runs(instance, {"paper_assets/fetch": "daily-2026-11-23"}) == []
        job = dg.define_asset_job("fails", selection="broken")

        @dg.asset
        def broken() -> None:
            raise RuntimeError

        definitions = dg.Definitions(assets=[broken], jobs=[job]).resolve_job_def("fails")
        definitions.execute_in_process(
            instance=instance, raise_on_error=False, tags={"paper_assets/fetch": "daily-2026-11-23"}
        )
        [found] = tried_runs(instance, {"paper_assets/fetch": "daily-2026-11-23"})
    assert found.failure
    assert abs(datetime.now(UTC) - found.ended) < timedelta(hours=1)


def test_a_week_of_the_daemon_has_each_mornings_papers_in_the_list_of_that_morning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sensors at simulated times, from Friday morning to Friday morning; arXiv is served on loopback."""
    everything, friday = submitted(date(2026, 11, 2), 14), datetime(2026, 11, 6, 0, 40, tzinfo=UTC)
    lists: dict[datetime, tuple[date, set[str]]] = {}
    with loopback_arxiv() as server, dg.DagsterInstance.ephemeral() as instance:
        daemon = Daemon(tmp_path, instance)
        fetched = workspace_of(tmp_path, server, friday)
        daemon.workspace = replace(
            daemon.workspace, settings=fetched.settings, warehouse=fetched.warehouse, access=fetched.access
        )
        daemon.profile("ann", {"interests": {"primary": ["invented matter"]}, "ranking": {"top_k": 500}})
        monkeypatch.setattr(resources, "current_settings", lambda: fetched.settings)
        monkeypatch.setattr(resources, "now", lambda: daemon.now)
        cursor = None
        for hour in range(7 * 24 + 3):
            daemon.now = friday + timedelta(hours=hour)
            server.papers = announced(everything, daemon.now)
            context = dg.build_sensor_context(instance, cursor=cursor, resources={"workspace": daemon.workspace})
            result = daily_fetch.evaluate_tick(context)
            cursor = result.cursor
            daemon.make([request.with_replaced_attrs(asset_selection=PAPERS) for request in result.run_requests or ()])
            if result.run_requests:
                daemon.settle()
                newest = latest_ranking_day(fetched.warehouse, "ann")
                assert newest is not None
                listed = ranking(fetched.warehouse, newest, "ann").listed
                lists[daemon.now] = newest, {row["paper_id"] for row in listed}
    assert [f"{now:%a %H} {day:%a}" for now, (day, _) in lists.items()] == [
        "Fri 01 Thu",
        "Mon 01 Fri",
        "Tue 01 Mon",
        "Wed 01 Tue",
        "Thu 01 Wed",
        "Fri 01 Thu",
    ]
    before = set[str]()
    for now, (_, listed) in lists.items():
        shown = {paper.paper_id for paper in announced(everything, now)} - before
        assert listed == shown, f"{now}"
        before |= shown
