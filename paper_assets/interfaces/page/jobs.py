"""Work that a view does not wait for: it continues in a thread of this process while the view shows what it has.

Results are in memory only. A language model's answers are stored by content, so the same question costs nothing after
a restart.
"""

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(slots=True)
class Job(Generic[Value]):
    """One piece of work and its progress in words."""

    future: "Future[Value]"
    progress: str = ""

    @property
    def state(self) -> str:
        """Return `done`, or `running` with the progress."""
        return "done" if self.future.done() else f"running {self.progress}".strip()


class Jobs(Generic[Value]):
    """The jobs of one view by key: `at_once` run, others wait for their turn, the oldest of `most` are forgotten."""

    def __init__(self, name: str, *, at_once: int = 2, most: int = 60) -> None:
        self._pool = ThreadPoolExecutor(max_workers=at_once, thread_name_prefix=name)
        self._held: OrderedDict[str, Job[Value]] = OrderedDict()
        self._lock = Lock()
        self._most = most

    def start(
        self, key: str, work: Callable[[Job[Value]], Value], *, failed: Callable[[Value], bool] = lambda value: False
    ) -> Job[Value]:
        """Return the job of the key; start it if there is none, or if the one before raised or `failed`."""
        with self._lock:
            job = self._held.get(key)
            if job is None or (job.future.done() and (job.future.exception() or failed(job.future.result()))):
                job = Job(future=Future())
                self._held[key] = job
                job.future = self._pool.submit(work, job)
            self._held.move_to_end(key)
            while len(self._held) > self._most:
                self._held.popitem(last=False)
            return job

    def get(self, key: str) -> Job[Value] | None:
        """Return the job of the key, if it is known."""
        with self._lock:
            return self._held.get(key)

    def forget(self, key: str) -> None:
        """Forget the job of the key, so that the next request starts a new one."""
        with self._lock:
            self._held.pop(key, None)
