"""Run coroutines in a loop whose time a test moves on: a long limit is over at once, and never by chance."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _PassingTime(asyncio.SelectorEventLoop):
    passed = 0.0

    def time(self) -> float:
        return super().time() + self.passed


def run_in_passing_time(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine as `asyncio.run` does; `let_pass` moves the time of its loop on."""
    with asyncio.Runner(loop_factory=_PassingTime) as runner:
        return runner.run(work)


def let_pass(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Continue, from any thread, as if these seconds had passed for the loop of `run_in_passing_time`."""
    assert isinstance(loop, _PassingTime)

    def move_on() -> None:
        loop.passed += seconds

    loop.call_soon_threadsafe(move_on)
