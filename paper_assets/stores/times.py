"""Moments as the tables keep them: UTC without a mark, which DuckDB leaves alone whatever zone the machine is in."""

from datetime import UTC, datetime


def stored_time(moment: datetime) -> datetime:
    """An aware moment as it is written."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def read_time(stored: datetime) -> datetime:
    """A moment as it was written, aware again."""
    return stored.replace(tzinfo=UTC)
