"""Run commands as processes that are forked from one that has imported the libraries: each starts three seconds sooner.

Such a process has its own session, folder, environment, streams and signals, and runs the same code as the console
script. What reads the environment when it is imported (`paper_assets.defs`) is imported by each command itself.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import TemporaryDirectory

# Modules that take long to import, start no Python thread, and read nothing that differs between commands.
_READY = [
    "alembic.command",
    "chromadb.api.rust",
    "dagster._core.run_coordinator",
    "dagster._core.scheduler",
    "dagster._core.storage.fs_io_manager",
    "dagster._core.storage.sqlite_storage",
    "dagster._core.workspace.context",
    "latex2mathml.converter",
    "paper_assets.interfaces.cli.app",
    "paper_assets.interfaces.cli.ask",
    "paper_assets.interfaces.cli.find",
    "paper_assets.interfaces.cli.rewriting",
    "paper_assets.interfaces.cli.status",
    "paper_assets.interfaces.ranking_answers",
    "paper_assets.pipeline.health",
    "paper_assets.pipeline.steps",
    "rich.progress",
    "sqlalchemy.dialects.sqlite",
    "tokenizers",
    "tqdm",
    "upath.implementations.local",
    "watchdog.observers",
]
# The interpreter and the linker read these when they start.
_READ_AT_START = ("PYTHON", "LD_", "DYLD_", "MALLOC_", "OMP_", "OPENBLAS_")
_AT_START = dict(os.environ)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    returncode: int
    out: str
    err: str


def can_fork(environ: Mapping[str, str]) -> bool:
    """Return whether a fork shows the same as a new interpreter with this environment."""
    read_at_start = (
        {name: value for name, value in each.items() if name.startswith(_READ_AT_START)}
        for each in (environ, _AT_START)
    )
    return sys.platform == "linux" and next(read_at_start) == next(read_at_start)


def run_forked(arguments: Sequence[str], *, folder: Path, environ: Mapping[str, str], within: float) -> Ended:
    """Run a command in a folder with exactly this environment; kill it, and fail, if it takes more than `within` s."""
    with TemporaryDirectory(prefix="forked-") as streams:
        out, err = Path(streams) / "out", Path(streams) / "err"
        process = _forking().Process(
            target=_become_command, args=(list(arguments), folder, dict(environ), _AT_START, out, err)
        )
        process.start()
        process.join(within)
        if process.exitcode is None:
            os.killpg(process.pid or 0, 9)
            raise TimeoutError(f"{' '.join(arguments)} has not ended within {within} s")
        return Ended(process.exitcode, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


@cache
def _forking() -> ForkServerContext:
    """Return what starts processes. The process that forks them starts with the first, and ends when this one does."""
    context = get_context("forkserver")
    context.set_forkserver_preload(_READY)
    return context


def _become_command(
    arguments: list[str], folder: Path, environ: dict[str, str], at_start: dict[str, str], out: Path, err: Path
) -> None:
    """In the fork: the command, as `tests.desk.COMMAND` runs it."""
    os.setsid()
    for number, path in ((1, out), (2, err)):
        stream = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False, errors="backslashreplace")
    set_by_imports = {name: value for name, value in os.environ.items() if at_start.get(name) != value}
    os.environ.clear()
    os.environ.update({**set_by_imports, **environ})
    time.tzset()
    os.chdir(folder)
    sys.argv = ["-c", *arguments]
    import_module("paper_assets.interfaces.cli.app").program()
