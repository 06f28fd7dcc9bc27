"""Measure commands on the demo's home, each beside the import that it needs (X1, X2).

    python -m benchmarks.commands [--rounds 5]

A home with the bundled example is made by `demo`. Then each command and its baseline run in separate processes, in
turn, so that a busy machine slows both: `run` with nothing changed;
`rank` of twenty papers, of which all are stored and embedded, or none was ever seen; `status`; the MCP server until its
tools are listed. Medians; Python's compiled files are there, as after a first use.
The limits of `rank` are measured too: importing its packages only, importing its own modules too, and
loading the model and encoding the same twenty abstracts only. No `rank` that does its work takes less.
Ends with 1 if a target is missed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from benchmarks._figures import Figure, exit_status
from benchmarks.mcp_start import until_it_is_imported, until_the_tools_are_listed
from tests.desk import COMMAND

PROFILE = "retrieval-evidence"
WRITTEN_WITH = "numpy, duckdb, pyarrow.compute, pydantic, typer"
WRITTEN_IN = "paper_assets.interfaces.cli.app, paper_assets.interfaces.cli.ranking"
_ENCODE = """
import json
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import embedded_text
papers = json.load(open("unseen.json", encoding="utf-8"))
load_embedder().encode([embedded_text(paper["title"], paper["abstract"]) for paper in papers])
"""
TWENTY = 20


@dataclass(frozen=True, slots=True)
class DemoDesk:
    """A folder in which `demo` has run."""

    folder: Path
    environ: Mapping[str, str]

    def seconds(self, *command: str) -> float:
        """Wall clock of a process, from its start to its end. It must succeed."""
        start = time.perf_counter()
        subprocess.run(command, cwd=self.folder, env=dict(self.environ), check=True, capture_output=True)
        return time.perf_counter() - start

    def command(self, *arguments: str) -> float:
        return self.seconds(*COMMAND, *arguments)

    def importing(self, modules: str) -> float:
        return self.seconds(sys.executable, "-c", f"import {modules}")


def demo_desk(folder: Path) -> DemoDesk:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ |= {
        "PAPER_ASSETS_HOME": str(folder / "data"),
        "PAPER_ASSETS_PROFILES": str(folder / "profiles"),
        "DAGSTER_HOME": str(folder / "dagster_home"),
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    shutil.copytree(Path(__file__).parents[1] / "profiles", folder / "profiles")
    desk = DemoDesk(folder, environ)
    desk.command("demo")
    return desk


def figures(folder: Path, *, rounds: int) -> list[Figure]:
    """The commands of a day, cold. Of a target under 1 the inverse is how many times as long a stage may take."""
    desk = demo_desk(folder)
    with as_file(files("paper_assets.setup") / "example_papers.jsonl") as example:
        stored = [json.loads(line) for line in example.read_text(encoding="utf-8").splitlines()][:TWENTY]
    (folder / "stored.json").write_text(json.dumps(stored), encoding="utf-8")
    unseen = iter(range(1_000_000))

    def rank(file: str) -> float:
        return desk.command("rank", file, "--profile-path", str(folder / "profiles" / PROFILE), "--no-save")

    def unseen_papers() -> None:
        """Papers with a word more in their abstracts than ever before: their vectors are those of no stored text."""
        number = next(unseen)
        papers = [{**paper, "abstract": f"{paper['abstract']} Version {number}."} for paper in stored]
        (folder / "unseen.json").write_text(json.dumps(papers), encoding="utf-8")

    def rank_unseen() -> float:
        unseen_papers()
        return rank("unseen.json")

    def only_encode() -> float:
        return desk.seconds(sys.executable, "-c", _ENCODE)

    def dagster() -> float:
        return desk.importing("dagster")

    def stores() -> float:
        return desk.importing("numpy, duckdb")

    wanted: tuple[tuple[str, Callable[[], float], str, Callable[[], float], float | None], ...] = (
        ("run, nothing changed", lambda: desk.command("run"), "import dagster", dagster, 1 / 1.3),
        ("status", lambda: desk.command("status"), "import dagster", dagster, None),
        ("rank 20 stored papers, cold", lambda: rank("stored.json"), "import numpy, duckdb", stores, 1 / 2),
        ("rank 20 unseen papers, cold", rank_unseen, "import numpy, duckdb", stores, 1 / 2),
        ("  limit: only its imports", lambda: desk.importing(WRITTEN_WITH), "import numpy, duckdb", stores, None),
        ("  the same, and our modules", lambda: desk.importing(WRITTEN_IN), "import numpy, duckdb", stores, None),
        ("  limit: only encode these 20", only_encode, "import numpy, duckdb", stores, None),
        ("mcp, until tools/list", until_the_tools_are_listed, "import mcp", until_it_is_imported, None),
    )
    return [
        _figure(stage, ours, baseline, theirs, target, rounds=rounds)
        for stage, ours, baseline, theirs, target in wanted
    ]


def _figure(
    stage: str,
    ours: Callable[[], float],
    baseline: str,
    theirs: Callable[[], float],
    target: float | None,
    *,
    rounds: int,
) -> Figure:
    ours(), theirs()  # files into memory, compiled ones written
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    seconds, baseline_seconds = (statistics.median(times) for times in zip(*pairs, strict=True))
    return Figure(stage=stage, baseline=baseline, seconds=seconds, baseline_seconds=baseline_seconds, target=target)


def main() -> int:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = figures(Path(folder), rounds=asked.rounds)
    print("\n".join(map(str, found)))
    return exit_status(found)


if __name__ == "__main__":
    sys.exit(main())
