"""Waiting for a pool's slot at a terminal: to a deadline, with the holder's name, without spinning.

Dagster's in-process executor waits for ever without a word, and busily: between two looks it sleeps 0 seconds.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg

from paper_assets.defs.dead_runs import end_dead_runs, holders
from paper_assets.errors import StoreBusy

_PAUSE = 0.5  # seconds between two looks; a run takes seconds and up
_DEAD_EVERY = 10  # looks; a holder that is killed while somebody waits frees its slot too


@contextmanager
def bounded_waiting(instance: dg.DagsterInstance, *, deadline: float) -> Iterator[list[str]]:
    """While it lasts, a step of this instance that finds its pool full gives up after `deadline` seconds.

    Dagster makes a failed run of it; the yielded list then holds the line that says so.
    """
    storage = instance.event_log_storage
    claim = storage.claim_concurrency_slot
    refused: list[str] = []

    def claim_within_deadline(concurrency_key: str, run_id: str, step_key: str, priority: int | None = None) -> Any:
        ends, looks = time.monotonic() + deadline, 0
        while not (status := claim(concurrency_key, run_id, step_key, priority)).is_claimed:
            if time.monotonic() > ends:
                refused.append(
                    f"the only place of pool {concurrency_key!r} is held by {holders(instance, concurrency_key)}; "
                    f"waited {deadline:g} s. Let it finish or stop it, or wait longer with PAPER_ASSETS_STORE_DEADLINE"
                )
                raise StoreBusy(refused[0])
            looks += 1
            if looks % _DEAD_EVERY == 0:
                end_dead_runs(instance)
            time.sleep(_PAUSE)
        return status

    storage.claim_concurrency_slot = claim_within_deadline  # type: ignore[method-assign]
    try:
        yield refused
    finally:
        del storage.claim_concurrency_slot  # the class's own again
