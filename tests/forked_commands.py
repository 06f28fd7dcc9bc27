"""Run commands as processes that are forked from one that has imported the libraries once: each starts three seconds
sooner.

Such a process has its own session, folder, environment, streams and signals, and runs the same code as the console
script. What reads the environment when it is imported (`paper_assets.defs`) is imported by each command itself.
"""

import array
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import orjson

# Modules that take long to import, start no Python thread, and read nothing that differs between commands.
_READY = (
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
)
# The interpreter and the linker read these when they start.
_READ_AT_START = ("PYTHON", "LD_", "DYLD_", "MALLOC_", "OMP_", "OPENBLAS_")
_AT_START = {name: value for name, value in os.environ.items() if name.startswith(_READ_AT_START)}
_ROOT = Path(__file__).parent.parent
_SERVER = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from tests.forked_commands import serve; serve()"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    returncode: int
    out: str
    err: str


def can_fork(environ: Mapping[str, str]) -> bool:
    """Return whether a fork shows the same as a new interpreter with this environment."""
    given = {name: value for name, value in environ.items() if name.startswith(_READ_AT_START)}
    return sys.platform == "linux" and given == _AT_START


def run_forked(arguments: Sequence[str], *, folder: Path, environ: Mapping[str, str], within: float) -> Ended:
    """Run a command in a folder with exactly this environment; kill it, and fail, if it takes more than `within` s."""
    with (
        TemporaryFile() as out,
        TemporaryFile() as err,
        socket.socket(socket.AF_UNIX) as asking,
        Path(os.devnull).open("rb") as nothing,
    ):
        asking.connect(str(_server().address))
        streams = array.array("i", [nothing.fileno(), out.fileno(), err.fileno()])
        order = orjson.dumps({"arguments": arguments, "folder": str(folder), "environ": dict(environ)})
        asking.sendmsg([len(order).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams.tobytes())])
        asking.sendall(order)
        asking.settimeout(within)
        answers = asking.makefile("r", encoding="ascii")
        process = int(answers.readline())
        try:
            code = int(answers.readline())
        except TimeoutError:
            os.killpg(process, 9)
            raise
        out.seek(0)
        err.seek(0)
        return Ended(code, _text(out.read()), _text(err.read()))


def _text(printed: bytes) -> str:
    """Decode as a pipe that subprocess opens as text."""
    return printed.decode().replace("\r\n", "\n").replace("\r", "\n")


@dataclass(frozen=True, slots=True)
class _Server:
    address: Path
    process: "subprocess.Popen[bytes]"
    folder: TemporaryDirectory[str]  # kept until this process ends


@cache
def _server() -> _Server:
    """Start the process that forks, once; it ends when this process does, which closes its standard input."""
    folder = TemporaryDirectory(prefix="forked-", ignore_cleanup_errors=True)
    address = Path(folder.name) / "socket"
    process = subprocess.Popen([sys.executable, "-c", _SERVER, str(address)], cwd="/", stdin=subprocess.PIPE)
    while not address.exists():
        assert process.poll() is None, "the process that forks commands has ended"
        time.sleep(0.02)
    return _Server(address, process, folder)


def serve() -> None:
    """Fork a process for every command that is asked for, until standard input is closed."""
    sys.path.remove(str(_ROOT))
    before = dict(os.environ)
    for name in _READY:
        import_module(name)
    set_by_imports = {name: value for name, value in os.environ.items() if before.get(name) != value}
    assert "paper_assets.defs.resources" not in sys.modules
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system forgets those that have ended
    warnings.filterwarnings("ignore", message=".*multi-threaded", category=DeprecationWarning)  # pyarrow's own threads
    address = Path(sys.argv[1])
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address.with_suffix(".new")))
        listening.listen(64)
        address.with_suffix(".new").rename(address)
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                os._exit(0)
            asking, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _look_after(asking, set_by_imports)
            asking.close()


def _look_after(asking: socket.socket, set_by_imports: Mapping[str, str]) -> None:
    """In a fork: read the order, fork the command, answer its number and then its exit code; never return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    streams = array.array("i", bytes(3 * 4))
    with asking.makefile("rb") as orders:
        size, [(_, _, received)], _, _ = asking.recvmsg(8, socket.CMSG_LEN(streams.itemsize * len(streams)))
        streams = array.array("i", received)
        order = orjson.loads(orders.read(int.from_bytes(size, "big")))
    command = os.fork()
    if command == 0:
        asking.close()
        _become_command(order, streams, set_by_imports)
    asking.sendall(f"{command}\n".encode())
    _, status = os.waitpid(command, 0)
    with suppress(OSError):  # who asked has given up
        asking.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become_command(order: Mapping[str, Any], streams: Sequence[int], set_by_imports: Mapping[str, str]) -> None:
    """In a fork of the fork: the command, as `tests.desk.COMMAND` runs it; never return."""
    try:
        os.setsid()
        for wanted, given in enumerate(streams):
            os.dup2(given, wanted)
            os.close(given)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False, errors="backslashreplace")
        os.environ.clear()
        os.environ.update({**set_by_imports, **order["environ"]})
        time.tzset()
        os.chdir(order["folder"])
        sys.argv = ["-c", *order["arguments"]]
        import_module("paper_assets.interfaces.cli.app").program()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(70)
