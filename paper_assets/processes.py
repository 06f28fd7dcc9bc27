"""Identify processes, also after the system has reused their numbers.

A process number alone does not identify a process. Together with its start time and the machine's boot id it does.
Other modules decide what to do with what a dead process has left.
"""

import json
import os
import signal
import socket
from collections.abc import MutableMapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from threading import Thread

_PROC = Path("/proc")
SUPERVISED = "_PAPER_ASSETS_SUPERVISED"  # set for programs that the supervisor starts
_LONGEST_COMMAND = 120  # characters of a command line in a message


@dataclass(frozen=True, slots=True)
class ProcessId:
    """Identify one process. `started` (clock ticks since boot), `boot` and `space` (of process numbers) are empty where
    the system does not provide them.
    """

    pid: int
    started: str
    boot: str
    space: str
    host: str

    def __str__(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def this_process() -> ProcessId:
    """Return the id of the calling process."""
    return _own_id(os.getpid())


def process_named(pid: int) -> ProcessId:
    """Return the id of the process that has this number now."""
    return ProcessId(pid, _started(pid) or "", *_machine(), socket.gethostname())


def parse_process(text: str | None) -> ProcessId | None:
    """Parse what `str` wrote; None for anything else."""
    try:
        record = json.loads(text or "")
        return ProcessId(int(record["pid"]), *(str(record[name]) for name in ("started", "boot", "space", "host")))
    except (ValueError, KeyError, TypeError):
        return None


def is_gone(process: ProcessId) -> bool:
    """Check whether the process has certainly ended; False also for one of another machine, where this is unknown."""
    if process.host != socket.gethostname():
        return False
    if (process.boot, process.space) != _machine():
        return True
    if not process.started:
        return not is_alive(process.pid)
    return _started(process.pid) != process.started


def is_alive(pid: int) -> bool:
    """Check whether a process with this number runs on this machine; it may not be the one that was meant."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs and belongs to another user
        return True
    return True


def command_of(pid: int) -> str:
    """Return the command line of a running process, shortened; empty where the system does not provide it."""
    try:
        command = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
    line = " ".join(command.split())
    return line if len(line) <= _LONGEST_COMMAND else f"{line[: _LONGEST_COMMAND - 3]}..."


@cache
def _own_id(pid: int) -> ProcessId:  # by number: a forked process has another one
    return process_named(pid)


@cache
def _machine() -> tuple[str, str]:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot, str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return "", ""


def _started(pid: int) -> str | None:
    """Return the start time of a running process; None if it has ended or is a zombie."""
    try:
        state = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = state.rpartition(")")[2].split()  # the name before it may contain anything
    return None if fields[0] in "ZX" else fields[19]


def end_with_supervisor(environ: MutableMapping[str, str]) -> None:
    """Kill the group of this process once the supervisor that started it has ended without ending it.

    Standard input is a pipe that the supervisor holds open, so that reading from it ends when the supervisor does.
    """

    def wait() -> None:
        os.read(0, 1)
        os.killpg(0, signal.SIGKILL)

    if environ.pop(SUPERVISED, ""):
        Thread(target=wait, name="supervised", daemon=True).start()
