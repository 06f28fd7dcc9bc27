"""Answer lines that are not valid JSON, or JSON nested too deep, with the error of the protocol.

The SDK drops them, and the caller would wait for ever. A line of which no id can be read stays without an answer.
"""

import json
import re
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

_LONGEST_ID = 200
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_ID_AFTER = re.compile(r'\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")')


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve on standard input and output until the client leaves."""
    async with stdio_server() as (heard, said):
        low = server._lowlevel_server
        await low.run(_Heard(heard, said), said, low.create_initialization_options())


class _Heard:
    """The stream of what was heard, without the lines that cannot be read, which it answers."""

    def __init__(self, heard: Any, said: Any) -> None:
        self._heard = heard
        self._said = said

    def __getattr__(self, name: str) -> Any:  # last_context, close, clone …
        return getattr(self._heard, name)

    def __aiter__(self) -> "_Heard":
        return self

    async def __anext__(self) -> Any:
        while True:
            item = await self._heard.__anext__()
            answer = answer_to_unreadable(item) if isinstance(item, ValidationError) else None
            if answer is None:
                return item
            await self._said.send(SessionMessage(answer))

    async def __aenter__(self) -> "_Heard":
        return self

    async def __aexit__(self, *fault: object) -> None:
        await self._heard.aclose()


def answer_to_unreadable(fault: ValidationError) -> JSONRPCError | None:
    """Return the protocol's error for a line that is not valid JSON; None if it is, or has no id to answer to."""
    [first, *_] = fault.errors(include_url=False, include_context=False)
    if first["type"] != "json_invalid":
        return None
    asked = id_of(str(first["input"]))
    if asked is None:
        return None
    deep = "recursion" in first["msg"]
    message = "the request is nested too deep; send plain values" if deep else "the request is not JSON"
    return JSONRPCError(jsonrpc="2.0", id=asked, error=ErrorData(code=PARSE_ERROR, message=message))


def id_of(line: str) -> int | str | None:
    """The request's id in a line that no parser takes; not one of an object within it."""
    depth = 0
    for token in _TOKEN.finditer(line):
        sign = token[0]
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif depth == 1 and sign == '"id"' and (found := _ID_AFTER.match(line, token.end())):
            try:
                value = json.loads(found[1]) if len(found[1]) <= _LONGEST_ID else None
            except ValueError:
                return None
            return value if isinstance(value, int | str) else None
    return None
