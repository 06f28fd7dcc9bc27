"""Commands that check and set up the installation: `doctor`, `llm` and `model`."""

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput, LLMNotConfigured
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    command_group,
    dagster_home,
    environment,
    open_warehouse,
    print_json,
    print_table,
    progress_bar,
    read_settings,
    read_usable_settings,
    say,
)
from paper_assets.models.embedder import plain_name
from paper_assets.models.llm_config import DEFAULTS, LLMConfig, cost, llm_config
from paper_assets.setup.doctor import Installation, examine
from paper_assets.setup.embedding_model import MEASURED, keep_model, named_or_placed
from paper_assets.setup.language_model import (
    KEYLESS,
    PRICE_IN,
    PRICE_OUT,
    SENT_AWAY,
    USES,
    ModelChoice,
    chosen_variables,
    limit_in_words,
    try_model,
    with_limit,
)
from paper_assets.stores.embeddings import StoredModel, stored_models
from paper_assets.stores.kept_settings import forget_variables, keep_variables, kept_variables
from paper_assets.text.numbers import count_of


def doctor(
    offline: Annotated[bool, typer.Option("--offline", help="Ask no other host.")] = False, as_json: AsJson = False
) -> None:
    """Check settings, disk, folders, database, models, arXiv and mail, and say how to fix what is wrong.

    A configured language model is asked one short question.
    """
    settings, wrong = read_usable_settings()
    installation = Installation(
        settings=settings, wrong_settings=wrong, environ=environment(), dagster_home=dagster_home(), online=not offline
    )
    findings = examine(installation)
    problems = [finding for finding in findings if finding.state == "problem"]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = [(finding.name, finding.state, finding.detail) for finding in findings]
        print_table("doctor", ["check", "state", "detail"], rows)
        for finding in findings:
            if finding.fix:
                say(f"{finding.state}: {finding.name}: {finding.detail}\n  fix: {finding.fix}")
        say(f"{count_of(len(problems), 'problem')} found." if problems else "Everything that is needed works.")
    if problems:
        raise typer.Exit(1)


llm = command_group("llm", "Set up the language model. Everything works without one.")


@llm.command(name="set")
def set_model(
    provider: Annotated[str | None, typer.Option(help="openai, anthropic or ollama.")] = None,
    model: Annotated[str, typer.Option(help="Name of the model; default: the provider's usual one.")] = "",
    url: Annotated[str, typer.Option(help="Address of another server that speaks the provider's protocol.")] = "",
    key_from: Annotated[
        str | None,
        typer.Option(metavar="VARIABLE", help="Variable with the key; without it, a prompt asks for the key."),
    ] = None,
    price_in: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens sent.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens received.")] = None,
    tokens: Annotated[int | None, typer.Option(min=0, help="Limit of tokens for one run.")] = None,
    monthly_limit: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT",
            help="Limit of a month: `2000000 tokens`, `5 money` (at the prices), `none`. Alone, it changes only this.",
        ),
    ] = None,
    test: Annotated[bool, typer.Option(help="Ask one short question before anything is saved.")] = True,
) -> None:
    """Save provider, model and key in a file that only you can read, after a test call.

    The key is never an option, because other users of a machine can see the options of a command.
    """
    home = read_settings().home
    kept = kept_variables(home)
    others = (provider, model, url, key_from, price_in, price_out, tokens)
    if monthly_limit is not None and kept and not any(value not in (None, "") for value in others):
        variables = with_limit(kept, monthly_limit)
        keep_variables(home, variables)
        return say(f"The monthly limit is now: {limit_in_words(llm_config(variables))}.")
    _say_what_it_is_for()
    asking = sys.stdin.isatty()
    provider = _asked_provider(asking=asking) if provider is None else provider
    choice = ModelChoice(
        provider=provider,
        model=model,
        url=url,
        key="" if provider.strip().lower() == KEYLESS else _key(key_from, asking=asking),
        price_in="" if price_in is None else f"{price_in:g}",
        price_out="" if price_out is None else f"{price_out:g}",
        tokens="" if tokens is None else f"{tokens}",
    )
    variables = chosen_variables(kept, choice, monthly=monthly_limit)
    config = llm_config(variables)
    if test:
        _test(variables, config)
    file = keep_variables(home, variables)
    say(f"{config.named}, model {config.model}, is kept in {file}, which only you can read.")
    say(f"Monthly limit: {limit_in_words(config)}.")


@llm.command()
def show() -> None:
    """Show which language model is used, what it used this month, and its limits, without its key."""
    kept, variables = kept_variables(read_settings().home), environment()
    try:
        config = llm_config(variables)
    except LLMNotConfigured:
        for name, (model, url) in DEFAULTS.items():
            given = {f"{name.upper()}_MODEL": model, f"{name.upper()}_BASE_URL": url}
            say("  ".join(f"{each}={variables.get(each) or default}" for each, default in given.items()))
        raise
    limits = f"at most {config.budget_tokens:,} tokens and {config.budget_calls} calls in a run"
    say(f"{config.named}, model {config.model}, {limits}")
    if config.monthly:
        used = config.monthly.total()
        price = cost(config, used)
        priced = f" ({price:.2f} at your prices)" if price is not None else ""
        say(
            f"{used.input_tokens + used.output_tokens:,} tokens in {config.monthly.month}{priced}; "
            f"monthly limit: {limit_in_words(config)}"
        )
    replaced = sorted(name for name in kept if os.environ.get(name, "").strip() not in ("", kept[name]))
    if replaced:
        say(f"The environment replaces what is kept: {', '.join(replaced)}")
    if config.price_in is None or config.price_out is None:
        say(f"To see costs, give the prices to `llm set`, or set {PRICE_IN} and {PRICE_OUT}.")


@llm.command()
def remove() -> None:
    """Remove provider, model and key."""
    say("The language model is forgotten." if forget_variables(read_settings().home) else "No language model is kept.")


def _say_what_it_is_for() -> None:
    say("A language model is optional. It")
    for use in USES:
        say(f"  {use.what}: about {use.sent + use.received:,} tokens for {use.unit};")
    say(SENT_AWAY)


def _asked_provider(*, asking: bool) -> str:
    """Ask for the provider at a terminal; otherwise raise InvalidInput."""
    if not asking:
        raise InvalidInput("choose a provider: --provider openai, anthropic or ollama")
    return str(typer.prompt("Provider (openai, anthropic, ollama)", default="openai"))


def _test(variables: Mapping[str, str], config: LLMConfig) -> None:
    """Make the test call and print what it used."""
    used = try_model(variables, environment())
    price = cost(config, used)
    priced = f", {price:.4f} at your prices" if price is not None else ""
    say(f"The test call worked and used {used.input_tokens + used.output_tokens} tokens{priced}.")


def _key(variable: str | None, *, asking: bool) -> str:
    if variable is not None:
        key = os.environ.get(variable, "").strip()
        if not key:
            raise InvalidInput(f"{variable[:60]} is not set")
        return key
    if not asking:
        raise InvalidInput("name the variable that holds the key: --key-from OPENAI_API_KEY")
    return str(typer.prompt("Key", hide_input=True)).strip()


model = command_group("model", "Choose the embedding model, which compares papers by meaning.")
ModelName = Annotated[
    str, typer.Argument(metavar="NAME", help="A name such as all-mpnet-base-v2, or the folder of a model.")
]


@model.command(name="list")
def list_models(as_json: AsJson = False) -> None:
    """List the embedding models that were measured, and those that have vectors here."""
    stored = {plain_name(each.name): each for each in stored_models(open_warehouse())}
    in_use, measured = plain_name(read_settings().embedding_model), {each.name: each for each in MEASURED}
    names = list(dict.fromkeys([in_use, *measured, *stored]))
    if as_json:
        return print_json([{"name": name, "in_use": name == in_use, **_stored(stored.get(name))} for name in names])
    rows = []
    for name in names:
        known, vectors = measured.get(name), stored.get(name)
        size = f"{vectors.vectors:,} ({vectors.vectors * vectors.dimension * 4 / 1e6:,.0f} MB)" if vectors else "none"
        note = f"{known.price}; {known.gain}" if known else "not measured"
        rows.append((name, "in use" if name == in_use else "", size, note))
    print_table("embedding models", ["name", "", "vectors", "price and gain"], rows)


def _stored(found: StoredModel | None) -> dict[str, object]:
    return {"vectors": found.vectors, "dimension": found.dimension} if found else {"vectors": 0, "dimension": None}


@model.command()
def use(name: ModelName) -> None:
    """Use another embedding model: embed the papers that the newest lists read, then change to it.

    Lists stay as they are until all their papers have vectors of the new model. Stopped half-way, nothing has changed,
    and the same command goes on from there. The next run makes the lists and embeds all other papers, the newest first.
    """
    from paper_assets.pipeline.embeddings import embed_window  # imports DuckDB and numpy
    from paper_assets.pipeline.workspace import open_workspace

    settings, chosen = read_settings(), named_or_placed(name)
    settings = settings.model_copy(update={"embedding_model": chosen})
    workspace = open_workspace(settings, environment(), clock=lambda: datetime.now(UTC))
    with progress_bar(f"embedding papers with {plain_name(chosen)}") as count:
        embedded = embed_window(replace(workspace, progress=count))
    keep_model(settings.home, chosen, os.environ)
    say(
        f"{plain_name(chosen)} is in use ({count_of(embedded, 'paper')} embedded). `paper-assets run` makes the lists "
        "and embeds the other papers. `paper-assets up` restarts its programs itself; restart a desk that you started."
    )
