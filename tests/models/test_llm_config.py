"""Which model is asked: tool parameter, then environment, then default (SPEC I3)."""

import pytest

from paper_assets.errors import LLMConfigError
from paper_assets.models.llm_config import PROVIDERS, llm_config

KEYS = {"OPENAI_API_KEY": "sk-openai-secret-1", "ANTHROPIC_API_KEY": "sk-ant-secret-1"}


def test_without_settings_openai_is_asked_for_its_default_model() -> None:
    config = llm_config(KEYS)
    assert (config.provider, config.model) == ("openai", "gpt-6-luna")


@pytest.mark.parametrize(("provider", "model"), [("anthropic", "claude-sonnet-5-5"), ("ollama", "llama3.2")])
def test_each_provider_has_a_default_model(provider: str, model: str) -> None:
    assert llm_config(KEYS | {"LLM_PROVIDER": provider}).model == model


def test_a_tool_parameter_beats_the_environment_and_the_environment_the_default() -> None:
    environ = KEYS | {"LLM_PROVIDER": "openai", "OPENAI_MODEL": "from-env", "ANTHROPIC_MODEL": "other-env"}
    assert llm_config(environ).model == "from-env"
    assert llm_config(environ, model="from-tool").model == "from-tool"
    chosen = llm_config(environ, provider="anthropic")
    assert (chosen.provider, chosen.model) == ("anthropic", "other-env")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_or_empty_key_is_not_configured_and_names_the_variable(provider: str, value: str | None) -> None:
    variable = f"{provider.upper()}_API_KEY"
    with pytest.raises(LLMConfigError, match=variable) as raised:
        llm_config({"LLM_PROVIDER": provider} | ({} if value is None else {variable: value}))
    assert raised.value.code == "LLM_CONFIG_ERROR"


def test_ollama_needs_no_key() -> None:
    assert llm_config({"LLM_PROVIDER": "ollama"}).base_url == "http://localhost:11434"


def test_an_unknown_provider_is_answered_with_the_known_ones() -> None:
    with pytest.raises(LLMConfigError, match=r"'gemini' is unknown; use one of openai, anthropic, ollama"):
        llm_config(KEYS, provider="gemini")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_key_is_not_in_the_repr(provider: str) -> None:
    assert "secret" not in repr(llm_config(KEYS, provider=provider))


@pytest.mark.parametrize("key", ["sk-two words", "sk-line\nbreak", "sk-é"])
def test_a_key_that_would_break_the_header_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(LLMConfigError, match="OPENAI_API_KEY") as raised:
        llm_config({"OPENAI_API_KEY": key})
    assert "sk-" not in str(raised.value)


@pytest.mark.parametrize("url", ["localhost:11434", "ftp://x", "http://", "http://[::1", "http://a b/", "http://h:x/"])
def test_a_wrong_address_names_its_variable(url: str) -> None:
    with pytest.raises(LLMConfigError, match="OPENAI_BASE_URL must be an address"):
        llm_config(KEYS | {"OPENAI_BASE_URL": url})


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(LLMConfigError) as raised:
        llm_config(KEYS | {"OPENAI_BASE_URL": "http://me:hunter2@host/v1"})
    assert "hunter2" not in str(raised.value)


def test_an_ollama_address_may_end_in_v1() -> None:
    config = llm_config({"LLM_PROVIDER": "ollama", "OLLAMA_BASE_URL": "http://box:11434/v1/"})
    assert config.base_url == "http://box:11434"


@pytest.mark.parametrize(
    ("name", "value"),
    [("OLLAMA_NUM_CTX", "many"), ("OLLAMA_NUM_CTX", "10"), ("PAPER_ASSETS_LLM_TIMEOUT", "nan")],
)
def test_a_number_that_is_none_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(LLMConfigError, match=name):
        llm_config({"LLM_PROVIDER": "ollama", name: value})


def test_limits_come_from_the_environment() -> None:
    config = llm_config(
        KEYS | {"PAPER_ASSETS_LLM_CALLS": "3", "PAPER_ASSETS_LLM_TOKENS": "900", "PAPER_ASSETS_LLM_DEADLINE": "50"}
    )
    assert (config.budget_calls, config.budget_tokens, config.deadline) == (3, 900, 50.0)
