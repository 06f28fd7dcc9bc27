"""Define the command line: the table of commands, and how a command ends.

To add a command, write a function in a module of this folder and add a line to `SECTIONS`. A module is imported only
when one of its commands is called, so that --help and wrong options are answered at once.
"""

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from paper_assets.errors import PaperAssetsError
from paper_assets.interfaces.cli.process import (
    STOPPED,
    describe_disk_fault,
    end_on_signals,
    importing,
    keep_tracebacks_in_the_log,
    log_unexpected,
    prepare_streams,
)
from paper_assets.processes import end_with_supervisor
from paper_assets.small_files import make_files_private

# Otherwise pydantic searches every installed package for plugins before it builds the first class.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

# By heading: each command with its module in this folder, the function or group, and the first sentence of its help.
SECTIONS: dict[str, dict[str, tuple[str, str, str]]] = {
    "Start": {
        "start": (
            "servers",
            "start",
            "Open the desk in a browser; with --days, fetch and rank the papers of the last days.",
        ),
        "demo": ("graph", "demo", "Import the bundled example, rank it, and show the top papers with reasons."),
        "up": ("daily", "up", "Run Dagster's daemon and UI and the desk together, and restart those that die."),
        "service": (
            "daily",
            "service",
            "Run `paper-assets up` after every login, or fetch and rank on GitHub every morning.",
        ),
        "mcp": ("servers", "mcp", "Serve assistants over MCP on standard input and output."),
        "lab": ("servers", "lab", "Serve the desk and MCP over HTTP for several people, with a token for each."),
    },
    "Read": {
        "today": ("ranking", "today", "Show the stored list of a profile, or of all profiles."),
        "explain": ("ranking", "explain", "Explain the rank of a paper for a profile, or why it is not in the list."),
        "changed": ("ranking", "changed", "Show which papers entered, left or moved in a profile's list, and why."),
        "rate": ("ranking", "rate", "Rate a paper, so that the profile's rankings learn from it."),
        "ratings": ("ranking", "ratings", "List or erase the ratings of a profile."),
        "rewrite": ("rewriting", "rewrite", "Rewrite the abstract of a stored paper for a reading level."),
        "cite": ("exchange", "cite", "Export a list, or rated papers, as BibTeX, RIS, CSL-JSON or Markdown."),
        "deliver": ("exchange", "deliver", "Send a profile's digest to the channels in its delivery.json."),
    },
    "Find and ask": {
        "find": ("find", "find", "Search the stored papers by meaning and words, with filters."),
        "ask": (
            "ask",
            "ask",
            "Answer a question from stored abstracts and full texts, with a verified quotation for every sentence.",
        ),
        "answers": (
            "ask",
            "answers",
            "Show, ask again, export or remove the answers that you kept; forget those of language models.",
        ),
        "retrieve": ("ask", "retrieve", "Find documents that answer a question, the same number for each side."),
        "arxiv": ("interpreting", "arxiv", "Search arXiv and Semantic Scholar, and show or interpret one paper."),
    },
    "Papers and lists": {
        "profile": ("profile", "profile", "Make, show, change and remove profiles: what you want to read."),
        "library": ("exchange", "library", "Import the papers of your library as liked papers."),
        "import": ("graph", "import_files", "Import papers from files, or add what `export` wrote."),
        "fetch": ("graph", "fetch", "Fetch papers from arXiv: those of a day, or of the days that are due."),
        "harvest": (
            "graph",
            "harvest",
            "Fetch months of papers by arXiv's OAI-PMH; a stopped harvest continues where it stopped.",
        ),
        "run": ("run", "run", "Bring rankings and digests up to date."),
        "rank": ("ranking", "rank", "Rank papers from a JSON file and print the result as JSON."),
        "archive": ("archive", "archive", "Manage best practices: rewrites that later rewrites learn from."),
    },
    "Look after it": {
        "status": ("run", "status", "Show what is stored, what is out of date, and which profiles cannot be read."),
        "doctor": (
            "installation",
            "doctor",
            "Check settings, disk, folders, database, models, arXiv and mail, and say how to fix what is wrong.",
        ),
        "backup": (
            "backups",
            "backup",
            "Back up papers, results, profiles and settings into one file, while everything runs.",
        ),
        "restore": ("backups", "restore", "Bring back a backup."),
        "export": (
            "backups",
            "export",
            "Write all that you entered as JSON Lines: profiles, ratings, shelf, answers, decisions.",
        ),
        "repair": (
            "backups",
            "repair",
            "Save what a damaged database still gives, table by table, and name what is lost.",
        ),
        "llm": ("installation", "llm", "Set up the language model."),
        "model": ("installation", "model", "Choose the embedding model, which compares papers by meaning."),
        "reset": ("graph", "reset", "Delete papers, results and Dagster's history; profiles and settings are kept."),
    },
}
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}
_ALIASES = {"desk": "start", "review": "start"}

# What people type for a command that has another name.
_OTHER_WORDS = {
    "bibtex": "cite",
    "fetch-paper": "arxiv show",
    "github-actions": "service github-actions",
    "interpret": "arxiv interpret",
    "list": "today",
    "people": "lab",
    "related": "arxiv related",
    "search": "find (stored papers) or arxiv search",
    "serve": "lab serve",
    "show": "today",
    "why": "explain",
    "zotero": "library",
}


class LazyCommands(TyperGroup):
    """Offer the commands of `COMMANDS`; import each when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in {**COMMANDS, **_ALIASES} and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = [_OTHER_WORDS[name]] if name in _OTHER_WORDS else get_close_matches(name, COMMANDS, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else "`paper-assets --help` lists them"
            ctx.fail(f"there is no command {name[:60]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if (name := _ALIASES.get(cmd_name, cmd_name)) not in COMMANDS:
            return None
        module, function, _ = COMMANDS[name]
        with importing():
            target = getattr(import_module(f"paper_assets.interfaces.cli.{module}"), function)
        if isinstance(target, typer.Typer):
            return typer.main.get_group(target)
        alone = typer.Typer(add_completion=False, **_PLAIN)
        alone.command(name=cmd_name)(target)
        return typer.main.get_command(alone)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, summary) for name, (_, _, summary) in commands.items()])


_PLAIN: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": None}

app = typer.Typer(
    name="paper-assets",
    help="Turn arXiv into a personal, explained, reproducible reading desk.",
    cls=LazyCommands,
    invoke_without_command=True,
    **_PLAIN,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"paper-assets {version('paper_assets')}")
        raise typer.Exit


@app.callback()
def _commands(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Turn arXiv into a personal, explained, reproducible reading desk."""
    if context.invoked_subcommand is None:
        print(f"{context.get_help()}\n\nNew here? `paper-assets start` opens the desk in your browser.")
        raise typer.Exit(2)


# Allocations between two garbage collections, instead of 700.
_ALLOCATIONS = 100_000


def program() -> NoReturn:
    """Run a command as a process, and end the process as soon as the command is over or a signal asks for it.

    A regular interpreter exit would take half a second longer, and libraries would print what they have not freed.
    """
    gc.set_threshold(_ALLOCATIONS)
    prepare_streams()
    end_on_signals()
    keep_tracebacks_in_the_log()
    make_files_private()
    end_with_supervisor(os.environ)
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    with suppress(OSError):  # the reader of the output may be gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(bool(code)))


def main() -> None:
    """Run a command. Every error ends in one line on stderr and exit code 1; the traceback of a bug goes to a file."""
    try:
        Path.cwd()
    except OSError:
        print("error: the folder in which you are was removed; change to another one (cd)", file=sys.stderr)
        sys.exit(1)
    try:
        app()
    except PaperAssetsError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        print(f"error: {describe_disk_fault(error) or log_unexpected(error)}", file=sys.stderr)
        sys.exit(1)
