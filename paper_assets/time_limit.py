"""Limit the time of a call that waits for another machine.

A socket's timeout restarts with every byte, so a server that sends its header byte by byte, or one interim answer after
another, would hold a call forever, and a name server has no timeout at all.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")


def limited(seconds: float, call: Callable[[], Result]) -> Result:
    """Return the result of the call, made in a thread. Raises TimeoutError when the time is over.

    The thread is then left alone, because Python cannot interrupt it; it ends with the connection.
    """
    outcome: Future[Result] = Future()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=work, name="limited", daemon=True).start()
    return outcome.result(seconds)
