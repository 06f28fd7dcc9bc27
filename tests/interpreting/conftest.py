"""The outside world of one test, empty until the test fills it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interpreting.outside import Outside, outside


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Outside]:
    with outside(tmp_path) as found:
        yield found
