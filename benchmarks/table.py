"""Print one table of all stages: named baseline in the same run, ratio, target, result (X1). `make bench`.

    python -m benchmarks.table [--short] [PART ...]

Each part runs in a separate process, so that none benefits from what another has loaded. `--short` takes fewer rounds
and leaves out the largest sizes, to see that all of it works; only the whole table says whether the targets hold. A
part that fails is a separate line. Ends with 1 where a target is missed or a part is broken. Adding a part: a function
below that returns figures, and a line in `PARTS`.
"""

import argparse
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks._figures import Figure, exit_status

_HEADER = ("stage", "seconds", "beside", "seconds", "ratio", "target", "")


def scoring(short: bool) -> list[Figure]:
    from benchmarks.scoring import MODES, SIZES, figures

    sizes = SIZES[:3] if short else SIZES
    return figures(sizes, mode=MODES[0], sample=500 if short else 2_000, rounds=1 if short else 3)


def embedding(short: bool) -> list[Figure]:
    from benchmarks.embedding import figures, invented_texts

    return figures(invented_texts(100 if short else 1_000), rounds=1 if short else 3)


def commands(short: bool) -> list[Figure]:
    from benchmarks.commands import figures

    with tempfile.TemporaryDirectory() as folder:
        return figures(Path(folder), rounds=1 if short else 5)


def growth(short: bool) -> list[Figure]:
    from benchmarks.growth import figures, many_days

    days, profiles = (20, 2) if short else (400, 20)
    with tempfile.TemporaryDirectory() as folder:
        found, summary = figures(Path(folder), days=days, profiles=profiles, papers=30 if short else 100, rounds=3)
    with tempfile.TemporaryDirectory() as folder:
        more, more_lines = many_days(Path(folder), days=5 if short else 20, profiles=2 if short else 4)
    print(summary, more_lines, sep="\n", flush=True)
    return [*found, *more]


def daemon(short: bool) -> list[Figure]:
    from benchmarks.daemon import figures

    with tempfile.TemporaryDirectory() as folder:
        found, summary = figures(
            Path(folder), days=30, profiles=4, papers=60, edits=1 if short else 5, idle=30 if short else 120
        )
    print(summary, flush=True)
    return found


def find(short: bool) -> list[Figure]:
    from benchmarks.search import figures

    with tempfile.TemporaryDirectory() as folder:
        found, summary = figures(Path(folder), count=5_000 if short else 100_000, rounds=3 if short else 7)
    print(summary, flush=True)
    return found


def page(short: bool) -> list[Figure]:
    from benchmarks.page_views import figures

    days, profiles, papers = (20, 2, 1_000) if short else (400, 20, 8_267)
    with tempfile.TemporaryDirectory() as folder:
        found, summary = figures(Path(folder), days=days, profiles=profiles, papers=papers, rounds=2 if short else 7)
    print(summary, flush=True)
    return found


def learning(short: bool) -> list[Figure]:
    from benchmarks.learning import figures

    return figures(200 if short else 1_000, rounds=1 if short else 5)


Part = Callable[[bool], list[Figure]]  # whether it is to be short
PARTS: dict[str, Part] = {
    "commands": commands,
    "embedding": embedding,
    "scoring": scoring,
    "growth": growth,
    "daemon": daemon,
    "find": find,
    "page": page,
    "learning": learning,
}


def lines(found: Sequence[Figure]) -> list[str]:
    """Return the table's lines with columns as wide as their content."""
    rows = [_HEADER, *map(_row, found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEADER))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(figure: Figure) -> tuple[str, ...]:
    """A target under 1 bounds how many times as long as its baseline a stage takes."""
    target, bounded = figure.target, figure.target is not None and figure.target < 1
    ratio = f"{1 / figure.ratio:.2f} x as long" if bounded else f"{figure.ratio:.1f} x as fast"
    wanted = "–" if target is None else f"<= {1 / target:g}" if bounded else f">= {target:g}"
    met = "" if target is None else "MISSED" if figure.missed else "met"
    return (
        figure.stage,
        _seconds(figure.seconds),
        figure.baseline,
        _seconds(figure.baseline_seconds),
        ratio,
        wanted,
        met,
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 10 else f"{seconds:.1f}"


def main() -> int:
    """Measure part by part, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    found, broken = list[Figure](), list[str]()
    for name in asked.parts or PARTS:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            try:
                found += alone.apply(PARTS[name], (asked.short,))
            except Exception as fault:  # whatever a part throws: the others have their lines all the same
                broken.append(f"{name} is broken: {type(fault).__name__}: {fault}")
    print("\n".join([*lines(found), *broken]))
    return 1 if broken else exit_status(found)


if __name__ == "__main__":
    sys.exit(main())
