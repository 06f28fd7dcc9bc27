"""The storm, whole or in parts: python -m tests.faults.storm [--seed N] [--part NAME] [--size N]

Adding a part: a module of this folder with `run(seed, size, folder) -> Counts`, and a line in `PARTS`.
"""

import argparse
import secrets
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from tests.faults.storm.counts import Counts

# part: how many of its things the whole storm tries
PARTS = {"kills": 300, "daemon": 20, "processes": 180, "year": 365, "inputs": 2000}


def main() -> int:
    """Print the seed, run the parts asked for, print their counts; 1 if anything was lost, doubled or silent."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.storm", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="the same is the same storm")
    parser.add_argument("--part", choices=sorted(PARTS), action="append", help="default: all of them")
    parser.add_argument("--size", type=int, help="things to try in each part; seconds for `processes`")
    asked = parser.parse_args()
    parts = asked.part or list(PARTS)
    print(f"storm: seed {asked.seed}, {', '.join(parts)}", flush=True)
    outcomes = [_run(part, asked.seed, asked.size or PARTS[part]) for part in parts]
    for counts in outcomes:
        print("\n".join(counts.lines()))
    held = all(counts.held for counts in outcomes)
    lost, doubled, silent = (sum(getattr(each, name) for each in outcomes) for name in ("lost", "doubled", "silent"))
    print(f"seed {asked.seed}: {lost} lost, {doubled} doubled, {silent} silent: {'held' if held else 'NOT HELD'}")
    return 0 if held else 1


def _run(part: str, seed: int, size: int) -> Counts:
    with tempfile.TemporaryDirectory(prefix=f"storm-{part}-") as folder:
        counts: Counts = import_module(f"tests.faults.storm.{part}").run(seed, size, Path(folder))
    return counts


if __name__ == "__main__":
    sys.exit(main())
