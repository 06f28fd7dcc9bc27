"""Test the hours of the daily fetch: weekdays, time zones with their summer time, and what a user writes."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput
from paper_assets.settings import Settings, load_settings
from paper_assets.setup.fetch_hours import cron_in_utc, hours_in_words, last_due, local_zone, next_due
from paper_assets.stores.kept_settings import MORNING, keep_variables, kept_environment
from tests.desk import Desk


def hours(at: str = "06:30", weekdays: str = "mon-sun", zone: str = "UTC") -> Settings:
    variables = {
        "PAPER_ASSETS_FETCH_AT": at,
        "PAPER_ASSETS_FETCH_WEEKDAYS": weekdays,
        "PAPER_ASSETS_TIME_ZONE": zone,
    }
    return load_settings(variables, Path("/home"))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("settings", "now", "last", "following"),
    [
        (hours(), "2026-11-25 06:29", "2026-11-24 06:30", "2026-11-25 06:30"),
        (hours(), "2026-11-25 06:30", "2026-11-25 06:30", "2026-11-26 06:30"),
        (hours(weekdays="mon-fri"), "2026-11-29 12:00", "2026-11-27 06:30", "2026-11-30 06:30"),
        (hours(weekdays="wed"), "2026-11-24 12:00", "2026-11-18 06:30", "2026-11-25 06:30"),
        (hours(weekdays="sat-mon"), "2026-11-25 12:00", "2026-11-23 06:30", "2026-11-28 06:30"),
        (hours(zone="Europe/Berlin"), "2026-10-24 12:00", "2026-10-24 04:30", "2026-10-25 05:30"),  # end of summer time
        # 02:30 does not exist on that night, and exists twice on this one: one fetch each
        (hours("02:30", zone="Europe/Berlin"), "2026-03-29 01:29", "2026-03-28 01:30", "2026-03-29 01:30"),
        (hours("02:30", zone="Europe/Berlin"), "2026-03-29 01:30", "2026-03-29 01:30", "2026-03-30 00:30"),
        (hours("02:30", zone="Europe/Berlin"), "2026-10-25 01:30", "2026-10-25 00:30", "2026-10-26 01:30"),
        (hours("00:10", "mon", "Asia/Seoul"), "2026-11-25 12:00", "2026-11-22 15:10", "2026-11-29 15:10"),
    ],
)
def test_the_due_moments_around_now(settings: Settings, now: str, last: str, following: str) -> None:
    assert last_due(settings, moment(now)) == moment(last)
    assert next_due(settings, moment(now)) == moment(following)


def test_the_workflow_of_github_gets_the_hours_in_its_own_zone() -> None:
    now = moment("2026-11-25 12:00")
    assert cron_in_utc(hours(weekdays="mon-fri"), now) == (30, 6, "1,2,3,4,5")
    assert cron_in_utc(hours("00:10", "mon,sun", "Asia/Seoul"), now) == (10, 15, "0,6")
    assert cron_in_utc(hours("20:00", "sat", "America/Los_Angeles"), now) == (0, 4, "0")


def test_kept_hours_are_read_and_the_environment_goes_before_them(tmp_path: Path) -> None:
    kept = {"PAPER_ASSETS_FETCH_AT": "7:05", "PAPER_ASSETS_FETCH_WEEKDAYS": "mon,tue,wed"}
    keep_variables(tmp_path, {**kept, "PAPER_ASSETS_TIME_ZONE": "Europe/Berlin"}, MORNING)
    environ = kept_environment({}, tmp_path, lambda: moment("2026-11-25 12:00"))
    assert hours_in_words(load_settings(environ, tmp_path)) == "07:05 (Europe/Berlin) on Monday to Wednesday"
    own = kept_environment({"PAPER_ASSETS_FETCH_AT": "09:00"}, tmp_path, lambda: moment("2026-11-25 12:00"))
    assert load_settings(own, tmp_path).fetch_at.hour == 9
    assert hours_in_words(hours("08:00", "sun,mon")) == "08:00 (UTC) on Monday and Sunday"


@pytest.mark.parametrize("at", ["24:00", "6", "soon"])
def test_a_time_that_no_clock_shows_is_refused(at: str) -> None:
    with pytest.raises(InvalidInput, match="PAPER_ASSETS_FETCH_AT must be a time of day"):
        hours(at)


def test_the_zone_of_the_machine_is_found_or_is_utc(tmp_path: Path) -> None:
    assert local_zone({"TZ": ":Europe/Paris"}) == "Europe/Paris"
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    assert local_zone({}, link) == "Asia/Tokyo"
    assert local_zone({"TZ": "Mars/Base"}, tmp_path / "none") == "UTC"


def test_the_workflow_runs_at_the_hours_of_the_daily_fetch(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    hours = {"PAPER_ASSETS_FETCH_AT": "07:15", "PAPER_ASSETS_FETCH_WEEKDAYS": "mon-fri"}
    desk.run("service", "github-actions", **hours, PAPER_ASSETS_TIME_ZONE="Asia/Seoul")
    workflow = (tmp_path / ".github" / "workflows" / "paper-assets.yml").read_text("utf-8")
    assert 'cron: "15 22 * * 0,1,2,3,4"' in workflow


def test_wrong_hours_in_the_file_are_named_with_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    file = tmp_path / "data" / "morning.env"
    file.parent.mkdir()
    file.write_text("PAPER_ASSETS_FETCH_AT=25:99\nPAPER_ASSETS_TIME_ZONE=Asia/Seoul\n", encoding="utf-8")
    file.chmod(0o644)  # holds no key, so it is read all the same
    assert f"got '25:99' in {file}" in desk.refused("status")
    assert str(file) not in desk.refused("status", PAPER_ASSETS_FETCH_AT="26:00")
