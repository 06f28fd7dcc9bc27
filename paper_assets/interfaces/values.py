"""Convert dates, numbers and names of assets given to or returned by an interface."""

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any

from paper_assets.errors import InvalidInput

_DECIMALS = 4
# Assets and steps in a reader's words: what is late, and what a run computed.
ASSETS_IN_WORDS: Mapping[str, str] = {
    "arxiv_papers": "papers",
    "paper_embeddings": "embeddings",
    "filtered_candidates": "candidates",
    "best_practice_archive": "best practices",
    "gatekeeper": "ranking",
    "scored_rankings": "ranking",
    "balanced_retrievals": "evidence",
    "paper_rewrites": "rewrites",
    "reading_digests": "digest",
    "preference_model": "learning from ratings",
}


def assets_in_words(names: Iterable[str]) -> list[str]:
    """Return the assets in a reader's words, each once: papers, embeddings."""
    return list(dict.fromkeys(ASSETS_IN_WORDS.get(name, name.replace("_", " ")) for name in names))


def late_in_words(names: Iterable[str]) -> str:
    """Join what is out of date: "ranking and digest"; empty if nothing is."""
    words = assets_in_words(names)
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1] if words else "")))


_FIRST_YEAR, _LAST_YEAR = 1900, 2199


def parse_day(text: str, option: str) -> date:
    """Return a day given as YYYY-MM-DD. Raises InvalidInput naming the option.

    No paper is older than 1900; days can be added to and subtracted from every accepted day.
    """
    try:
        day = date.fromisoformat(text)
        if not _FIRST_YEAR <= day.year <= _LAST_YEAR:
            raise ValueError("no year of papers")
    except ValueError:
        raise InvalidInput(f"{option} must be a day like 2026-03-01, got {text[:40]!r}") from None
    return day


def rounded(value: Any) -> Any:
    """Round the floats within a JSON value to four decimals: readers pay for each digit and use few."""
    return _with_floats(value, lambda number: round(number, _DECIMALS) if math.isfinite(number) else number)


def numbers_or_null(value: Any) -> Any:
    """Return the value as JSON has it: NaN becomes null."""
    return _with_floats(value, lambda number: number if math.isfinite(number) else None)


def _with_floats(value: Any, change: Callable[[float], float | None]) -> Any:
    """Return the JSON value with `change` applied to the floats within it."""
    if isinstance(value, dict):
        return {key: _with_floats(entry, change) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_with_floats(entry, change) for entry in value]
    return change(value) if isinstance(value, float) else value
