"""Commands that check and set up the installation: `doctor`, `llm` and `completion`."""

import os
import sys
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Annotated

import typer
from pydantic import BaseModel
from typer.completion import get_completion_script

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.cli.process import COMPLETE_VARIABLE
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    counted,
    dagster_home,
    print_json,
    print_table,
    read_settings,
    say,
)
from paper_assets.models.llm_config import LLMConfig, cost, llm_config
from paper_assets.setup.doctor import Installation, examine
from paper_assets.setup.keys import forget_variables, keep_variables, kept_variables


def doctor(
    offline: Annotated[bool, typer.Option("--offline", help="Ask no other host.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check Python, disk, folders, model, ports, network, keys and mail, and say how to fix what is wrong.

    A configured language model is asked one short question.
    """
    installation = Installation(
        settings=read_settings(), environ=dict(os.environ), dagster_home=dagster_home(), online=not offline
    )
    found = examine(installation)
    problems = [each for each in found if each.state == "problem"]
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        rows = [(each.name, each.state, each.detail) for each in found]
        print_table("doctor", ["check", "state", "detail"], rows)
        for each in found:
            if each.fix:
                say(f"{each.state}: {each.name}: {each.detail}\n  fix: {each.fix}")
        say(f"{counted(len(problems), 'problem')} found." if problems else "Everything that is needed works.")
    if problems:
        raise typer.Exit(1)


llm = typer.Typer(
    name="llm",
    help="Set up the language model. Everything works without one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_USES = (
    "A language model is optional. It checks papers whose relevance is doubtful, judges stances and answers of your "
    "questions, and rewrites abstracts; titles and abstracts are sent to its provider."
)
_KEYLESS = "ollama"


class _Answer(BaseModel):
    ok: bool


@llm.command(name="set")
def set_model(
    provider: Annotated[str | None, typer.Option(help="openai, anthropic or ollama.")] = None,
    model: Annotated[str, typer.Option(help="Name of the model; default: the provider's usual one.")] = "",
    url: Annotated[str, typer.Option(help="Address of another server that speaks the provider's protocol.")] = "",
    key_from: Annotated[
        str | None,
        typer.Option(metavar="VARIABLE", help="Variable that holds the key; without it the key is asked for."),
    ] = None,
    price_in: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens sent.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens received.")] = None,
    tokens: Annotated[int | None, typer.Option(min=0, help="Limit of tokens for one run.")] = None,
    test: Annotated[bool, typer.Option(help="Ask one short question before anything is saved.")] = True,
) -> None:
    """Save provider, model and key in a file that only you can read, after a test call.

    The key is never an option, because other users of a machine can see the options of a command.
    """
    asking = sys.stdin.isatty()
    say(_USES)
    if provider is None:
        if not asking:
            raise InvalidInput("say which provider: --provider openai, anthropic or ollama")
        provider = str(typer.prompt("Provider (openai, anthropic, ollama)", default="openai"))
    provider = provider.strip().lower()
    prefix = provider.upper()
    variables = {"LLM_PROVIDER": provider}
    if model:
        variables[f"{prefix}_MODEL"] = model.strip()
    if url:
        variables[f"{prefix}_BASE_URL"] = url.strip()
    if provider != _KEYLESS:
        variables[f"{prefix}_API_KEY"] = _key(key_from, asking=asking)
    for name, value in (("PRICE_IN", price_in), ("PRICE_OUT", price_out), ("TOKENS", tokens)):
        if value is not None:
            variables[f"PAPER_ASSETS_LLM_{name}"] = f"{value:g}" if isinstance(value, float) else f"{value}"
    config = llm_config(variables)
    if test:
        _try(config)
    file = keep_variables(read_settings().home, variables)
    say(f"{config.named}, model {config.model}, is kept in {file}, which only you can read.")


@llm.command()
def show() -> None:
    """Show which language model is used, without its key."""
    settings = read_settings()
    kept = kept_variables(settings.home)
    config = llm_config({**kept, **os.environ})
    limits = f"at most {config.budget_tokens:,} tokens and {config.budget_calls} calls in a run"
    say(f"{config.named}, model {config.model}, {limits}")
    replaced = sorted(name for name in kept if os.environ.get(name, kept[name]) != kept[name])
    if replaced:
        say(f"The environment replaces what is kept: {', '.join(replaced)}")


@llm.command()
def remove() -> None:
    """Remove provider, model and key."""
    say("The language model is forgotten." if forget_variables(read_settings().home) else "No language model is kept.")


def _key(variable: str | None, *, asking: bool) -> str:
    if variable is not None:
        key = os.environ.get(variable, "").strip()
        if not key:
            raise InvalidInput(f"{variable[:60]} is not set")
        return key
    if not asking:
        raise InvalidInput("name the variable that holds the key: --key-from OPENAI_API_KEY")
    return str(typer.prompt("Key", hide_input=True)).strip()


def _try(config: LLMConfig) -> None:
    """Ask one short question and say what it cost. Raises LLMError."""
    from paper_assets.models.llm import ask

    done = ask(
        replace(config, deadline=30.0, try_timeout=30.0, tries=1),
        system="You test a connection.",
        user='Answer with {"ok": true}.',
        schema=_Answer,
    )
    price = cost(config, done.usage)
    used = done.usage.input_tokens + done.usage.output_tokens
    say(f"The test call worked and used {used} tokens{f', {price:.4f} at your prices' if price is not None else ''}.")


PROGRAM = "paper-assets"


class Shell(StrEnum):
    """A shell for which there is a script."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="Your shell.")]) -> None:
    """Print a script for Tab completion in your shell.

    bash: add `eval "$(paper-assets completion bash)"` to ~/.bashrc; zsh: the same with zsh in ~/.zshrc, after compinit;
    fish: `paper-assets completion fish > ~/.config/fish/completions/paper-assets.fish`.
    """
    print(get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE_VARIABLE, shell=shell.value))
