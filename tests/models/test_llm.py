"""Test one question to a language model, for every provider and every failure (SPEC I3, I4)."""

import json
import logging
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import BaseModel, Field

from paper_assets.errors import LLMBudgetReached, LLMConfigError, LLMError, LLMRateLimited, LLMUnreachable
from paper_assets.models.llm import Completion, LanguageModel, output_cap, wire_schema
from paper_assets.models.llm_config import PROVIDERS, Budget, Provider, Usage
from paper_assets.models.llm_providers import prompt_room
from tests.loopback import refusing_port
from tests.loopback_llm import (
    KEY,
    Kept,
    LoopbackLLM,
    Raw,
    Request,
    Step,
    fault,
    hang,
    html,
    loopback_llm,
    says,
)


class Verdict(BaseModel):
    paper: str
    score: float = Field(ge=0, le=1)


GOOD = {"paper": "2501.00001", "score": 0.5}
DEADLINE = 30.0  # by the tests' own clock


@dataclass
class Clock:
    """A clock that only sleeping moves: no test waits."""

    now: float = 0.0
    waits: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    """Every claim below holds for each provider."""
    yield request.param


def put(
    server: LoopbackLLM, provider: Provider, clock: Clock, *, timeout: str = "20", **more: Any
) -> Completion[Verdict]:
    run = {name: more.pop(name) for name in ("purpose", "budget", "cache") if name in more}
    more = {"system": "Judge.", "user": "The paper.", "deadline": DEADLINE, **more}
    config = server.config(provider, PAPER_ASSETS_LLM_TIMEOUT=timeout)
    return LanguageModel(config=config, clock=clock, sleep=clock.sleep, **run).ask(schema=Verdict, **more)


def failure(*steps: Step, provider: Provider, clock: Clock, **more: Any) -> tuple[LLMError, list[Request]]:
    """The error that a script ends in, and what was sent until then."""
    with loopback_llm(*steps) as server:
        with pytest.raises(LLMError) as raised:
            put(server, provider, clock, **more)
        assert "\n" not in str(raised.value)
        assert KEY not in str(raised.value)
        return raised.value, server.requests


# What is sent


def test_a_good_answer_is_a_checked_value_with_its_tokens(provider: Provider, clock: Clock) -> None:
    with loopback_llm(says(GOOD, input_tokens=120, output_tokens=9)) as server:
        answer = put(server, provider, clock)
    assert answer.value == Verdict(paper="2501.00001", score=0.5)
    assert answer.usage == Usage(calls=1, input_tokens=120, output_tokens=9)
    assert not answer.cached


def test_instructions_question_and_schema_are_sent_and_no_temperature(provider: Provider, clock: Clock) -> None:
    with loopback_llm(says(GOOD)) as server:
        put(server, provider, clock)
    (request,) = server.requests
    assert request.turns == ["The paper."]
    assert request.system.startswith("Judge.")
    assert request.schema == wire_schema(Verdict)
    assert "temperature" not in json.dumps(request.body)


def test_the_schema_is_sent_once_without_docstrings_and_an_answer_has_a_limit(provider: Provider, clock: Clock) -> None:
    class Documented(Verdict):
        """Words for programmers."""

    with loopback_llm(says(GOOD)) as server:
        config = server.config(provider)
        LanguageModel(config=config).ask(system="Judge.", user="u", schema=Documented)
    (request,) = server.requests
    assert "programmers" not in json.dumps(request.body) and '"score"' not in request.system
    body = request.body
    most = body.get("max_tokens") or body.get("options", {}).get("num_predict")
    assert most == output_cap(Documented, config=config) < 3_000


def test_a_complaint_is_told_once_and_an_answer_that_still_deserves_it_is_not_kept(clock: Clock) -> None:
    kept = Kept()

    def complaint(value: Verdict) -> str | None:
        return "the score is too low" if value.score < 0.6 else None

    with loopback_llm(says(GOOD), says(GOOD), says({**GOOD, "score": 0.9})) as server:
        model = LanguageModel(config=server.config("openai"), cache=kept)
        first = model.ask(system="s", user="u", schema=Verdict, complaint=complaint)
        assert (first.value.score, first.usage.calls, kept.answers) == (0.5, 2, {})
        assert "the score is too low" in server.requests[1].turns[-1]
        second = model.ask(system="s", user="u", schema=Verdict, complaint=complaint)
        assert (second.value.score, second.usage.calls, len(kept.answers)) == (0.9, 1, 1)


def test_a_slow_answer_is_not_asked_for_again(provider: Provider) -> None:
    with loopback_llm(hang(), says(GOOD)) as server:
        config = replace(server.config(provider), try_timeout=0.3)
        with pytest.raises(LLMUnreachable, match="no answer within"):
            LanguageModel(config=config).ask(system="s", user="u", schema=Verdict)
        assert len(server.requests) <= 1


def test_the_context_of_a_compatible_server_is_read_where_it_is_stated(clock: Clock) -> None:
    with loopback_llm(says(GOOD)) as server:
        server.models = {"data": [{"id": "m", "meta": {"n_ctx": 8192}}]}
        config = server.config("openai", OPENAI_MODEL="m")
        assert prompt_room(config, 10_000) == 4096 and prompt_room(config, 1_000) == config.most_prompt_tokens
    assert prompt_room(server.config("openai", PAPER_ASSETS_LLM_CONTEXT="2048"), 10) == 1024


def test_ollama_gets_the_context_length_that_it_needs(clock: Clock) -> None:
    with loopback_llm(says(GOOD)) as server:
        config = server.config("ollama", OLLAMA_NUM_CTX="4096")
        LanguageModel(config=config).ask(system="s", user="u", schema=Verdict)
    (request,) = server.requests
    assert request.path == "/api/chat"
    assert request.body["options"]["num_ctx"] == 4096
    assert request.body["stream"] is False


def test_bounds_are_asked_for_in_words_because_structured_outputs_refuse_them() -> None:
    assert wire_schema(Verdict) == {
        "type": "object",
        "properties": {"paper": {"type": "string"}, "score": {"type": "number"}},
        "required": ["paper", "score"],
        "additionalProperties": False,
    }


def test_a_field_named_like_a_word_of_the_schema_stays_in_it() -> None:
    class Book(BaseModel):
        title: str
        format: str = "print"

    schema = wire_schema(Book)
    assert list(schema["properties"]) == ["title", "format"]
    assert schema["required"] == ["title", "format"]


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_takes_no_schema_is_asked_in_words(provider: Provider, clock: Clock, status: int) -> None:
    with loopback_llm(fault(status, "response_format is not supported"), says(GOOD)) as server:
        answer = put(server, provider, clock)
    assert answer.value.score == 0.5
    assert server.requests[1].schema is None
    assert '"score"' in server.requests[1].system
    assert clock.waits == []


def test_a_server_that_takes_the_schema_only_beside_json_object_gets_it_there(clock: Clock) -> None:
    message = "{'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\"}"
    with loopback_llm(fault(500, message), says("not JSON"), says(GOOD)) as server:
        answer = put(server, "openai", clock)
    assert answer.value.score == 0.5
    forms = [request.body["response_format"]["type"] for request in server.requests]
    assert forms == ["json_schema", "json_object", "json_object"]  # the repair is asked for in the same form
    assert server.requests[1].schema == wire_schema(Verdict)
    assert clock.waits == []


def test_a_server_that_refuses_both_forms_is_asked_in_words(clock: Clock) -> None:
    message = "response_format must be json_object"
    with loopback_llm(fault(400, message), fault(400, message), says(GOOD)) as server:
        assert put(server, "openai", clock).value.score == 0.5
    assert [request.schema is None for request in server.requests] == [False, False, True]


def test_half_a_surrogate_pair_in_a_paper_does_no_harm(provider: Provider, clock: Clock) -> None:
    with loopback_llm(says(GOOD)) as server:
        assert put(server, provider, clock, user="broken \ud800 text").value.score == 0.5


def test_a_prompt_that_ollama_would_silently_cut_is_not_sent(clock: Clock) -> None:
    error, requests = failure(says(GOOD), provider="ollama", clock=clock, user="x" * 100_000)
    assert "too long" in str(error)
    assert requests == []


# Statuses


def test_a_refused_key_is_a_matter_of_configuration(provider: Provider, clock: Clock) -> None:
    error, requests = failure(fault(401, f"Incorrect API key: {KEY}"), provider=provider, clock=clock)
    assert isinstance(error, LLMConfigError)
    assert "401" in str(error)
    assert len(requests) == 1


@pytest.mark.parametrize("status", [403, 404])
def test_denied_access_and_unknown_models_name_the_variable_to_check(
    provider: Provider, clock: Clock, status: int
) -> None:
    error, requests = failure(fault(status, f"nothing for {KEY} here"), provider=provider, clock=clock)
    assert isinstance(error, LLMConfigError)
    assert f"{provider.upper()}_MODEL" in str(error)
    assert "nothing for *** here" in str(error)
    assert len(requests) == 1


def test_a_redirect_is_not_followed_with_the_key(provider: Provider, clock: Clock) -> None:
    with loopback_llm(says(GOOD)) as elsewhere:
        error, _ = failure(fault(307, location=elsewhere.url), provider=provider, clock=clock)
    assert isinstance(error, LLMConfigError)
    assert elsewhere.requests == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_passing_fault_is_tried_again(provider: Provider, clock: Clock, status: int) -> None:
    with loopback_llm(fault(status, "busy"), says(GOOD)) as server:
        answer = put(server, provider, clock)
    assert answer.value.score == 0.5
    assert answer.usage.calls == 1, "what a server refuses is not counted"
    assert len(clock.waits) == 1


def test_a_lasting_fault_ends_after_four_tries_and_names_the_last(provider: Provider, clock: Clock) -> None:
    error, requests = failure(*[fault(503, "overloaded")] * 9, provider=provider, clock=clock)
    assert len(requests) == 4
    assert "503: overloaded" in str(error)
    assert clock.waits == [1.0, 2.0, 4.0]
    assert error.usage == Usage()


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after_ms": "250"}, 0.25),
        ({"date": "Sat, 21 Nov 2026 10:00:00 GMT", "retry_after": "Sat, 21 Nov 2026 10:00:12 GMT"}, 12.0),
        ({"retry_after": "soon"}, 1.0),
        ({"retry_after": "-3"}, 1.0),
        ({"retry_after": "nan"}, 1.0),
    ],
)
def test_the_wait_a_server_asks_for_is_kept(
    provider: Provider, clock: Clock, headers: dict[str, str], wait: float
) -> None:
    with loopback_llm(fault(429, "slow down", **headers), says(GOOD)) as server:
        put(server, provider, clock)
    assert clock.waits == [wait]


def test_a_wait_longer_than_the_deadline_is_given_up_at_once(provider: Provider, clock: Clock) -> None:
    error, requests = failure(fault(429, "slow down", retry_after="120"), provider=provider, clock=clock)
    assert len(requests) == 1
    assert clock.waits == []
    assert "120 s" in str(error)


def test_a_server_that_asks_to_slow_down_is_reported_with_its_time(provider: Provider, clock: Clock) -> None:
    error, _ = failure(*[fault(429, "slow down", retry_after="7")] * 4, provider=provider, clock=clock)
    assert isinstance(error, LLMRateLimited)
    assert (error.code, error.retry_after) == ("RATE_LIMIT", 7.0)
    assert "it asks to wait 7 s" in str(error)
    busy, _ = failure(*[fault(503, "slow down")] * 4, provider=provider, clock=clock)
    assert busy.code == "LLM_ERROR"


def test_a_used_up_quota_is_not_tried_again(provider: Provider, clock: Clock) -> None:
    error, requests = failure(
        fault(429, "You exceeded your quota", code="insufficient_quota"), provider=provider, clock=clock
    )
    assert len(requests) == 1
    assert "quota" in str(error)


def test_any_other_refusal_is_final_and_says_what_the_server_said(provider: Provider, clock: Clock) -> None:
    error, requests = failure(fault(400, "messages: too many"), provider=provider, clock=clock)
    assert len(requests) == 1
    assert "messages: too many" in str(error)
    assert error.code == "LLM_ERROR"


# The network


def test_a_server_that_never_answers_is_left_when_the_time_is_up(provider: Provider) -> None:
    error, _ = failure(hang(), provider=provider, clock=Clock(), timeout="0.2", deadline=0.5)
    assert "no answer within 0.2 s" in str(error)
    assert error.usage == Usage(calls=1)  # a busy machine may give up before the request has arrived


@pytest.mark.parametrize("in_head", [False, True])
def test_a_server_that_drips_is_left_too(provider: Provider, in_head: bool) -> None:
    step = hang(drip=0.02, in_head=in_head)
    error, _ = failure(step, provider=provider, clock=Clock(), timeout="0.3", deadline=0.5)
    assert "no answer within 0.3 s" in str(error)
    assert "for a slow model raise PAPER_ASSETS_LLM_TIMEOUT and PAPER_ASSETS_LLM_DEADLINE" in str(error)


def test_the_deadline_ends_a_try_that_its_own_timeout_would_not(provider: Provider) -> None:
    error, _ = failure(hang(), provider=provider, clock=Clock(), timeout="5", deadline=0.2)
    assert "no answer within 0.2 s" in str(error)


def test_an_unreachable_server_is_one_line_with_the_host(provider: Provider, clock: Clock) -> None:
    with loopback_llm() as server, refusing_port() as port:
        config = server.config(provider, **{f"{provider.upper()}_BASE_URL": f"http://127.0.0.1:{port}"})
        with pytest.raises(LLMError, match=r"127\.0\.0\.1.*cannot be reached") as raised:
            LanguageModel(config=config, clock=clock, sleep=clock.sleep).ask(system="s", user="u", schema=Verdict)
    assert raised.value.usage == Usage()


def test_a_connection_that_breaks_off_is_tried_again(provider: Provider, clock: Clock) -> None:
    cut = Raw(200, b'{"cho', {"content-length": "500", "connection": "close"})
    with loopback_llm(cut, says(GOOD)) as server:
        assert put(server, provider, clock).usage.calls == 1


# Bad answers


def test_a_sign_in_page_with_200_is_not_an_answer(provider: Provider, clock: Clock) -> None:
    error, requests = failure(html(), provider=provider, clock=clock)
    assert "text/html" in str(error)
    assert f"{provider.upper()}_BASE_URL" in str(error)
    assert len(requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b'{"error": {"message": "odd"}}',
        b'{"choices": [], "content": 3, "message": "text"}',
        b'{"choices": [{"message": {"content": 7}}], "content": [{"type": "text"}], "message": {"content": 7}}',
        b'{"choices": [{"message": 0}], "content": [0], "message": {"content": null}}',
    ],
)
def test_json_that_is_not_a_chat_answer_is_an_error(provider: Provider, clock: Clock, body: bytes) -> None:
    error, _ = failure(Raw(200, body, {"content-type": "application/json"}), provider=provider, clock=clock)
    assert error.code == "LLM_ERROR"


def test_an_answer_that_was_cut_off_is_not_repaired(provider: Provider, clock: Clock) -> None:
    error, requests = failure(says('{"paper": "25', ended="cut off"), provider=provider, clock=clock)
    assert "cut off" in str(error)
    assert len(requests) == 1
    assert error.usage == Usage(calls=1, input_tokens=100, output_tokens=10)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_refusal_is_reported_as_one(provider: Provider, clock: Clock) -> None:
    error, requests = failure(says("I will not.", ended="refused"), provider=provider, clock=clock)
    assert "refused to answer" in str(error)
    assert len(requests) == 1


@pytest.mark.parametrize(
    "text",
    [
        "```json\n%s\n```",
        "```\n%s\n```",
        "Here it is:\n```JSON\n%s\n```\nGlad to help.",
        "\ufeff  %s\n",
    ],
)
def test_json_in_a_fence_is_read(provider: Provider, clock: Clock, text: str) -> None:
    with loopback_llm(says(text % json.dumps(GOOD))) as server:
        assert put(server, provider, clock).usage.calls == 1


BROKEN = {
    "not JSON": "the score is high",
    "half": '{"paper": "2501.00001", "score"',
    "empty": "",
    "field missing": '{"paper": "2501.00001"}',
    "out of range": '{"paper": "2501.00001", "score": 7}',
    "not a number": '{"paper": "2501.00001", "score": NaN}',
    "half a surrogate": '{"paper": "\\ud800", "score": 0.5}',
    "deep": "[" * 50_000,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_is_repaired_once(provider: Provider, clock: Clock, text: str) -> None:
    with loopback_llm(says(text), says(GOOD)) as server:
        answer = put(server, provider, clock)
    assert answer.value.score == 0.5
    assert answer.usage == Usage(calls=2, input_tokens=200, output_tokens=20)
    asked, shown, demand = server.requests[1].turns
    assert asked == "The paper."
    assert shown.startswith(text[:20] or "(empty)")
    assert "cannot be used" in demand


def test_the_repair_prompt_names_what_was_wrong(provider: Provider, clock: Clock) -> None:
    with loopback_llm(says({"paper": "2501.00001", "score": 7}), says(GOOD)) as server:
        put(server, provider, clock)
    assert "score: Input should be less than or equal to 1" in server.requests[1].turns[-1]


def test_an_answer_broken_twice_is_an_error_with_its_tokens(provider: Provider, clock: Clock) -> None:
    error, requests = failure(*[says("no JSON")] * 5, provider=provider, clock=clock)
    assert len(requests) == 2
    assert "twice" in str(error) and "Invalid JSON" not in str(error)
    assert error.usage == Usage(calls=2, input_tokens=200, output_tokens=20)


def test_tokens_the_server_does_not_count_are_guessed_from_the_bytes(provider: Provider, clock: Clock) -> None:
    with loopback_llm(says(GOOD, input_tokens=None, output_tokens=None)) as server:
        usage = put(server, provider, clock, user="x" * 900).usage
    assert usage.input_tokens > 300
    assert 0 < usage.output_tokens < 50


# Budget and cache


def test_a_used_up_budget_stops_before_the_call(provider: Provider, clock: Clock) -> None:
    budget = Budget(calls=1)
    with loopback_llm(says(GOOD), says(GOOD)) as server:
        put(server, provider, clock, budget=budget)
        with pytest.raises(LLMBudgetReached):
            put(server, provider, clock, budget=budget)
        assert len(server.requests) == 1


def test_a_budget_counts_repairs_and_not_what_a_server_refuses(provider: Provider, clock: Clock) -> None:
    budget = Budget(calls=1)
    error, requests = failure(fault(500), says("broken"), says(GOOD), provider=provider, clock=clock, budget=budget)
    assert isinstance(error, LLMBudgetReached)
    assert len(requests) == 2
    assert budget.usage == Usage(calls=1, input_tokens=100, output_tokens=10)
    assert error.usage == budget.usage


def test_the_same_question_is_answered_from_the_cache(provider: Provider, clock: Clock) -> None:
    kept = Kept()
    with loopback_llm(says(GOOD)) as server:
        first = put(server, provider, clock, cache=kept)
        again = put(server, provider, clock, cache=kept, budget=Budget(calls=0))
        assert len(server.requests) == 1
    assert again.value == first.value
    assert again.cached
    assert again.usage == Usage()


@pytest.mark.parametrize("change", [{"user": "Another."}, {"system": "Guess."}, {"prompt_version": "2"}])
def test_another_question_is_not_answered_from_the_cache(change: dict[str, str], clock: Clock) -> None:
    kept = Kept()
    with loopback_llm(lambda request: says(GOOD)) as server:
        put(server, "ollama", clock, cache=kept)
        put(server, "ollama", clock, cache=kept, **change)
        assert len(server.requests) == 2


def test_the_same_model_at_another_address_shares_the_cache(clock: Clock) -> None:
    kept = Kept()
    question: dict[str, Any] = {"system": "s", "user": "u", "schema": Verdict}
    with loopback_llm(says(GOOD)) as server:
        LanguageModel(config=server.config("ollama", OLLAMA_MODEL="shared-model"), cache=kept).ask(**question)
        other = LanguageModel(config=server.config("openai", OPENAI_MODEL="shared-model"), cache=kept)
        assert other.ask(**question).cached


def test_a_kept_answer_that_cannot_be_read_is_asked_again(clock: Clock) -> None:
    kept = Kept()
    with loopback_llm(says(GOOD), says(GOOD)) as server:
        put(server, "ollama", clock, cache=kept)
        kept.answers = dict.fromkeys(kept.answers, "{broken")
        assert not put(server, "ollama", clock, cache=kept).cached


# Secrets


ECHOES = [
    fault(401, KEY),
    fault(400, f"your header was Bearer {KEY}"),
    fault(500, KEY),
    Raw(404, f"<p>{KEY}</p>".encode(), {"content-type": "text/html", "x-echo": KEY}),
    Raw(200, json.dumps({"error": KEY}).encode(), {"content-type": f"text/{KEY}"}),
    Raw(200, KEY.encode(), {"content-type": f"text/{KEY}"}),
]


@pytest.mark.parametrize("echo", ECHOES)
def test_the_key_is_in_no_message_and_no_log_even_if_the_server_repeats_it(
    provider: Provider, clock: Clock, echo: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "anthropic", "httpx2", "httpcore2", "httpx", "httpcore"):
        caplog.set_level(logging.DEBUG, logger=name)
    error, _ = failure(*[echo] * 4, provider=provider, clock=clock)
    assert KEY not in str(error) + repr(error)
    assert KEY not in caplog.text


@pytest.mark.parametrize("sent", ["openai", "anthropic"])  # the third provider is sent no key
@pytest.mark.parametrize("part", [KEY[:6], KEY[:20], KEY[-9:], b64encode(KEY.encode()).decode()])
@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_no_part_of_the_key_is_in_a_message_either(clock: Clock, sent: Provider, part: str, status: int) -> None:
    error, _ = failure(*[fault(status, f"the account {part}... is unknown")] * 4, provider=sent, clock=clock)
    assert "the account ***... is unknown" in str(error)


def test_a_key_that_does_not_look_like_one_is_hidden_too(clock: Clock) -> None:
    with loopback_llm(fault(400, "no such account: plain+pass.word")) as server:
        config = server.config("openai", OPENAI_API_KEY="plain+pass.word")
        with pytest.raises(LLMError, match=r"no such account: \*\*\*$"):
            LanguageModel(config=config).ask(system="s", user="u", schema=Verdict)


def test_importing_the_seam_imports_no_sdk() -> None:
    code = "import sys, paper_assets.models.llm; print({'openai', 'anthropic', 'httpx2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
