"""Real servers on loopback, each ended by the process that was started; and how large the tests of this folder are."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.loopback import free_port, listens
from tests.waiting import until

PATIENCE = 300  # seconds for a server to answer on a busy machine
FULL = os.environ.get("SCALE") == "full"  # `make scale-test`; the ordinary suite takes a small size


@contextmanager
def running(command: Sequence[str], log: Path, **given: object) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process in a separate session, and end it with all that it started when the block ends."""
    with (
        log.open("ab") as out,
        subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, **given) as process,  # type: ignore[call-overload]
    ):
        try:
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that `running` started, with its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def until_it_listens(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    def output() -> str:
        return f"{process.args!r} does not answer\n{log.read_text(encoding='utf-8', errors='replace')[-2_000:]}"

    until(lambda: listens(port) or process.poll() is not None, report=output)
    assert process.poll() is None, output()


@dataclass
class DaskServers:
    """`dask scheduler` and `dask worker`s of one thread each."""

    folder: Path
    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @contextmanager
    def worker(self, *, before_path: Path | None = None) -> Iterator[None]:
        """One more worker; `before_path` goes before everything that it imports from."""
        path = [str(part) for part in (before_path, Path.cwd()) if part]
        name = f"worker{len(self.workers)}"
        command = [sys.executable, "-m", "dask", "worker", self.address, "--host", "127.0.0.1", "--nthreads", "1"]
        command += ["--no-nanny", "--no-dashboard", "--local-directory", str(self.folder / name)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        environment.pop("PAPER_ASSETS_DASK", None)
        with running(command, self.folder / f"{name}.log", env=environment, cwd=self.folder) as process:
            self.workers.append(process)
            self.until_there_are(sum(each.poll() is None for each in self.workers))
            yield

    def until_there_are(self, workers: int) -> None:
        from distributed import Client

        with Client(self.address, timeout=PATIENCE, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=PATIENCE)


@contextmanager
def dask_scheduler(folder: Path) -> Iterator[DaskServers]:
    port, log = free_port(), folder / "scheduler.log"
    command = [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    with running(command, log, cwd=folder) as process:
        until_it_listens(port, process, log)
        yield DaskServers(folder=folder, address=f"tcp://127.0.0.1:{port}", scheduler=process)


@contextmanager
def dask_servers(folder: Path) -> Iterator[DaskServers]:
    """A scheduler with two workers."""
    with dask_scheduler(folder) as servers, servers.worker(), servers.worker():
        yield servers


@contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    """The address of an empty `chroma run`."""
    port, log = free_port(), folder / "chroma.log"
    chroma = Path(sys.executable).with_name("chroma")
    command = [str(chroma), "run", "--path", str(folder / "data"), "--host", "127.0.0.1", "--port", str(port)]
    with running(command, log, cwd=folder) as process:
        until_it_listens(port, process, log)
        yield f"http://127.0.0.1:{port}"
