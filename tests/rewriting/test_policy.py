"""Test when to write again, ask a person, or stop (SPEC B4), at every bound and against a plain reference."""

from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.errors import InvalidInput
from paper_assets.rewriting.gate import is_stuck
from paper_assets.rewriting.loop import OptimizerState
from paper_assets.rewriting.policy import Done, NextStep, Wait, Write, attempts_allowed, next_step
from paper_assets.settings import RewritingConfig, load_settings
from tests.invented_rewrites import invented_attempt

NUMBERS = RewritingConfig()


def step(*scores: int, config: RewritingConfig = NUMBERS, **decisions: str) -> NextStep:
    """What follows; a decision on attempt 2 is given as `on2="retry"`."""
    words = {int(name.removeprefix("on")): word for name, word in decisions.items()}
    return next_step(scores, words, config=config)


def done(attempt: int | None, outcome: str) -> Done:
    return Done(attempt=attempt, outcome=outcome)  # type: ignore[arg-type]


# The original document's statements, with the cases that it names (TC).
STATEMENTS: tuple[tuple[str, tuple[int, ...], dict[str, str], NextStep], ...] = (
    # statement, scores so far, decisions, what follows
    ("nothing yet: write", (), {}, Write(attempt=1)),
    ("under 85: again", (84,), {}, Write(attempt=2)),
    ("from 85 on a person decides", (85,), {}, Wait(attempt=1)),
    ("up to 89", (89,), {}, Wait(attempt=1)),
    ("from 90 on it passes", (90,), {}, done(1, "passed")),
    ("92 passes", (92,), {}, done(1, "passed")),
    ("TC1: a first attempt of 96 passes", (96,), {}, done(1, "passed")),
    ("TC2: 88 waits", (88,), {}, Wait(attempt=1)),
    ("TC2: and is kept if it is accepted", (88,), {"on1": "accept"}, done(1, "accepted")),
    ("sent back, it is written again", (70, 88), {"on2": "retry"}, Write(attempt=3)),
    ("TC3: four fail, the fifth has 92", (60, 70, 80, 84, 92), {}, done(5, "passed")),
    ("five at most where one has 75", (75, 60, 60, 60), {}, Write(attempt=5)),
    ("then the best", (75, 60, 60, 60, 60), {}, done(1, "best")),
    ("the latest of equals", (80, 70, 80, 70, 60), {}, done(3, "best")),
    ("TC4: five under 75 earn a sixth", (74,) * 5, {}, Write(attempt=6)),
    ("a seventh", (*(74,) * 5, 80), {}, Write(attempt=7)),
    ("and an eighth", (*(74,) * 5, 80, 70), {}, Write(attempt=8)),
    ("then the best of eight", (*(74,) * 5, 80, 70, 70), {}, done(6, "best")),
    ("the three more pass", (*(74,) * 5, 92), {}, done(6, "passed")),
    ("and wait as the first five do", (*(74,) * 5, 86), {}, Wait(attempt=6)),
    ("TC5: still under 75: the latest best, with a warning", (74,) * 8, {}, done(8, "best_with_warning")),
    ("a retry counts as an attempt", (88, 60, 60, 60, 60), {"on1": "retry"}, done(1, "best")),
    ("the last one can be sent back", (60, 60, 60, 60, 88), {"on5": "retry"}, Write(attempt=6)),
    ("which buys one attempt", (60, 60, 60, 60, 88, 50), {"on5": "retry"}, done(5, "best")),
    ("that may wait too", (60, 60, 60, 60, 88, 88), {"on5": "retry"}, Wait(attempt=6)),
    ("and be sent back", (60, 60, 60, 60, 88, 88), {"on5": "retry", "on6": "retry"}, Write(attempt=7)),
    ("after the three more as well", (*(60,) * 7, 88), {"on8": "retry"}, Write(attempt=9)),
)


@pytest.mark.parametrize(
    ("scores", "decisions", "follows"), [row[1:] for row in STATEMENTS], ids=[row[0] for row in STATEMENTS]
)
def test_the_policy_is_what_the_document_says(
    scores: tuple[int, ...], decisions: dict[str, str], follows: NextStep
) -> None:
    assert step(*scores, **decisions) == follows


def test_the_numbers_and_the_state_are_those_of_the_document() -> None:
    stated = {
        "archived": 95,
        "recalled": 92,
        "passes": 90,
        "asks": 85,
        "enough": 75,
        "attempts": 5,
        "more_attempts": 3,
        "examples": 2,
        "example_tokens": 1000,
        "example_characters": 500,
        "duplicate_similarity": 0.95,
        "mask_pii": True,
    }
    assert {name: getattr(NUMBERS, name) for name in stated} == stated
    assert {field.name: field.type for field in fields(OptimizerState)} == {
        "attempt": int,
        "max_retries": int,
        "current_score": int,
        "current_text": str,
        "feedback": str,
        "status": Literal["PASS", "FAIL", "WAIT_CONFIRM"],
        "decision_required": bool,
    }


def test_what_the_gate_holds_back_neither_passes_nor_waits_while_there_are_attempts_left() -> None:
    assert next_step([96], {}, stopped={1}, config=NUMBERS) == Write(attempt=2)
    assert next_step([87], {}, stopped={1}, config=NUMBERS) == Write(attempt=2)
    assert next_step([96, 91], {}, stopped={1}, config=NUMBERS) == done(2, "passed")


def test_in_the_end_the_best_that_is_free_is_kept_else_the_best_that_is_held_back_waits() -> None:
    assert next_step([96, 80, 96, 96, 96], {}, stopped={1, 3, 4, 5}, config=NUMBERS) == done(2, "best")
    assert next_step([96, 60, 97, 96, 96], {}, stopped={1, 3, 4, 5}, config=NUMBERS) == Wait(attempt=3)
    assert next_step([60] * 8, {}, stopped={1, 2}, config=NUMBERS) == done(8, "best_with_warning")
    assert next_step([60] * 8, {}, stopped=set(range(1, 9)), config=NUMBERS) == Wait(attempt=8)
    assert next_step([96] * 5, {3: "accept"}, stopped=set(range(1, 6)), config=NUMBERS) == done(3, "accepted")


def test_sending_back_what_is_held_back_buys_one_attempt_each_time() -> None:
    everything = set(range(1, 9))
    assert next_step([96] * 5, {5: "retry"}, stopped=everything, config=NUMBERS) == Write(attempt=6)
    assert next_step([96] * 6, {5: "retry"}, stopped=everything, config=NUMBERS) == Wait(attempt=6)
    assert next_step([96] * 6, {5: "retry", 6: "retry"}, stopped=everything, config=NUMBERS) == Write(attempt=7)
    assert next_step([96] * 5 + [87], {3: "retry"}, stopped={1, 2, 3, 4, 5}, config=NUMBERS) == Wait(attempt=6)
    sent_back = {3: "retry", 6: "retry"}
    assert next_step([96] * 5 + [87], sent_back, stopped={1, 2, 3, 4, 5}, config=NUMBERS) == Write(attempt=7)


def test_only_the_last_attempt_can_wait() -> None:
    lower = RewritingConfig(asks=70, enough=60)
    assert step(80, 50, config=lower) == Write(attempt=3), "thresholds that moved do not stop what has gone on"


def test_thresholds_out_of_order_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="enough=80, asks=75"):
        RewritingConfig(enough=80, asks=75)
    with pytest.raises(InvalidInput, match="attempts must be at least 1"):
        RewritingConfig(attempts=0)


def test_thresholds_are_configuration() -> None:
    set_to = {"PAPER_ASSETS_REWRITING": "passes=92, asks = 80 ,duplicate_similarity=0.9, mask_pii=false"}
    config = load_settings(set_to, Path("/nowhere")).rewriting
    assert config == RewritingConfig(passes=92, asks=80, duplicate_similarity=0.9, mask_pii=False)
    assert step(91, config=config) == Wait(attempt=1)
    assert load_settings({}, Path("/nowhere")).rewriting == NUMBERS
    for text, reason in [
        ("passs=3", "'passs' is unknown"),
        ("passes=high", "passes: input should be a valid integer"),
        ("asks=95", "asks=95, passes=90"),
        ("passes=50", "enough <= asks <= passes"),
        ("duplicate_similarity=nan", "duplicate_similarity must be from 0 to 1, got nan"),
        ("copied_share=7", "copied_share must be from 0 to 1, got 7.0"),
        ("example_tokens=-5", "example_tokens must be at least 0, got -5"),
        ("example_characters=-1", "example_characters must be at least 0"),
        ("waiting_days=-1", "waiting_days must be from 0 to 36500"),
        ("archived=500", "archived must be from 0 to 100, got 500"),
        ("recalled=200", "recalled must be from 0 to 100"),
        ("recall_depth=0", "recall_depth must be at least 1"),
        ("recall_depth=0", "recall_depth must be at least 1"),
        ("mask_pii=maybe", "mask_pii: input should be a valid boolean"),
    ]:
        with pytest.raises(InvalidInput, match=f"^PAPER_ASSETS_REWRITING: .*{reason}"):
            load_settings({"PAPER_ASSETS_REWRITING": text}, Path("/nowhere"))


thresholds = st.builds(
    lambda bounds, attempts, more: RewritingConfig(
        enough=bounds[0], asks=bounds[1], passes=bounds[2], attempts=attempts, more_attempts=more
    ),
    st.lists(st.integers(0, 100), min_size=3, max_size=3).map(sorted),
    st.integers(1, 6),
    st.integers(0, 4),
)
critics = st.lists(st.integers(0, 100), min_size=40, max_size=40)
people = st.lists(st.sampled_from(["accept", "retry"]), max_size=20)


def play(scores: list[int], words: list[str], config: RewritingConfig) -> tuple[list[int], dict[int, str], NextStep]:
    """Write and decide until the policy is done, or waits and no decision is left."""
    written: list[int] = []
    decisions: dict[int, str] = {}
    left = list(words)
    while True:
        now = next_step(written, decisions, config=config)
        if isinstance(now, Write):
            assert now.attempt == len(written) + 1
            written.append(scores[len(written)])
        elif isinstance(now, Wait) and left:
            assert now.attempt == len(written)
            decisions[now.attempt] = left.pop(0)
        else:
            return written, decisions, now


@given(critics, people, thresholds)
def test_every_course_ends_in_time_with_the_attempt_that_the_words_of_the_policy_name(
    scores: list[int], words: list[str], config: RewritingConfig
) -> None:
    written, decisions, end = play(scores, words, config)
    retries = sum(word == "retry" for word in decisions.values())
    assert len(written) <= config.attempts + config.more_attempts + retries
    assert len(written) <= attempts_allowed(written, decisions, config=config)
    if isinstance(end, Wait):
        assert config.asks <= written[-1] < config.passes
        return
    assert isinstance(end, Done) and end.attempt is not None
    kept = written[end.attempt - 1]
    if end.outcome == "passed":
        assert kept >= config.passes and end.attempt == len(written)
    elif end.outcome == "accepted":
        assert decisions[end.attempt] == "accept" and end.attempt == len(written)
    else:
        assert kept == max(written) and kept not in written[end.attempt :]
        assert (end.outcome == "best") == (kept >= config.enough)
        assert len(written) >= config.attempts
        if max(written[: config.attempts]) < config.enough:
            assert len(written) >= config.attempts + config.more_attempts


@given(critics, people, thresholds)
def test_replaying_the_history_gives_the_same_steps(
    scores: list[int], words: list[str], config: RewritingConfig
) -> None:
    written, decisions, _ = play(scores, words, config)
    for length in range(len(written)):
        made = {attempt: word for attempt, word in decisions.items() if attempt <= length}
        assert next_step(written[:length], made, config=config) == Write(attempt=length + 1)


def test_a_held_attempt_that_another_would_not_change_waits_at_once_unless_a_good_one_is_free() -> None:
    assert next_step([96], {}, stopped=[1], stuck=True, config=NUMBERS) == Wait(attempt=1)
    assert next_step([96], {1: "retry"}, stopped=[1], stuck=True, config=NUMBERS) == Write(attempt=2)
    assert next_step([80, 96], {}, stopped=[2], stuck=True, config=NUMBERS) == done(1, "best")
    assert next_step([80], {}, stopped=[1], stuck=True, config=NUMBERS) == Wait(attempt=1)


@pytest.mark.parametrize(
    ("fields", "stuck"),
    [
        ({"score": 96, "unsupported": ("9.75 percent",)}, True),
        ({"score": 80, "unsupported": ("9.75 percent",)}, False),  # the critic has faults too
        ({"score": 0, "stopped": ("3 words",)}, True),
        ({"score": 96}, False),
    ],
)
def test_another_attempt_would_not_help_where_two_are_held_back_for_the_same(
    fields: dict[str, Any], stuck: bool
) -> None:
    attempts = [invented_attempt(number, **fields) for number in (1, 2)]
    assert is_stuck(attempts, passes=NUMBERS.passes) == stuck
    assert not is_stuck(attempts[:1], passes=NUMBERS.passes)
    assert is_stuck(attempts, {"9.75 percent"}, passes=NUMBERS.passes) == bool(fields.get("stopped"))
