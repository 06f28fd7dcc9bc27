"""Set up an installation in a temporary folder and run its commands, in this process or in new ones."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper_assets.settings import Settings, load_settings
from paper_assets.stores.warehouse import Warehouse
from tests.forked_commands import Command, Ended, ForkedCommand, can_fork, run_forked
from tests.waiting import PATIENCE, until

COMMAND = [sys.executable, "-c", "from paper_assets.interfaces.cli.app import program; program()"]


@dataclass(frozen=True)
class Desk:
    """A home folder, a profile folder and a Dagster instance below one folder."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PAPER_ASSETS_HOME": str(self.folder / "data"),
            "PAPER_ASSETS_PROFILES": str(self.folder / "profiles"),
            "DAGSTER_HOME": str(self.folder / "dagster_home"),
            "PAPER_ASSETS_FIRST_DAY": "2026-01-01",
            "PAPER_ASSETS_REQUEST_GATE": str(self.folder / "gate"),
            "COLUMNS": "200",
        }

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.folder / "data" / "warehouse.duckdb", deadline=30)

    @property
    def settings(self) -> Settings:
        return load_settings(self.environment, self.folder)

    def profile(self, name: str, content: Mapping[str, Any] | str) -> Path:
        file = self.folder / "profiles" / name / "profile.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return file

    def content(self, name: str) -> dict[str, object]:
        """Return what a profile's file holds."""
        found: dict[str, object] = json.loads((self.folder / "profiles" / name / "profile.json").read_text("utf-8"))
        return found

    def papers(self, name: str, records: Sequence[Mapping[str, Any]]) -> Path:
        file = self.folder / name
        file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        return file

    def start(self, *arguments: str, before: str = "", **more: str) -> Command:
        """Start the command as a process with its own process group; `before` is code that it runs first."""
        environ = {**os.environ, **self.environment, **more}
        if can_fork(environ):
            return ForkedCommand(arguments, folder=self.folder, environ=environ, before=before)
        return self.start_interpreter(*arguments, before=before, **more)

    def start_interpreter(self, *arguments: str, before: str = "", **more: str) -> "subprocess.Popen[str]":
        """Start the command as `start` does, always in a new interpreter, which inherits what this process ignores."""
        return subprocess.Popen(
            [*COMMAND[:-1], f"{before}\n{COMMAND[-1]}", *arguments],
            cwd=self.folder,
            env={**os.environ, **self.environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **more: str) -> str:
        """Run a command that must succeed; return its standard output."""
        return self.heard(*arguments, **more)[0]

    def heard(self, *arguments: str, **more: str) -> tuple[str, str]:
        """Run a command that must succeed; return its standard output and its standard error."""
        ended = self._ended(arguments, more)
        assert ended.returncode == 0, ended.err
        return ended.out, ended.err

    def refused(self, *arguments: str, **more: str) -> str:
        """Run a command that must fail in one line; return that line."""
        ended = self._ended(arguments, more)
        assert ended.returncode != 0, ended.out
        assert "Traceback" not in ended.err
        lines = [line for line in ended.err.splitlines() if line.strip()]
        assert len(lines) == 1, ended.err
        return lines[0]

    def _ended(self, arguments: Sequence[str], more: Mapping[str, str]) -> Ended:
        environ = {**os.environ, **self.environment, **more}
        if can_fork(environ):
            return run_forked(arguments, folder=self.folder, environ=environ, within=PATIENCE)
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=PATIENCE)
        return Ended(process.returncode, out, err)

    @contextmanager
    def daemon(
        self, *, interval: int = 3, stopped_within: float = 120, **more: str
    ) -> Iterator["subprocess.Popen[str]"]:
        """Dagster's daemon in a separate session, its sensors ticking every `interval` seconds; its output is in
        `daemon.log`. At the end it is asked to stop, and killed with all its processes if it does not.
        """
        with (self.folder / "daemon.log").open("a", encoding="utf-8") as log:
            daemon = subprocess.Popen(
                [str(Path(sys.executable).with_name("dagster-daemon")), "run", "-m", "paper_assets.definitions"],
                cwd=self.folder,
                env={**os.environ, **self.environment, "PAPER_ASSETS_SENSOR_INTERVAL": str(interval), **more},
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
            try:
                yield daemon
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(daemon.pid, signal.SIGTERM)
                try:
                    daemon.wait(timeout=stopped_within)
                except subprocess.TimeoutExpired:
                    os.killpg(daemon.pid, signal.SIGKILL)
                    daemon.wait()

    def happens(self, happened: Callable[[], bool], *, within: float) -> bool:
        """Wait up to `within` seconds for the daemon; return whether the condition became true."""
        with suppress(AssertionError):
            return until(happened, within=within)
        return False

    def last_words(self) -> str:
        """Return the end of the daemon's log."""
        return (self.folder / "daemon.log").read_text("utf-8")[-4000:]

    def state(self) -> dict[str, list[Any]]:
        """Return everything stored that a second run must neither lose nor double, without times and file names."""
        queries = {
            "papers": "select paper_id, version, content_hash from papers order by all",
            "embeddings": "select model, text_hash, list_sum(vector) from embeddings order by all",
            "candidates": "select * from candidates order by all",
            "rankings": "select * from rankings order by all",
            "sets": "select day, profile, inputs from ranking_sets order by all",
        }
        with self.warehouse.reading() as connection:
            kept = {name: connection.execute(query).fetchall() for name, query in queries.items()}
        files = (self.folder / "data" / "output" / "rankings").glob("*/*.json")
        kept["files"] = sorted(
            (file.parent.name, *(paper["paper_id"] for paper in json.loads(file.read_text("utf-8"))["ranked_papers"]))
            for file in files
        )
        return kept


def paper(number: int, day: str, text: str, **more: Any) -> dict[str, Any]:
    """Return an invented paper as one record of our JSON lines."""
    return {
        "paper_id": f"2603.{number:05d}",
        "title": f"{text.capitalize()}, part {number}",
        "abstract": f"We study {text}. The method is simple and the gain is steady over {number} trials.",
        "authors": [f"Author {number}"],
        "published": f"{day}T09:00:00+00:00",
        "categories": ["cs.LG"],
        **more,
    }


TOPICS = (
    "quantised inference for language models",
    "protein structure from sequence alone",
    "retrieval of evidence for open questions",
    "traffic forecasting on road networks",
    "speech recognition for rare languages",
    "calibration of tree ensembles",
)

# No threshold, so that lists are full: the threshold has separate tests.
GRAPHS = {"interests": {"primary": ["traffic forecasting on road networks"]}, "ranking": {"top_k": 2, "threshold": 0}}
SPEECH = {"interests": {"primary": ["speech recognition for rare languages"]}, "ranking": {"top_k": 2, "threshold": 0}}


def week(days: Sequence[str], *, each: int = 6) -> list[dict[str, Any]]:
    """Return `each` papers a day with alternating topics."""
    return [
        paper(100 * (at + 1) + number, day, TOPICS[number % len(TOPICS)])
        for at, day in enumerate(days)
        for number in range(each)
    ]


def imported_desk(folder: Path, days: Sequence[str], *, each: int = 6) -> Desk:
    """Return a desk with two profiles and the papers of some days, without results."""
    desk = Desk(folder)
    folder.mkdir(parents=True, exist_ok=True)
    desk.profile("graphs", GRAPHS)
    desk.profile("speech", SPEECH)
    desk.run("import", str(desk.papers("papers.jsonl", week(days, each=each))))
    return desk


def end(process: Command) -> None:
    """Stop a server, and kill it if it does not stop."""
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
