"""Settings of the desk: when the newest papers are fetched, and the language model with its cost and limit.

They are kept in the data folder and take effect at once, in the daemon too. Variables of the environment go before
them; the page then names them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.errors import InvalidInput, LLMError, LLMNotConfigured, PaperAssetsError, StoreBusy
from paper_assets.interfaces.page.desk import Desk, desk_of, now, page, redirect_with_note
from paper_assets.interfaces.page.display import as_sentence
from paper_assets.interfaces.page.paper_rows import reader_of
from paper_assets.locks import store_lock
from paper_assets.models.embedder import plain_name
from paper_assets.models.llm_config import PROVIDERS, LLMConfig, Usage, check_month, cost, llm_config, monthly_use
from paper_assets.settings import WEEKDAYS, Settings, load_settings, wrong_settings
from paper_assets.setup import language_model as models
from paper_assets.setup.embedding_model import MEASURED
from paper_assets.setup.fetch_hours import (
    DAY_NAMES,
    hours_in_words,
    local_zone,
    next_due,
    replaced_hours,
)
from paper_assets.stores.kept_settings import (
    MORNING,
    KeptEnvironment,
    forget_variables,
    keep_variables,
    kept_environment,
    kept_variables,
)

_PROVIDER_NAMES: Mapping[str, str] = {
    "openai": "OpenAI, or a server with its protocol",
    "anthropic": "Anthropic",
    "ollama": "Ollama on your machine (no key, no cost)",
}
_MODEL_FIELDS = ("provider", "model", "url", "price_in", "price_out", "amount", "unit")
_FIELDS: Mapping[str, tuple[str, str]] = {  # of the form, and what a fault calls it, by the variable that it sets
    "LLM_PROVIDER": ("provider", "the provider"),
    models.PRICE_IN: ("price_in", "the price of tokens sent"),
    models.PRICE_OUT: ("price_out", "the price of tokens received"),
    models.MONTH_TOKENS: ("amount", "the monthly limit"),
    models.MONTH_COST: ("amount", "the monthly limit"),
    **{
        f"{provider.upper()}_{part}": names
        for provider in PROVIDERS
        for part, names in (
            ("API_KEY", ("key", "the key")),
            ("MODEL", ("model", "the model")),
            ("BASE_URL", ("url", "the address")),
        )
    },
}
_HOURS: Mapping[str, tuple[str, str]] = {  # the field of each variable, and what a fault says beside it
    "PAPER_ASSETS_FETCH_AT": ("at", "Write a time of day such as 06:30."),
    "PAPER_ASSETS_FETCH_WEEKDAYS": ("weekday", "Choose at least one day."),
    "PAPER_ASSETS_TIME_ZONE": ("zone", "Choose a time zone of the list."),
}
_COMMON_ZONES = ("UTC", "America/Los_Angeles", "America/New_York", "Europe/London", "Europe/Berlin", "Asia/Seoul")


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthlyModelUse:
    """What the language model used this month, and how far that is from the limit. `reached`: why no call is made."""

    config: LLMConfig
    named: str
    uses: Mapping[str, Usage]
    total: Usage
    price: float | None
    limit: str
    reached: str | None


@dataclass(frozen=True, slots=True)
class NoModel:
    """Why there is no language model."""

    fault: str


def show_settings(request: Request) -> Response:
    """Show the settings as they are; at a profile's address, in the frame of the profile."""
    reader_of(request)
    return _page(request)


def save_settings(request: Request) -> Response:
    """Keep the hours of the fetch, or the language model after its test call; a fault is shown beside its field."""
    reader_of(request)
    action = str(request.state.form.get("action", ""))
    actions = {"morning": _save_morning, "model": _save_model, "limit": _save_limit, "forget": _forget_model}
    if action not in actions:
        raise InvalidInput("the settings have no such action")
    return actions[action](request)


def environ_of(desk: Desk) -> KeptEnvironment:
    """Return the desk's environment with the kept settings behind it, as they are now."""
    return kept_environment(desk.environ, desk.settings.home, now)


def missing_model(desk: Desk) -> str | None:
    """Return what a stored note says where no language model is set up; None where one is."""
    try:
        llm_config(environ_of(desk))
    except LLMNotConfigured as fault:
        return str(fault)
    except LLMError:
        pass
    return None


def hours_of(desk: Desk) -> tuple[Settings, str | None]:
    """Return the settings as they are now, and what is wrong with them; then they are those of the desk's start."""
    try:
        return load_settings(environ_of(desk), Path.cwd()), None
    except InvalidInput as fault:
        return desk.settings, str(fault)


def is_kept_running(desk: Desk) -> bool:
    """Return whether `paper-assets up` runs for this home, and with it the daily fetch."""
    try:
        with store_lock(desk.settings.home / "up", deadline=0.0):
            return False
    except StoreBusy:
        return True


def model_use(desk: Desk) -> MonthlyModelUse | NoModel:
    """Return what the language model used this month, or why there is none."""
    try:
        config = llm_config(environ_of(desk))
    except LLMNotConfigured:
        return NoModel("No language model is set up; everything works without one")
    except PaperAssetsError as fault:
        return NoModel(str(fault))
    uses = config.monthly.by_purpose() if config.monthly else {}
    total = config.monthly.total() if config.monthly else Usage()
    try:
        check_month(config)
        reached = None
    except LLMError as fault:
        reached = str(fault)
    return MonthlyModelUse(
        config=config,
        named=f"{config.named}, model {config.model}",
        uses=uses,
        total=total,
        price=cost(config, total),
        limit=models.limit_in_words(config),
        reached=reached,
    )


def _save_morning(request: Request) -> Response:
    desk, form = desk_of(request), request.state.form
    weekdays = [day for day in WEEKDAYS if day in form.getlist("weekday")]
    typed = {"at": str(form.get("at", "")), "zone": str(form.get("zone", ""))}
    given = (typed["at"].strip(), ",".join(weekdays), typed["zone"].strip())
    variables = {name: text or "?" for name, text in zip(_HOURS, given, strict=True)}  # an empty one counts as unset
    wrong = wrong_settings(variables, Path.cwd())
    if faults := {field: words for name, (field, words) in _HOURS.items() if name in wrong}:
        return _page(request, {**typed, "weekdays": weekdays}, faults)
    keep_variables(desk.settings.home, variables, MORNING)
    settings = load_settings(variables, Path.cwd())
    due = next_due(settings, now()).astimezone(ZoneInfo(settings.time_zone))
    note = f"Saved. The newest papers are fetched at {hours_in_words(settings)}; next: {due:%A %H:%M}."
    return redirect_with_note(request, request.url.path, note)


def _save_model(request: Request) -> Response:
    desk, values = desk_of(request), _submitted(request)
    stored = _kept(desk)
    try:
        choice = models.ModelChoice(
            provider=values["provider"],
            model=values["model"],
            url=values["url"],
            key=str(request.state.form.get("key", "")),
            price_in=values["price_in"],
            price_out=values["price_out"],
            tokens=stored.get("PAPER_ASSETS_LLM_TOKENS", ""),
        )
        variables = models.chosen_variables(stored, choice, monthly=_limit(values))
        used = models.try_model(variables, environ_of(desk))
    except PaperAssetsError as fault:
        return _page(request, values, _faults(fault))
    keep_variables(desk.settings.home, variables)
    config = llm_config(variables)
    price = cost(config, used)
    priced = f" and cost {price:.4f}" if price is not None else ""
    note = (
        f"Saved: {config.named}, model {config.model}. The test call worked; it used "
        f"{used.input_tokens + used.output_tokens} tokens{priced}."
    )
    return redirect_with_note(request, _model_of(request), note)


def _save_limit(request: Request) -> Response:
    desk, values = desk_of(request), _submitted(request)
    try:
        variables = models.with_limit(_kept(desk), _limit(values))
    except PaperAssetsError as fault:
        return _page(request, values, _faults(fault))
    keep_variables(desk.settings.home, variables)
    note = f"Saved. Monthly limit: {models.limit_in_words(llm_config(variables))}."
    return redirect_with_note(request, _model_of(request), note)


def _forget_model(request: Request) -> Response:
    forget_variables(desk_of(request).settings.home)
    return redirect_with_note(request, _model_of(request), "The language model and its key are removed.")


def _model_of(request: Request) -> str:
    return f"{request.url.path}#model"


def _submitted(request: Request) -> dict[str, str]:
    return {name: str(request.state.form.get(name, "")).strip() for name in _MODEL_FIELDS}


def _limit(values: Mapping[str, str]) -> str:
    """Return the monthly limit as `monthly_limit` reads it."""
    return f"{values['amount']} {values['unit']}" if values["amount"] else "none"


def _faults(fault: PaperAssetsError) -> dict[str, str]:
    """Return the field that a fault is about, and the fault with the names of fields instead of variables."""
    text = as_sentence(fault)
    if isinstance(fault, LLMNotConfigured):
        text = "Enter the key (any text for a server that asks for none)."
    for variable, (_, words) in _FIELDS.items():
        text = text.replace(variable, words)
    return {_FIELDS.get(fault.variable or "", ("model-fault", ""))[0]: f"{text} Nothing was saved."}


def _kept(desk: Desk) -> dict[str, str]:
    """Return the kept language model; empty if the file cannot be used, so that saving replaces it."""
    try:
        return kept_variables(desk.settings.home)
    except InvalidInput:
        return {}


def _model_values(variables: Mapping[str, str]) -> dict[str, str]:
    provider = variables.get("LLM_PROVIDER", "openai")
    prefix = provider.upper()
    cost_limit, tokens = variables.get(models.MONTH_COST, ""), variables.get(models.MONTH_TOKENS, "")
    return {
        "provider": provider,
        "model": variables.get(f"{prefix}_MODEL", ""),
        "url": variables.get(f"{prefix}_BASE_URL", ""),
        "price_in": variables.get(models.PRICE_IN, ""),
        "price_out": variables.get(models.PRICE_OUT, ""),
        "amount": cost_limit or tokens,
        "unit": "money" if cost_limit else "tokens",
    }


def _page(
    request: Request, typed: Mapping[str, Any] | None = None, faults: Mapping[str, str] | None = None
) -> Response:
    """Show the settings; `typed` values with their faults by field instead of the stored ones."""
    desk = desk_of(request)
    environ, stored = environ_of(desk), _kept(desk)
    settings, wrong_hours = hours_of(desk)
    here = local_zone(desk.environ)
    values = {
        "at": f"{settings.fetch_at:%H:%M}",
        "weekdays": settings.fetch_weekdays,
        "zone": settings.time_zone,
        **_model_values(stored),
        **(typed or {}),
    }
    zones = dict.fromkeys((settings.time_zone, here, *_COMMON_ZONES, *sorted(available_timezones())))
    use = model_use(desk)
    config = use.config if isinstance(use, MonthlyModelUse) else None
    return page(
        request,
        "settings.html.jinja",
        address=request.url.path,
        status=400 if faults else 200,
        values=values,
        faults=faults or {},
        zones=list(zones),
        here=here,
        days=list(zip(WEEKDAYS, DAY_NAMES, strict=True)),
        hours=hours_in_words(settings),
        wrong_hours=wrong_hours,
        next_fetch=next_due(settings, now()).astimezone(ZoneInfo(settings.time_zone)),
        running=is_kept_running(desk),
        fixed_hours=replaced_hours(desk.environ),
        providers=_PROVIDER_NAMES,
        uses=[
            (use, cost(config, Usage(calls=1, input_tokens=use.sent, output_tokens=use.received)) if config else None)
            for use in models.USES
        ],
        sent_away=models.SENT_AWAY,
        model=use,
        kept_model=bool(stored),
        has_key=any(name.endswith("_API_KEY") for name in stored),
        fixed_model=sorted(name for name in stored if desk.environ.get(name, "").strip() not in ("", stored[name])),
        month=monthly_use(environ),
        embedding_models=MEASURED,
        embedding_model=plain_name(settings.embedding_model),
    )
