"""Five processes on one home for minutes: import, run, the daemon, an MCP server, readers.

Nothing is lost, no process waits longer than the limit, no reader fails, and killed work continues.

`size` is the number of seconds.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from paper_assets.stores.papers import summary
from tests.desk import GRAPHS, SPEECH, Desk, week
from tests.faults.storm.counts import Counts
from tests.forked_commands import Command
from tests.mcp.raw_host import RawHost, raw_host

DAYS = ("2026-03-02", "2026-03-03", "2026-03-04")
# A command waits for the stores at most this long (PAPER_ASSETS_STORE_DEADLINE) in each unit of work; its own work
# takes as long as a busy machine lets it.
_DEADLINE, _BOUND = 120.0, 600.0


@dataclass
class Diary:
    """What happened: acts that ended well, what did not, the longest act of each kind."""

    done: int = 0
    failed: list[str] = field(default_factory=list)
    longest: dict[str, float] = field(default_factory=dict)
    acts: dict[str, int] = field(default_factory=dict)

    def note(self, kind: str, seconds: float, fault: str | None) -> None:
        self.acts[kind] = self.acts.get(kind, 0) + 1
        self.longest[kind] = max(self.longest.get(kind, 0.0), seconds)
        if fault is None and seconds > _BOUND:
            fault = f"took {seconds:.0f} s"
        if fault is None:
            self.done += 1
        else:
            self.failed.append(f"{kind}: {fault}")


def run(seed: int, size: int, folder: Path) -> Counts:
    """Let the five work for `size` seconds, kill a `run` sometimes, then check that everything is there once."""
    chance, diary, over = random.Random(seed), Diary(), Event()
    desk = Desk(folder / "desk")
    desk.folder.mkdir(parents=True)
    desk.profile("graphs", GRAPHS)
    desk.profile("speech", SPEECH)
    _command(desk, "import", str(desk.papers("first.jsonl", week(DAYS[:1]))))
    _command(desk, "run", "--as-of", DAYS[0])
    imported = [0]

    def one_import() -> str | None:
        # Files of one day each, with different ids.
        number = imported[0] + 1
        records = [
            {**record, "paper_id": f"2603.{1000 + 10 * number + at:05d}"}
            for at, record in enumerate(week([DAYS[number % len(DAYS)]], each=4))
        ]
        fault = _command(desk, "import", str(desk.papers(f"papers-{number}.jsonl", records)))
        imported[0] += fault is None
        return fault

    def one_run() -> str | None:
        if chance.random() < 0.3:
            _kill_after(desk.start("run", **_patient()), chance.uniform(0.5, 10.0))
        return _command(desk, "run")

    with desk.daemon(interval=5, **_patient()) as daemon, raw_host(desk, **_patient()) as host:
        host.handshake()
        work: dict[str, Callable[[], str | None]] = {
            "import": one_import,
            "run": one_run,
            "status": lambda: _command(desk, "status", "--json"),
            "read": lambda: _read(desk),
            "mcp": lambda: _asked(host),
        }
        threads = [Thread(target=_again, args=(kind, act, over, diary)) for kind, act in work.items()]
        for thread in threads:
            thread.start()
        over.wait(size)
        over.set()
        for thread in threads:
            thread.join()
        os.killpg(daemon.pid, signal.SIGKILL)  # as a power cut would: what it had begun is put in order by the run
    diary.note("last run", 0.0, _command(desk, "run", "--since", DAYS[0]))
    with desk.warehouse.reading() as connection:
        ids = [row[0] for row in connection.execute("select paper_id from papers").fetchall()]
        unranked = connection.execute(
            "select count(*) from ranking_sets where header ->> '$.output_path' is null"
        ).fetchall()[0][0]
    wanted = 6 + 4 * imported[0]
    lost, doubled = max(0, wanted - len(set(ids))) + unranked, len(ids) - len(set(ids))
    return Counts(
        part="processes",
        unit="acts of five processes",
        tried=diary.done + len(diary.failed),
        whole=diary.done,
        lost=lost,
        doubled=doubled,
        silent=len(diary.failed),
        findings=(*diary.failed[:20], *([f"{wanted} papers imported, {len(set(ids))} stored"] if lost else [])),
        figures=tuple(
            f"{kind}: {count} times, longest {diary.longest[kind]:.1f} s" for kind, count in sorted(diary.acts.items())
        ),
    )


def _again(kind: str, act: Callable[[], str | None], over: Event, diary: Diary) -> None:
    while not over.is_set():
        began = time.monotonic()
        try:
            fault = act()
        except Exception as failure:  # a thread's own fault must not look like silence
            fault = repr(failure)[:300]
        diary.note(kind, time.monotonic() - began, fault)
        if fault is not None:
            over.wait(1)


def _patient() -> dict[str, str]:
    return {"PAPER_ASSETS_STORE_DEADLINE": f"{_DEADLINE:g}"}


def _command(desk: Desk, *arguments: str) -> str | None:
    """Return what went wrong with a command, or None."""
    process = desk.start(*arguments, **_patient())
    try:
        _, err = process.communicate(timeout=2 * _BOUND)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "hangs"
    return None if process.returncode == 0 else f"exit code {process.returncode}: {err[-300:]!r}"


def _kill_after(process: Command, seconds: float) -> None:
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _read(desk: Desk) -> str | None:
    """As the page reads: short looks, one after the other, in this process."""
    for _ in range(20):
        held = summary(desk.warehouse)
        if held.papers < 6:
            return f"{held.papers} papers are seen"
    return None


def _asked(host: RawHost) -> str | None:
    return None if host.call("todays_ranking", profile="graphs")["papers"] else "an empty list"
