"""Shorten the list of tools that a host shows to its model: each conversation pays for every word (SPEC I9).

The SDK's schemas name each argument twice and say of each optional one that it may be null; what the server accepts is
checked by the types of the functions, not by these schemas, so leaving that out changes nothing but the length.
"""

import json
from collections.abc import Mapping
from inspect import cleandoc
from typing import Any

from mcp_types import Tool

# The name again, what has been written out, and bounds that no honest caller reaches.
_UNSAID = frozenset(
    ("title", "$defs", "maxLength", "maxItems", "minLength", "minimum", "maximum", "additionalProperties")
)
_NOTHING: tuple[object, ...] = (None, False, 0)  # as a default: what is left out is that anyhow, as a first choice is
_MODELS_SEE = ("name", "description", "inputSchema")
_CHARACTERS_PER_TOKEN = 4  # of JSON and English; the tokenizers of large models find about as many


def compact_tool(tool: Tool) -> Tool:
    """The tool with its description in whole paragraphs and its schemas without repetition."""
    return tool.model_copy(
        update={
            "description": _paragraphs(tool.description or ""),
            "input_schema": compact_schema(tool.input_schema),
            "output_schema": _outline(compact_schema(tool.output_schema)) if tool.output_schema else None,
        }
    )


def compact_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema that admits what the given one does, null for an optional argument aside; references written out.

    Schemas that refer to themselves are not expected.
    """
    return _compact(schema, schema.get("$defs", {}))


def shown_to_models(tool: Tool) -> str:
    """The part of a tool that hosts put before their models: not its title, hints and the schema of its answers."""
    told = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps({name: told[name] for name in _MODELS_SEE})


def tokens_about(text: str) -> int:
    """How many tokens a text is, about, without a tokenizer."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def _compact(schema: Any, defined: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_compact(entry, defined) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        found = defined[schema["$ref"].rpartition("/")[2]]
        return _compact({**found, **{name: value for name, value in schema.items() if name != "$ref"}}, defined)
    optional = [entry for entry in schema.get("anyOf", ()) if entry != {"type": "null"}]
    if len(optional) == 1 and "default" in schema:  # may be left out, which is how a model says null
        schema = {**optional[0], **{name: value for name, value in schema.items() if name != "anyOf"}}
        return _compact(schema, defined)
    kept = {}
    for name, value in schema.items():
        if name in _UNSAID or (name == "default" and (value in _NOTHING or value == schema.get("enum", [None])[0])):
            continue
        if name == "properties":
            kept[name] = {argument: _compact(entry, defined) for argument, entry in value.items()}
        else:
            kept[name] = _compact(value, defined)
    return kept


def _outline(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Of the schema of an answer the names and their meaning: what they hold is seen in the answer itself."""
    described = {
        name: {"description": entry["description"]} if "description" in entry else {}
        for name, entry in schema["properties"].items()
    }
    return {"type": "object", "properties": described}


def _paragraphs(text: str) -> str:
    return "\n".join(" ".join(part.split()) for part in cleandoc(text).split("\n\n"))
