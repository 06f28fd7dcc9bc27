"""Days as people and assistants give them."""

from datetime import date

from paper_assets.errors import InvalidInput


def parse_day(text: str, option: str) -> date:
    """A day given as YYYY-MM-DD. Raises InvalidInput naming the option."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{option} must be a day like 2026-03-01, got {text!r}") from None
