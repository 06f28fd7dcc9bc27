"""How a failed call is answered over MCP (SPEC I4), and what never leaves the server: keys and stack traces.

The error is JSON in the first text of the answer and nowhere else: structured content on an error makes widely used
clients throw.
"""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from paper_assets.errors import (
    LLMConfigError,
    LLMError,
    ModelUnavailable,
    NetworkError,
    PaperAssetsError,
    PdfFetchFailed,
    RateLimited,
    SourceError,
    StoreBusy,
    StoreError,
)
from paper_assets.text.cleaning import encodable

INTERNAL_ERROR = "INTERNAL_ERROR"  # the one code beside those of I4: nothing that the caller could mend

_LONGEST_MESSAGE = 1_000
_LONGEST_SHOWN = 60  # characters of a refused value that a message repeats
_SHORTEST_SECRET = 8  # shorter ones ("none", "ollama") are placeholders, and words of ordinary text
_NAMES_A_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|WEBHOOK")
_NAMES_AN_ADDRESS = re.compile(r"_(?:URL|PROXY)$")

logger = logging.getLogger(__name__)


class TimeLimit(NetworkError):
    """A call has not ended within the seconds that a call may take (I6)."""


class Secrets:
    """The values of the environment that must not be shown, and texts without them.

    Hidden are keys, tokens and passwords, and what an address holds as user, password and query.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        hidden = {value.strip() for name, value in environ.items() if _NAMES_A_SECRET.search(name.upper())}
        for name, value in environ.items():
            if _NAMES_AN_ADDRESS.search(name.upper()):
                hidden.update(_secrets_of(value.strip()))
        forms = {form for value in hidden if len(value) >= _SHORTEST_SECRET for form in _as_written(value)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def hide(self, text: str) -> str:
        return self._pattern.sub("***", text) if self._pattern else text

    def hide_within(self, value: Any) -> Any:
        """The JSON value with its texts and names hidden; what is no text stays, so that it is JSON still."""
        if isinstance(value, dict):
            return {self.hide(name): self.hide_within(entry) for name, entry in value.items()}
        if isinstance(value, list):
            return [self.hide_within(entry) for entry in value]
        return self.hide(value) if isinstance(value, str) else value


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
    message = secrets.hide(" ".join(message.split()))  # before it is cut: half a secret would not be known as one
    if len(message) > _LONGEST_MESSAGE:
        message = message[: _LONGEST_MESSAGE - 3] + "..."
    error_body = {"code": code, "message": message, "details": secrets.hide_within(details)}
    body = json.dumps({"error": error_body}, ensure_ascii=False)
    return CallToolResult(content=[TextContent(text=encodable(body))], is_error=True)


def _code(error: PaperAssetsError) -> str:
    if isinstance(error, StoreBusy):
        return RateLimited.code  # what an assistant does on it is right: wait and ask again
    return INTERNAL_ERROR if isinstance(error, StoreError | ModelUnavailable) else error.code


def _worth_another_try(error: BaseException) -> bool:
    lasting = isinstance(error, LLMConfigError | PdfFetchFailed)
    return isinstance(error, StoreBusy | SourceError | LLMError) and not lasting


def _secrets_of(address: str) -> set[str]:
    """User, password and the values of the query of an address, as they stand there and as they are meant."""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        meant = {value for _, value in parse_qsl(parts.query)}
    except ValueError:  # no address at all: nobody can ask it
        return set()
    userinfo = parts.netloc.rpartition("@")[0]
    of_query = (pair.partition("=")[2] for pair in parts.query.split("&"))
    written = {userinfo, *userinfo.split(":", 1), parts.query, *of_query}
    return meant | written | {unquote(text) for text in written}


def _as_written(secret: str) -> set[str]:
    """The secret as it is, and as JSON and Python write it in the lines of a log."""
    return {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}


def _faults(error: ValidationError) -> str:
    """The first three faults, each with its argument; of a refused value no more than a glimpse."""
    faults = []
    for fault in error.errors(include_url=False, include_context=False)[:3]:
        shown = repr(fault["input"])
        shown = shown if len(shown) <= _LONGEST_SHOWN else shown[: _LONGEST_SHOWN - 3] + "..."
        got = "" if fault["type"] == "missing" else f", got {shown}"
        message: Any = fault["msg"].removeprefix("Value error, ")
        faults.append(f"{'.'.join(map(str, fault['loc']))}: {message[0].lower()}{message[1:]}{got}")
    return "; ".join(faults)
