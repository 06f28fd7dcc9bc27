"""Test counting calls and tokens, and stopping in time (SPEC G5)."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from paper_assets.errors import LLMBudgetReached
from paper_assets.models.llm_config import Budget, Usage, cost, estimated_tokens, llm_config


def test_no_more_calls_than_allowed_are_taken_by_many_threads() -> None:
    budget = Budget(calls=50)

    def take(_: int) -> bool:
        try:
            budget.take_call()
        except LLMBudgetReached:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(200))) == 50
    assert budget.usage.calls == 50


def test_once_the_tokens_are_reached_no_call_is_allowed() -> None:
    budget = Budget(tokens=100)
    budget.take_call()
    budget.add_tokens(90, 10)
    with pytest.raises(LLMBudgetReached, match="100 tokens"):
        budget.take_call()


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
        budget.take_call()
        budget.add_tokens(*tokens)
    assert budget.usage == Usage(calls=2, input_tokens=95, output_tokens=11)


def test_a_budget_of_nothing_allows_nothing_and_one_token_less_than_all_another_call() -> None:
    with pytest.raises(LLMBudgetReached, match="0 calls"):
        Budget(calls=0).take_call()
    budget = Budget(tokens=101)
    budget.add_tokens(90, 10)
    budget.take_call()
    assert budget.usage.calls == 1


@pytest.mark.parametrize("known", ["IN", "OUT"])
def test_half_a_price_is_not_a_price(known: str) -> None:
    config = llm_config({"LLM_PROVIDER": "ollama", f"PAPER_ASSETS_LLM_PRICE_{known}": "2"})
    assert cost(config, Usage(calls=1, input_tokens=1_000, output_tokens=1_000)) is None
