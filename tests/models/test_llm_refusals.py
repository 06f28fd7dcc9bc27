"""Test the classification of answers other than chat answers: each status, wait and text, without an exchange."""

from typing import Any

import httpx2
import pytest

from paper_assets.errors import LLMConfigError, LLMError
from paper_assets.models.llm_config import LLMConfig, llm_config
from paper_assets.models.llm_providers import SchemaRefused, TryFailed, answer_json, tidy

KEY = "sk-invented-0123456789"


def config(provider: str = "openai") -> LLMConfig:
    return llm_config({"LLM_PROVIDER": provider, "OPENAI_API_KEY": KEY})


def refusal(status: int, *, error: Any = None, with_schema: bool = False, **headers: str) -> Exception:
    """What is raised for an answer; underscores in the names of headers stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx2.Response(status, headers=named, json={"error": error} if error else {})
    with pytest.raises((LLMError, LLMConfigError, TryFailed, SchemaRefused)) as raised:
        answer_json(config(), response, with_schema=with_schema)
    return raised.value


@pytest.mark.parametrize("status", [200, 201, 299])
def test_every_status_of_success_is_an_answer(status: int) -> None:
    response = httpx2.Response(status, json={"choices": []})
    assert answer_json(config(), response, with_schema=False) == {"choices": []}


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_temporary_failure_may_be_retried(status: int) -> None:
    failed = refusal(status)
    assert isinstance(failed, TryFailed) and failed.retry_after is None
    assert str(failed).startswith(f"{status} ")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (301, "sends us elsewhere"),
        (399, "sends us elsewhere"),
        (401, "refused the key"),
        (403, "denied access"),
        (404, "knows no model"),
    ],
)
def test_what_the_set_up_is_wrong_about_names_the_variable(status: int, message: str) -> None:
    wrong = refusal(status, error={"message": "no"})
    assert isinstance(wrong, LLMConfigError) and message in str(wrong) and "OPENAI_" in str(wrong)


@pytest.mark.parametrize("error", [{"code": "insufficient_quota"}, {"type": "insufficient_quota", "code": "x"}])
def test_a_quota_that_is_used_up_is_not_tried_again(error: dict[str, str]) -> None:
    for failed in (refusal(429, error=error), refusal(402)):
        assert type(failed) is LLMError and "quota is used up" in str(failed)


@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_schema_is_distinguished_from_any_other_refusal(status: int) -> None:
    about = {"message": "response_format is not supported"}
    assert isinstance(refusal(status, error=about, with_schema=True), SchemaRefused)
    assert type(refusal(status, error=about, with_schema=False)) is LLMError
    assert type(refusal(status, error={"message": "too long"}, with_schema=True)) is LLMError
    assert type(refusal(413, error=about, with_schema=True)) is LLMError


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after_ms": "1500"}, 1.5),
        ({"retry_after_ms": "1500", "retry_after": "7"}, 1.5),
        ({"retry_after_ms": "soon", "retry_after": "7"}, 7.0),
        ({"retry_after": "-3"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": "Thu, 05 Mar 2026 10:00:30 GMT", "date": "Thu, 05 Mar 2026 10:00:00 GMT"}, 30.0),
        ({"retry_after": "Thu, 05 Mar 2026 10:00:00 GMT", "date": "Thu, 05 Mar 2026 10:00:30 GMT"}, 0.0),
        ({"retry_after": "Thu, 05 Mar 2026 10:00:30 GMT"}, None),
        ({"retry_after": "tomorrow"}, None),
    ],
)
def test_the_server_says_in_several_ways_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    failed = refusal(429, **headers)
    assert isinstance(failed, TryFailed) and failed.retry_after == seconds


def test_the_text_of_a_server_is_one_short_line_without_the_key_or_what_looks_like_one() -> None:
    assert tidy(f"no such key {KEY}, nor sk-proj-****4711\n Bearer abc.def", config()) == "no such key ***, nor *** ***"
    assert tidy("a\x1b[31m\nb", config()) == "a[31m b"  # nothing that steers a terminal
    assert tidy("x" * 200, config()) == "x" * 200
    assert tidy("x" * 201, config()) == "x" * 197 + "..."


def test_an_answer_that_is_not_a_json_object_names_its_type_and_the_url() -> None:
    page = httpx2.Response(200, headers={"content-type": "text/html; charset=utf-8"}, content=b"<html>")
    with pytest.raises(LLMError, match=r"other than a JSON object \(text/html\); check OPENAI_BASE_URL"):
        answer_json(config(), page, with_schema=False)


def test_without_a_key_the_message_names_the_url_variable() -> None:
    with pytest.raises(LLMConfigError, match=r"refused the key \(401\); check OLLAMA_BASE_URL"):
        answer_json(config("ollama"), httpx2.Response(401, json={}), with_schema=False)


def test_a_status_without_a_text_is_described_in_words() -> None:
    assert [str(refusal(status)) for status in (429, 529)] == ["429 too many requests", "529 overloaded"]


def test_a_model_that_ollama_lacks_may_be_pulled() -> None:
    with pytest.raises(LLMConfigError, match="try: ollama pull llama"):
        answer_json(config("ollama"), httpx2.Response(404, json={"error": "model not found"}), with_schema=False)


def test_a_500_that_names_the_form_it_takes_is_a_refused_schema() -> None:
    """llama-cpp-python 0.3.36 answers so."""
    message = (
        "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
        "'msg': \"Input should be 'text' or 'json_object'\"}"
    )
    refused = refusal(500, error={"message": message}, with_schema=True)
    assert isinstance(refused, SchemaRefused) and refused.takes_objects
    assert isinstance(refusal(500, error={"message": message}), TryFailed)
    plain = refusal(400, error={"message": "response_format is not supported"}, with_schema=True)
    assert isinstance(plain, SchemaRefused) and not plain.takes_objects
