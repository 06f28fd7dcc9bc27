"""Run the daemon, Dagster's UI and the desk together: restart what dies, end everything as a whole, keep one log.

Dagster's daemon does nothing until the clock passes its last tick again, so it is started again after the clock was
set back. Neither Dagster's daemon nor its UI starts a code server again that was killed: each tick says that it is
unreachable. If such lines come for a minute, Dagster is started again.

The processes of Dagster form one tree that `defs/dev.py` ends as a whole; this module starts it and the desk, and both
end when this process disappears, killed or not.
"""

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
from paper_assets.stores.locks import make_private_folder, store_lock

LOG = "up.log"  # in the home
_LONGEST_LOG = 5_000_000  # bytes; then the log moves to up.log.1
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds before a child is started again; doubled each time
_STABLE = 60.0  # seconds after which a child that dies is started again at once
_END_WITHIN = 10.0  # seconds that children have after SIGTERM; Dagster's tree ends within eight
_POLL = 0.2
_STUCK = 60.0  # seconds for which a program reports that it cannot work before it is restarted
_SILENCE = 90.0  # seconds without such a line after which it works again; the daemon looks every 60 seconds
_SET_BACK = 60.0  # seconds by which a clock is set back; less only delays the next tick
_CHILD = "--child"
_RECORD = re.compile(r"\d{4}-\d\d-\d\d ")  # the first line of a record of Dagster's log
_LAST_LINES_WITHIN = 1.0  # seconds for which the last lines of an ended child are waited for
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LEVELS = (
    ("ERROR", re.compile(r"\berror\b|Traceback|\bCRITICAL\b|- ERROR -", re.IGNORECASE)),
    ("WARNING", re.compile(r"\bwarning\b|- WARNING -", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class Service:
    """A program to keep running, under the name that the log gives it.

    `goes_by_the_clock`: see the module. `stuck_signs`: texts in lines of its output by which it says that it cannot
    work.
    """

    name: str
    command: tuple[str, ...]
    goes_by_the_clock: bool = False
    stuck_signs: tuple[str, ...] = ()


@dataclass(slots=True)
class _Child:
    service: Service
    process: "subprocess.Popen[str] | None" = None
    began: float = 0.0
    next_start: float = 0.0
    pause: float = _FIRST_PAUSE
    restarts: int = 0
    stuck_since: float | None = None  # the first of a series of lines with the sign
    stuck_until: float = 0.0  # the last one
    copying: threading.Thread | None = None

    def note(self, line: str) -> None:
        """Note whether a line of the output says that the program cannot work."""
        now = time.monotonic()
        if any(sign in line for sign in self.service.stuck_signs):
            if self.stuck_since is None or now - self.stuck_until > _SILENCE:
                self.stuck_since = now
            self.stuck_until = now

    @property
    def is_stuck(self) -> bool:
        """Whether the program runs and has reported for `_STUCK` seconds that it cannot work."""
        since = self.stuck_since
        return self.process is not None and since is not None and self.stuck_until - since >= _STUCK


@dataclass(slots=True)
class _Log:
    """One file with levels; `shown` receives what a person at the terminal wants to see.

    A full disk or a closed terminal loses lines, never the services.
    """

    file: Path
    shown: Callable[[str], None]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, level: str, name: str, text: str, *, show: bool) -> None:
        line = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {level} {name}: {text}"
        with self.lock:
            with suppress(OSError):
                if self.file.exists() and self.file.stat().st_size > _LONGEST_LOG:
                    self.file.replace(self.file.with_name(f"{self.file.name}.1"))
                with self.file.open("a", encoding="utf-8", errors="replace") as log:
                    log.write(f"{line}\n")
            if show:
                with suppress(OSError):
                    self.shown(line)


def services(*, port: int, graph_port: int) -> tuple[Service, ...]:
    """Return what `up` runs: Dagster's daemon and UI, and the desk."""
    as_child = (sys.executable, "-m", "paper_assets.interfaces.supervisor", _CHILD)
    return (
        Service(
            "dagster",
            (sys.executable, "-m", "paper_assets.defs.dev", "-p", str(graph_port)),
            goes_by_the_clock=True,
            stuck_signs=("DagsterUserCodeUnreachableError", "Error loading repository location"),
        ),
        Service("desk", (*as_child, "desk", "--port", str(port))),
    )


def supervise(
    wanted: Sequence[Service],
    home: Path,
    environ: Mapping[str, str],
    *,
    say: Callable[[str], None],
    verbose: bool,
    clock: Callable[[], float] = time.time,
) -> int:
    """Run the services until a signal asks for the end or the parent ends; return the exit code.

    Started by nohup it continues without its terminal and its parent. Raises InvalidInput if one `up` runs.
    """
    make_private_folder(home)
    received: list[int] = []
    survives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: received.append(number))
    if survives_terminal:  # a handler that does nothing: the children, which end with this process, must not inherit it
        signal.signal(signal.SIGHUP, lambda number, _frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    parent, offset = os.getppid(), clock() - time.monotonic()
    log = _Log(home / LOG, say)
    try:
        with store_lock(home / "up", deadline=0.5):
            children = [_Child(service) for service in wanted]
            log.write("INFO", "up", f"starting {', '.join(service.name for service in wanted)}", show=True)
            try:
                while not received and (survives_terminal or os.getppid() == parent):
                    before, offset = offset, clock() - time.monotonic()
                    _end_unable(children, log, set_back=offset < before - _SET_BACK)
                    for child in children:
                        _keep_running(child, environ, log, verbose=verbose)
                    time.sleep(_POLL)
            finally:
                log.write("INFO", "up", "ending", show=True)
                _end(children, log)
    except StoreBusy:
        raise InvalidInput(f"`paper-assets up` is running already for {home}; stop that one first") from None
    return 0 if received == [signal.SIGINT] else 128 + received[0] if received else 0


def _end_unable(children: Sequence[_Child], log: _Log, *, set_back: bool) -> None:
    """End the children that cannot work: stuck ones, and after the clock was `set_back` those that go by it."""
    if set_back:
        concerned = [child for child in children if child.service.goes_by_the_clock]
        names = ", ".join(child.service.name for child in concerned)
        log.write("WARNING", "up", f"the clock was set back; starting {names} again", show=True)
        _end(concerned, log)
    for child in children:
        if child.is_stuck:
            why = f"{child.service.name} has not been able to work for {_STUCK:g} s; starting it again"
            log.write("ERROR", "up", why, show=True)
            _end([child], log)


def _keep_running(child: _Child, environ: Mapping[str, str], log: _Log, *, verbose: bool) -> None:
    """Start the child if it does not run, not more often than its pause allows."""
    name, now = child.service.name, time.monotonic()
    if child.process is not None:
        code = child.process.poll()
        if code is None:
            return
        child.process = None
        if now - child.began > _STABLE:
            child.pause = _FIRST_PAUSE
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        log.write("ERROR", "up", f"{name} {how}; starting it again in {child.pause:g} s", show=True)
        child.next_start, child.restarts = now + child.pause, child.restarts + 1
        child.pause = min(2 * child.pause, _LONGEST_PAUSE)
    if now < child.next_start:
        return
    child.process = subprocess.Popen(
        child.service.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "200"},
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C at the terminal reaches this process only, which ends the others in order
    )
    child.began, child.stuck_since = now, None
    log.write("INFO", "up", f"{name} runs as process {child.process.pid}", show=verbose)
    child.copying = threading.Thread(target=_copy, args=(child, log, verbose), daemon=True)
    child.copying.start()


def _copy(child: _Child, log: _Log, verbose: bool) -> None:
    """Copy what a child prints into the log, with its level; errors, warnings and addresses are shown too.

    A record with one of the `stuck_signs` is expected from a child that was asked to end: its processes end in any
    order.
    """
    process, signs = child.process, child.service.stuck_signs
    assert process is not None and process.stdout is not None  # noqa: S101

    def write(texts: Sequence[str], *, expected: bool = False) -> None:
        for text in texts:
            level = next((level for level, sign in _LEVELS if sign.search(text) and not expected), "INFO")
            log.write(level, child.service.name, text, show=verbose or level != "INFO" or "http://127.0.0.1" in text)

    record: list[str] = []

    def write_record() -> None:
        write(record, expected=any(sign in text for text in record for sign in signs))
        record.clear()

    for line in process.stdout:
        text = _COLOURS.sub("", line).rstrip()
        if text and process is child.process:
            child.note(text)
            write([text])
        elif text:
            if _RECORD.match(text):
                write_record()
            record.append(text)
    write_record()


def _end(children: Sequence[_Child], log: _Log) -> None:
    """End children: SIGTERM, and SIGKILL to those that are left after `_END_WITHIN` seconds."""
    running = [child.process for child in children if child.process is not None]
    for child in children:
        child.process = None
    for process in running:
        with suppress(ProcessLookupError):
            process.terminate()
    ends = time.monotonic() + _END_WITHIN
    for process in running:
        try:
            process.wait(max(0.1, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            log.write("WARNING", "up", f"process {process.pid} did not end; it is killed", show=True)
            process.kill()
            process.wait()
    for child in children:
        if child.copying is not None:
            child.copying.join(_LAST_LINES_WITHIN)


def main() -> None:
    """Run one of our commands as a child of the supervisor, and end with it."""
    from paper_assets.interfaces.cli.app import program

    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    sys.argv = ["paper-assets", *[argument for argument in sys.argv[1:] if argument != _CHILD]]
    threading.Thread(target=watch, daemon=True).start()
    program()


if __name__ == "__main__":
    main()
