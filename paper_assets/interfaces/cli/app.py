"""The command line: which commands there are, and how they end. Thin: parse, call, print.

Adding a command: a function in a module of this folder, and a line in `COMMANDS`. A module is imported when one of its
commands is called, so that --help and bad options answer at once.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from paper_assets.errors import PaperAssetsError
from paper_assets.interfaces.cli.process import STOPPED, end_on_signals, refusal_of_the_disk
from paper_assets.stores.private import make_files_private

# No class of ours has a plugin: pydantic would look for one in every installed package, before its first class.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

# command: module of this folder, function (or group), and the first sentence of its help
COMMANDS: dict[str, tuple[str, str, str]] = {
    "demo": ("graph", "demo", "Import the bundled example, embed and rank it, and show the top papers and why."),
    "import": ("graph", "import_files", "Fill days from bulk files."),
    "fetch": ("graph", "fetch", "Fetch a day from arXiv and replace what is stored of it."),
    "harvest": (
        "graph",
        "harvest",
        "Bring in months of papers by arXiv's OAI-PMH; stopped at any moment, the same command goes on from there.",
    ),
    "run": ("run", "run", "Embed what is new and rank; what stands already is not computed again."),
    "status": (
        "status",
        "status",
        "Show what is stored for which days and profiles, what is out of date, and which profile cannot be read.",
    ),
    "reset": ("reset", "reset", "Remove papers, results and Dagster's history; profiles and settings stay."),
    "rank": ("ranking", "rank", "Rank papers given as JSON; the result is JSON too (G15)."),
    "explain": ("ranking", "explain", "Say why a paper stands where it stands for a profile, or why it was removed."),
    "changed": ("ranking", "changed", "Say who entered, left or moved in a profile's list, and why."),
    "rate": (
        "ratings",
        "rate",
        "Say that a paper is worth reading, for later or not for you, so that the profile's lists learn from it.",
    ),
    "ratings": ("ratings", "ratings", "Look at what you said of papers, take it with you, or erase it."),
    "library": ("exchange", "library", "Like the papers of your own library."),
    "cite": (
        "exchange",
        "cite",
        "Print a list for a reference manager: the papers that a profile's ranking shows, or those rated so.",
    ),
    "deliver": ("exchange", "deliver", "Send a profile's digest where its delivery.json says; each goes out once."),
    "evaluate": ("evaluation", "evaluate", "Measure relevance on a labelled set, or the lists that a reader gets."),
    "retrieve": ("retrieval", "retrieve", "Find the documents that answer a plan's question, as many for each side."),
    "find": ("find", "find", "Search the stored papers by meaning and words, with filters."),
    "search": ("interpreting", "search", "Search arXiv and Semantic Scholar for papers."),
    "fetch-paper": ("interpreting", "fetch_paper", "Show a paper and its text."),
    "related": ("interpreting", "related", "List the papers like a paper, those it cites, or those that cite it."),
    "analyze": ("interpreting", "analyze", "Let a language model read a paper given as JSON."),
    "interpret": ("interpreting", "interpret", "Fetch a paper and let a language model read it."),
    "desk": ("servers", "desk", "Open the desk in a browser: today's papers, evidence, rewrites, the profile."),
    "review": ("servers", "desk", "Open the desk in a browser: today's papers, evidence, rewrites, the profile."),
    "serve": (
        "servers",
        "serve",
        "Serve the desk and MCP over HTTP to the people of a lab, each with a token, and to each their own profiles.",
    ),
    "people": (
        "servers",
        "people",
        "Say who may come in over HTTP (`paper-assets serve`), and to which profiles.",
    ),
    "mcp": ("servers", "mcp", "Serve assistants over MCP on standard input and output."),
    "rewrite": ("rewriting", "rewrite", "Rewrite a stored paper's abstract for a level."),
    "archive": ("archive", "archive", "Look after the rewrites worth imitating."),
}


class LazyCommands(TyperGroup):
    """The commands of `COMMANDS`, each imported when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, function, _ = COMMANDS[cmd_name]
        target = getattr(import_module(f"paper_assets.interfaces.cli.{module}"), function)
        if isinstance(target, typer.Typer):
            return typer.main.get_group(target)
        alone = typer.Typer(**_PLAIN)
        alone.command(name=cmd_name)(target)
        return typer.main.get_command(alone)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, _, summary) in COMMANDS.items()])


_PLAIN: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}

app = typer.Typer(
    name="paper-assets",
    help="arXiv as a personal, explained, reproducible reading desk.",
    cls=LazyCommands,
    no_args_is_help=True,
    **_PLAIN,
)


@app.callback()
def _commands() -> None:
    """arXiv as a personal, explained, reproducible reading desk."""


def program() -> NoReturn:
    """Entry point of the process: the command, and an end at once when it is over or a signal asks for it.

    The interpreter's own way out would take half a second, in which libraries report what they have not tidied up.
    """
    end_on_signals()
    make_files_private()
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    with suppress(OSError):  # nobody listens any more
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(bool(code)))


def main() -> None:
    """A command in this process: what a user can cause ends in one line on stderr and exit code 1 (SPEC 8)."""
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
        line = refusal_of_the_disk(error)
        if line is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        sys.exit(1)
