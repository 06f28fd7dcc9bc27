"""Values as JSON has them, for standard output and for assistants."""

import math
from typing import Any


def numbers_or_null(value: Any) -> Any:
    """The value as JSON has it: what is no number (NaN) becomes null."""
    if isinstance(value, dict):
        return {key: numbers_or_null(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [numbers_or_null(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
