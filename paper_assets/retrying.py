"""Call other machines: limit the time of a call, and repeat one that failed for a moment.

One policy for sources, libraries and language models.

The second try waits `first_wait` seconds, each further one twice as long, unless the server named the seconds itself
(Retry-After). No try begins after the deadline. What counts as temporary is the caller's decision: a client error, a
refused key or an answer that is too large would only fail again.
"""

import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Thread
from typing import TypeVar

import tenacity

Result = TypeVar("Result")
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
LONGEST_WAIT = 86_400.0  # seconds; a longer Retry-After counts as a day


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often to try, and how long to wait before the second try; each further wait is twice as long."""

    tries: int
    first_wait: float

    def pause(self, number: int, failure: BaseException | None) -> float:
        """Return the seconds to wait after try `number` (from 1): those that the server asked for, if it did."""
        asked: float | None = getattr(failure, "retry_after", None)
        return self.first_wait * 2 ** (number - 1) if asked is None else asked

    def call(
        self,
        attempt: Callable[[int], Result],
        *,
        is_temporary: Callable[[BaseException], bool],
        ends: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Result:
        """Return what `attempt` (called with the number of the try) returns; raises what its last try raised.

        ends: the deadline by `clock`.
        """

        def wait(state: tenacity.RetryCallState) -> float:
            return self.pause(state.attempt_number, state.outcome.exception() if state.outcome else None)

        def is_over(state: tenacity.RetryCallState) -> bool:
            return state.attempt_number >= self.tries or clock() + state.upcoming_sleep > ends

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_temporary),
            wait=wait,
            stop=is_over,
            sleep=sleep,
            reraise=True,
        )
        return retrying(lambda: attempt(int(retrying.statistics["attempt_number"])))


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Return the seconds that a server asks to wait; None if it names none that can be read.

    Retry-After is a number of seconds or a date, which is compared with `now` (seconds since 1970) or, without it, with
    the Date of the answer. Some language models send Retry-After-Ms.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        if _SECONDS.fullmatch(text := headers.get(name, "").strip()):
            return min(float(text) / unit, LONGEST_WAIT)
    try:
        start = parsedate_to_datetime(headers["date"]) if now is None else datetime.fromtimestamp(now, UTC)
        then = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, TypeError):
        return None
    apart = (then if then.tzinfo else then.replace(tzinfo=UTC)) - (start if start.tzinfo else start.replace(tzinfo=UTC))
    return min(max(apart.total_seconds(), 0.0), LONGEST_WAIT)


def limited(seconds: float, call: Callable[[], Result]) -> Result:
    """Return the result of the call, made in a thread. Raises TimeoutError when the time is over.

    A socket's timeout restarts with every byte, so a server that sends its header byte by byte, or one interim answer
    after another, would block a call forever, and a name server has no timeout at all. The thread is then left alone,
    because Python cannot interrupt it; it ends with the connection.
    """
    outcome: Future[Result] = Future()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=work, name="limited", daemon=True).start()
    return outcome.result(seconds)
