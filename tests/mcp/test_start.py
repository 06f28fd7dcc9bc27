"""What the server loads before a tool needs it."""

import subprocess
import sys

HEAVY = (
    "torch",
    "chromadb",
    "dagster",
    "duckdb",
    "pyarrow",
    "numpy",
    "openvino",
    "sentence_transformers",
    "openai",
    "anthropic",
    "pypdfium2",
    "requests",
    "arxiv",
)

_LIST_TOOLS = """
import asyncio, os, sys
from pathlib import Path
from paper_assets.interfaces.cli import app as cli
from paper_assets.interfaces.mcp.calls import Calls
from paper_assets.text.secrets import Secrets
from paper_assets.interfaces.mcp.server import build_server
from paper_assets.settings import load_settings
server = build_server(load_settings({}, Path.cwd()), {}, calls=Calls(secrets=Secrets({})))
assert asyncio.run(server.list_tools())
print([name for name in sys.argv[1:] if name in sys.modules])
"""


def test_the_list_of_tools_is_returned_without_stores_models_graph_or_clients() -> None:
    done = subprocess.run([sys.executable, "-c", _LIST_TOOLS, *HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
