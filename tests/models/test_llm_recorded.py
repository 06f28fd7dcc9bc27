"""Test answers as the three providers write them, served over loopback.

Invented ones of the same shapes, which always run, and real recorded ones (shared_data/llm_wire).
"""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from paper_assets.errors import LLMConfigError, LLMError
from paper_assets.models.llm import LanguageModel
from paper_assets.models.llm_config import Provider
from paper_assets.models.llm_providers import Prompt, Reply, exchange
from tests.loopback_llm import LoopbackLLM, loopback_llm, recorded
from tests.models.invented_exchanges import invented_exchanges

Exchanges = Callable[[Provider], list[dict[str, Any]]]
CHAT = {"openai": "/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"}


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


@pytest.fixture(params=["invented", pytest.param("recorded", marks=pytest.mark.shared_data)])
def exchanges(request: pytest.FixtureRequest) -> Exchanges:
    """The exchanges with a provider, one record for each request."""
    if request.param == "invented":
        return invented_exchanges
    shared_data: Path = request.getfixturevalue("shared_data")

    def read(provider: Provider) -> list[dict[str, Any]]:
        with gzip.open(shared_data / "llm_wire" / f"{provider}.jsonl.gz", "rt", encoding="utf-8") as lines:
            found = [json.loads(line) for line in lines]
        assert len(found) > 10
        return found

    return read


def chats(exchanges: Exchanges, provider: Provider, *, status: int = 200) -> Iterator[tuple[str, dict[str, Any]]]:
    """The whole (not streamed) chat answers of a provider: body as recorded, and parsed."""
    for exchanged in exchanges(provider):
        path = exchanged["uri"].split("?")[0]
        streamed = '"stream": true' in exchanged["request_body"] or '"stream":true' in exchanged["request_body"]
        if path.endswith(CHAT[provider]) and not streamed and exchanged["status"] == status:
            yield exchanged["response_body"], json.loads(exchanged["response_body"])


def texts(answer: dict[str, Any]) -> list[str]:
    """Return the texts of the model in an answer of any provider; a content in parts is as many texts."""
    messages = [choice["message"] for choice in answer.get("choices", [])[:1]] or [answer.get("message", {})]
    contents = [message.get("refusal") or message.get("content") or "" for message in messages]
    parts = [part["text"] for content in contents if isinstance(content, list) for part in content]
    blocks = [block["text"] for block in answer.get("content", []) if block["type"] == "text"]
    return [text for text in contents if isinstance(text, str)] + parts + blocks


def read(server: LoopbackLLM, provider: Provider) -> Reply:
    return exchange(server.config(provider), Prompt(system="s", turns=("u",), schema=None), timeout=20)


def structured(exchanges: Exchanges) -> list[tuple[Provider, str, str]]:
    """Recorded answers whose whole text is one JSON object."""
    found: list[tuple[Provider, str, str]] = []
    for body, answer in chats(exchanges, "openai"):
        text = answer["choices"][0]["message"]["content"]
        found += [("openai", body, text)] if isinstance(text, str) and text.startswith("{") else []
    for body, answer in chats(exchanges, "anthropic"):
        text = "".join(block.get("text", "") for block in answer["content"])
        found += [("anthropic", body, text)] if text.startswith("{") else []
    return found


def test_structured_answers_are_values_with_the_tokens_the_provider_counted(exchanges: Exchanges) -> None:
    answers = structured(exchanges)
    assert {provider for provider, _, _ in answers} == {"openai", "anthropic"}
    with loopback_llm(*[recorded(body) for _, body, _ in answers]) as server:
        for provider, body, text in answers:
            answer = LanguageModel(config=server.config(provider)).ask(system="s", user="u", schema=Anything)
            assert answer.value.model_dump() == json.loads(text)
            usage = json.loads(body)["usage"]
            counted = usage.get("completion_tokens", usage.get("output_tokens"))
            assert (answer.usage.calls, answer.usage.output_tokens) == (1, counted)


def test_refusals_are_refusals(exchanges: Exchanges) -> None:
    bodies = [body for body, answer in chats(exchanges, "openai") if answer["choices"][0]["message"].get("refusal")]
    assert bodies
    for body in bodies:
        with loopback_llm(recorded(body)) as server, pytest.raises(LLMError, match="refused to answer"):
            LanguageModel(config=server.config("openai")).ask(system="s", user="u", schema=Anything)


@pytest.mark.parametrize("provider", CHAT)
def test_every_answer_is_read_with_the_tokens_the_provider_counted(exchanges: Exchanges, provider: Provider) -> None:
    chat = list(chats(exchanges, provider))
    assert len(chat) > 2
    with loopback_llm(*[recorded(body) for body, _ in chat]) as server:
        for body, answer in chat:
            reply = read(server, provider)
            usage = answer.get("usage") or answer
            names = ("completion_tokens", "output_tokens", "eval_count")
            counted = [usage[name] for name in names if usage.get(name) is not None]
            assert reply.output_tokens in (counted or [reply.output_tokens])
            assert reply.ended == ("refused" if '"refusal": "' in body else "complete")
            assert all(text in reply.text for text in texts(answer))


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_unknown_model_is_a_matter_of_configuration(exchanges: Exchanges, provider: Provider) -> None:
    bodies = [body for body, _ in chats(exchanges, provider, status=404)]
    assert bodies
    for body in bodies:
        with loopback_llm(recorded(body, status=404)) as server, pytest.raises(LLMConfigError, match="_MODEL"):
            read(server, provider)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_bad_request_says_what_the_provider_said(exchanges: Exchanges, provider: Provider) -> None:
    answers = list(chats(exchanges, provider, status=400))
    assert answers
    for body, answer in answers:
        with loopback_llm(recorded(body, status=400)) as server, pytest.raises(LLMError) as raised:
            read(server, provider)
        assert answer["error"]["message"][:50] in str(raised.value)
