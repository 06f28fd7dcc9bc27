"""Which of the last seven days may still grow, and which have to be asked for now (S7), from the stored answers.

The rule is in announcements.py, fetching in papers.py.
"""

from datetime import UTC, date, datetime, timedelta

from paper_assets.announcements import OPEN_DAYS, OpenDay, merged_days, open_days
from paper_assets.pipeline.profiles import followed_categories
from paper_assets.settings import Settings
from paper_assets.sources.id_prefixes import calendars_of_sources
from paper_assets.stores.harvests import asked_days
from paper_assets.stores.warehouse import Warehouse


def due_days(warehouse: Warehouse, settings: Settings, now: datetime) -> list[OpenDay]:
    """Return the recent days that some source has to be asked for at `now`, newest first."""
    due = {day.day: day for days in _by_source(warehouse, settings, now) for day in days if day.state == "due"}
    return [due[day] for day in sorted(due, reverse=True)]


def recent_days(warehouse: Warehouse, settings: Settings, now: datetime) -> list[OpenDay]:
    """Return the states of the last seven days over all sources, ascending; nothing in a home that never fetched."""
    return merged_days(_by_source(warehouse, settings, now)) if has_fetched(warehouse, settings) else []


def has_fetched(warehouse: Warehouse, settings: Settings) -> bool:
    """Return whether a source has ever answered about a day, for any categories."""
    sources = calendars_of_sources(settings)
    return any(asked_days(warehouse, source=each, categories=(), since=date.min) for each in sources)


def days_asked(warehouse: Warehouse, settings: Settings, *, since: date) -> set[date]:
    """Return the days from `since` on that every source has answered, for the categories followed now."""
    categories = followed_categories(settings)
    sources = calendars_of_sources(settings)
    asked = [asked_days(warehouse, source=each, categories=categories, since=since) for each in sources]
    return set.intersection(*map(set, asked)) if asked else set()


def _by_source(warehouse: Warehouse, settings: Settings, now: datetime) -> list[list[OpenDay]]:
    """Return the recent days of each source from the first day of the settings on."""
    since, categories = now.astimezone(UTC).date() - timedelta(days=OPEN_DAYS), followed_categories(settings)
    by_source = [
        open_days(now, asked_days(warehouse, source=source, categories=categories, since=since), calendar)
        for source, calendar in calendars_of_sources(settings).items()
    ]
    return [[day for day in days if day.day >= settings.first_day] for days in by_source]
