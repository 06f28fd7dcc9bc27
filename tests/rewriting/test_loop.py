"""The loop over stored items, against a scripted actor and critic: what is kept, resumed, decided, refused (B4, B5)."""

from dataclasses import replace
from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput, LLMBudgetReached, LLMError, NotComputed
from paper_assets.pipeline.rewrites import advance_all, version_of
from paper_assets.rewriting import best_practices
from paper_assets.rewriting.best_practices import Archive, Archived
from paper_assets.rewriting.loop import (
    Response,
    advance,
    cancel,
    decide,
    publish,
    rehearse,
    rewriting,
    run_to_end,
    state_of,
    status_in_words,
    undo_cancellation,
)
from paper_assets.rewriting.policy import Decision, Done, Wait
from paper_assets.settings import RewritingConfig
from paper_assets.stores.rewrite_progress import keep_attempt, keep_decision
from paper_assets.stores.rewrites import Attempt, rewrite_item
from paper_assets.stores.warehouse import Warehouse
from tests.invented_rewrites import invented_attempt
from tests.loopback_llm import fault, loopback_llm
from tests.rewriting.scripted import NOW, PAPER, Play, attempt_of, is_critic, numbered, opened, writer_of, writing

NUMBERS = RewritingConfig()


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=30)


def say(warehouse: Warehouse, item: str, attempt: int, word: Decision) -> Response:
    return decide(warehouse, item, attempt, word, now=NOW, config=NUMBERS)


# Until done or waiting


def test_an_item_is_written_until_it_passes_and_each_attempt_is_stored(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(60, 80, 91)) as server:
        done = advance(warehouse, writer_of(server), item.item)
        assert len(writing(server)) == 6
    assert done == rewrite_item(warehouse, item.item)
    assert (done.outcome, done.kept, [attempt.score for attempt in done.attempts]) == ("passed", 3, [60, 80, 91])
    kept = done.kept_attempt
    assert kept is not None and kept.text == "A small memory is enough to count sheep, draft gamma."
    assert (kept.critique, kept.keywords, kept.model) == ("critique of draft gamma", ("sheep", "memory"), "llama3.2")
    assert (kept.input_tokens, kept.output_tokens, kept.made_at) == (300, 30, NOW)


def test_a_finished_item_makes_no_call_and_keeps_its_outcome_if_thresholds_change(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(91)) as server:
        done = advance(warehouse, writer_of(server), item.item)
        stricter = writer_of(server, config=RewritingConfig(passes=99))
        assert advance(warehouse, stricter, item.item) == done
        assert len(writing(server)) == 2


def test_a_waiting_item_makes_no_call_until_a_person_decides(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(88, 60, 95)) as server:
        writer = writer_of(server)
        assert advance(warehouse, writer, item.item).outcome is None
        waiting = advance(warehouse, writer, item.item)
        assert (len(writing(server)), status_in_words(waiting, config=NUMBERS)) == (2, "waiting for a decision")
        assert say(warehouse, item.item, 1, "retry").counted
        done = advance(warehouse, writer, item.item)
    assert (done.outcome, done.kept, len(done.attempts)) == ("passed", 3, 3)


def test_a_failed_call_is_not_an_attempt_and_the_item_continues_from_there(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    refused = fault(400, "no")
    with loopback_llm(Play(60, 92, steps={3: refused, 5: refused})) as server:
        writer = writer_of(server)
        for _ in range(2):  # the actor of the second attempt, then its critic
            with pytest.raises(LLMError):
                advance(warehouse, writer, item.item)
            assert len(rewrite_item(warehouse, item.item).attempts) == 1
        done = advance(warehouse, writer, item.item)
        asked = [is_critic(request) for request in writing(server)]
    assert [attempt.score for attempt in done.attempts] == [60, 92]
    assert asked == [False, True, False, False, True, True], "the actor's answer was kept when the critic failed"


def test_a_budget_used_up_is_a_failed_call(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(60, 60, 92)) as server:
        with pytest.raises(LLMBudgetReached):
            advance(warehouse, writer_of(server, environ={"PAPER_ASSETS_LLM_CALLS": "3"}), item.item)
        assert len(rewrite_item(warehouse, item.item).attempts) == 1
        assert advance(warehouse, writer_of(server), item.item).outcome == "passed"


def test_an_item_whose_last_process_died_before_closing_it_is_closed_without_asking(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm() as server:
        writer = writer_of(server)
        assert keep_attempt(warehouse, item.item, attempt(1, 93))
        assert advance(warehouse, writer, item.item).outcome == "passed"
        assert writing(server) == []


def attempt(number: int, score: int) -> Attempt:
    return invented_attempt(number, score, f"text {number}", made_at=NOW)


def test_the_first_of_two_concurrent_attempts_counts_and_the_other_process_continues_from_it(
    warehouse: Warehouse,
) -> None:
    [item] = opened(warehouse)

    def faster(request):  # type: ignore[no-untyped-def]
        """While our first critic thinks, another process stores its first attempt."""
        if is_critic(request) and not rewrite_item(warehouse, item.item).attempts:
            keep_attempt(warehouse, item.item, attempt(1, 70))
        return play(request)

    play = Play(99, 91)
    with loopback_llm(faster) as server:
        done = advance(warehouse, writer_of(server), item.item)
    assert [(each.text, each.score) for each in done.attempts] == [
        ("text 1", 70),
        ("A small memory is enough to count sheep, draft beta.", 91),
    ]


# Decisions


def test_a_second_click_and_a_stale_page_change_nothing_and_get_a_message(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(88, 86, 60, 60, 60)) as server:
        writer = writer_of(server)
        advance(warehouse, writer, item.item)
        assert say(warehouse, item.item, 1, "retry").counted
        again = say(warehouse, item.item, 1, "accept")
        assert not again.counted and "attempt 1 was already sent back; nothing was changed" in again.note
        advance(warehouse, writer, item.item)
        stale = say(warehouse, item.item, 1, "accept")
        assert not stale.counted and "already sent back" in stale.note
        ahead = say(warehouse, item.item, 3, "accept")
        assert not ahead.counted and "attempt 2 is the one that waits, not 3" in ahead.note
        assert say(warehouse, item.item, 2, "accept").counted
        assert rewrite_item(warehouse, item.item).outcome == "accepted", "closed without a run"
        late = say(warehouse, item.item, 2, "retry")
        assert not late.counted and "was already accepted" in late.note
    assert rewrite_item(warehouse, item.item).decisions == {1: "retry", 2: "accept"}


def test_only_a_waiting_attempt_can_be_decided_on(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    assert "does not wait" in say(warehouse, item.item, 1, "accept").note
    with loopback_llm(Play(92)) as server:
        advance(warehouse, writer_of(server), item.item)
    answer = say(warehouse, item.item, 1, "retry")
    assert not answer.counted and "passed and does not wait for a decision" in answer.note
    with pytest.raises(NotComputed, match="no rewrite 'x'"):
        say(warehouse, "x", 1, "accept")
    with pytest.raises(InvalidInput, match="'maybe' is unknown"):
        say(warehouse, item.item, 1, "maybe")  # type: ignore[arg-type]


def test_a_cancelled_item_stays_so_until_it_is_taken_up_again(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(88, 92)) as server:
        writer = writer_of(server)
        advance(warehouse, writer, item.item)
        assert cancel(warehouse, item.item).counted
        assert not cancel(warehouse, item.item).counted
        assert not say(warehouse, item.item, 1, "accept").counted
        assert not keep_attempt(warehouse, item.item, attempt(2, 99))
        assert advance(warehouse, writer, item.item).kept is None
        assert undo_cancellation(warehouse, item.item).counted
        assert not undo_cancellation(warehouse, item.item).counted
        say(warehouse, item.item, 1, "retry")
        done = advance(warehouse, writer, item.item)
    assert (done.outcome, done.kept) == ("passed", 2)
    assert not cancel(warehouse, item.item).counted, "a finished rewrite is not taken away"


# The generator


def test_next_yields_every_attempt_and_the_last_state_is_of_the_text_that_is_kept(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(60, 80, 70, 60, 50)) as server:
        steps = rewriting(warehouse, writer_of(server), item.item)
        states = list(steps)
    assert [(state.attempt, state.current_score, state.status) for state in states] == [
        (1, 60, "FAIL"),
        (2, 80, "FAIL"),
        (3, 70, "FAIL"),
        (4, 60, "FAIL"),
        (5, 50, "FAIL"),
        (2, 80, "PASS"),
    ]
    assert {state.max_retries for state in states} == {5}
    assert states[0].feedback == "critique of draft alpha"
    assert rewrite_item(warehouse, item.item).kept == 2


def test_send_decides_and_next_waits_on(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(88, 89, 60)) as server:
        steps = rewriting(warehouse, writer_of(server), item.item)
        first = next(steps)
        assert (first.status, first.decision_required, next(steps)) == ("WAIT_CONFIRM", True, first)
        second = steps.send("retry")
        assert (second.attempt, second.status) == (2, "WAIT_CONFIRM")
        accepted = steps.send("accept")
        assert (accepted.attempt, accepted.status, accepted.decision_required) == (2, "PASS", False)
        with pytest.raises(StopIteration) as end:
            next(steps)
        assert end.value.value == Done(attempt=2, outcome="accepted")
        assert len(writing(server)) == 4


def test_a_waiting_generator_sees_a_decision_of_another_process(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(88)) as server:
        steps = rewriting(warehouse, writer_of(server), item.item)
        next(steps)
        say(warehouse, item.item, 1, "accept")
        with pytest.raises(InvalidInput, match="already accepted"):
            steps.send("retry")
        resumed = rewriting(warehouse, writer_of(server), item.item)
        assert next(resumed).status == "PASS"


def test_a_decision_on_an_attempt_that_does_not_wait_is_refused(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(60, 92)) as server:
        writer = writer_of(server)
        steps = rewriting(warehouse, writer, item.item)
        next(steps)
        with pytest.raises(InvalidInput, match="does not wait"):
            steps.send("accept")
        assert [state.attempt for state in rewriting(warehouse, writer, item.item)] == [2]


@pytest.mark.parametrize("attempt", [1, 2])
def test_an_item_cancelled_while_an_attempt_is_written_ends_the_generator(warehouse: Warehouse, attempt: int) -> None:
    [item] = opened(warehouse)

    def meanwhile(request):  # type: ignore[no-untyped-def]
        if attempt_of(request) == attempt:
            cancel(warehouse, item.item)
        return Play(60, 92)(request)

    with loopback_llm(meanwhile) as server:
        steps = rewriting(warehouse, writer_of(server), item.item)
        if attempt == 2:
            assert next(steps).attempt == 1
        with pytest.raises(StopIteration) as end:
            next(steps)
    assert end.value.value == Done(attempt=None, outcome="cancelled")
    assert len(rewrite_item(warehouse, item.item).attempts) == attempt - 1


def test_a_finished_item_yields_its_kept_text_once(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(*[60] * 8)) as server:
        advance(warehouse, writer_of(server), item.item)
        [state] = rewriting(warehouse, writer_of(server), item.item)
    assert (state.attempt, state.max_retries, state.status) == (8, 8, "FAIL")
    assert state.feedback == (
        "quality warning: no attempt was good enough, this is the best of them. critique of draft theta"
    )


# A run over many items


def test_a_dead_model_leaves_everything_resumable_and_is_asked_only_twice(warehouse: Warehouse) -> None:
    items = opened(warehouse, *numbered(3))
    with loopback_llm(lambda request: fault(503, "gone", retry_after="9999")) as server:
        result = advance_all(warehouse, writer_of(server), [item.item for item in items])
        assert len(writing(server)) == 2
    assert result.unfinished == tuple(item.item for item in items)
    assert result.warning is not None and result.warning.startswith(
        "3 rewrites wait for the language model: ollama (127"
    )
    with loopback_llm(Play(95)) as server:
        assert advance_all(warehouse, writer_of(server), [item.item for item in items]).warning is None


def test_without_a_model_what_needs_none_is_closed_all_the_same(warehouse: Warehouse) -> None:
    waiting, fresh = (item.item for item in opened(warehouse, *numbered(2)))
    with loopback_llm(Play(88)) as server:
        advance(warehouse, writer_of(server), waiting)
        keep_decision(
            warehouse, waiting, 1, "accept", now=NOW
        )  # by a process that was killed before it closed the item
        unset = {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": ""}
        result = advance_all(warehouse, writer_of(server, environ=unset), [fresh, waiting])
    assert result.unfinished == (fresh,)
    assert result.warning is not None and "set OPENAI_API_KEY" in result.warning
    assert rewrite_item(warehouse, waiting).outcome == "accepted"


def test_one_failure_does_not_stop_the_others(warehouse: Warehouse) -> None:
    items = [item.item for item in opened(warehouse, *numbered(3))]
    with loopback_llm(Play(95, steps={1: fault(400, "odd")})) as server:
        result = advance_all(warehouse, writer_of(server), items)
    assert result.unfinished == (items[0],)
    assert [rewrite_item(warehouse, item).outcome for item in items] == [None, "passed", "passed"]


def test_items_that_the_server_refuses_do_not_keep_the_others_from_being_asked(warehouse: Warehouse) -> None:
    *items, later = [item.item for item in opened(warehouse, *numbered(6))]
    refused, busy = fault(400, "against the policy"), fault(503, "busy", retry_after="9999")
    with loopback_llm(Play(95, steps={1: refused, 2: refused, 3: refused})) as server:
        result = advance_all(warehouse, writer_of(server), items)
    assert result.unfinished == tuple(items[:3])
    assert [rewrite_item(warehouse, item).outcome for item in items] == [None, None, None, "passed", "passed"]
    with loopback_llm(Play(95, steps={1: busy, 2: refused, 3: busy})) as server:
        writer = writer_of(server)
        done = advance_all(warehouse, writer, [items[0], items[1], items[3], items[2], later])
        assert len(writing(server)) == 3, "neither a refusal nor what was done before brings the server back"
    assert done.unfinished == (*items[:3], later)


def test_the_data_version_changes_with_attempts_decisions_and_outcomes_only(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    seen = [version_of([rewrite_item(warehouse, item.item)])]
    with loopback_llm(Play(88)) as server:
        writer = writer_of(server)
        for change in (
            lambda: advance(warehouse, writer, item.item),
            lambda: keep_decision(warehouse, item.item, 1, "accept", now=NOW),
            lambda: advance(warehouse, writer, item.item),
        ):
            change()
            seen.append(version_of([rewrite_item(warehouse, item.item)]))
        advance(warehouse, writer, item.item)
    assert len(set(seen)) == 4
    assert version_of([rewrite_item(warehouse, item.item)]) == seen[-1]


def test_a_rehearsal_takes_the_same_steps_and_stores_nothing(warehouse: Warehouse) -> None:
    [item] = opened(warehouse)
    with loopback_llm(Play(60, 88)) as server:
        attempts, step = rehearse(writer_of(server), item)
    assert ([each.score for each in attempts], step) == ([60, 88], Wait(attempt=2))
    assert state_of(rewrite_item(warehouse, item.item), config=NUMBERS) is None


# The archive


def test_the_archive_gets_the_examples_of_every_attempt_up_to_the_kept_one(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    [item] = opened(warehouse)
    for number, score, shown in ((1, 80, ("x", "y")), (2, 99, ("y", "z"))):
        checked = replace(attempt(number, score), examples=shown, unchecked=0, disputed=(f"{number}",))
        assert keep_attempt(warehouse, item.item, checked)
    examples: list[str] = []

    def kept(archive: object, item: object, attempt: object, *, shown: list[str], **rest: object) -> Archived:
        examples.extend(shown)
        return Archived(id="1", refused=None)

    monkeypatch.setattr(best_practices, "best_practice", lambda warehouse, collection, example: example)
    monkeypatch.setattr(best_practices, "archive_rewrite", kept)
    archive = Archive(warehouse=warehouse, index=None, embedder=None, collection="c")  # type: ignore[arg-type]
    with loopback_llm() as server:
        assert advance(warehouse, writer_of(server, archive=archive), item.item).note == "archived as 1"
    assert examples == ["x", "y", "z"]


# What retrieval finds


def published(warehouse: Warehouse) -> list[tuple[str, int, str]]:
    return warehouse.rows("select doc_id, version, text from documents order by doc_id")


def test_a_finished_rewrite_is_a_document_and_the_one_of_a_newer_version_takes_its_place(
    warehouse: Warehouse,
) -> None:
    [old] = opened(warehouse)
    with loopback_llm(Play(88, text="An old way to count sheep with a small memory")) as server:
        advance(warehouse, writer_of(server), old.item)
        assert published(warehouse) == [], "not before it is finished"
        say(warehouse, old.item, 1, "accept")
    assert published(warehouse) == [
        ("2603.00001:public", 1, "An old way to count sheep with a small memory, draft alpha.")
    ]
    [new] = opened(warehouse, replace(PAPER, version=2))
    with loopback_llm(Play(92, text="The new way to count sheep with a small memory")) as server:
        advance(warehouse, writer_of(server), new.item)
    assert published(warehouse) == [
        ("2603.00001:public", 2, "The new way to count sheep with a small memory, draft alpha.")
    ]


def test_a_rewrite_of_an_outdated_version_is_kept_and_not_published(warehouse: Warehouse) -> None:
    [old] = opened(warehouse)
    opened(warehouse, replace(PAPER, version=2))
    with loopback_llm(Play(92)) as server:
        assert advance(warehouse, writer_of(server), old.item).outcome == "passed"
    assert published(warehouse) == []


def test_a_rewrite_that_was_being_closed_when_its_process_died_is_closed_again_without_harm(
    warehouse: Warehouse,
) -> None:
    [item] = opened(warehouse)
    keep_attempt(warehouse, item.item, attempt(1, 93))
    assert publish(
        warehouse, rewrite_item(warehouse, item.item), attempt(1, 93)
    )  # and killed before the item is closed
    with loopback_llm() as server:
        assert advance(warehouse, writer_of(server), item.item).outcome == "passed"
    assert published(warehouse) == [("2603.00001:public", 1, "text 1")]


@pytest.mark.parametrize(
    ("scores", "kept", "outcome"),
    [
        ((86, 93), 2, "passed"),
        ((88, 86, 87, 89, 85), 5, "accepted"),
        ((70, 88, 70, 70, 70), 2, "best"),
    ],
)
def test_a_rewrite_runs_to_its_end_without_a_person(
    tmp_path: Path, scores: tuple[int, ...], kept: int, outcome: str
) -> None:
    warehouse = Warehouse(tmp_path / "warehouse.duckdb", deadline=5)
    with loopback_llm(Play(*scores)) as server:
        [item] = opened(warehouse)
        stands = run_to_end(warehouse, writer_of(server), item.item)
    assert (stands.outcome, stands.kept, len(stands.attempts)) == (outcome, kept, len(scores))
