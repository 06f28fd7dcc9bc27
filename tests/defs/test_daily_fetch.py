"""Test the daily fetch: once for each due moment, at the hours of the settings, and what was missed is fetched too."""

from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg

from paper_assets.defs import fetching
from paper_assets.defs.fetching import Tries, daily_tick, due_days
from paper_assets.settings import Settings, load_settings


def hours(weekdays: str = "mon-sun") -> Settings:
    return load_settings({"PAPER_ASSETS_FETCH_WEEKDAYS": weekdays}, Path("/home"))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def tick(now: str, cursor: str | None, *, weekdays: str = "mon-sun", fetched: Collection[str] = ()) -> dg.SensorResult:
    return daily_tick(cursor, moment(now), hours(weekdays), fetched=lambda: fetched)


def requested(result: dg.SensorResult) -> list[tuple[str, str]]:
    return [
        (request.tags["dagster/asset_partition_range_start"], request.tags["dagster/asset_partition_range_end"])
        for request in result.run_requests or ()
    ]


def test_a_new_home_waits_for_its_first_hour_and_fetches_once() -> None:
    first = tick("2026-11-25 06:00", None)
    assert requested(first) == []
    assert "Wednesday, 2026-11-25 06:30 UTC" in str(first.skip_reason)
    due = tick("2026-11-25 06:31", first.cursor)
    assert requested(due) == [("2026-11-23", "2026-11-23")]
    assert requested(tick("2026-11-25 06:32", due.cursor)) == []
    assert requested(tick("2026-11-26 06:31", due.cursor, fetched=["2026-11-23"])) == [("2026-11-24", "2026-11-24")]


def test_a_machine_that_slept_through_several_mornings_catches_up_with_one_request() -> None:
    handled = tick("2026-11-20 06:31", moment("2026-11-19 06:30").isoformat()).cursor
    awake = tick("2026-11-25 14:00", handled, fetched=["2026-11-17", "2026-11-18"])
    assert requested(awake) == [("2026-11-19", "2026-11-23")]
    assert requested(tick("2026-11-25 14:01", awake.cursor)) == []


def test_on_monday_the_papers_of_a_weekend_without_a_fetch_are_fetched() -> None:
    friday = moment("2026-11-20 06:30").isoformat()
    assert requested(tick("2026-11-22 12:00", friday, weekdays="mon-fri")) == []
    monday = tick("2026-11-23 06:30", friday, weekdays="mon-fri", fetched=["2026-11-18"])
    assert requested(monday) == [("2026-11-19", "2026-11-21")]


def test_hours_that_are_moved_on_do_not_fetch_twice_on_one_day() -> None:
    handled = moment("2026-11-25 06:30").isoformat()
    settings = load_settings({"PAPER_ASSETS_FETCH_AT": "12:00"}, Path("/home"))
    again = daily_tick(handled, moment("2026-11-25 12:01"), settings, fetched=lambda: ["2026-11-23"])
    first = tick("2026-11-25 06:31", moment("2026-11-24 06:30").isoformat())
    keys = [[request.run_key for request in result.run_requests or ()] for result in (first, again)]
    assert keys[0] == keys[1]  # Dagster starts one run for a key


def test_a_clock_that_was_set_back_does_not_stop_the_fetch() -> None:
    result = tick("2026-11-25 07:00", moment("2027-01-01 00:00").isoformat())
    assert requested(result) == []
    assert requested(tick("2026-11-26 07:00", result.cursor)) == [("2026-11-24", "2026-11-24")]


def test_at_most_two_weeks_are_fetched() -> None:
    due = moment("2026-11-25 06:30")
    assert due_days(due, ["2026-01-01"]) == [date(2026, 11, 10) + timedelta(days=number) for number in range(14)]
    assert due_days(due, []) == [date(2026, 11, 23)]
    assert due_days(due, ["2026-11-23", "2026-11-30", "no day"]) == [date(2026, 11, 23)]


def test_a_fetch_that_failed_is_requested_again_after_growing_pauses_until_the_evening() -> None:
    handled = moment("2026-11-25 06:30").isoformat()

    def after(now: str, tries: Tries | None) -> list[str | None]:
        result = daily_tick(handled, moment(now), hours(), fetched=lambda: ["2026-11-22"], tries=lambda key: tries)
        return [request.run_key for request in result.run_requests or ()]

    failed = Tries(9, True, moment("2026-11-25 06:40"))
    assert after("2026-11-25 07:00", failed) == []
    assert after("2026-11-25 07:10", failed) == ["daily-2026-11-23-10"]
    assert after("2026-11-25 06:41", Tries(1, True, moment("2026-11-25 06:40"))) == []
    assert after("2026-11-25 06:42", Tries(1, True, moment("2026-11-25 06:40"))) == ["daily-2026-11-23-2"]
    assert after("2026-11-25 18:31", failed) == []
    assert after("2026-11-25 07:10", Tries(1, False, moment("2026-11-25 06:40"))) == []
    assert after("2026-11-25 07:10", None) == []


def test_the_runs_of_a_fetch_are_found_by_its_key(tmp_path: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        assert fetching._tries(instance, "daily-2026-11-23") is None
        job = dg.define_asset_job("fails", selection="broken")

        @dg.asset
        def broken() -> None:
            raise RuntimeError

        definitions = dg.Definitions(assets=[broken], jobs=[job]).resolve_job_def("fails")
        definitions.execute_in_process(
            instance=instance, raise_on_error=False, tags={"paper_assets/fetch": "daily-2026-11-23"}
        )
        found = fetching._tries(instance, "daily-2026-11-23")
    assert found is not None
    assert (found.number, found.failed) == (1, True)
    assert abs(datetime.now(UTC) - found.at) < timedelta(hours=1)
