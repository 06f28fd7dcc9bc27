"""What the list of tools costs a host in each conversation, tool by tool (SPEC I9: at most 150 tokens a tool).

    python -m benchmarks.tool_tokens

Count what hosts put before their models: name, description and the schema of the arguments, as JSON. Tokens are
characters by four, and those of OpenAI's o200k where `bpe-openai` is installed (not a dependency of ours). The
last column is the whole entry of tools/list in characters by four, with title, hints and the outline of the answer.
Exits non-zero above 150 tokens a tool, by o200k where it is there.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

from paper_assets.interfaces.mcp.calls import Calls
from paper_assets.interfaces.mcp.server import build_server, shown_to_models, tokens_about
from paper_assets.settings import load_settings
from paper_assets.text.secrets import Secrets

TARGET = 150


def real_tokenizer() -> Callable[[str], int] | None:
    try:
        import bpe_openai  # type: ignore[import-not-found]
    except ImportError:
        return None
    encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text))


def main() -> None:
    settings = load_settings({"PAPER_ASSETS_RATING_OVER_MCP": "yes"}, Path.cwd())
    tools = asyncio.run(build_server(settings, {}, calls=Calls(secrets=Secrets({}))).list_tools())
    real = real_tokenizer()
    print(f"{'tool':<26}{'characters / 4':>16}{'o200k':>8}{'whole entry':>14}")
    rows = []
    for tool in tools:
        shown = shown_to_models(tool)
        whole = json.dumps(tool.model_dump(mode="json", by_alias=True, exclude_none=True), ensure_ascii=False)
        rows.append((tool.name, tokens_about(shown), real(shown) if real else 0, tokens_about(whole)))
    rows.sort(key=lambda row: -row[1])
    count = len(rows)
    mean = (f"mean of {count}", *(round(sum(row[place] for row in rows) / count) for place in (1, 2, 3)))
    for name, about, counted, whole_entry in (*rows, mean):
        print(f"{name:<26}{about:>16}{counted if real else '-':>8}{whole_entry:>14}")
    if max(mean[1:3]) > TARGET:
        sys.exit(f"more than {TARGET} tokens a tool")


if __name__ == "__main__":
    main()
