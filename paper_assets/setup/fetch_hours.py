"""When the daily fetch is due: a time of day on some weekdays in a time zone, chosen on the page.

Dagster's sensor, the page and the GitHub workflow all use this module.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from paper_assets.settings import WEEKDAYS, Settings

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def last_due(settings: Settings, now: datetime) -> datetime:
    """Return the latest moment until `now` at which the fetch was due, in UTC."""
    return next(moment for moment in _due_times(settings, now, step=-1) if moment <= now)


def next_due(settings: Settings, now: datetime) -> datetime:
    """Return the first moment after `now` at which the fetch is due, in UTC."""
    return next(moment for moment in _due_times(settings, now, step=1) if moment > now)


def _due_times(settings: Settings, now: datetime, *, step: int) -> list[datetime]:
    """Return the due moments of ten days in UTC: from yesterday on (`step` 1), or back from tomorrow (-1)."""
    zone = ZoneInfo(settings.time_zone)
    today = now.astimezone(zone).date()
    days = [today + step * timedelta(days=number - 1) for number in range(10)]
    return [
        datetime.combine(day, settings.fetch_at, tzinfo=zone).astimezone(UTC)
        for day in days
        if WEEKDAYS[day.weekday()] in settings.fetch_weekdays
    ]


def replaced_hours(environ: Mapping[str, str]) -> list[str]:
    """Return the variables of the environment that replace the kept hours."""
    names = ("PAPER_ASSETS_FETCH_AT", "PAPER_ASSETS_FETCH_WEEKDAYS", "PAPER_ASSETS_TIME_ZONE")
    return [name for name in names if environ.get(name, "").strip()]


def hours_in_words(settings: Settings) -> str:
    """Write the hours for people: 06:30 (Europe/Berlin) on Monday to Friday."""
    return f"{settings.fetch_at:%H:%M} ({settings.time_zone}) {_days_in_words(settings.fetch_weekdays)}"


def _days_in_words(weekdays: Sequence[str]) -> str:
    places = [WEEKDAYS.index(name) for name in weekdays]
    if len(places) == len(WEEKDAYS):
        return "every day"
    if len(places) > 2 and places == list(range(places[0], places[-1] + 1)):
        return f"on {DAY_NAMES[places[0]]} to {DAY_NAMES[places[-1]]}"
    names = [DAY_NAMES[place] for place in places]
    return "on " + " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def cron_in_utc(settings: Settings, now: datetime) -> tuple[int, int, str]:
    """Return minute, hour and weekdays (0 is Sunday) in UTC, as the offset of the time zone is now."""
    due = next_due(settings, now)
    local = due.astimezone(ZoneInfo(settings.time_zone))
    shift = (due.date() - local.date()).days
    days = sorted({(WEEKDAYS.index(name) + 1 + shift) % 7 for name in settings.fetch_weekdays})
    return due.minute, due.hour, ",".join(map(str, days))


def local_zone(environ: Mapping[str, str], localtime: Path = Path("/etc/localtime")) -> str:
    """Return the name of this machine's time zone, or UTC if it cannot be found out."""
    names = [environ.get("TZ", "").lstrip(":")]
    with suppress(OSError):
        names.append(str(localtime.resolve()).partition("zoneinfo/")[2])
    for name in filter(None, names):
        try:
            return ZoneInfo(name).key
        except (OSError, KeyError, ValueError):
            continue
    return "UTC"
