"""How a failed call is told over MCP (SPEC I4), and what never leaves the server: keys and stack traces.

The error is JSON in the first text of the answer and nowhere else: structured content on an error makes widely used
clients throw.
"""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from paper_assets.errors import (
    LLMConfigError,
    LLMError,
    ModelUnavailable,
    NetworkError,
    PaperAssetsError,
    RateLimited,
    StoreBusy,
    StoreError,
)

INTERNAL_ERROR = "INTERNAL_ERROR"  # the one code beside those of I4: nothing that the caller could mend

_LONGEST_MESSAGE = 1_000
_LONGEST_SHOWN = 60  # characters of a refused value that a message repeats
_SHORTEST_SECRET = 8  # shorter ones ("none", "ollama") are placeholders, and words of ordinary text
_NAMES_A_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL")

logger = logging.getLogger(__name__)


class TimeLimit(NetworkError):
    """A call has not ended within the seconds that a call may take (I6)."""


class Secrets:
    """The values of the environment that must not be shown, and the text without them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        hidden = {value.strip() for name, value in environ.items() if _NAMES_A_SECRET.search(name.upper())}
        longest_first = sorted((value for value in hidden if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def hide(self, text: str) -> str:
        return self._pattern.sub("***", text) if self._pattern else text


class SafeFormatter(logging.Formatter):
    """One line a record, the stack trace of a fault below it, and no secret in either."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return self._secrets.hide(super().format(record))


def refusal(error: BaseException, *, tool: str, secrets: Secrets) -> CallToolResult:
    """The answer to a call that failed. What is no error of ours is a fault of the program: its trace is logged."""
    if isinstance(error, PaperAssetsError):
        code, message = _code(error), str(error)
    elif isinstance(error, ValidationError):
        code, message = "INVALID_INPUT", f"{tool}: {_faults(error)}"
    else:
        logger.error("%s failed unexpectedly", tool, exc_info=error)
        code = INTERNAL_ERROR
        message = f"{tool} failed unexpectedly ({type(error).__name__}); the log of the server says where"
    details = {"tool": tool, "kind": type(error).__name__, "worth_another_try": _worth_another_try(error)}
    message = " ".join(message.split())
    if len(message) > _LONGEST_MESSAGE:
        message = message[: _LONGEST_MESSAGE - 3] + "..."
    body = json.dumps({"error": {"code": code, "message": message, "details": details}}, ensure_ascii=False)
    return CallToolResult(content=[TextContent(text=sendable(secrets.hide(body)))], is_error=True)


def sendable(text: str) -> str:
    """Half a surrogate pair, as broken files hold, would break the pipe to the client."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _code(error: PaperAssetsError) -> str:
    if isinstance(error, StoreBusy):
        return RateLimited.code  # what an assistant does on it is right: wait and ask again
    return INTERNAL_ERROR if isinstance(error, StoreError | ModelUnavailable) else error.code


def _worth_another_try(error: BaseException) -> bool:
    lasting = isinstance(error, LLMConfigError)
    return isinstance(error, StoreBusy | NetworkError | RateLimited | LLMError) and not lasting


def _faults(error: ValidationError) -> str:
    """The first three faults, each with its argument; of a refused value no more than a glimpse."""
    told = []
    for fault in error.errors(include_url=False, include_context=False)[:3]:
        shown = repr(fault["input"])
        shown = shown if len(shown) <= _LONGEST_SHOWN else shown[: _LONGEST_SHOWN - 3] + "..."
        got = "" if fault["type"] == "missing" else f", got {shown}"
        message: Any = fault["msg"].removeprefix("Value error, ")
        told.append(f"{'.'.join(map(str, fault['loc']))}: {message[0].lower()}{message[1:]}{got}")
    return "; ".join(told)
