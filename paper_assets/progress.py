"""Report how far a piece of work has come."""

from typing import Protocol


class WorkEnded(Exception):
    """Raised by a `Progress` to end the work, because no caller waits for it."""


class Progress(Protocol):
    """Called as the work proceeds; may raise `WorkEnded`."""

    def __call__(self, done: int, total: int | None, what: str = "", /) -> None:
        """Report `done` of `total` (None: unknown), and what is being done, if that is more than the label says."""
        ...


def ignore_progress(done: int, total: int | None, what: str = "", /) -> None:
    """Report nothing."""
