"""A process of this machine as others may name it later: still running, gone, or nobody can know.

A number alone does not do: the system gives it to another process. With its time of start and the machine's boot it
names one process for good. Not here: what is done with what a process has left.
"""

import json
import os
import socket
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_SHOWN_COMMAND = 120  # characters of a command line that a message shows


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process. `started` (clock ticks since boot), `boot` and `space` (of process numbers) are empty where the
    system does not say.
    """

    pid: int
    started: str
    boot: str
    space: str
    host: str

    def __str__(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def this_process() -> ProcessId:
    """The process that asks."""
    return ProcessId(os.getpid(), _started(os.getpid()) or "", *_machine(), socket.gethostname())


def parse_process(text: str | None) -> ProcessId | None:
    """The process that `str` wrote; None for anything else."""
    try:
        found = json.loads(text or "")
        return ProcessId(int(found["pid"]), *(str(found[name]) for name in ("started", "boot", "space", "host")))
    except (ValueError, KeyError, TypeError):
        return None


def is_gone(process: ProcessId) -> bool:
    """Whether the process has ended for sure; False also for one of another machine, of which nobody here can know."""
    if process.host != socket.gethostname():
        return False
    if (process.boot, process.space) != _machine():
        return True
    if not process.started:
        return not is_alive(process.pid)
    return _started(process.pid) != process.started


def is_alive(pid: int) -> bool:
    """Whether a process of this number runs on this machine; it may be another one than was meant."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives and is another user's
        return True
    return True


def command_of(pid: int) -> str:
    """The command line of a running process, cut; empty where the system does not say."""
    try:
        command = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
    shown = " ".join(command.split())
    return shown if len(shown) <= _SHOWN_COMMAND else f"{shown[: _SHOWN_COMMAND - 3]}..."


@cache
def _machine() -> tuple[str, str]:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot, str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return "", ""


def _started(pid: int) -> str | None:
    """The time of start of a process that runs; None if it does not, a zombie included."""
    try:
        state = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = state.rpartition(")")[2].split()  # the name before may hold anything
    return None if fields[0] in "ZX" else fields[19]
