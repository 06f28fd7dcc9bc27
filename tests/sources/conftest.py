"""Provide sessions for tests: separate gates, no waiting unless a test requests it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from paper_assets.sources.polite_http import polite_session


class FakeTime:
    """Provide a clock that advances only during sleep."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self.sleeps: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


@pytest.fixture
def fake_time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def polite(tmp_path: Path, fake_time: FakeTime) -> Callable[..., requests.Session]:
    """`polite(**changes)`: a session whose waits pass at once on `fake_time`."""

    def build(**changes: object) -> requests.Session:
        values = {"gate": tmp_path / "gate", "interval": 3.0, "timeout": 5.0}
        return polite_session(**{**values, "clock": fake_time.clock, "sleep": fake_time.sleep, **changes})

    return build
