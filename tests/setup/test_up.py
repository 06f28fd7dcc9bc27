"""Test the supervisor of `up`: what dies is restarted, the end is the end of everything, the log has levels."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paper_assets.interfaces.supervisor import LOG
from paper_assets.processes import is_alive, is_gone, process_named
from tests.desk import PATIENCE
from tests.forked_commands import Command, ForkedCommand, can_fork
from tests.waiting import until

_SERVICE = "import time; print('service at work', flush=True); time.sleep(900)"
_INTERRUPTED = """
import signal, sys, time
def end(*_):
    print("2026-03-02 04:05:06 - daemon - ERROR - a sensor caught an error")
    print("Traceback (most recent call last):")
    sys.stdout.flush()
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("service at work", flush=True)
time.sleep(900)
"""
_STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('warning: I stay', flush=True); "
    "time.sleep(900)"
)
_PROGRAM = """
import os, sys
from pathlib import Path
from paper_assets.interfaces import supervisor
supervisor.GRACE = float(os.environ["END_WITHIN"])
supervisor._LAST_LINES_WITHIN = 60.0
supervisor._LATER = 0.0
services = [
    supervisor.Service(f"s{at}", (sys.executable, "-c", code),
                       every=0.5 if "now and then" in code else None)
    for at, code in enumerate(sys.argv[2:])
]
sys.exit(supervisor.keep_up(services, Path(sys.argv[1]), os.environ, say=lambda line: print(line, flush=True),
                            verbose=os.environ["VERBOSE"] == "True"))
"""


@contextmanager
def up(home: Path, *services: str, end_within: float = 60.0, verbose: bool = True) -> Iterator[Command]:
    environ = {**os.environ, "END_WITHIN": str(end_within), "VERBOSE": f"{verbose}"}
    process: Command
    if can_fork(environ) and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # a fork does not inherit it
        process = ForkedCommand([str(home), *services], folder=Path.cwd(), environ=environ, before=_PROGRAM)
    else:
        command = [sys.executable, "-c", _PROGRAM, str(home), *services]
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=PATIENCE)


def log(home: Path) -> str:
    file = home / "up.log"
    return file.read_text("utf-8") if file.exists() else ""


def pids(home: Path, name: str) -> list[int]:
    return [int(pid) for pid in re.findall(rf"up: {name} runs as process (\d+)", log(home))]


def test_each_child_that_is_killed_is_started_again_and_the_end_is_clean(tmp_path: Path) -> None:
    with up(tmp_path, _SERVICE, _SERVICE) as process:
        for name in ("s0", "s1"):
            until(lambda name=name: f"{name}: service at work" in log(tmp_path))  # type: ignore[misc]
            os.kill(pids(tmp_path, name)[0], signal.SIGKILL)
            until(lambda name=name: len(pids(tmp_path, name)) == 2)  # type: ignore[misc]
            assert f"ERROR up: {name} was killed by signal 9; starting it again in 1 s" in log(tmp_path)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE) == 0
    assert not any(is_alive(pid) for name in ("s0", "s1") for pid in pids(tmp_path, name))


def test_a_child_that_does_not_end_is_killed_and_the_code_is_the_signals(tmp_path: Path) -> None:
    with up(tmp_path, _STUBBORN, end_within=1.0) as process:
        until(lambda: "WARNING s0: warning: I stay" in log(tmp_path))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
    assert "did not end; it is killed" in log(tmp_path)
    assert not is_alive(pids(tmp_path, "s0")[0])


def test_what_a_service_reports_while_it_ends_is_logged_and_not_shown(tmp_path: Path) -> None:
    with up(tmp_path, _INTERRUPTED, verbose=False) as process:
        until(lambda: "service at work" in log(tmp_path))
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM
    assert "ERROR s0: 2026-03-02 04:05:06 - daemon - ERROR - a sensor caught an error" in log(tmp_path)
    assert "ending" in out and "a sensor caught" not in out


def test_a_child_that_fails_again_and_again_is_started_less_and_less_often(tmp_path: Path) -> None:
    with up(tmp_path, "raise SystemExit('error: no port')"):
        until(lambda: "starting it again in 4 s" in log(tmp_path))
    pauses = re.findall(r"starting it again in (\d+) s", log(tmp_path))
    assert pauses[:3] == ["1", "2", "4"]
    assert "ERROR s0: error: no port" in log(tmp_path)


def test_a_second_one_for_the_same_home_is_refused(tmp_path: Path) -> None:
    with up(tmp_path, _SERVICE):
        until(lambda: bool(pids(tmp_path, "s0")))
        with up(tmp_path, _SERVICE) as second:
            _, err = second.communicate(timeout=PATIENCE)
            assert "is running already" in err
            assert second.returncode == 1


def test_a_full_disk_loses_lines_of_the_log_and_no_service(tmp_path: Path) -> None:
    (tmp_path / LOG).symlink_to("/dev/full")
    with up(tmp_path, f"print('x' * 200_000, flush=True); {_SERVICE}") as process:
        assert process.stdout is not None
        output = ""
        while "service at work" not in output:
            output += process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
    [pid] = re.findall(r"up: s0 runs as process (\d+)", output)
    assert not is_alive(int(pid))


def test_started_by_nohup_it_outlives_its_terminal(tmp_path: Path) -> None:
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with up(tmp_path, _SERVICE) as process:
            until(lambda: bool(pids(tmp_path, "s0")))
            process.send_signal(signal.SIGHUP)
            os.kill(pids(tmp_path, "s0")[0], signal.SIGHUP)  # the services end with it, so they do not ignore it
            until(lambda: len(pids(tmp_path, "s0")) == 2)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
    finally:
        signal.signal(signal.SIGHUP, handler)


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path), _SERVICE]
    code, environ = (
        f"import subprocess; subprocess.call({command!r})",
        {**os.environ, "END_WITHIN": "60", "VERBOSE": "True"},
    )
    with subprocess.Popen([sys.executable, "-c", code], env=environ) as parent:
        until(lambda: bool(pids(tmp_path, "s0")))
        parent.kill()
    until(lambda: not is_alive(pids(tmp_path, "s0")[0]))
    assert "INFO up: ending" in log(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_the_desk_ends_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    code = f"""
import os
from pathlib import Path
from paper_assets.interfaces.supervisor import desk_service, keep_up
keep_up([desk_service(0)], Path({str(tmp_path)!r}), os.environ, say=print, verbose=True)
"""
    environ = {**os.environ, "PAPER_ASSETS_HOME": str(tmp_path), "PAPER_ASSETS_PROFILES": str(tmp_path / "profiles")}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, env=environ) as parent:
        until(lambda: "the desk is open" in log(tmp_path))
        desk = process_named(pids(tmp_path, "desk")[0])
        parent.kill()
        until(lambda: is_gone(desk))


def test_a_service_that_runs_now_and_then_starts_again_and_a_failure_is_an_error(tmp_path: Path) -> None:
    count = tmp_path / "count"
    code = (
        f"# now and then\nopen({str(count)!r}, 'a').write('x'); raise SystemExit(len(open({str(count)!r}).read()) == 2)"
    )
    with up(tmp_path, code):
        until(lambda: count.exists() and len(count.read_text("utf-8")) >= 3)
    assert log(tmp_path).count("ERROR") == 1 and "ERROR up: s0 failed; trying again" in log(tmp_path)
