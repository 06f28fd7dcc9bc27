"""Commands that serve others: the MCP server, and the desk as a page."""

import os
from typing import Annotated

import typer

from paper_assets.interfaces.cli.arguments import read_settings
from paper_assets.interfaces.cli.terminal import say
from paper_assets.interfaces.mcp.server import serve


def mcp() -> None:
    """Serve assistants over MCP on standard input and output. The log goes to standard error."""
    serve(read_settings(), os.environ)


def desk(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")] = 8787,
) -> None:
    """Open the desk in a browser: today's papers, evidence, rewrites, the profile. Only this machine can reach it."""
    from paper_assets.interfaces.page.server import serve as serve_page  # not for the MCP server's start

    serve_page(read_settings(), os.environ, port=port, say=say)
