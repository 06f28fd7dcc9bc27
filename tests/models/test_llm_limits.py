"""The limits of a run and of a month: calls, tokens and money."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel

from paper_assets.errors import LLMBudgetReached, LLMConfigError
from paper_assets.models.llm import LanguageModel
from paper_assets.models.llm_config import Budget, LLMConfig, MonthlyUse, Usage, cost, estimated_tokens, llm_config
from paper_assets.stores.kept_settings import kept_environment
from tests.loopback_llm import KEY, LoopbackLLM, loopback_llm, says


def test_no_more_calls_than_allowed_are_taken_by_many_threads() -> None:
    budget = Budget(calls=50)

    def take(_: int) -> bool:
        try:
            budget.count_call()
        except LLMBudgetReached:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(200))) == 50
    assert budget.usage.calls == 50


def test_once_the_tokens_are_reached_no_call_is_allowed() -> None:
    budget = Budget(tokens=100)
    budget.count_call()
    budget.add_tokens(90, 10)
    with pytest.raises(LLMBudgetReached, match="100 tokens"):
        budget.count_call()


def test_cost_is_unknown_without_prices_and_exact_with_them() -> None:
    spent = Usage(calls=2, input_tokens=500_000, output_tokens=100_000)
    environ = {"LLM_PROVIDER": "ollama"}
    assert cost(llm_config(environ), spent) is None
    priced = llm_config(environ | {"PAPER_ASSETS_LLM_PRICE_IN": "2", "PAPER_ASSETS_LLM_PRICE_OUT": "10"})
    assert cost(priced, spent) == pytest.approx(2.0)


def test_a_guess_of_tokens_goes_by_bytes_so_that_korean_is_not_undercounted() -> None:
    assert estimated_tokens("") == 0
    assert estimated_tokens("abcd") == 2
    assert estimated_tokens("논문") == 2


def test_calls_and_tokens_are_counted_together_from_call_to_call() -> None:
    budget = Budget()
    for tokens in ((90, 10), (5, 1)):
        budget.count_call()
        budget.add_tokens(*tokens)
    assert budget.usage == Usage(calls=2, input_tokens=95, output_tokens=11)


def test_a_budget_of_nothing_allows_nothing_and_one_token_less_than_all_another_call() -> None:
    with pytest.raises(LLMBudgetReached, match="0 calls"):
        Budget(calls=0).count_call()
    budget = Budget(tokens=101)
    budget.add_tokens(90, 10)
    budget.count_call()
    assert budget.usage.calls == 1


@pytest.mark.parametrize("known", ["IN", "OUT"])
def test_half_a_price_is_not_a_price(known: str) -> None:
    config = llm_config({"LLM_PROVIDER": "ollama", f"PAPER_ASSETS_LLM_PRICE_{known}": "2"})
    assert cost(config, Usage(calls=1, input_tokens=1_000, output_tokens=1_000)) is None


# The limit of a month


class Answer(BaseModel):
    ok: bool


def config(server: LoopbackLLM, home: Path, limit: Mapping[str, str], *, month: int = 11) -> LLMConfig:
    given = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.config("openai").base_url, **limit}
    return llm_config(kept_environment(given, home, lambda: datetime(2026, month, 25, tzinfo=UTC)))


def asked(chosen: LLMConfig, purpose: str = "tests") -> None:
    LanguageModel(config=chosen, purpose=purpose).ask(system="a", user="b", schema=Answer)


@pytest.mark.parametrize(
    "limit",
    [
        {"PAPER_ASSETS_LLM_MONTH_TOKENS": "150"},
        {
            "PAPER_ASSETS_LLM_MONTH_COST": "0.00015",
            "PAPER_ASSETS_LLM_PRICE_IN": "1",
            "PAPER_ASSETS_LLM_PRICE_OUT": "1",
        },
    ],
)
def test_no_call_is_made_once_the_limit_is_reached_and_the_next_month_starts_at_zero(
    tmp_path: Path, limit: Mapping[str, str]
) -> None:
    with loopback_llm(lambda request: says({"ok": True})) as server:  # 110 tokens each
        for _ in range(2):  # each as in another process
            asked(config(server, tmp_path, limit))
        with pytest.raises(LLMBudgetReached, match="monthly limit"):
            asked(config(server, tmp_path, limit))
        assert len(server.requests) == 2
        asked(config(server, tmp_path, limit, month=12))
        assert len(server.requests) == 3


def test_use_is_counted_by_purpose_for_all_threads_and_without_a_limit(tmp_path: Path) -> None:
    with loopback_llm(lambda request: says({"ok": True})) as server:
        chosen = config(server, tmp_path, {})
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: asked(chosen, "rewrites" if number % 2 else "checks"), range(8)))
    assert chosen.monthly is not None
    assert chosen.monthly.by_purpose() == {
        "checks": Usage(calls=4, input_tokens=400, output_tokens=40),
        "rewrites": Usage(calls=4, input_tokens=400, output_tokens=40),
    }
    assert chosen.monthly.file.stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_does_not_hide_the_others(tmp_path: Path) -> None:
    use = MonthlyUse(tmp_path / "2026-11.tsv", "2026-11")
    use.add("checks", 10, 1)
    with use.file.open("a", encoding="utf-8") as file:
        file.write("rewri\n")
    use.add("checks", 10, 1)
    assert use.total() == Usage(calls=2, input_tokens=20, output_tokens=2)


def test_without_a_place_to_count_a_model_with_a_limit_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "llm-use").write_text("a file, not a folder", encoding="utf-8")
    with loopback_llm(lambda request: says({"ok": True})) as server:
        with pytest.raises(LLMConfigError, match="cannot be read"):
            asked(config(server, tmp_path, {"PAPER_ASSETS_LLM_MONTH_TOKENS": "9"}))
        assert server.requests == []


def test_a_limit_in_money_without_prices_is_refused(tmp_path: Path) -> None:
    with loopback_llm(lambda request: says({"ok": True})) as server, pytest.raises(LLMConfigError, match="prices"):
        config(server, tmp_path, {"PAPER_ASSETS_LLM_MONTH_COST": "5"})
