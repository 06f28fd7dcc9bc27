"""Processes that are killed or work on the same rewrite lose and double nothing (A4, B5)."""

import os
import signal
from contextlib import ExitStack
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock

import pytest

from paper_assets.rewriting.loop import advance, decide
from paper_assets.rewriting.writing import open_writer
from paper_assets.settings import RewritingConfig
from paper_assets.stores.llm_answers import StoredAnswers
from paper_assets.stores.rewrites import RewriteItem, rewrite_item
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import process
from tests.loopback_llm import Request, Says, Step, hang, loopback_llm
from tests.rewriting.scripted import Play, attempt_of, draft, is_check, is_critic, opened, writing

NOW = datetime(2026, 3, 5, tzinfo=UTC)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=60)


def advance_here(answers: Connection, warehouse: Warehouse, environ: dict[str, str], item: str) -> None:
    """Advance the item in a separate process, as a run does."""
    writer = open_writer(
        environ, archive=None, cache=StoredAnswers(warehouse), clock=lambda: NOW, config=RewritingConfig()
    )
    answers.send("ready")
    answers.recv()
    answers.send(advance(warehouse, writer, item))


def attempts_in_brief(item: RewriteItem) -> list[tuple[int, str, int, str]]:
    return [(each.attempt, each.text, each.score, each.critique) for each in item.attempts]


def test_the_next_process_continues_after_a_kill_at_any_question_of_any_attempt(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    play = Play(60, 70, 92)
    asked: list[tuple[int, str]] = []
    victim = 0

    def kill_whoever_asks_first(request: Request) -> Step:
        if is_check(request):
            return play(request)
        question = (attempt_of(request), "critic" if is_critic(request) else "actor")
        asked.append(question)
        if asked.count(question) == 1:
            os.kill(victim, signal.SIGKILL)
            return hang()
        return play(request)

    killed = 0
    with loopback_llm(kill_whoever_asks_first) as server:
        while True:
            with process(advance_here, warehouse, server.environ("ollama"), item.item) as (child, answers):
                assert answers.recv() == "ready"
                victim = child.pid or 0
                answers.send("go")
                child.join()
                if child.exitcode != 0:
                    assert child.exitcode == -signal.SIGKILL
                    killed += 1
                    continue
                done = answers.recv()
                break
    questions = [(attempt, who) for attempt in (1, 2, 3) for who in ("actor", "critic")]
    assert asked == [question for question in questions for _ in range(2)], "what was answered is not asked again"
    assert killed == len(questions)
    assert done == rewrite_item(warehouse, item.item)
    assert (done.outcome, done.kept) == ("passed", 3)
    assert attempts_in_brief(done) == [
        (number, f"A small memory is enough to count sheep, {draft(number)}.", score, f"critique of {draft(number)}")
        for number, score in enumerate((60, 70, 92), start=1)
    ]


def test_two_processes_on_one_item_pay_for_every_attempt_once(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    play, lock = Play(*[60] * 8), Lock()
    actors = 0

    def each_answer_another_text(request: Request) -> Step:
        nonlocal actors
        answer = play(request)
        if is_critic(request) or is_check(request) or not isinstance(answer, Says):
            return answer
        with lock:
            actors += 1
            return Says(answer.text.replace("enough to count", "enough and more " * actors + "to count"))

    with loopback_llm(each_answer_another_text) as server, ExitStack() as running:
        both = [
            running.enter_context(process(advance_here, warehouse, server.environ("ollama"), item.item))[1]
            for _ in range(2)
        ]
        assert [answers.recv() for answers in both] == ["ready"] * 2
        for answers in both:
            answers.send("go")
        ends = [answers.recv() for answers in both]
        assert len(writing(server)) == 16, "eight attempts, each by one actor and one critic"
    stored = rewrite_item(warehouse, item.item)
    assert ends == [stored, stored]
    assert [attempt.attempt for attempt in stored.attempts] == list(range(1, 9))
    assert stored.outcome == "best_with_warning"


def decide_here(answers: Connection, warehouse: Warehouse, item: str, word: str) -> None:
    answers.send("ready")
    answers.recv()
    answers.send(decide(warehouse, item, 1, word, now=NOW, config=RewritingConfig()))  # type: ignore[arg-type]


def test_only_one_of_two_concurrent_decisions_counts(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(88)) as server:
        writer = open_writer(
            server.environ("ollama"), archive=None, cache=None, clock=lambda: NOW, config=RewritingConfig()
        )
        advance(warehouse, writer, item.item)
    with ExitStack() as running:
        both = [
            running.enter_context(process(decide_here, warehouse, item.item, word))[1] for word in ("accept", "retry")
        ]
        assert [answers.recv() for answers in both] == ["ready"] * 2
        for answers in both:
            answers.send("go")
        accepted, sent_back = [answers.recv() for answers in both]
    assert accepted.counted != sent_back.counted
    assert rewrite_item(warehouse, item.item).decisions == {1: "accept" if accepted.counted else "retry"}
    assert "nothing was changed" in (sent_back if accepted.counted else accepted).note
