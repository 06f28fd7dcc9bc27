"""Run programs until a signal asks for the end: restart what dies, end everything as a whole, keep one log.

`paper-assets up` runs Dagster's daemon, Dagster's UI and the desk this way. `make dev` runs Dagster's programs only, in
the foreground:

    python -m paper_assets.interfaces.supervisor

takes `-p PORT` of Dagster's UI.

Each program leads a process group, runs of assets included, and a group ends as a whole. This process ends the groups
on Ctrl-C, SIGTERM, SIGHUP and when its own parent disappears. If it is killed, each program ends its own group: its
standard input is a pipe that only this process holds open (`processes.py: end_with_supervisor`). Runs that were in
progress are recorded as failed at the next start, and the next daemon retries them.

All programs are started again after another embedding model was chosen, because a process uses one until it ends.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from paper_assets.errors import InvalidInput, StoreBusy
from paper_assets.locks import store_lock
from paper_assets.processes import SUPERVISED
from paper_assets.settings import dagster_folder
from paper_assets.small_files import file_state, make_private_folder
from paper_assets.stores.kept_settings import EMBEDDING_MODEL

LOG = "up.log"  # in the home
_LONGEST_LOG = 5_000_000  # bytes; then the log moves to up.log.1
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds before a child is restarted; doubled each time
_STABLE = 60.0  # seconds after which a child that dies is restarted at once
GRACE = 4.0  # seconds between SIGTERM and SIGKILL
_KILLED_WITHIN = 2.0  # seconds within which the system removes killed processes
_POLL = 0.2
_LAST_LINES_WITHIN = 1.0  # seconds for which the last lines of an ended child are waited for
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LEVELS = (
    ("ERROR", re.compile(r"\berror\b|Traceback|\bCRITICAL\b|- ERROR -", re.IGNORECASE)),
    ("WARNING", re.compile(r"\bwarning\b|- WARNING -", re.IGNORECASE)),
)
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2), Linux: orphans of a group become children of this process
_HOUR = 3_600.0
_LATER = 60.0  # seconds from the start of `up` to that of a service that runs now and then
_PROGRAM = (sys.executable, "-c", "from paper_assets.interfaces.cli.app import program; program()")


@dataclass(frozen=True, slots=True)
class Service:
    """A program to keep running, under the name that the log gives it.

    `every`: it ends alone, and is started again after this many seconds.
    """

    name: str
    command: tuple[str, ...]
    every: float | None = None


@dataclass(slots=True)
class _Child:
    service: Service
    process: "subprocess.Popen[str] | None" = None
    began: float = 0.0
    next_start: float = 0.0
    pause: float = _FIRST_PAUSE
    copying: threading.Thread | None = None


@dataclass(slots=True)
class _Log:
    """One file with levels; `say` receives what a person at the terminal wants to see, with `verbose` everything.

    A full disk or a closed terminal loses lines, never the services.
    """

    file: Path
    say: Callable[[str], None]
    verbose: bool
    lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, level: str, name: str, text: str, *, show: bool = True) -> None:
        line = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {level} {name}: {text}"
        with self.lock:
            with suppress(OSError):
                if self.file.exists() and self.file.stat().st_size > _LONGEST_LOG:
                    self.file.replace(self.file.with_name(f"{self.file.name}.1"))
                with self.file.open("a", encoding="utf-8", errors="replace") as log:
                    log.write(f"{line}\n")
            if show or self.verbose:
                with suppress(OSError):
                    self.say(line)


def _end_groups(leaders: Sequence[int], *, interrupted: Callable[[], bool] = lambda: False) -> list[int]:
    """Send SIGTERM to the groups, and SIGKILL to those left after `GRACE` seconds or once `interrupted`.

    Returns those that were killed.
    """
    for leader in leaders:
        with suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGTERM)
    left = _left_after(GRACE, leaders, interrupted)
    for leader in left:
        with suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)
    _left_after(_KILLED_WITHIN, left, lambda: False)
    return left


def _left_after(seconds: float, leaders: Sequence[int], interrupted: Callable[[], bool]) -> list[int]:
    ends = time.monotonic() + seconds
    while (left := [leader for leader in leaders if _has_members(leader)]) and not interrupted():
        if time.monotonic() > ends:
            break
        time.sleep(_POLL / 4)
    return left


def _has_members(leader: int) -> bool:
    """Return whether the group has a process that has not ended, after collecting those that have."""
    with suppress(ChildProcessError):
        while os.waitpid(-leader, os.WNOHANG)[0]:
            pass
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


def graph_service(*options: str) -> Service:
    """Return Dagster's daemon and UI with the options of `defs/services.py`."""
    return Service("dagster", (sys.executable, "-m", "paper_assets.defs.services", *options))


def desk_service(port: int) -> Service:
    """Return the desk."""
    return Service("desk", (*_PROGRAM, "desk", "--port", str(port)))


def backup_service() -> Service:
    """Return the daily backup; it looks every hour, because a machine may be on for an hour a day."""
    return Service("backup", (*_PROGRAM, "backup", "--due"), every=_HOUR)


def keep_up(
    services: Sequence[Service],
    home: Path,
    environ: Mapping[str, str],
    *,
    say: Callable[[str], None],
    verbose: bool,
) -> int:
    """Run the services with one log until a signal asks for the end or the parent ends; return the exit code.

    Started by nohup it continues without its terminal and its parent. Raises InvalidInput if one `up` runs.
    """
    make_private_folder(home)
    log = _Log(home / LOG, say, verbose)
    try:
        with store_lock(home / "up", deadline=0.5):
            log.write("INFO", "up", f"starting {', '.join(service.name for service in services)}")
            return supervise(services, environ, log=log)
    except StoreBusy:
        raise InvalidInput(f"`paper-assets up` is running already for {home}; stop that one first") from None


def supervise(services: Sequence[Service], environ: Mapping[str, str], *, log: _Log | None = None) -> int:
    """Run the services until a signal asks for the end or the parent ends; return the exit code.

    Without a log they write to this terminal, and the first one that ends is the end.
    """
    received: list[int] = []
    survives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # started by nohup
    for number in _ENDING:
        signal.signal(number, lambda number, _frame: received.append(number))
    if survives_terminal:  # a handler that does nothing: the children, which end with this process, must not inherit it
        signal.signal(signal.SIGHUP, lambda number, _frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    _adopt_orphans()
    parent = os.getppid()
    choice = log.file.with_name(EMBEDDING_MODEL.name) if log else None
    later = time.monotonic() + _LATER
    children = [_Child(service, next_start=later if service.every else 0.0) for service in services]
    supervisor = _Supervisor(environ, log, children, choice)
    code = None
    try:
        while not received and code is None and (survives_terminal or os.getppid() == parent):
            supervisor.end_for_another_model()
            code = supervisor.keep_running()
            time.sleep(_POLL)
    finally:
        supervisor.note("INFO", "ending")
        supervisor.end(children, interrupted=lambda: len(received) > 1)
    if received:
        return 0 if received[0] == signal.SIGINT else 128 + received[0]
    return code or 0


@dataclass(slots=True)
class _Supervisor:
    environ: Mapping[str, str]
    log: _Log | None
    children: list[_Child]
    choice: Path | None  # the file with the embedding model
    chosen: str | None = None  # its state when the children were started
    pipe: tuple[int, int] = field(default_factory=os.pipe)  # of which the children notice that this process has ended

    def note(self, level: str, text: str, *, show: bool = True) -> None:
        if self.log:
            self.log.write(level, "up", text, show=show)

    def end_for_another_model(self) -> None:
        """End the children after another embedding model was chosen."""
        if self.choice and (state := file_state([self.choice])) != self.chosen:
            if self.chosen:
                self.note("INFO", "another embedding model was chosen; starting everything again")
                self.end(self.children)
            self.chosen = state

    def keep_running(self) -> int | None:
        """Start the children that do not run; without a log return the exit code of one that has ended."""
        for child in self.children:
            code = child.process.poll() if child.process else None
            if code is not None and self.log is None:
                return code if code >= 0 else 128 - code
            if code is not None:
                self._plan_restart(child, code)
            if child.process is None and time.monotonic() >= child.next_start:
                self._start(child)
        return None

    def _plan_restart(self, child: _Child, code: int) -> None:
        """End the rest of the child's group, and restart the child not more often than its pause allows."""
        now = time.monotonic()
        if child.service.every is not None:
            child.next_start = now + child.service.every
            if code:
                self.note("ERROR", f"{child.service.name} failed; trying again in {child.service.every / 60:g} minutes")
            return self.end([child])
        if now - child.began > _STABLE:
            child.pause = _FIRST_PAUSE
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self.note("ERROR", f"{child.service.name} {how}; starting it again in {child.pause:g} s")
        child.next_start = now + child.pause
        child.pause = min(2 * child.pause, _LONGEST_PAUSE)
        self.end([child])

    def _start(self, child: _Child) -> None:
        unbuffered = {"PYTHONUNBUFFERED": "1", "COLUMNS": "200"} if self.log else {}
        child.process = subprocess.Popen(
            child.service.command,
            stdin=self.pipe[0],
            stdout=subprocess.PIPE if self.log else None,
            stderr=subprocess.STDOUT if self.log else None,
            env={**self.environ, **unbuffered, SUPERVISED: "yes"},
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches this process only, which ends the others in order
        )
        child.began = time.monotonic()
        self.note("INFO", f"{child.service.name} runs as process {child.process.pid}", show=False)
        if self.log:
            child.copying = threading.Thread(target=_copy, args=(child, self.log), daemon=True)
            child.copying.start()

    def end(self, children: Sequence[_Child], *, interrupted: Callable[[], bool] = lambda: False) -> None:
        """End the groups of the children."""
        leaders = [child.process.pid for child in children if child.process is not None]
        for child in children:
            child.process = None
        for leader in _end_groups(leaders, interrupted=interrupted):
            self.note("WARNING", f"process {leader} did not end; it is killed")
        for child in children:
            if child.copying is not None:
                child.copying.join(_LAST_LINES_WITHIN)


def _copy(child: _Child, log: _Log) -> None:
    """Copy what a child prints into the log, with its level.

    Errors, warnings and addresses are shown too, except those of a child that was asked to end: its processes end in
    any order.
    """
    process = child.process
    assert process is not None and process.stdout is not None  # noqa: S101
    for line in process.stdout:
        if text := _COLOURS.sub("", line).rstrip():
            level = next((level for level, sign in _LEVELS if sign.search(text)), "INFO")
            shown = process is child.process and (level != "INFO" or "http://127.0.0.1" in text)
            log.write(level, child.service.name, text, show=shown)


def _adopt_orphans() -> None:
    """Become the parent of orphaned descendants, so that ended ones are collected where init does not do it."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main() -> None:
    """Run Dagster's programs in the foreground until one of them fails or this process has to end."""
    # as every command does
    os.environ.setdefault("DAGSTER_HOME", str(dagster_folder(os.environ, Path.cwd())))
    sys.exit(supervise([graph_service(*sys.argv[1:])], os.environ))


if __name__ == "__main__":
    main()
