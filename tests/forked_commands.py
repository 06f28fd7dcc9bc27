"""Run commands as processes that are forked from one that has imported the libraries: each starts three seconds sooner.

Such a process has its own session, folder, environment, streams and signals, and runs the same code as the console
script. What reads the environment when it is imported (`paper_assets.defs`) is imported by each command itself.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from tempfile import TemporaryFile
from typing import IO, Any

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


class ForkedCommand:
    """A command that was forked from the process that has imported the libraries, in a session of its own.

    `before` is code that it runs first. With `stdin` it reads from a pipe; `stderr` is a file to write to instead of a
    pipe; the pipes carry `text`, or bytes.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        environ: Mapping[str, str],
        before: str = "",
        stdin: bool = False,
        stderr: IO[Any] | None = None,
        text: bool = True,
    ) -> None:
        self._arguments = list(arguments)
        more: dict[str, Any] = {"encoding": "utf-8", "errors": "replace"} if text else {}
        suffix = "" if text else "b"
        (out, out_end), (err, err_end), (in_end, entered) = os.pipe(), os.pipe(), os.pipe()
        streams = (in_end, out_end, stderr.fileno() if stderr else err_end)
        self._process = _fork(arguments, folder=folder, environ=environ, streams=streams, before=before)
        for end in (out_end, err_end, in_end):
            os.close(end)
        self.stdout = os.fdopen(out, f"r{suffix}", **more)
        self.stderr = os.fdopen(err, f"r{suffix}", **more)
        self.stdin = os.fdopen(entered, f"w{suffix}", **more)
        if not stdin:
            self.stdin.close()
        self._left: list[Future[Any]] = []

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutExpired(self._arguments, timeout or 0.0)
        return self._process.exitcode

    def communicate(self, *, timeout: float | None = None) -> tuple[Any, Any]:
        """Return what is left to read of both streams, once they and the command have ended."""
        if not self._left:
            threads = ThreadPoolExecutor(2)
            self._left = [threads.submit(stream.read) for stream in (self.stdout, self.stderr)]
            threads.shutdown(wait=False)
        try:
            out, err = (each.result(timeout) for each in self._left)
        except TimeoutError:
            raise TimeoutExpired(self._arguments, timeout or 0.0) from None
        self.wait(timeout)
        return out, err

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Command = Popen[str] | ForkedCommand


def run_forked(arguments: Sequence[str], *, folder: Path, environ: Mapping[str, str], within: float) -> Ended:
    """Run a command in a folder with exactly this environment; kill it, and fail, if it takes more than `within` s."""
    with TemporaryFile() as out, TemporaryFile() as err:
        with Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), out.fileno(), err.fileno())
            process = _fork(arguments, folder=folder, environ=environ, streams=streams)
        process.join(within)
        if process.exitcode is None:
            os.killpg(process.pid or 0, signal.SIGKILL)
            raise TimeoutError(f"{' '.join(arguments)} has not ended within {within} s")
        contents = []
        for stream in (out, err):
            stream.seek(0)
            contents.append(stream.read().decode("utf-8"))
        return Ended(process.exitcode, *contents)


def _fork(
    arguments: Sequence[str],
    *,
    folder: Path,
    environ: Mapping[str, str],
    streams: tuple[int, int, int],
    before: str = "",
) -> ForkServerProcess:
    """Start a command with these standard streams; return when it has its own session, so that it can be killed."""
    ready, ready_end = os.pipe()
    command = _Fork(list(arguments), folder, dict(environ), _AT_START, before, (*streams, ready_end))
    process = forking().Process(target=command)
    process.start()
    os.close(ready_end)
    os.read(ready, 1)
    os.close(ready)
    return process


@dataclass
class _Fork:
    """The work of the fork. Its streams are sent along: the three standard ones, and one to close at the start."""

    arguments: list[str]
    folder: Path
    environ: dict[str, str]
    at_start: dict[str, str]
    before: str
    streams: tuple[int, int, int, int]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "streams": tuple(map(DupFd, self.streams))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, streams=tuple(stream.detach() for stream in state["streams"]))

    def __call__(self) -> None:
        """Become the command, as `tests.desk.COMMAND` runs it."""
        os.setsid()
        for number, stream in enumerate(self.streams):
            if number < 3:
                os.dup2(stream, number)
            os.close(stream)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False, errors="backslashreplace")
        set_by_imports = {name: value for name, value in os.environ.items() if self.at_start.get(name) != value}
        os.environ.clear()
        os.environ.update({**set_by_imports, **self.environ})
        time.tzset()
        os.chdir(self.folder)
        sys.argv = ["-c", *self.arguments]
        exec(self.before, {})
        import_module("paper_assets.interfaces.cli.app").program()


@cache
def forking() -> ForkServerContext:
    """Return what starts processes. The process that forks them starts with the first, and ends when this one does."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.ready_commands"])
    return context
