"""A command stops on a signal, whatever it is doing, and the same command continues from there (A3, A4)."""

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from tests.desk import GRAPHS, Desk, week
from tests.forked_commands import Command
from tests.loopback import Answer
from tests.loopback_arxiv import LoopbackArxiv, invented_paper, loopback_arxiv
from tests.loopback_llm import hang, loopback_llm
from tests.waiting import until

DAY = date(2026, 3, 2)
PATIENCE = 240  # seconds for what takes a few on an idle machine
STOPPED = "stopped; nothing is half-written, the same command continues from here"


@pytest.fixture
def arxiv() -> Iterator[LoopbackArxiv]:
    """Start an arXiv that does not answer until its script is removed."""
    papers = [invented_paper(number, DAY, categories=("cs.LG",)) for number in range(5)]
    with loopback_arxiv(papers, script=[Answer(hang=True)] * 20) as arxiv:
        yield arxiv


def wait_until_it_asks(process: Command, arxiv: LoopbackArxiv) -> None:
    until(lambda: arxiv.requests or process.poll() is not None)
    assert process.poll() is None, process.communicate()


def asking(arxiv: LoopbackArxiv) -> dict[str, str]:
    return {"PAPER_ASSETS_ARXIV_URL": arxiv.url, "PAPER_ASSETS_REQUEST_INTERVAL": "0"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_fetch_that_waits_for_arxiv_ends_on_a_signal_and_is_not_retried_automatically(
    number: signal.Signals, arxiv: LoopbackArxiv, tmp_path: Path
) -> None:
    desk = Desk(tmp_path)
    process = desk.start("fetch", "--day", f"{DAY}", **asking(arxiv))
    wait_until_it_asks(process, arxiv)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert err.strip().endswith(STOPPED)
    assert "Traceback" not in err
    assert len(arxiv.requests) == 1


def test_a_rewrite_that_waits_for_its_model_ends_on_ctrl_c_without_a_traceback(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.run("import", f"{desk.papers('papers.jsonl', week([f'{DAY}'], each=1))}")
    with loopback_llm(lambda request: hang()) as model:
        environ = {**model.environ("openai"), "OPENAI_MODEL": "invented"}
        process = desk.start("rewrite", "2603.00100", "--level", "student", **environ)
        until(lambda: model.requests or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT, err
    assert err.strip().endswith(STOPPED)
    assert "Traceback" not in err


def test_a_command_started_by_nohup_continues_when_its_terminal_closes(arxiv: LoopbackArxiv, tmp_path: Path) -> None:
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = Desk(tmp_path).start_interpreter("fetch", "--day", f"{DAY}", **asking(arxiv))
    finally:
        signal.signal(signal.SIGHUP, handler)
    wait_until_it_asks(process, arxiv)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_fetch_that_was_killed_holds_no_slot_and_the_same_command_continues(
    arxiv: LoopbackArxiv, tmp_path: Path
) -> None:
    desk = Desk(tmp_path)
    process = desk.start("fetch", "--day", f"{DAY}", **asking(arxiv))
    wait_until_it_asks(process, arxiv)
    process.kill()
    process.communicate()
    arxiv.script = None
    assert "5" in desk.run("fetch", "--day", f"{DAY}", **asking(arxiv))


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("dagster.yaml", b"telemetry: [\n", "fix it, or remove it"),
        ("dagster.yaml", b"\xff\xfe\x00", "fix it, or remove it"),
        ("dagster.yaml", b"telemetri: {}\n", "fix it, or remove it"),
        ("history/runs.db", b"no database" * 500, "reset --history"),
        ("history/runs/index.db", b"no database" * 500, "reset --history"),
    ],
)
def test_a_damaged_file_of_dagsters_is_named_in_one_line(
    desk_with_history: Desk, file: str, content: bytes, says: str
) -> None:
    damaged = desk_with_history.folder / "dagster_home" / file
    whole = damaged.read_bytes()
    for log in damaged.parent.glob(f"{damaged.name}-*"):
        log.unlink()
    damaged.write_bytes(content)
    try:
        message = desk_with_history.refused("run")
        assert f"{damaged}" in message and says in message
    finally:
        damaged.write_bytes(whole)


@pytest.fixture(scope="module")
def desk_with_history(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(tmp_path_factory.mktemp("history"))
    desk.profile("graphs", GRAPHS)
    desk.run("import", str(desk.papers("papers.jsonl", week(["2026-03-02"], each=2))))
    return desk


@pytest.mark.parametrize("content", ["'{bad'", "cast(X'ff00fe' as text)"])
def test_a_history_that_dagster_cannot_decode_is_healed_by_a_reset(desk_with_history: Desk, content: str) -> None:
    desk = desk_with_history
    desk.run("run")
    with closing(sqlite3.connect(desk.folder / "dagster_home" / "history" / "runs.db")) as file, file:
        assert file.execute(f"update runs set run_body = {content}").rowcount
    desk.run("status")
    desk.profile("graphs", {**GRAPHS, "preferred_authors": [f"Ann {len(content)}"]})
    assert "reset --history" in desk.refused("run")
    desk.run("reset", "--history", "--yes")
    desk.run("run")


def test_a_history_whose_creator_was_killed_is_created_again(tmp_path: Path) -> None:
    index = tmp_path / "dagster_home" / "history" / "runs" / "index.db"
    index.parent.mkdir(parents=True)
    index.touch()
    Desk(tmp_path).run("import", str(Desk(tmp_path).papers("papers.jsonl", week(["2026-03-02"], each=2))))
    assert index.stat().st_size
