"""Test the one retry policy: growing waits, the server's wait before our own, and no try after the deadline."""

import pytest

from paper_assets.retrying import LONGEST_WAIT, RetryPolicy, retry_after

POLICY = RetryPolicy(tries=4, first_wait=1.0)


class Busy(Exception):
    """A temporary failure; `retry_after` is what the server asked for."""

    def __init__(self, retry_after: float | None = None) -> None:
        super().__init__("busy")
        self.retry_after = retry_after


class Tried:
    """A clock whose waits take no time, and a call that fails with the given failures one after another."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.now = 0.0
        self.waits: list[float] = []
        self.numbers: list[int] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def attempt(self, number: int) -> str:
        self.numbers.append(number)
        if self.failures:
            raise self.failures.pop(0)
        return "answer"

    def call(self, *, ends: float = 100.0) -> str:
        return POLICY.call(
            self.attempt,
            is_temporary=lambda failure: isinstance(failure, Busy),
            ends=ends,
            clock=lambda: self.now,
            sleep=self.sleep,
        )


def test_waits_grow_and_the_last_failure_is_raised() -> None:
    tried = Tried(Busy(), Busy())
    assert tried.call() == "answer"
    assert (tried.waits, tried.numbers) == ([1.0, 2.0], [1, 2, 3])
    last = Busy()
    tried = Tried(Busy(), Busy(), Busy(), last, Busy())
    with pytest.raises(Busy) as raised:
        tried.call()
    assert (raised.value is last, tried.waits) == (True, [1.0, 2.0, 4.0])


def test_what_the_server_asks_for_replaces_our_own_wait() -> None:
    tried = Tried(Busy(7.0), Busy(0.0), Busy())
    assert tried.call() == "answer"
    assert tried.waits == [7.0, 0.0, 4.0]


def test_no_try_begins_after_the_deadline() -> None:
    tried = Tried(Busy(101.0))
    with pytest.raises(Busy):
        tried.call(ends=100.0)
    assert (tried.waits, tried.numbers) == ([], [1])


def test_what_is_not_temporary_is_not_tried_again() -> None:
    tried = Tried(ValueError("a client error"))
    with pytest.raises(ValueError, match="client error"):
        tried.call()
    assert tried.numbers == [1]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "9" * 400}, LONGEST_WAIT),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 05 Mar 2026 10:00:30 GMT"}, None),
        ({"retry-after": "Thu, 05 Mar 2026 10:00:30 GMT", "date": "Thu, 05 Mar 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Thu, 05 Mar 2026 10:00:00 GMT", "date": "Thu, 05 Mar 2026 10:00:30 GMT"}, 0.0),
    ],
)
def test_the_wait_that_a_server_names_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_date_is_compared_with_the_given_clock() -> None:
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, now=20.0) == 40.0
