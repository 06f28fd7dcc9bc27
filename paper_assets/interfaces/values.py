"""Convert dates and numbers given to or returned by an interface."""

import math
from datetime import date
from typing import Any

from paper_assets.errors import InvalidInput

_DECIMALS = 4


def parse_day(text: str, option: str) -> date:
    """Return a day given as YYYY-MM-DD. Raises InvalidInput naming the option."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{option} must be a day like 2026-03-01, got {text!r}") from None


def rounded(value: Any) -> Any:
    """Round the floats within a JSON value to four decimals: readers pay for each digit and use few."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(entry) for entry in value]
    return round(value, _DECIMALS) if isinstance(value, float) and math.isfinite(value) else value


def numbers_or_null(value: Any) -> Any:
    """Return the value as JSON has it: NaN becomes null."""
    if isinstance(value, dict):
        return {key: numbers_or_null(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [numbers_or_null(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
