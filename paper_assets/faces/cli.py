"""The command line: which commands there are, and how they end. Thin: parse, call, print.

Heavy imports stay inside the commands, so that --help and bad options answer at once.
"""

import os
import sys

import typer

from paper_assets.errors import PaperAssetsError
from paper_assets.faces import (
    archive_commands,
    graph_commands,
    interpreting_commands,
    ranking_commands,
    retrieval_commands,
    rewriting_commands,
    serving_commands,
)

app = typer.Typer(
    name="paper-assets",
    help="arXiv as a personal, explained, reproducible reading desk.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(graph_commands.demo)
app.command(name="import")(graph_commands.import_files)
app.command()(graph_commands.fetch)
app.command()(graph_commands.run)
app.command()(graph_commands.status)
app.command()(ranking_commands.rank)
app.command()(ranking_commands.explain)
app.command()(ranking_commands.changed)
app.command()(ranking_commands.evaluate)
app.command()(retrieval_commands.retrieve)
app.command()(interpreting_commands.search)
app.command()(interpreting_commands.fetch_paper)
app.command()(interpreting_commands.analyze)
app.command()(interpreting_commands.interpret)
app.command()(serving_commands.mcp)
app.command()(rewriting_commands.rewrite)
app.add_typer(archive_commands.archive)


def main() -> None:
    """Entry point: what a user can cause ends in one line on stderr and exit code 1 (SPEC 8)."""
    try:
        app()
    except PaperAssetsError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("stopped; nothing is half-written, the same command goes on where this one ended", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
