"""Set up the language model: what it is used for, what that costs, a test call, and a limit for a month.

The page and `paper-assets llm set` both use this module. Nothing is saved before the test call has worked.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import BaseModel

from paper_assets.errors import InvalidInput
from paper_assets.models.llm_config import PROVIDERS, LLMConfig, Usage, llm_config
from paper_assets.settings import LLM_MONTH, LLM_USE_FOLDER

KEYLESS = "ollama"
PRICE_IN, PRICE_OUT = "PAPER_ASSETS_LLM_PRICE_IN", "PAPER_ASSETS_LLM_PRICE_OUT"
MONTH_TOKENS, MONTH_COST = "PAPER_ASSETS_LLM_MONTH_TOKENS", "PAPER_ASSETS_LLM_MONTH_COST"
_LIMIT = re.compile(r"([0-9][0-9,_]*(?:\.[0-9]+)?)\s*(tokens?|money)?", re.IGNORECASE)
_TEST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ModelUse:
    """One use of a language model: its tokens sent and received are estimates from the sizes of the prompts."""

    what: str
    unit: str
    sent: int
    received: int


# Estimates: 20 abstracts of 500 characters; an abstract, two examples, a critique and a check in two attempts; 24
# passages, the answer and its check; a paper of 12 pages and the check of its analysis.
USES = (
    ModelUse("grades the first papers of a list", "20 papers", 4_500, 300),
    ModelUse("rewrites an abstract and judges the rewrite, if a profile asks for it", "a rewrite", 9_000, 2_500),
    ModelUse("judges, quotes and checks what answers a question", "a question", 18_000, 2_000),
    ModelUse("analyses a paper when an assistant asks for it", "a paper", 18_000, 1_500),
)
SENT_AWAY = (
    "Titles, abstracts, your interests and statement are sent to the provider; ratings and private PDFs are not."
)


class _Answer(BaseModel):
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A language model as a user enters it: texts, empty where the default applies. An empty `key` keeps the key of the
    same provider and address.
    """

    provider: str
    model: str = ""
    url: str = ""
    key: str = field(default="", repr=False)
    price_in: str = ""
    price_out: str = ""
    tokens: str = ""


def chosen_variables(kept: Mapping[str, str], choice: ModelChoice, *, monthly: str | None = None) -> dict[str, str]:
    """Return the variables to keep for a choice.

    `monthly` is what `monthly_limit` reads; None keeps the limit. Raises InvalidInput, LLMConfigError.
    """
    name, url = choice.provider.strip().lower(), choice.url.strip()
    if name not in PROVIDERS:
        line = f"{choice.provider[:40]!r} is not a provider; choose {', '.join(PROVIDERS)}"
        raise InvalidInput(line, variable="LLM_PROVIDER")
    prefix = name.upper()
    variables = {"LLM_PROVIDER": name, f"{prefix}_MODEL": choice.model.strip(), f"{prefix}_BASE_URL": url}
    if name != KEYLESS:
        same = kept.get("LLM_PROVIDER") == name and kept.get(f"{prefix}_BASE_URL", "") == url
        variables[f"{prefix}_API_KEY"] = choice.key.strip() or (kept.get(f"{prefix}_API_KEY", "") if same else "")
    variables |= {PRICE_IN: choice.price_in.strip(), PRICE_OUT: choice.price_out.strip()}
    variables["PAPER_ASSETS_LLM_TOKENS"] = choice.tokens.strip()
    limit = monthly_limit(monthly) if monthly is not None else {n: kept.get(n, "") for n in (MONTH_TOKENS, MONTH_COST)}
    variables |= limit
    variables = {name: value for name, value in variables.items() if value}
    llm_config(variables)
    return variables


def with_limit(kept: Mapping[str, str], monthly: str) -> dict[str, str]:
    """Return the kept variables with another monthly limit. Raises InvalidInput, LLMConfigError."""
    if "LLM_PROVIDER" not in kept:
        raise InvalidInput("no language model is kept; choose a provider first")
    variables = {name: value for name, value in {**kept, **monthly_limit(monthly)}.items() if value}
    llm_config(variables)
    return variables


def monthly_limit(text: str) -> dict[str, str]:
    """Read `2000000`, `2,000,000 tokens` or `5 money` (in the currency of the prices); empty or `none`: no limit.

    Raises InvalidInput.
    """
    written = text.strip()
    if written.lower() in ("", "none", "0"):
        return {MONTH_TOKENS: "", MONTH_COST: ""}
    amount = _LIMIT.fullmatch(written)
    if not amount:
        line = f"the monthly limit must be like 2000000 tokens, 5 money or none, got {written[:40]!r}"
        raise InvalidInput(line, variable=MONTH_TOKENS)
    number = amount[1].replace(",", "").replace("_", "")
    if (amount[2] or "tokens").lower() == "money":
        return {MONTH_TOKENS: "", MONTH_COST: number}
    if "." in number:
        line = f"a number of tokens is whole; for an amount of money write {number} money"
        raise InvalidInput(line, variable=MONTH_TOKENS)
    return {MONTH_TOKENS: number, MONTH_COST: ""}


def limit_in_words(config: LLMConfig) -> str:
    """Write the monthly limit for people."""
    if config.month_tokens is not None:
        return f"{config.month_tokens:,} tokens"
    return f"{config.month_cost:.2f} at your prices" if config.month_cost is not None else "none"


def try_model(variables: Mapping[str, str], environ: Mapping[str, str]) -> Usage:
    """Ask one short question and return what it used, which counts for the month. Raises LLMError, LLMConfigError.

    The monthly limit does not stop a test.
    """
    from paper_assets.models.llm import LanguageModel

    recorded = {name: environ[name] for name in (LLM_USE_FOLDER, LLM_MONTH) if environ.get(name)}
    config = llm_config({**variables, **recorded})
    hurried = replace(
        config, deadline=_TEST_SECONDS, try_timeout=_TEST_SECONDS, tries=1, month_tokens=None, month_cost=None
    )
    model = LanguageModel(config=hurried, purpose="test calls")
    return model.ask(system="You test a connection.", user='Answer with {"ok": true}.', schema=_Answer).usage
