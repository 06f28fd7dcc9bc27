"""Provide sessions for tests: separate gates, no waiting unless a test requests it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from paper_assets.sources.polite_http import RequestGate, polite_session


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

    def build(*, gate: Path = tmp_path / "gate", interval: float = 3.0, **changes: Any) -> requests.Session:
        queue = RequestGate(gate, interval=interval, clock=fake_time.clock, sleep=fake_time.sleep)
        return polite_session(queue, **{"timeout": 60.0, **changes})

    return build
