"""Configure the language model: provider, address and limits (SPEC I3, G5).

A run has a budget, and a month may have a limit for all processes together.

Precedence: tool parameter, then environment, then default.
"""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Literal, get_args
from urllib.parse import urlsplit

from paper_assets.errors import LLMBudgetReached, LLMConfigError, LLMNotConfigured
from paper_assets.settings import LLM_FAULT, LLM_MONTH, LLM_USE_FOLDER

Provider = Literal["openai", "anthropic", "ollama"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
DEFAULTS: dict[Provider, tuple[str, str]] = {  # model and address
    "openai": ("gpt-6-luna", "https://api.openai.com/v1"),
    "anthropic": ("claude-sonnet-5-5", "https://api.anthropic.com"),
    "ollama": ("llama3.2", "http://localhost:11434"),
}


@dataclass(frozen=True, kw_only=True)
class LLMConfig:
    """Describe one model at one URL. Times in seconds; the key is excluded from repr."""

    provider: Provider
    model: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    num_ctx: int | None = None  # tokens of prompt and answer together; None: ask the server, else no limit is known
    most_prompt_tokens: int = 100_000  # a longer prompt is a programming error; refused before it costs anything
    most_output_tokens: int = 8_192  # of any answer; each call has a lower limit by the schema of its answer
    thinking_tokens: int = 2_048  # added to that limit for models that think before they answer
    try_timeout: float = 60.0  # one HTTP exchange
    deadline: float = 180.0  # one question with all its retries and its repair
    tries: int = 4  # HTTP exchanges for one answer
    first_wait: float = 1.0  # before the second try, doubled each time, unless the server sets one
    budget_calls: int = 200  # per run; 200 batches are 3,000 papers in the middle group of G5
    budget_tokens: int = 1_000_000  # per run
    price_in: float | None = None  # per million tokens, in any currency; None: unknown, and so is the cost
    price_out: float | None = None
    month_tokens: int | None = None  # limit of a calendar month (UTC), of all processes; None: no limit
    month_cost: float | None = None  # the same in the currency of the prices
    monthly: "MonthlyUse | None" = None  # where the use of the month is recorded; None: it is not

    @property
    def named(self) -> str:
        """Return provider and host for messages; never more of the URL, which may contain secrets."""
        return f"{self.provider} ({urlsplit(self.base_url).netloc})"


def llm_config(environ: Mapping[str, str], *, provider: str | None = None, model: str | None = None) -> LLMConfig:
    """Read the LLM to ask. An empty variable counts as unset. Raises LLMNotConfigured, LLMConfigError.

    Variables in addition to those of I3: PAPER_ASSETS_LLM_TIMEOUT and _DEADLINE (seconds), _CONTEXT (tokens of prompt
    and answer together), _THINKING (tokens that a model may think), _CALLS and _TOKENS (budget of
    a run), _PRICE_IN and _PRICE_OUT (per million tokens), _MONTH_TOKENS and _MONTH_COST (limit of a month). The URL
    is read from the environment only: a tool parameter could send the key to another server.
    """
    values = {name: value.strip() for name, value in environ.items() if value.strip()}
    if LLM_FAULT in values and "LLM_PROVIDER" not in values:
        raise LLMConfigError(values[LLM_FAULT])
    name = (provider or values.get("LLM_PROVIDER", "openai")).strip().lower()
    chosen = next((each for each in PROVIDERS if each == name), None)
    if chosen is None:
        line = f"LLM provider {name[:40]!r} is unknown; use one of {', '.join(PROVIDERS)}"
        raise LLMConfigError(line, variable="LLM_PROVIDER")
    prefix = chosen.upper()
    default_model, default_url = DEFAULTS[chosen]
    name = (model or "").strip() or values.get(f"{prefix}_MODEL", default_model)
    if not name.isprintable() or len(name) > 200:
        line = f"{prefix}_MODEL must be the name of a model, got {name[:40]!r}"
        raise LLMConfigError(line, variable=f"{prefix}_MODEL")
    prices = [_price(values, f"PAPER_ASSETS_LLM_PRICE_{way}") for way in ("IN", "OUT")]
    month_cost = _price(values, "PAPER_ASSETS_LLM_MONTH_COST")
    if month_cost is not None and None in prices:
        raise LLMConfigError(
            "a monthly limit in money needs the prices of the model: set PAPER_ASSETS_LLM_PRICE_IN and "
            "PAPER_ASSETS_LLM_PRICE_OUT, or limit the tokens",
            variable="PAPER_ASSETS_LLM_PRICE_IN",
        )
    month_tokens = _price(values, "PAPER_ASSETS_LLM_MONTH_TOKENS")
    return LLMConfig(
        provider=chosen,
        model=name,
        base_url=_base_url(values.get(f"{prefix}_BASE_URL", default_url), provider=chosen),
        api_key=None if chosen == "ollama" else _api_key(values.get(f"{prefix}_API_KEY"), provider=chosen),
        num_ctx=_context(values, chosen),
        thinking_tokens=int(_number(values, "PAPER_ASSETS_LLM_THINKING", LLMConfig.thinking_tokens, least=0)),
        try_timeout=_number(values, "PAPER_ASSETS_LLM_TIMEOUT", LLMConfig.try_timeout, least=0.1),
        deadline=_number(values, "PAPER_ASSETS_LLM_DEADLINE", LLMConfig.deadline, least=0.1),
        budget_calls=int(_number(values, "PAPER_ASSETS_LLM_CALLS", LLMConfig.budget_calls, least=0)),
        budget_tokens=int(_number(values, "PAPER_ASSETS_LLM_TOKENS", LLMConfig.budget_tokens, least=0)),
        price_in=prices[0],
        price_out=prices[1],
        month_tokens=None if month_tokens is None else int(month_tokens),
        month_cost=month_cost,
        monthly=monthly_use(values),
    )


def critic_config(environ: Mapping[str, str], *, actor: LLMConfig) -> LLMConfig:
    """Read the LLM that judges rewrites: LLM_CRITIC_PROVIDER and LLM_CRITIC_MODEL, else the actor (B9).

    A provider without a model uses its default model; a model without a provider is one of the actor's provider. Raises
    LLMConfigError.
    """
    provider, model = (environ.get(f"LLM_CRITIC_{part}", "").strip() or None for part in ("PROVIDER", "MODEL"))
    if provider is None and model is None:
        return actor
    try:
        return llm_config(environ, provider=provider or actor.provider, model=model)
    except LLMConfigError as error:
        raise LLMConfigError(f"the critic (LLM_CRITIC_PROVIDER, LLM_CRITIC_MODEL): {error}") from None


def _base_url(url: str, *, provider: Provider) -> str:
    variable = f"{provider.upper()}_BASE_URL"
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or not url.isprintable() or " " in url:
        raise LLMConfigError(f"{variable} must be an address like {DEFAULTS[provider][1]}", variable=variable)
    if parts.username or parts.password:
        raise LLMConfigError(f"{variable} must not contain a user or password", variable=variable)
    url = url.rstrip("/")
    # The native chat API is next to /v1, which is the URL that users know.
    return re.sub(r"/v1$", "", url) if provider == "ollama" else url


def _api_key(key: str | None, *, provider: Provider) -> str:
    variable = f"{provider.upper()}_API_KEY"
    if key is None:
        raise LLMNotConfigured(
            f"the LLM is not configured: set {variable} (any text for a server that asks for none), "
            "or another LLM_PROVIDER",
            variable=variable,
        )
    if not re.fullmatch(r"[!-~]+", key):  # it would break the HTTP header, and the error would reveal it
        line = f"{variable} contains a space, a line break or a character that no key has"
        raise LLMConfigError(line, variable=variable)
    return key


def _number(given: Mapping[str, str], name: str, default: float, *, least: float) -> float:
    try:
        value = float(given.get(name, default))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= least):
        raise LLMConfigError(f"{name} must be a number from {least:g}, got {given[name][:40]!r}", variable=name)
    return value


_OLLAMA_CONTEXT = 16_384  # Ollama silently truncates a longer prompt, so a length is always sent


def _context(given: Mapping[str, str], provider: Provider) -> int | None:
    name = "PAPER_ASSETS_LLM_CONTEXT"
    if provider == "ollama" and name not in given:
        return int(_number(given, "OLLAMA_NUM_CTX", _OLLAMA_CONTEXT, least=1024))
    return int(_number(given, name, 0, least=1024)) if name in given else None


def _price(given: Mapping[str, str], name: str) -> float | None:
    return _number(given, name, 0.0, least=0.0) if name in given else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Count exchanges, those that the server refused to work on apart, and tokens."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Return the tokens of prompts and answers."""
        return self.input_tokens + self.output_tokens

    def __add__(self, more: "Usage") -> "Usage":
        return Usage(
            calls=self.calls + more.calls,
            input_tokens=self.input_tokens + more.input_tokens,
            output_tokens=self.output_tokens + more.output_tokens,
        )

    def __mul__(self, times: int) -> "Usage":
        return Usage(
            calls=self.calls * times,
            input_tokens=self.input_tokens * times,
            output_tokens=self.output_tokens * times,
        )


class Budget:
    """Count calls and tokens for all threads of a run; None means unlimited.

    The limit of calls is never exceeded. Tokens are known only from an answer, so the call that reaches their limit may
    exceed it.
    """

    def __init__(self, *, calls: float | None = None, tokens: float | None = None) -> None:
        self._most_calls = calls
        self._most_tokens = tokens
        self._usage = Usage()
        self._lock = Lock()

    @property
    def usage(self) -> Usage:
        """Return what has been spent so far."""
        return self._usage

    def capped(self, bound: Usage) -> Usage:
        """Return the bound with no more calls than this budget allows."""
        most = bound.calls if self._most_calls is None else min(bound.calls, self._most_calls)
        return replace(bound, calls=int(most))

    def count_call(self) -> None:
        """Count a call that is about to be made. Raises LLMBudgetReached instead once a limit is reached."""
        with self._lock:
            used = self._usage
            tokens = used.tokens
            if self._most_calls is not None and used.calls >= self._most_calls:
                raise LLMBudgetReached(f"the LLM budget of this run is used up ({used.calls} calls)")
            if self._most_tokens is not None and tokens >= self._most_tokens:
                raise LLMBudgetReached(f"the LLM budget of this run is used up ({tokens:,} tokens)")
            self._usage = used + Usage(calls=1)

    def uncount_call(self) -> None:
        """Take back a call that the server refused to work on."""
        with self._lock:
            self._usage += Usage(calls=-1)

    def add_tokens(self, input_tokens: int, output_tokens: int) -> None:
        """Count the tokens of an answer, usable or not."""
        with self._lock:
            self._usage += Usage(input_tokens=input_tokens, output_tokens=output_tokens)


@dataclass(frozen=True, slots=True)
class MonthlyUse:
    """Count the tokens of one month (`2026-11`) in a file with a line for each exchange, of all processes.

    A line is appended in one write, which needs no lock and survives a kill of any process.
    """

    file: Path
    month: str

    def add(self, purpose: str, input_tokens: int, output_tokens: int) -> None:
        """Record one exchange. Raises LLMConfigError where the file cannot be written: without it no limit holds."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, f"{purpose}\t{input_tokens}\t{output_tokens}\n".encode())
            finally:
                os.close(handle)
        except OSError as fault:
            raise LLMConfigError(f"{self.file} cannot be written: {fault.strerror}; check permissions") from None

    def by_purpose(self) -> dict[str, Usage]:
        """Return what was used for each purpose, in alphabetical order."""
        try:
            lines = self.file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as fault:
            reason = getattr(fault, "strerror", None) or "it is not text"
            raise LLMConfigError(f"{self.file} cannot be read: {reason}; check permissions") from None
        uses: dict[str, Usage] = {}
        for purpose, *counts in (line.split("\t") for line in lines):
            if len(counts) == 2 and all(count.isdecimal() for count in counts):
                more = Usage(calls=1, input_tokens=int(counts[0]), output_tokens=int(counts[1]))
                uses[purpose] = uses.get(purpose, Usage()) + more
        return dict(sorted(uses.items()))

    def total(self) -> Usage:
        """Return what was used in all."""
        return sum(self.by_purpose().values(), Usage())


def monthly_use(environ: Mapping[str, str]) -> MonthlyUse | None:
    """Return the record of the current month; None where the environment names no folder for it."""
    folder, month = environ.get(LLM_USE_FOLDER, ""), environ.get(LLM_MONTH, "")
    return MonthlyUse(Path(folder) / f"{month}.tsv", month) if folder and month else None


def check_month(config: LLMConfig) -> None:
    """Raise LLMBudgetReached once the limit of the month is reached.

    Tokens are known only from an answer, so calls in progress may exceed it.
    """
    if config.monthly is None or (config.month_tokens is None and config.month_cost is None):
        return
    used = config.monthly.total()
    tokens, price = used.tokens, cost(config, used)
    if config.month_tokens is not None and tokens >= config.month_tokens:
        reached = f"{tokens:,} of {config.month_tokens:,} tokens"
    elif config.month_cost is not None and price is not None and price >= config.month_cost:
        reached = f"{price:.2f} of {config.month_cost:.2f} at your prices"
    else:
        return
    raise LLMBudgetReached(
        f"the monthly limit of the language model is reached ({reached} in {config.monthly.month}); raise it in the "
        "settings on the page or with `paper-assets llm set --monthly-limit`"
    )


def cost(config: LLMConfig, usage: Usage) -> float | None:
    """Return the price of `usage` in the currency of the configured prices; None where no price is configured."""
    if config.price_in is None or config.price_out is None:
        return None
    return (usage.input_tokens * config.price_in + usage.output_tokens * config.price_out) / 1_000_000


def estimated_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text: a third of its UTF-8 bytes. Needs no tokenizer."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)
