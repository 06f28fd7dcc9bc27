"""`paper-assets rewrite`: in a pipe, as JSON, and refused in one line."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from paper_assets.interfaces.cli.app import main
from paper_assets.models.minilm import NAME
from paper_assets.stores.documents import count_documents, texts_to_embed
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rewrites import rewrite_item, unfinished_items
from tests.desk import Desk
from tests.loopback_llm import LoopbackLLM, fault, loopback_llm
from tests.rewriting.scripted import PAPER, Play, writing

Command = Callable[..., tuple[str, str]]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    merge_papers(desk.warehouse, [PAPER, replace(PAPER, paper_id="2603.00002", abstract=" ")])
    return desk


@pytest.fixture
def command(desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `rewrite` with these arguments in this process; its stdout and stderr."""

    def run(*arguments: str, server: LoopbackLLM | None = None, fails: bool = False) -> tuple[str, str]:
        for name, value in {**desk.environment, **(server.environ("ollama") if server else {})}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(desk.folder)
        monkeypatch.setattr("sys.argv", ["paper-assets", "rewrite", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert bool(end.value.code) == fails, err
        return out, err

    return run


def test_a_rewrite_that_passes_is_shown_with_its_score(command: Command) -> None:
    with loopback_llm(Play(60, 92)) as server:
        out, _ = command("2603.00001v1", "--level", "public", server=server)
        assert "attempt 1 of at most 5: 60 (FAIL)" in out and "2603.00001 for public: passed" in out
        assert "A small memory is enough to count sheep, draft beta." in out
        again, _ = command("2603.00001", "--level", "public", server=server)
        assert "draft beta." in again and len(writing(server)) == 4


def test_in_a_pipe_a_waiting_rewrite_says_how_to_decide_and_the_decision_continues_it(command: Command) -> None:
    with loopback_llm(Play(88, 87)) as server:
        out, _ = command("2603.00001", "--level", "expert", server=server)
        assert "decide: paper-assets rewrite 2603.00001 --level expert --accept 1 (or --retry 1, --cancel)" in out
        out, _ = command("2603.00001", "--level", "expert", "--retry", "1", server=server)
        assert "--accept 2" in out
        _, err = command("2603.00001", "--level", "expert", "--accept", "1", server=server, fails=True)
        assert err == (
            "error: the rewrite of 2603.00001 for expert: attempt 1 was already sent back; nothing was changed\n"
        )
        out, err = command("2603.00001", "--level", "expert", "--accept", "2", "--json", server=server)
        record = json.loads(out)
        assert (record["outcome"], record["kept"], record["state"]["status"]) == ("accepted", 2, "PASS")
        assert record["attempts"][0]["score"] == 88 and record["decisions"] == {"1": "retry", "2": "accept"}
        assert len(writing(server)) == 4


def test_a_cancelled_rewrite_is_taken_up_again_on_demand(command: Command) -> None:
    with loopback_llm(Play(88)) as server:
        command("2603.00001", "--level", "public", server=server)
        assert "cancelled" in command("2603.00001", "--level", "public", "--cancel", server=server)[0]
        assert "was already cancelled" in command("2603.00001", "--level", "public", "--cancel", fails=True)[1]
        assert "for public: cancelled" in command("2603.00001", "--level", "public", server=server)[0]
        assert "waiting for a decision" in command("2603.00001", "--level", "public", "--reopen", server=server)[0]
        assert len(writing(server)) == 2


def test_a_finished_rewrite_says_what_was_not_checked_and_accepting_it_archives_the_rewrite(command: Command) -> None:
    with loopback_llm(Play(96, text="Zorvax needs a small memory to count sheep", unsure=("Zorvax",))) as server:
        out, told = command("2603.00001", "--level", "expert", server=server)
        assert "not checked against the original: Zorvax\n" in out and "expert --accept 1" in out
        assert "at most 16 " not in told and "at most" in told and "Paid: 3 calls" in told
        out, _ = command("2603.00001", "--level", "expert", "--accept", "1", server=server)
        assert "archived as " in out and "not checked" not in out and len(writing(server)) == 2
        assert "already accepted" in command("2603.00001", "--level", "expert", "--accept", "1", server=server)[0]


def test_a_decision_on_a_rewrite_that_was_never_started_starts_nothing(command: Command, desk: Desk) -> None:
    for word in (("--accept", "1"), ("--retry", "1"), ("--cancel",), ("--reopen",)):
        assert "there is no rewrite" in command("2603.00001", "--level", "public", *word, fails=True)[1]
    assert unfinished_items(desk.warehouse) == []


def test_a_decision_reaches_a_rewrite_of_an_older_version_of_the_paper(command: Command, desk: Desk) -> None:
    with loopback_llm(Play(88, 92)) as server:
        command("2603.00001", "--level", "public", server=server)
        [old] = unfinished_items(desk.warehouse)
        merge_papers(desk.warehouse, [replace(PAPER, version=2)])
        out, _ = command("2603.00001", "--level", "public", "--retry", "1", server=server)
        assert "for public: passed" in out
    assert (rewrite_item(desk.warehouse, old.item).outcome, unfinished_items(desk.warehouse)) == ("passed", [])


def test_an_accepted_rewrite_is_embedded_at_once(command: Command, desk: Desk) -> None:
    with loopback_llm(Play(88)) as server:
        command("2603.00001", "--level", "public", server=server)
    assert "accepted" in command("2603.00001", "--level", "public", "--accept", "1")[0]
    # The same decision again is not a mistake: the first command may have been killed before it finished.
    assert "for public: accepted" in command("2603.00001", "--level", "public", "--accept", "1")[0]
    hashes, _ = texts_to_embed(desk.warehouse, "rewrite", model=NAME)
    assert (hashes, count_documents(desk.warehouse, "rewrite", None)) == ([], 1)


def test_what_cannot_be_done_is_refused_in_one_line(command: Command) -> None:
    for arguments, reason in (
        (("2603.00001", "--level", "child"), "--level must be one of public, student, expert, got 'child'"),
        (("2603.99999", "--level", "public"), "2603.99999 is not stored"),
        (("hello", "--level", "public"), "not an arXiv id"),
        (("2603.00002", "--level", "public"), "has no abstract"),
        (("2603.00001", "--level", "public", "--cancel", "--accept", "1"), "give only one of"),
        (("2603.00001", "--level", "public", "--accept", "1"), "nothing waits for a decision; begin it with"),
        (("2603.00001", "--level", "child", "--retry", "1"), "--level must be one of"),
        (("2603.00001", "--level", "public"), "set OPENAI_API_KEY"),
    ):
        out, err = command(*arguments, fails=True)
        assert reason in err and err.startswith("error: ") and err.count("\n") == 1, err
    with loopback_llm(Play(60, 92, steps={3: fault(400, "odd")})) as server:
        assert "odd" in command("2603.00001", "--level", "public", server=server, fails=True)[1]
        out, _ = command("2603.00001", "--level", "public", server=server)
        assert "attempt 2 of at most 5: 92 (PASS)" in out and "attempt 1" not in out
