"""Run one part of the fault-injection test in a temporary folder."""

import tempfile
from importlib import import_module
from pathlib import Path

from tests.faults.storm.counts import Counts


def run_part(part: str, seed: int, size: int) -> Counts:
    """Return the counts of the part (a module of this folder) after `size` cases."""
    with tempfile.TemporaryDirectory(prefix=f"storm-{part}-") as folder:
        counts: Counts = import_module(f"tests.faults.storm.{part}").run(seed, size, Path(folder))
    return counts
