"""Report how far a piece of work has come."""

from typing import Protocol


class Progress(Protocol):
    """Called as the work proceeds; may raise, which ends the work."""

    def __call__(self, done: int, total: int | None, what: str = "", /) -> None:
        """Report `done` of `total` (None: unknown), and what is being done, if that is more than the label says."""
        ...


def ignore_progress(done: int, total: int | None, what: str = "", /) -> None:
    """Report nothing."""
