"""Run the fault-injection test, all or parts of it: python -m tests.faults.storm [--seed N] [--part NAME] [--size N]

Adding a part: a module of this folder with `run(seed, size, folder) -> Counts`, and a line in `PARTS`.
"""

import argparse
import multiprocessing
import secrets
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.faults.storm.part import run_part

# part: how many cases the whole test tries
PARTS = {"kills": 300, "daemon": 20, "stops": 10, "processes": 180, "year": 365, "inputs": 2000, "surprises": 66}


def main() -> int:
    """Print the seed, run the requested parts, print their counts; return 1 if anything was lost, doubled or silent."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.storm", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="the same is the same storm")
    parser.add_argument("--part", choices=sorted(PARTS), action="append", help="default: all of them")
    parser.add_argument("--size", type=int, help="things to try in each part; seconds for `processes`")
    asked = parser.parse_args()
    parts = asked.part or list(PARTS)
    print(f"storm: seed {asked.seed}, {', '.join(parts)}", flush=True)
    outcomes = []
    # Two parts at a time, each in a separate process: a part waits for half of its time, and the
    # kills take as long as all others together.
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for counts in pool.map(
            run_part, parts, [asked.seed] * len(parts), [asked.size or PARTS[part] for part in parts]
        ):
            print("\n".join(counts.lines()), flush=True)
            outcomes.append(counts)
    held = all(counts.held for counts in outcomes)
    lost, doubled, silent = (sum(getattr(each, name) for each in outcomes) for name in ("lost", "doubled", "silent"))
    print(f"seed {asked.seed}: {lost} lost, {doubled} doubled, {silent} silent: {'held' if held else 'NOT HELD'}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
