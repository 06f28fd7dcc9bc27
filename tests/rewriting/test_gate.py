"""Test which texts the gate holds back whatever their score, and how a person releases them (B2)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from paper_assets.paper import Paper
from paper_assets.rewriting.best_practices import Archive, archive_kept
from paper_assets.rewriting.gate import held_back, length_in_words, open_questions, stop_reasons, unsettled
from paper_assets.rewriting.loop import advance, decide, release, state_of, status_in_words
from paper_assets.rewriting.measures import lix
from paper_assets.rewriting.prompts import personas
from paper_assets.rewriting.writing import new_item
from paper_assets.settings import RewritingConfig
from paper_assets.stores.best_practices import best_practices
from paper_assets.stores.rewrites import RewriteItem, rewrite_item
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.languages import is_in_language, language_of
from tests.loopback_llm import Request, Step, loopback_llm, says
from tests.rewriting.invented_archive import invented_archive
from tests.rewriting.scripted import (
    NOW,
    PAPER,
    checked,
    draft,
    is_check,
    is_critic,
    opened,
    verdict,
    writer_of,
    writing,
)

CONFIG = RewritingConfig()
LONG = replace(
    PAPER,
    paper_id="2603.00077",
    abstract=(
        "Shepherds need to know how many sheep they have, and counting large flocks by hand is slow and unreliable. "
        "We propose FlockNet, a sieve that counts sheep while they walk through a gate. It keeps a small sketch of "
        "every "
        "sheep it has seen and forgets the oldest ones first. On 1,000 hours of video from three farms, FlockNet "
        "counts "
        "97.5% of the sheep correctly and needs half of the memory of the best earlier method. It runs on a phone, "
        "where "
        "one count takes 42 ms. The method assumes that sheep pass one at a time; at crowded gates the error doubles."
    ),
)
GOOD = (
    "A shepherd wants to know each evening whether all the sheep are home. To count a large flock by hand takes "
    "long, and "
    "it often goes wrong.\n\n"
    "The authors let a phone do it. The sheep walk through a gate, and a program named FlockNet counts them on "
    "video. For "
    "each animal it keeps a short note, so that none is counted twice. Old notes are thrown away first, which saves "
    "room.\n\n"
    "On 1,000 hours of video from three farms it counted 97.5 percent of the sheep correctly. It did so with half the "
    "memory of the best method before it, and one count took 42 milliseconds. One thing must hold: the sheep have "
    "to come "
    "one by one. Where many crowd the gate at once, the error doubles."
)
KOREAN = (
    "목동은 저녁마다 양이 모두 돌아왔는지 알고 싶어 한다. 큰 무리를 손으로 세는 일은 느리고 자주 틀린다. 저자들은 "
    "문을 지나는 양을 "
    "영상으로 세는 프로그램을 만들었다. 이 프로그램은 양마다 짧은 기록을 남기고 오래된 기록부터 지운다. 그래서 "
    "메모리를 절반만 쓴다. 세 농장의 "
    "영상에서 양을 거의 모두 바르게 세었고, 휴대전화에서도 빠르게 동작한다. 다만 양이 한 마리씩 지나간다고 "
    "가정하며, 문이 붐비면 오류가 두 배가 된다. "
    "이 방법은 목동의 일을 덜어 준다. 양을 세는 일은 오래되었지만 여전히 어렵다. 저자들은 그 일을 휴대전화 하나로 "
    "할 수 있음을 보였다."
)
HARD = (
    "Notwithstanding considerable methodological heterogeneity, contemporaneous enumeration of agricultural "
    "populations "
    "necessitates computationally parsimonious probabilistic summarisation architectures, simultaneously accommodating "
    "heterogeneous environmental circumstances and exceptionally constrained computational infrastructure, whereby "
    "sequential observations accumulate within continuously maintained representations, subsequently eliminating "
    "comparatively outdated information, thereby substantially reducing memory consumption without compromising "
    "enumeration correctness throughout representative agricultural installations, provided individual animals "
    "traverse "
    "instrumented passageways consecutively rather than simultaneously, since overcrowded passageways substantially "
    "deteriorate measurement reliability."
)
SIX = {
    "a refusal": ("I'm sorry, but I cannot help with that request.", "a refusal"),
    "a few words": ("It works well.", "3 words"),
    "the original": (LONG.abstract, "the original over again"),
    "Korean for an English reader": (KOREAN, "not in English"),
    "misread figures": (
        GOOD.replace("97.5 percent", "9.75 percent").replace("42 milliseconds", "4.2 milliseconds"),
        "not in the original: 4.2 milliseconds, 9.75 percent",
    ),
    "zero-width characters": ("\u200b\u200c\u2060" * 300, "no visible text"),
}


def answering(*texts: str, score: int = 96):  # type: ignore[no-untyped-def]
    """An actor who writes these texts one after the other, the last forever, and a critic who likes all of them, but
    for the misread figures.
    """
    given = list(texts)

    def answer(request: Request) -> Step:
        if is_check(request):
            return checked(request, wrong=("9.75", "4.2 milli"))
        if is_critic(request):
            return says(verdict(score, "fine"))
        return says({"text": given.pop(0) if len(given) > 1 else given[0], "keywords": ["sheep"]})

    return answer


def rewritten(
    warehouse: Warehouse, *texts: str, archive: Archive | None = None, score: int = 96, paper: Paper = LONG
) -> RewriteItem:
    [item] = opened(warehouse, paper)
    with loopback_llm(answering(*texts, score=score)) as server:
        return advance(warehouse, writer_of(server, archive=archive), item.item)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return invented_archive(tmp_path)


def kept(archive: Archive) -> list[str]:
    return [each.text for each in best_practices(archive.warehouse, archive.collection)]


@pytest.mark.parametrize(("text", "reason"), SIX.values(), ids=SIX)
def test_a_text_that_no_reader_can_use_neither_passes_nor_is_archived_whatever_its_score(
    archive: Archive, text: str, reason: str
) -> None:
    item = rewritten(archive.warehouse, text, archive=archive)
    assert item.outcome is None and kept(archive) == []
    asked_critic = reason.startswith("not in the original")  # code cannot be sure
    assert [attempt.score for attempt in item.attempts] == [96 if asked_critic else 0] * 2, "twice is enough"
    assert any(reason in each for each in held_back(item, item.attempts[0])), held_back(item, item.attempts[0])
    state = state_of(item, config=CONFIG)
    assert state is not None and state.status == "WAIT_CONFIRM" and reason in state.feedback


def test_a_good_rewrite_passes_the_gate_and_is_archived(archive: Archive) -> None:
    item = rewritten(archive.warehouse, GOOD, archive=archive)
    assert (item.outcome, len(item.attempts), kept(archive)) == ("passed", 1, [GOOD])
    assert held_back(item, item.attempts[0]) == ()


def test_the_next_attempt_gets_the_reasons_of_the_gate_and_may_pass(archive: Archive) -> None:
    [item] = opened(archive.warehouse, LONG)
    with loopback_llm(answering(SIX["a few words"][0], GOOD)) as server:
        done = advance(archive.warehouse, writer_of(server, archive=archive), item.item)
        second = writing(server)[1].turns[0]  # the first was sent to no critic
    assert "It cannot be used as it is: 3 words, where 120 to 200 were asked for." in second
    assert (done.outcome, done.kept, kept(archive)) == ("passed", 2, [GOOD])


def test_the_best_attempt_that_passes_the_gate_is_preferred_to_one_held_back(archive: Archive) -> None:
    [item] = opened(archive.warehouse, LONG)
    texts = iter(["It works well.", GOOD, *["It works well."] * 3])

    def answer(request: Request) -> Step:
        if is_check(request):
            return checked(request)
        return says(verdict(80)) if is_critic(request) else says({"text": next(texts), "keywords": []})

    with loopback_llm(answer) as server:
        done = advance(archive.warehouse, writer_of(server, archive=archive), item.item)
    assert (done.outcome, done.kept, kept(archive)) == ("best", 2, [])


# Released by a person


def test_a_person_may_accept_what_is_held_back_and_the_claims_are_remembered_for_the_paper(archive: Archive) -> None:
    text = SIX["misread figures"][0]
    item = rewritten(archive.warehouse, text, archive=archive)
    assert status_in_words(item, config=CONFIG) == "waiting for a decision"
    done = decide(archive.warehouse, item.item, 2, "accept", now=NOW, config=CONFIG)
    assert done.counted, done.note
    assert rewrite_item(archive.warehouse, item.item).accepted == {"9.75 percent", "4.2 milliseconds"}
    with loopback_llm() as server:
        closed = advance(archive.warehouse, writer_of(server, archive=archive), item.item)
    assert (closed.outcome, closed.kept, kept(archive)) == ("accepted", 2, [text])
    again = rewritten(archive.warehouse, text, archive=archive, paper=replace(LONG, version=2))
    assert again.outcome == "passed", "accepted once, accepted in every rewrite of the paper"


def test_what_was_accepted_for_one_paper_is_not_for_another(archive: Archive) -> None:
    text = SIX["misread figures"][0]
    item = rewritten(archive.warehouse, text)
    decide(archive.warehouse, item.item, 2, "accept", now=NOW, config=CONFIG)
    other = rewritten(archive.warehouse, text, paper=replace(LONG, paper_id="2603.00078"))
    assert other.outcome is None


def test_single_numbers_and_names_can_be_released_and_the_rewrite_continues_automatically(archive: Archive) -> None:
    item = rewritten(archive.warehouse, SIX["misread figures"][0], archive=archive)
    unknown = release(archive.warehouse, item.item, "Norway", now=NOW)
    assert not unknown.counted and "'Norway' is not in doubt" in unknown.note
    assert release(archive.warehouse, item.item, "4.2 milliseconds", now=NOW).counted
    stands = rewrite_item(archive.warehouse, item.item)
    assert held_back(stands, stands.attempts[0]) == ("not in the original: 9.75 percent",)
    release(archive.warehouse, item.item, "9.75 percent", now=NOW)
    with loopback_llm() as server:
        done = advance(archive.warehouse, writer_of(server, archive=archive), item.item)
    assert (done.outcome, done.kept) == ("passed", 1)


def test_what_is_held_back_may_be_sent_back_each_time_for_one_more_attempt(archive: Archive) -> None:
    item = rewritten(archive.warehouse, "It works well.")
    for attempt in (2, 3):
        assert decide(archive.warehouse, item.item, attempt, "retry", now=NOW, config=CONFIG).counted
        with loopback_llm(answering("It works well.")) as server:
            item = advance(archive.warehouse, writer_of(server), item.item)
        assert len(item.attempts) == attempt + 1
    assert decide(archive.warehouse, item.item, 4, "retry", now=NOW, config=CONFIG).counted
    with loopback_llm(answering(GOOD, score=91)) as server:
        item = advance(archive.warehouse, writer_of(server), item.item)
    assert (item.outcome, item.kept) == ("passed", 5)


# The checks


@pytest.mark.parametrize(
    "text",
    [
        "As an AI language model, I am not able to rewrite this abstract for you.",
        "I can't assist with that.",
        "Please provide the abstract that you want me to rewrite.",
        "죄송하지만 그 요청은 도와드릴 수 없습니다.",
        "Es tut mir leid, aber dabei kann ich nicht helfen.",
    ],
)
def test_refusals_of_many_kinds_are_known(text: str) -> None:
    assert any("a refusal" in reason for reason in stop_reasons(new_item(LONG, "public"), text))


def test_a_paper_about_refusals_may_quote_them() -> None:
    about = replace(LONG, abstract=f"Models answer “I'm sorry, but I cannot help”. We count how often. {LONG.abstract}")
    text = f"Programs often say “I'm sorry, but I cannot help”. {GOOD}"
    assert not any("refusal" in reason for reason in stop_reasons(new_item(about, "public"), text))


def test_a_text_about_something_else_is_known_by_its_words_where_it_is_long_enough() -> None:
    other = replace(LONG, title="On kites", abstract=HARD)
    assert any("about something else" in reason for reason in stop_reasons(new_item(other, "student"), GOOD))
    assert not any("something else" in reason for reason in stop_reasons(new_item(LONG, "public"), GOOD))


def test_a_text_may_be_hard_to_read_for_an_expert_only() -> None:
    assert any("hard to read: LIX" in reason for reason in stop_reasons(new_item(LONG, "public"), HARD))
    assert any("hard to read: LIX" in reason for reason in stop_reasons(new_item(LONG, "student"), HARD))
    assert not any("hard to read" in reason for reason in stop_reasons(new_item(LONG, "expert"), HARD))
    easy, hard = lix(GOOD, language="en"), lix(HARD, language="en")
    assert easy is not None and hard is not None and easy < 35 < 100 < hard
    assert lix(KOREAN, language="ko") is None and lix("", language="en") is None


def test_half_of_a_text_in_another_language_is_another_language() -> None:
    mixed = f"{GOOD}\n\n{KOREAN}"
    assert any("not in English throughout" in reason for reason in stop_reasons(new_item(LONG, "public"), mixed))
    assert language_of(GOOD) == "en" and language_of(KOREAN) == "ko" and language_of("42") is None
    assert is_in_language("Ja.", "en"), "too short to decide"


def test_a_rewrite_of_a_short_abstract_may_be_short_and_none_may_be_endless() -> None:
    short = new_item(PAPER, "public")
    assert stop_reasons(short, f"A small memory is enough to count sheep, {draft(1)}.") == ()
    assert any("words, where" in reason for reason in stop_reasons(short, " ".join([GOOD] * 4)))
    assert length_in_words("深層学習で文書を検索する手法") in range(6, 11)


def test_no_persona_asks_for_what_the_original_does_not_say() -> None:
    for level, persona in personas().items():
        description = " ".join((persona.role, persona.tone, persona.vocabulary, persona.structure)).lower()
        for asks in ("unsaid", "remains open", "comparison", "to know before", "why a step", "background"):
            assert asks not in description, level


# Sentences against the original


FROM = "needs half of the memory of the best earlier method"
EDITED = "FlockNet is used by all shepherds today."


def test_a_sentence_that_the_original_does_not_say_holds_the_text_back(archive: Archive) -> None:
    text = f"{GOOD} {EDITED}"

    def answer(request: Request) -> Step:
        if is_check(request):
            return checked(request, wrong=(EDITED,))
        return says(verdict(96) if is_critic(request) else {"text": text, "keywords": ["sheep"]})

    [item] = opened(archive.warehouse, LONG)
    with loopback_llm(answer) as server:
        done = advance(archive.warehouse, writer_of(server, archive=archive), item.item)
    assert done.kept is None and status_in_words(done, config=CONFIG) == "waiting for a decision"
    assert [attempt.score for attempt in done.attempts] == [70, 70], "the same reason twice is enough"
    assert held_back(done, done.attempts[0]) == (f"the original does not say: “{EDITED}”",)


@pytest.mark.parametrize("answer", ["yes", "explains", "no", "partly"])
def test_a_critic_that_gives_every_sentence_the_same_answer_decides_nothing(archive: Archive, answer: str) -> None:
    def respond(request: Request) -> Step:
        if is_check(request):
            pairs = [json.loads(line) for line in request.turns[0].splitlines() if line.startswith('{"number"')]
            same = [{"number": each["number"], "answer": answer, "words": FROM} for each in pairs]
            return says({"pairs": same})
        return says(verdict(96) if is_critic(request) else {"text": f"{GOOD} {EDITED}", "keywords": ["sheep"]})

    [item] = opened(archive.warehouse, LONG)
    with loopback_llm(respond) as server:
        done = advance(archive.warehouse, writer_of(server, archive=archive), item.item)
    assert (status_in_words(done, config=CONFIG), kept(archive)) == ("passed", [])
    assert done.note and done.note.removeprefix("not archived: ") == unsettled(done, done.attempts[0])


def test_the_rewrite_says_how_many_sentences_were_not_checked(archive: Archive) -> None:
    item = rewritten(archive.warehouse, GOOD, archive=archive)
    [attempt] = item.attempts
    assert unsettled(item, attempt) is None
    assert unsettled(item, replace(attempt, unchecked=1)) == "not checked against the original: 1 sentence"
    assert unsettled(item, replace(attempt, unchecked=None)) == "not checked against the original: all sentences"
    assert unsettled(replace(item, decisions={1: "accept"}), replace(attempt, unchecked=1)) is None


WITH_NAME = GOOD.replace("a program named FlockNet", "a program by Acme named FlockNet")


def test_a_name_that_the_original_lacks_is_a_question_answered_with_its_sentence(archive: Archive) -> None:
    def answer(request: Request, wrong: tuple[str, ...]) -> Step:
        if is_check(request):
            return checked(request, wrong=wrong)
        return says(verdict(96) if is_critic(request) else {"text": WITH_NAME, "keywords": ["sheep"]})

    [item] = opened(archive.warehouse, LONG)
    with loopback_llm(lambda request: answer(request, ())) as server:
        done = advance(archive.warehouse, writer_of(server, archive=archive), item.item)
    assert (status_in_words(done, config=CONFIG), done.attempts[0].disputed) == ("passed", ("Acme",))
    assert kept(archive) == [WITH_NAME]
    [other] = opened(archive.warehouse, replace(LONG, paper_id="2603.00078"))
    with loopback_llm(lambda request: answer(request, ("Acme",))) as server:
        done = advance(archive.warehouse, writer_of(server, archive=archive), other.item)
    assert done.attempts[0].unsupported == ("Acme",) and done.outcome is None
    assert open_questions(done, done.attempts[0]) == ()


def test_a_name_without_an_answer_is_archived_when_a_person_accepts_it(archive: Archive) -> None:
    [item] = opened(archive.warehouse, LONG)
    with loopback_llm(answering(WITH_NAME)) as server:
        done = advance(archive.warehouse, writer_of(server), item.item)
    unanswered = replace(done, attempts=(replace(done.attempts[0], disputed=(), unchecked=0),), note=None)
    assert open_questions(unanswered, unanswered.attempts[0]) == ("Acme",)
    assert archive_kept(archive, unanswered, unanswered.attempts[0]) == (
        "not archived: not checked against the original: Acme"
    )
    accepted = replace(unanswered, accepted=frozenset({"acme"}))
    assert archive_kept(archive, accepted, accepted.attempts[0]).startswith("archived as ")
