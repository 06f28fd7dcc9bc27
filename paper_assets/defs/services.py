"""Run Dagster's code server, daemon and UI, as its documentation deploys them, until one of them ends.

    python -m paper_assets.defs.services [-p PORT]

interfaces/supervisor.py starts it and ends it. Daemon and UI start through this package: the daemon keeps its database
files open (dagster_internals.py), and the UI has a guard against requests of other sites (interfaces/server_guard.py).
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import dagster as dg

from paper_assets.defs.abandoned_runs import fail_abandoned_runs
from paper_assets.defs.dagster_internals import keep_engines
from paper_assets.defs.instance import open_instance
from paper_assets.errors import PaperAssetsError, StoreBusy
from paper_assets.locks import store_lock
from paper_assets.processes import end_with_supervisor
from paper_assets.small_files import make_files_private

_THIS = (sys.executable, "-m", "paper_assets.defs.services")
_DAEMON = "--daemon"  # first argument of the process that is the daemon
_MODULE = "paper_assets.definitions"
_WORKSPACE = ".services.yaml"  # in DAGSTER_HOME
_SERVICES = ".services"  # in DAGSTER_HOME; its lock is held by one `make dev`
_CLOCK_TOLERANCE = 60.0  # seconds
_TICK_TIMES = ("last_tick_timestamp", "last_tick_start_timestamp", "last_tick_success_timestamp")
_SERVER_STARTS_WITHIN = 120.0  # seconds; on a busy machine importing the graph takes half a minute
_POLL = 0.2  # seconds


def main() -> None:
    """Run the services, or the daemon alone."""
    make_files_private()  # inherited by the runs
    end_with_supervisor(os.environ)
    if sys.argv[1:2] == [_DAEMON]:
        del sys.argv[1]
        keep_engines()
        (command,) = entry_points(group="console_scripts", name="dagster-daemon")
        command.load()()
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts `command &` of a script so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--port", default="3000")
    page_port = parser.parse_args().port
    home = Path(os.environ["DAGSTER_HOME"])
    try:
        with _only_services(home), suppress(KeyboardInterrupt):
            sys.exit(_serve(page_port, home))
    except PaperAssetsError as error:
        sys.exit(f"{error}")


def _serve(page_port: str, home: Path) -> int:
    """Start the processes and wait until one of them ends; return its exit code."""
    port, workspace = _free_port(), home / _WORKSPACE
    location = f"host: 127.0.0.1\n      port: {port}\n      location_name: paper_assets"
    workspace.write_text(f"load_from:\n  - grpc_server:\n      {location}\n", encoding="utf-8")
    running = [_started(_code_server(port))]
    _wait_for(port, running[0])
    target = ["-w", f"{workspace}"]
    page = [sys.executable, "-m", "paper_assets.interfaces.server_guard", "-p", page_port, "-h", "127.0.0.1"]
    running.append(_started([*_THIS, _DAEMON, "run", *target]))
    running.append(_started([*page, *target]))
    try:
        while all(process.poll() is None for process in running):
            time.sleep(_POLL)
    finally:
        for process in running:
            process.terminate()
    return next((process.returncode or 1 for process in running if process.returncode is not None), 1)


def _code_server(port: int) -> list[str]:
    options = ["-m", _MODULE, "-p", f"{port}", "-h", "127.0.0.1", "--location-name", "paper_assets"]
    command = [sys.executable, "-m", "dagster", "api", "grpc", *options]
    return [*command, "--use-python-environment-entry-point"]


def _started(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*command], stdin=subprocess.DEVNULL)


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, server: "subprocess.Popen[bytes]") -> None:
    """Wait until the code server listens; daemon and UI would report that it cannot be reached."""
    ends = time.monotonic() + _SERVER_STARTS_WITHIN
    while server.poll() is None and time.monotonic() < ends:
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), timeout=1)):
            return
        time.sleep(_POLL)


@contextmanager
def _only_services(dagster_home: Path) -> Iterator[None]:
    """Prepare the history and keep other services away from it: two daemons would start each run twice.

    Raises PaperAssetsError.
    """
    with ExitStack() as held:
        with open_instance(dagster_home) as instance:  # writes the settings of this project where there are none
            try:
                held.enter_context(store_lock(dagster_home / _SERVICES, deadline=0))
            except StoreBusy:
                raise StoreBusy(
                    f"{dagster_home} is in use by another `make dev`; stop that one, or set DAGSTER_HOME and "
                    "PAPER_ASSETS_HOME to other folders"
                ) from None
            fail_abandoned_runs(instance)
            forget_future_ticks(instance, now=time.time() + _CLOCK_TOLERANCE)
        yield


def forget_future_ticks(instance: dg.DagsterInstance, *, now: float) -> list[str]:
    """Remove the times of ticks that are later than `now` (seconds since 1970); return the names of their sensors.

    After the clock was set back Dagster evaluates no sensor until it passes the last tick.
    """
    found = []
    for state in instance.all_instigator_state():
        data: Any = state.instigator_data
        future = {name: None for name in _TICK_TIMES if (getattr(data, name, None) or 0.0) > now}
        if future:
            instance.update_instigator_state(state.with_data(data._replace(**future)))
            found.append(state.name)
    return found


if __name__ == "__main__":
    main()
