"""Wait for what another process or thread does without telling us: the one place in which tests poll."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 800  # seconds for what takes a few on an idle machine
_PAUSE = 0.05

Value = TypeVar("Value")


def until(happened: Callable[[], Value], *, within: float = PATIENCE, report: Callable[[], object] = str) -> Value:
    """Return the first value that counts as true; after `within` seconds fail with what `report` returns."""
    ends = time.monotonic() + within
    while not (value := happened()):
        if time.monotonic() > ends:
            raise AssertionError(f"{happened.__name__} has not happened within {within} s: {report()}")
        time.sleep(_PAUSE)
    return value
