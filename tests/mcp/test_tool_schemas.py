"""The list of tools stays within its number of tokens and describes each argument (I9)."""

import asyncio
import inspect
import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from mcp_types import Tool

from benchmarks.tool_tokens import shown_to_models, tokens_about
from paper_assets.interfaces import mcp
from paper_assets.interfaces.mcp.calls import Calls
from paper_assets.interfaces.mcp.server import build_server
from paper_assets.settings import load_settings
from paper_assets.text.secrets import Secrets

MOST_TOKENS = 150  # a tool, on average; `tokens_about` agrees with o200k within 1 % (benchmarks/tool_tokens.py)
MOST_OF_ONE = 440
# Arguments that need no description; those with named choices need none either.
SELF_EXPLANATORY = {"offset", "profile", "question", "query", "author"}


def tools(**environ: str) -> list[Tool]:
    server = build_server(load_settings(environ, Path.cwd()), environ, calls=Calls(secrets=Secrets({})))
    return asyncio.run(server.list_tools())


@pytest.mark.parametrize("rating", ["no", "yes"])
def test_the_list_of_tools_costs_at_most_a_hundred_and_fifty_tokens_a_tool(rating: str) -> None:
    costs = {tool.name: tokens_about(shown_to_models(tool)) for tool in tools(PAPER_ASSETS_RATING_OVER_MCP=rating)}
    assert ("rate_paper" in costs) is (rating == "yes")
    assert sum(costs.values()) <= MOST_TOKENS * len(costs), costs
    assert max(costs.values()) <= MOST_OF_ONE, costs


def arguments(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every argument of a schema, nested ones included, by its path."""
    for name, entry in schema.get("properties", {}).items():
        yield f"{path}.{name}", entry
        yield from arguments(entry, f"{path}.{name}")
    for inner in (schema.get("items"), *schema.get("anyOf", ())):
        if inner:
            yield from arguments(inner, path)


def test_every_argument_is_described_or_has_named_choices_or_says_it_by_its_name() -> None:
    known = dict(
        pair for tool in tools(PAPER_ASSETS_RATING_OVER_MCP="yes") for pair in arguments(tool.input_schema, tool.name)
    )
    assert {"retrieve_balanced.sides", "interpret_paper.query", "rate_paper.rating"} <= known.keys()
    unclear = [
        path
        for path, entry in known.items()
        if len(entry.get("description", "")) < 4
        and "enum" not in entry
        and path.rpartition(".")[2] not in SELF_EXPLANATORY
    ]
    assert unclear == []


def test_what_models_see_is_name_description_and_arguments() -> None:
    for tool in tools():
        shown = json.loads(shown_to_models(tool))
        assert set(shown) == {"name", "description", "inputSchema"}
        assert shown["description"] and "\n\n" not in shown["description"]


def test_every_public_method_of_the_tools_is_served() -> None:
    """Add a method or a class to a `*_tools.py`, and this names it unless a host sees it."""
    modules = [
        import_module(f"{mcp.__name__}.{each.name}")
        for each in pkgutil.iter_modules(mcp.__path__)
        if each.name.endswith("_tools")
    ]
    written = {
        name
        for module in modules
        for _, tool_set in inspect.getmembers(module, inspect.isclass)
        if tool_set.__module__ == module.__name__
        for name in vars(tool_set)
        if not name.startswith("_")
    }
    assert {tool.name for tool in tools(PAPER_ASSETS_RATING_OVER_MCP="yes")} == written


TEXT, OBJECT = {"type": "string"}, {"type": "object"}
ARGUMENTS: dict[str, dict[str, dict[str, Any]]] = {  # of the original document, each with what it states
    "interpret_paper": {"query": OBJECT, "llm_config": OBJECT},
    "search_papers": {
        "query": TEXT,
        "author": TEXT,
        "category": TEXT,
        "max_results": {"type": "integer", "default": 10},
    },
    "fetch_paper": {"arxiv_id": TEXT, "url": TEXT, "include_pdf_content": {"type": "boolean", "default": True}},
    "analyze_paper": {
        "paper": OBJECT,
        "llm_config": OBJECT,
        "analysis_type": {"type": "string", "enum": ["summary", "detailed", "comparison"], "default": "summary"},
    },
}


def test_the_four_tools_of_the_original_document_take_its_arguments() -> None:
    served = {tool.name: tool.input_schema for tool in tools()}
    for name, stated in ARGUMENTS.items():
        for argument, facts in stated.items():
            assert facts.items() <= served[name]["properties"][argument].items()
        assert set(served[name].get("required", ())) <= {"query", "paper"}
    described = str(served["interpret_paper"])
    words = ("title", "url", "pdf_url", "arxiv_id", "provider", "openai", "anthropic", "ollama", "model")
    assert [word for word in words if word not in described] == []
