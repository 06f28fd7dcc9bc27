"""Commands as processes that can be ended at their n-th write: one process imports everything once and forks for each.

With a C compiler the fork is ended by `killer.c` inside itself; without one, from outside at a share of its time.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).with_name("killer.c")
_LONGEST = 600.0  # seconds; a command that takes longer hangs


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: exit code (-9: killed), seconds, writes below the folder (0: not counted), its stderr."""

    code: int
    seconds: float
    writes: int
    err: str


@dataclass(frozen=True, slots=True)
class Victims:
    """A running server; `counts` says whether it can end a command at its n-th write."""

    server: "subprocess.Popen[str]"
    folder: Path
    counts: bool

    def run(
        self, arguments: Sequence[str], environ: Mapping[str, str], *, at_write: int = 0, after: float | None = None
    ) -> Ended:
        """Run a command to its end, or to its `at_write`-th write, or for `after` seconds."""
        asked = {
            "arguments": list(arguments),
            "environ": dict(environ),
            "folder": str(self.folder),
            "at": at_write,
            "after": after if after is not None else _LONGEST,
        }
        assert self.server.stdin and self.server.stdout
        self.server.stdin.write(json.dumps(asked) + "\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline()
        assert answer, "the server of victims has ended"
        return Ended(**json.loads(answer))


def compiled_killer(folder: Path) -> Path | None:
    """Return `killer.c` compiled as a library for LD_PRELOAD; None without a C compiler."""
    compiler, library = shutil.which("cc") or shutil.which("gcc"), folder / "killer.so"
    if compiler is None:
        return None
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE)], check=True)
    return library


@contextmanager
def victims(folder: Path, environ: Mapping[str, str]) -> Iterator[Victims]:
    """A server whose commands work below `folder`; what it imports reads `environ`."""
    library = compiled_killer(folder.parent)
    root = Path(__file__).parents[3]
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.storm.victims"],
        cwd=root,
        env={**os.environ, **environ, "PYTHONPATH": str(root), **({"LD_PRELOAD": str(library)} if library else {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Victims(server, folder, library is not None)
    finally:
        server.kill()
        server.communicate()


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import tests.ready_commands  # noqa: F401
    from paper_assets.interfaces.cli import archive, graph, graph_run  # noqa: F401  # read the environment

    for line in sys.stdin:
        answers.write(json.dumps(_run(json.loads(line))) + "\n")
        answers.flush()


def _run(asked: dict[str, object]) -> dict[str, object]:
    folder = Path(str(asked["folder"]))
    errors, counted = folder.parent / "stderr", folder.parent / "writes"
    counted.unlink(missing_ok=True)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _become_command(asked, folder, errors, counted)
    ends = began + float(str(asked["after"]))
    status = 0
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() > ends:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(0.01)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "seconds": time.monotonic() - began,
        "writes": int(counted.read_text()) if counted.exists() else 0,
        "err": errors.read_text(encoding="utf-8", errors="replace")[-2000:],
    }


def _become_command(asked: dict[str, object], folder: Path, errors: Path, counted: Path) -> None:
    """In the fork: the command, as its console script runs it; never returns."""
    from paper_assets.interfaces.cli.app import main

    code = 70
    try:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, closefd=False)
        os.environ.update(asked["environ"])  # type: ignore[call-overload]
        os.chdir(folder)
        arm = getattr(ctypes.CDLL(None), "storm_arm", None)
        if arm:
            arm(str(folder).encode(), ctypes.c_long(int(str(asked["at"]))))
        sys.argv = ["paper-assets", *asked["arguments"]]  # type: ignore[misc]
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        if arm:
            counted.write_text(str(ctypes.CDLL(None).storm_count()))
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
