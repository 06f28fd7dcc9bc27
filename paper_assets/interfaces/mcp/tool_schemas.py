"""The list of tools as a host shows it to its model: every word of it is paid for in each conversation (SPEC I9).

The SDK's schemas name each argument twice and say of each optional one that it may be null; what the server accepts is
checked by the types of the functions, not by these schemas, so leaving that out changes nothing but the length.
"""

from collections.abc import Mapping
from inspect import cleandoc
from typing import Any

from mcp_types import Tool

# The name again, what has been written out, and bounds that nobody reaches who means well.
_UNSAID = frozenset(("title", "$defs", "maxLength", "maxItems"))


def compact_tool(tool: Tool) -> Tool:
    """The tool with its description in whole paragraphs and its schemas without repetition."""
    return tool.model_copy(
        update={
            "description": _paragraphs(tool.description or ""),
            "input_schema": compact_schema(tool.input_schema),
            "output_schema": compact_schema(tool.output_schema) if tool.output_schema else tool.output_schema,
        }
    )


def compact_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema that admits what the given one does, null for an optional argument aside; references written out.

    Schemas that refer to themselves are not expected.
    """
    return _compact(schema, schema.get("$defs", {}))


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
        if name in _UNSAID or (name, value) in (("default", None), ("additionalProperties", True)):
            continue
        if name == "properties":
            kept[name] = {argument: _compact(entry, defined) for argument, entry in value.items()}
        else:
            kept[name] = _compact(value, defined)
    return kept


def _paragraphs(text: str) -> str:
    return "\n".join(" ".join(part.split()) for part in cleandoc(text).split("\n\n"))
