"""Test which model is configured: tool parameter, then environment, then default (SPEC I3)."""

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


def test_ollama_needs_no_key_and_is_sent_none() -> None:
    config = llm_config(KEYS | {"LLM_PROVIDER": "ollama", "OLLAMA_API_KEY": "sk-unasked"})
    assert (config.base_url, config.api_key) == ("http://localhost:11434", None)


def test_each_provider_is_given_its_own_key_without_blanks_around_it() -> None:
    environ = KEYS | {"OPENAI_API_KEY": " sk-openai-secret-1 "}
    keys = [llm_config(environ, provider=provider).api_key for provider in ("openai", "anthropic")]
    assert keys == ["sk-openai-secret-1", "sk-ant-secret-1"]


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
def test_an_invalid_number_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(LLMConfigError, match=name):
        llm_config({"LLM_PROVIDER": "ollama", name: value})


def test_limits_come_from_the_environment() -> None:
    config = llm_config(
        KEYS | {"PAPER_ASSETS_LLM_CALLS": "3", "PAPER_ASSETS_LLM_TOKENS": "900", "PAPER_ASSETS_LLM_DEADLINE": "50"}
    )
    assert (config.budget_calls, config.budget_tokens, config.deadline) == (3, 900, 50.0)


@pytest.mark.parametrize(
    ("name", "least", "field"),
    [
        ("OLLAMA_NUM_CTX", 1024, "num_ctx"),
        ("PAPER_ASSETS_LLM_TIMEOUT", 0.1, "try_timeout"),
        ("PAPER_ASSETS_LLM_DEADLINE", 0.1, "deadline"),
        ("PAPER_ASSETS_LLM_CALLS", 0, "budget_calls"),
        ("PAPER_ASSETS_LLM_TOKENS", 0, "budget_tokens"),
        ("PAPER_ASSETS_LLM_PRICE_IN", 0, "price_in"),
        ("PAPER_ASSETS_LLM_PRICE_OUT", 0, "price_out"),
    ],
)
def test_a_number_is_taken_from_its_least_value_on(name: str, least: float, field: str) -> None:
    assert getattr(llm_config({"LLM_PROVIDER": "ollama", name: str(least)}), field) == least
    with pytest.raises(LLMConfigError, match=rf"{name} must be a number from {least:g}, got "):
        llm_config({"LLM_PROVIDER": "ollama", name: str(least - 0.01)})


def test_without_settings_a_run_has_limits_and_no_price() -> None:
    config = llm_config({"LLM_PROVIDER": "ollama", "PAPER_ASSETS_LLM_PRICE_IN": " "})
    assert (config.budget_calls, config.budget_tokens) == (200, 1_000_000)
    assert (config.price_in, config.price_out) == (None, None)


def test_the_name_of_a_model_is_short_and_printable() -> None:
    assert llm_config(KEYS, model="m" * 200).model == "m" * 200
    for name in ("m" * 201, "a\x1bb"):
        with pytest.raises(LLMConfigError, match="OPENAI_MODEL must be the name of a model"):
            llm_config(KEYS, model=name)
    assert llm_config(KEYS, model="  ").model == "gpt-6-luna"


@pytest.mark.parametrize("url", ["http://me@host/v1", "http://:hunter2@host/v1"])
def test_half_a_login_in_the_address_is_refused_too(url: str) -> None:
    with pytest.raises(LLMConfigError, match="must not contain a user or password"):
        llm_config(KEYS | {"OPENAI_BASE_URL": url})


def test_a_port_that_cannot_be_is_refused_and_one_that_can_stays() -> None:
    assert llm_config(KEYS | {"OPENAI_BASE_URL": "https://host:1/v1/"}).base_url == "https://host:1/v1"
    for port in ("0", "65536"):
        with pytest.raises(LLMConfigError, match="OPENAI_BASE_URL must be an address"):
            llm_config(KEYS | {"OPENAI_BASE_URL": f"https://host:{port}/v1"})


def test_messages_contain_only_the_host_of_a_url() -> None:
    assert llm_config(KEYS | {"OPENAI_BASE_URL": "https://host:81/v1/secret"}).named == "openai (host:81)"
