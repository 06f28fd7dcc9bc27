"""Test that a group of processes ends as a whole, even if its supervisor is killed or a member ignores signals."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import until

PATIENCE = 300  # seconds for processes that start in one on an idle machine
_DEAF = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; print('deaf', flush=True)"
# A member that ignores every signal it can, a child of it that does too, and a child that was left to init.
_MEMBER = f"""
import os, subprocess, sys
from paper_assets.processes import end_with_supervisor
end_with_supervisor(os.environ)
{_DEAF}
for command in ({_DEAF + "; time.sleep(600)"!r}, "import os, time; os.fork() and os._exit(0); time.sleep(600)"):
    subprocess.Popen([sys.executable, "-c", command])
print("started", flush=True)
time.sleep(600)
"""
_SUPERVISOR = f"""
import os, sys
from paper_assets.interfaces import supervisor
from paper_assets.interfaces.supervisor import Service, supervise

supervisor.GRACE = 0.5  # the members ignore SIGTERM anyway

member = Service("member", (sys.executable, "-c", {_MEMBER!r}))
supervise([member], os.environ)
"""


def processes(mark: Path) -> list[int]:
    """Return the processes that have the mark in their environment, those that have ended aside."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has ended meanwhile
                if str(mark).encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def wait_until_ended(mark: Path) -> None:
    """Wait for all processes to end: much less than the 600 s for which their members sleep."""
    until(lambda: not processes(mark), report=lambda: processes(mark))


@pytest.mark.skipif(sys.platform != "linux", reason="lists processes by /proc")
@pytest.mark.parametrize("way", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL", "parent killed"])
def test_no_member_outlives_its_supervisor(way: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SUPERVISOR]
    if way == "parent killed":
        command = [sys.executable, "-c", f"import subprocess; subprocess.call({command!r})"]
    out = tmp_path / "out"
    with out.open("wb") as written:
        process = subprocess.Popen(
            command, env={**os.environ, "MARK": str(tmp_path)}, stdout=written, cwd=Path(__file__).parents[2]
        )
    # Two processes write, so the order of their words is not known, and the last child may still be starting.
    until(
        lambda: sorted(out.read_text("utf-8").split()) == ["deaf", "deaf", "started"] and len(processes(tmp_path)) >= 4,
        report=lambda: (process.poll(), out.read_text("utf-8"), processes(tmp_path)),
    )
    process.send_signal(signal.Signals[way] if way in signal.Signals.__members__ else signal.SIGKILL)
    process.wait(timeout=PATIENCE)
    wait_until_ended(tmp_path)


def test_a_program_started_by_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    command = f"""
import signal, subprocess, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
started = subprocess.Popen([sys.executable, "-c", {_SUPERVISOR!r}])
print(started.pid, flush=True)
"""
    out = tmp_path / "out"
    with out.open("wb") as written:
        environment = {**os.environ, "MARK": str(tmp_path)}
        subprocess.run([sys.executable, "-c", command], env=environment, stdout=written, check=True)
    until(lambda: len(out.read_text("utf-8").split()) >= 4)
    words = out.read_text("utf-8").split()
    for pid in processes(tmp_path):
        with suppress(ProcessLookupError):  # the child that leaves another one to init may be ending
            os.kill(pid, signal.SIGHUP)
    time.sleep(1)  # four looks of the supervisor at its parent
    assert len(processes(tmp_path)) >= 4
    os.kill(int(next(word for word in words if word.isdigit())), signal.SIGTERM)
    wait_until_ended(tmp_path)
