"""Work in the background of the page, and its progress: one command in a process, and tasks in threads.

The command (`Job`) is an ordinary one (`start`, `run`, `fetch`, `deliver`): it continues when the browser or the page
is closed, and its runs are in Dagster's UI. Its state is a small file in the home, which the page and the command line
read. One command runs at a time.

A task (`Task`) needs what the page has loaded, and ends with the page. Its result is in memory only. A language model's
answers are stored by content, so the same question costs nothing after a restart.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from paper_assets.errors import InvalidInput
from paper_assets.locks import store_lock
from paper_assets.processes import ProcessId, is_gone, parse_process, process_named, this_process
from paper_assets.small_files import make_private_folder, write_file

_FILE = "background.json"
_LOG = "background.log"
_LONGEST_LOG = 1_000_000  # bytes; then the file starts again
_DEADLINE = 5.0
_PAUSE = 0.05
_AT_ONCE = {"loading": 1, "rewriting": 1}  # tasks of a kind, where not two
_MOST_TASKS = 200

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command in the background.

    `state`: running, done, failed or stopped. `stage`: what it does now, in words. `done` of `total` steps are done;
    `counts`: papers by day, as far as they are fetched.
    `message`: why it failed. `listed`: every list is ready; what follows only embeds papers that no list needs.
    """

    arguments: tuple[str, ...] = ()
    title: str = ""
    profile: str | None = None
    state: str = "running"
    stage: str = "starting"
    done: int = 0
    total: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    message: str | None = None
    listed: bool = False
    process: str = ""

    @property
    def running(self) -> bool:
        """Whether the command is still running."""
        return self.state == "running"

    @property
    def needed(self) -> bool:
        """Whether a list still waits for the command. A new command waits for its end, and replaces any other."""
        return self.running and not self.listed


def last_job(home: Path) -> Job | None:
    """Return the running or latest command; one whose process is gone without a result counts as stopped."""
    try:
        record = json.loads((home / _FILE).read_text(encoding="utf-8"))
        job = Job(**{**record, "arguments": tuple(record["arguments"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    process = parse_process(job.process)
    if job.running and job.process and (process is None or is_gone(process)):
        return replace(job, state="stopped")
    return job


def write_job(home: Path, job: Job) -> None:
    """Replace the state in one step."""
    make_private_folder(home)
    write_file(home / _FILE, json.dumps(asdict(job), ensure_ascii=False))


def report_stage(home: Path, stage: str, *, listed: bool = False) -> None:
    """Write what this process does now, if it is the command in the background."""
    job = last_job(home)
    if job and job.running and job.process == str(this_process()):
        write_job(home, replace(job, stage=stage, listed=job.listed or listed))


def begin(
    home: Path,
    environ: Mapping[str, str],
    arguments: Sequence[str],
    *,
    title: str,
    profile: str | None,
    needed: bool = True,
) -> Job:
    """Start a command in the background. Raises InvalidInput while another one runs that a list waits for.

    One that no list waits for (`needed`) is stopped; the next `start` or `run` continues it.
    """
    make_private_folder(home)
    with store_lock(home / "background", deadline=_DEADLINE):
        job = last_job(home)
        if job and (job.needed or not _ended(job)):
            raise InvalidInput(f"{job.title} is still running; stop it first or wait for its end")
        log = home / _LOG
        full = log.exists() and log.stat().st_size > _LONGEST_LOG
        with log.open("w" if full else "a", encoding="utf-8") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "paper_assets.interfaces.background", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**environ, "COLUMNS": "200"},
                start_new_session=True,
            )
        job = Job(
            arguments=tuple(arguments),
            title=title,
            profile=profile,
            process=str(process_named(process.pid)),
            counts=job.counts if job else {},  # `start` continues from there
            listed=not needed,
        )
        write_job(home, job)
    return job


def take_over(home: Path, job: Job) -> Job:
    """Make this process the command in the background, as `job` describes it; return that, with the title that a page
    gave it. Raises InvalidInput while another process runs one.
    """
    make_private_folder(home)
    job = replace(job, process=str(this_process()))
    with store_lock(home / "background", deadline=_DEADLINE):  # of two that start at once, one finds the other
        before = last_job(home)
        if before and before.process == job.process:
            job = replace(job, title=before.title)
        elif before and before.running:
            raise InvalidInput(f"{before.title} is still running; wait for its end, or stop it on the page")
        write_job(home, job)
    return job


def stop(home: Path) -> bool:
    """End the running command; what it has finished is kept, and the same command continues from there."""
    job = last_job(home)
    if job is None or not job.running or not _terminate(job):
        return False
    write_job(home, replace(job, state="stopped"))
    return True


def forget_job(home: Path, profile: str) -> None:
    """Remove the state of an ended command that names the profile."""
    job = last_job(home)
    if job and not job.running and profile in (job.profile, *job.arguments):
        (home / _FILE).unlink(missing_ok=True)


def _terminate(job: Job) -> ProcessId | None:
    """Ask the command to end; return its process, None if it does not run."""
    process = parse_process(job.process) if job.running else None
    if process is None or is_gone(process):
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGTERM)
    return process


def _ended(job: Job) -> bool:
    """End the command if it runs, and wait until its process is gone; False if it is not."""
    process, ends = _terminate(job), time.monotonic() + _DEADLINE
    while process and not is_gone(process):
        if time.monotonic() > ends:
            return False
        time.sleep(_PAUSE)
    return True


def main() -> None:
    """Run the command of the arguments in this process and write how it ended."""
    from paper_assets.interfaces.cli.app import main as run_command
    from paper_assets.interfaces.cli.process import end_on_signals
    from paper_assets.interfaces.cli.terminal import read_settings
    from paper_assets.small_files import make_files_private

    end_on_signals()
    make_files_private()
    home = read_settings().home
    with store_lock(home / "background", deadline=_DEADLINE):  # until the parent has written the state
        job = last_job(home) or Job(arguments=tuple(sys.argv[1:]), title=" ".join(sys.argv[1:2]))
        write_job(home, replace(job, state="running", process=str(this_process())))
    log = home / _LOG
    begins = log.stat().st_size if log.exists() else 0
    code: object = 0
    try:
        run_command()
    except SystemExit as end:
        code = end.code
    sys.stderr.flush()
    failed = code not in (0, None)
    message = _last_error(log, begins) if failed else None
    write_job(home, replace(last_job(home) or job, state="failed" if failed else "done", message=message, process=""))
    os._exit(1 if failed else 0)


def _last_error(log: Path, begins: int) -> str:
    """Return the last error in the part of the log that this command wrote."""
    written = log.read_bytes()[begins:].decode("utf-8", "replace") if log.exists() else ""
    errors = [line.removeprefix("error: ") for line in written.splitlines() if line.startswith("error: ")]
    return errors[-1] if errors else "the command failed"


@dataclass(slots=True)
class Task:
    """One piece of work in a thread, and its progress in words; `cancelled`: it ends at its next step."""

    future: "Future[Any]"
    progress: str = ""
    cancelled: bool = False

    @property
    def state(self) -> str:
        """Return `done`, or `running` with the progress."""
        return "done" if self.future.done() else f"running {self.progress}".strip()


class Tasks:
    """The tasks of a page by kind and key: `_AT_ONCE` of a kind run, others wait, the oldest are forgotten."""

    def __init__(self) -> None:
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._tasks: OrderedDict[tuple[str, Hashable], Task] = OrderedDict()
        self._lock = Lock()

    def start(
        self,
        kind: str,
        key: Hashable,
        work: Callable[[Task], Value],
        *,
        failed: Callable[[Value], bool] = lambda value: False,
    ) -> Task:
        """Return the task of the key; start it if there is none, or if the one before raised or `failed`."""
        with self._lock:
            task = self._tasks.get((kind, key))
            if task is None or (task.future.done() and (task.future.exception() or failed(task.future.result()))):
                if kind not in self._pools:
                    self._pools[kind] = ThreadPoolExecutor(_AT_ONCE.get(kind, 2), thread_name_prefix=kind)
                task = Task(future=Future())
                self._tasks[kind, key] = task
                task.future = self._pools[kind].submit(work, task)
            self._tasks.move_to_end((kind, key))
            while len(self._tasks) > _MOST_TASKS:
                self._tasks.popitem(last=False)
            return task

    def get(self, kind: str, key: Hashable) -> Task | None:
        """Return the task of the key, if there is one."""
        with self._lock:
            return self._tasks.get((kind, key))

    def forget(self, kind: str, key: Hashable) -> None:
        """Cancel and forget the task of the key, so that the next request starts a new one."""
        with self._lock:
            task = self._tasks.pop((kind, key), None)
        if task is not None:
            task.cancelled = True

    def ahead(self, kind: str, key: Hashable) -> int:
        """Return how many unfinished tasks of the kind were started before this one; 0 if it does not wait."""
        with self._lock:
            waiting = [each for (of, each), task in self._tasks.items() if of == kind and not task.future.done()]
        return waiting.index(key) if key in waiting else 0


if __name__ == "__main__":
    main()
