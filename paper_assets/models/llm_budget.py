"""What a run spends on a language model, and the line at which it stops (SPEC G5)."""

from dataclasses import dataclass
from threading import Lock

from paper_assets.errors import LLMBudgetReached
from paper_assets.models.llm_config import LLMConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """HTTP exchanges made and tokens used."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Budget:
    """Counts calls and tokens for all threads of a run; None is no limit.

    The limit of calls is never passed. Tokens are known only from an answer, so the one call that
    reaches their limit may pass it.
    """

    def __init__(self, *, calls: int | None = None, tokens: int | None = None) -> None:
        self._most_calls = calls
        self._most_tokens = tokens
        self._usage = Usage()
        self._lock = Lock()

    @property
    def usage(self) -> Usage:
        """What has been spent so far."""
        return self._usage

    def take_call(self) -> None:
        """Count a call that is about to be made. Raises LLMBudgetReached instead once a limit is reached."""
        with self._lock:
            used = self._usage
            tokens = used.input_tokens + used.output_tokens
            if self._most_calls is not None and used.calls >= self._most_calls:
                raise LLMBudgetReached(f"the LLM budget of this run is used up ({used.calls} calls)")
            if self._most_tokens is not None and tokens >= self._most_tokens:
                raise LLMBudgetReached(f"the LLM budget of this run is used up ({tokens:,} tokens)")
            self._usage = Usage(calls=used.calls + 1, input_tokens=used.input_tokens, output_tokens=used.output_tokens)

    def add_tokens(self, input_tokens: int, output_tokens: int) -> None:
        """Count the tokens of an answer, usable or not."""
        with self._lock:
            used = self._usage
            self._usage = Usage(
                calls=used.calls,
                input_tokens=used.input_tokens + input_tokens,
                output_tokens=used.output_tokens + output_tokens,
            )


def cost(config: LLMConfig, usage: Usage) -> float | None:
    """Price of `usage` in the currency of the configured prices; None where no price is configured."""
    if config.price_in is None or config.price_out is None:
        return None
    return (usage.input_tokens * config.price_in + usage.output_tokens * config.price_out) / 1_000_000


def estimated_tokens(text: str) -> int:
    """Upper guess of the tokens of a text: a third of its UTF-8 bytes. Needs no tokenizer to be fetched."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)
