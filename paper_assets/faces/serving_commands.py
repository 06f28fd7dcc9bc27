"""Commands that serve others: the MCP server."""

import os

from paper_assets.faces.arguments import read_settings


def mcp() -> None:
    """Serve assistants over MCP on standard input and output; the log goes to standard error."""
    from paper_assets.faces.mcp_server import serve

    serve(read_settings(), os.environ)
