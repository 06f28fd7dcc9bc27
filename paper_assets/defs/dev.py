"""`make dev`: run Dagster's daemon and UI as one process group that ends as a whole (A4).

    python -m paper_assets.defs.dev

takes the options of `dagster dev`; without one that names a workspace it loads this package, installed or in a
checkout. All processes form one group, runs included. Runs that were in progress are recorded as failed, now or at the
next start, and the next daemon retries them.

Two processes watch the group. The supervisor ends it on Ctrl-C, SIGTERM, SIGHUP and when its own parent disappears. The
guard ends it when the supervisor itself is killed: it reads from a pipe that only the supervisor holds open. A guard
that was killed is started again.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from paper_assets.settings import default_folder

GRACE = 4.0  # seconds between SIGTERM and SIGKILL
LIMIT = 8.0  # seconds for the whole end
_KILLED_WITHIN = 2.0  # seconds within which the system removes killed processes
_POLL = 0.25  # seconds
_GUARD_PAUSE = 1.0  # seconds from one start of the guard to the next, should it be killed
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2), Linux: orphans of the group become children of the supervisor
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def supervise(command: Sequence[str], *, guard: Sequence[str], afterwards: Callable[[Event], None]) -> int:
    """Run the command in its own process group until it ends or this process has to; return the exit status.

    `guard` is a command that calls `guard_group`; `afterwards` see `end_group`.
    """
    received: list[int] = []
    survives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # started by nohup
    for number in _ENDING:
        if not (number is signal.SIGHUP and survives_terminal):
            signal.signal(number, lambda number, _frame: received.append(number))
    parent = os.getppid()
    _adopt_orphans()
    guarding, held = _start_guard(guard)
    began = time.monotonic()
    group = subprocess.Popen([*command], process_group=0, stdin=subprocess.DEVNULL)
    _tell(held, f"{group.pid}")
    while group.poll() is None and not received and (survives_terminal or os.getppid() == parent):
        time.sleep(_POLL)
        if guarding.poll() is not None and time.monotonic() > began + _GUARD_PAUSE:
            os.close(held)
            guarding, held = _start_guard(guard, leader=group.pid)
            began = time.monotonic()
    end_group(group.pid, afterwards=afterwards, interrupted=lambda: len(received) > 1)
    _tell(held, "ended")
    os.close(held)
    guarding.wait()
    if received:
        return 0 if received[0] == signal.SIGINT else 128 + received[0]
    return group.poll() or 0


def _start_guard(guard: Sequence[str], *, leader: int | None = None) -> "tuple[subprocess.Popen[bytes], int]":
    """Start the guard; return it, and the end of its pipe that only this process holds open.

    The group that already runs, if any, is written into the pipe first: this process may be killed at any moment.
    """
    watched, held = os.pipe()
    if leader is not None:
        _tell(held, f"{leader}")
    try:
        return subprocess.Popen([*guard], stdin=watched, start_new_session=True), held
    finally:
        os.close(watched)


def guard_group(afterwards: Callable[[Event], None]) -> None:
    """Wait for the supervisor to end; if it was killed, end the group in its place."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)  # only the supervisor decides
    leader, ended = sys.stdin.readline(), sys.stdin.readline()
    if leader and not ended:
        end_group(int(leader), afterwards=afterwards, interrupted=lambda: False)


def end_group(leader: int, *, afterwards: Callable[[Event], None], interrupted: Callable[[], bool]) -> None:
    """Send SIGTERM to a process group, and SIGKILL to what is left after `GRACE` seconds or once `interrupted`.

    `afterwards` starts at once in a thread, so that it can prepare, and is given the event of the group's end. Where it
    takes longer than `LIMIT` seconds in all, it is given up.
    """
    began, finished = time.monotonic(), Event()
    following = Thread(target=afterwards, args=(finished,), daemon=True)
    following.start()
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGTERM)
        while _has_members(leader) and time.monotonic() < began + GRACE and not interrupted():
            time.sleep(_POLL)
        os.killpg(leader, signal.SIGKILL)
        deadline = time.monotonic() + _KILLED_WITHIN
        while _has_members(leader) and time.monotonic() < deadline:
            time.sleep(_POLL / 5)
    finished.set()
    following.join(max(0.0, began + LIMIT - time.monotonic()))


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


def _tell(pipe: int, line: str) -> None:
    """Write a line to the guard, if it still runs."""
    with suppress(BrokenPipeError):
        os.write(pipe, f"{line}\n".encode())


def _adopt_orphans() -> None:
    """Become the parent of orphaned descendants, so that ended ones are collected where init does not do it."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


_GUARD = "--guard"  # argument of the process that ends the group if this one is killed


def main() -> None:
    """Run the services until one of them fails or this process has to end."""
    if sys.argv[1:] == [_GUARD]:
        guard_group(_record_ended_runs)
        os._exit(0)
    this = [sys.executable, "-m", "paper_assets.defs.dev"]
    os.environ.setdefault(
        "DAGSTER_HOME", str(default_folder(os.environ, Path.cwd()) / "dagster_home")
    )  # as every command does
    services = [sys.executable, "-m", "paper_assets.defs.services", *sys.argv[1:]]
    status = supervise(services, guard=[*this, _GUARD], afterwards=_record_ended_runs)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # without waiting for a thread that still imports Dagster


def _record_ended_runs(services_ended: Event) -> None:
    """Record the runs that ended with the services as failed.

    A history that cannot be opened stays as it is: the next start records what this one could not.
    """
    from paper_assets.defs.abandoned_runs import fail_abandoned_runs
    from paper_assets.defs.instance import open_instance

    services_ended.wait()
    home = os.environ.get("DAGSTER_HOME")
    if home and Path(home).is_dir():
        with suppress(Exception), open_instance(Path(home)) as instance:
            fail_abandoned_runs(instance, never_start=True)


if __name__ == "__main__":
    main()
