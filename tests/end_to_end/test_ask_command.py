"""`paper-assets ask`: what a killed process has paid for is not paid again, and a kept answer shows what is new."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from paper_assets.interfaces.cli import ask
from paper_assets.interfaces.cli.app import app
from paper_assets.stores.paper_merging import merge_papers
from tests.answering_models import CHEATS, LOWERED, QUESTION, RAISED, RAISED_SENTENCE, answering_model, obeys
from tests.desk import Desk
from tests.loopback_llm import hang, loopback_llm


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    merge_papers(desk.warehouse, [RAISED])
    return desk


def test_a_kept_question_shows_later_what_is_new(desk: Desk) -> None:
    desk.run("ask", "--extractive", "--keep", QUESTION)
    [kept] = json.loads(desk.run("answers", "list", "--json"))
    merge_papers(desk.warehouse, [LOWERED])
    again = json.loads(desk.run("answers", "again", str(kept["number"]), "--json"))
    assert again["new"] == {LOWERED.paper_id: LOWERED.title} and again["no_longer"] == {}
    assert RAISED.title in desk.run("answers", "show", "1") and LOWERED.title not in desk.run("answers", "show", "1")
    assert "```bibtex" in desk.run("answers", "show", "2", "--markdown")
    desk.run("answers", "remove", "1")
    assert [each["number"] for each in json.loads(desk.run("answers", "list", "--json"))] == [2]
    assert "`paper-assets answers list`" in desk.refused("answers", "show", "1")


def test_full_texts_are_fetched_within_a_limit_and_those_left_are_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in desk.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ask, "FETCHING_SECONDS", 0.0)
    app(["ask", "--extractive", "--fetch", "1", QUESTION], standalone_mode=False)
    printed = capsys.readouterr()
    assert f"note: {RAISED.paper_id} was not read: no time was left" in printed.err
    assert RAISED_SENTENCE in printed.out


def test_a_process_killed_between_its_calls_pays_only_for_the_rest(desk: Desk) -> None:
    merge_papers(desk.warehouse, [LOWERED])
    honest = answering_model(obeys)
    with loopback_llm(honest, hang(), honest) as server:
        environ = server.environ("openai")
        process = desk.start("ask", "--json", QUESTION, **environ)
        try:
            assert desk.happens(lambda: len(server.requests) == 2, within=600)  # judged; waiting for the answer
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        after = json.loads(desk.run("ask", "--json", QUESTION, **environ))
        assert (after["kind"], after["calls"], len(server.requests)) == ("written", 1, 3)
        free = json.loads(desk.run("ask", "--json", QUESTION, **environ))
        assert (free["sentences"], free["calls"], len(server.requests)) == (after["sentences"], 0, 3)


def test_the_terminal_shows_numbers_quotations_and_papers_and_nothing_of_a_model_that_cheats(desk: Desk) -> None:
    with loopback_llm(answering_model(obeys)) as server:
        shown = desk.run("ask", QUESTION, **server.environ("openai"))
    assert f"It reports: {RAISED_SENTENCE} [1]" in shown
    assert f"[1] “{RAISED_SENTENCE.rstrip('.')}”\n    {RAISED.title} ({RAISED.paper_id})" in shown
    with loopback_llm(answering_model(CHEATS["invents quotes"])) as server:
        shown = desk.run("ask", QUESTION, **server.environ("openai"), OPENAI_MODEL="cheat")
    assert (
        re.match(r"The stored papers do not answer this\. (1 passage|\d+ passages) examined\.", shown)
        and "[1] “Across eleven trials" in shown
    )
    assert shown.count("“") == 1  # the nearest sentence of the stored paper, nothing of the model's quotations
    assert "4 sentences left out: not supported by a quotation." in shown
    assert RAISED_SENTENCE in desk.run("ask", "--extractive", QUESTION)
