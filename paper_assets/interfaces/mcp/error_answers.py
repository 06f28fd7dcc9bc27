"""Answer a failed call over MCP (SPEC I4); keys, paths of this machine and stack traces never leave the server.

The error is JSON in the first text of the answer and nowhere else: structured content on an error makes widely used
clients throw.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from paper_assets.errors import (
    LLMConfigError,
    LLMError,
    LLMRateLimited,
    ModelUnavailable,
    NetworkError,
    PaperAssetsError,
    PdfFetchFailed,
    RateLimited,
    SourceError,
    StoreBusy,
    StoreError,
)
from paper_assets.settings import Settings
from paper_assets.small_files import first_fault
from paper_assets.text.cleaning import encodable, without_controls
from paper_assets.text.secrets import Secrets

INTERNAL_ERROR = "INTERNAL_ERROR"  # the only code in addition to those of I4: an error that the caller cannot fix

_LONGEST_MESSAGE = 1_000
# A path from the root on, not one within an address.
_ABSOLUTE_PATH = re.compile(r"""(?<![\w/:.$~…-])/(?:[^/\s"'<>|,;:()]+/)+([^/\s"'<>|,;:()]*)""")

logger = logging.getLogger(__name__)


class TimeLimit(NetworkError):
    """A call has not ended within the seconds that a call may take (I6)."""


class Outgoing(Secrets):
    """Clean outgoing text: remove secrets, paths of this machine and characters that control a terminal.

    A known folder is called by its variable; in an error any other absolute path is cut to its last part.
    """

    def __init__(self, environ: Mapping[str, str], folders: Mapping[str, Path]) -> None:
        super().__init__(environ)
        named = {f"{form}": name for name, folder in folders.items() for form in (folder, _resolved(folder))}
        self._named = {place: name for place, name in named.items() if place.count("/") > 1 or len(place) > 4}
        longest_first = sorted(self._named, key=len, reverse=True)
        one_of = "|".join(map(re.escape, longest_first))
        self._places = re.compile(rf"(?<![\w.-])(?:{one_of})(?![\w-])") if one_of else None

    def hide(self, text: str) -> str:
        text = super().hide(without_controls(text))
        return self._places.sub(lambda match: self._named[match[0]], text) if self._places else text


def folders_of(settings: Settings) -> dict[str, Path]:
    """Return the folders that messages name, by the names that callers see; the first of two names counts."""
    return {
        "$PDF_DIR": settings.pdf_dir,
        "$OUTPUT_DIR": settings.output_dir,
        "$PAPER_ASSETS_HOME": settings.home,
        "$PAPER_ASSETS_PROFILES": settings.profiles_dir,
        "$PAPER_ASSETS_REQUEST_GATE": settings.request_gate,
        "$PYTHON": Path(sys.prefix),
    }


def _resolved(folder: Path) -> Path:
    try:
        return folder.resolve()
    except (OSError, RuntimeError):
        return folder


class SafeFormatter(logging.Formatter):
    """One line a record, the stack trace of a fault below it, and no secret in either."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return self._secrets.hide(super().format(record))


def refusal(error: BaseException, *, tool: str, secrets: Secrets) -> CallToolResult:
    """Return the answer to a failed call. An error of another kind than ours is a bug: its trace is logged."""
    if isinstance(error, PaperAssetsError):
        code, message = _code(error), str(error)
    elif isinstance(error, ValidationError):
        code, message = "INVALID_INPUT", f"{tool}: {first_fault(error, most=3)}"
    else:
        logger.error("%s failed unexpectedly", tool, exc_info=error)
        code = INTERNAL_ERROR
        message = f"{tool} failed unexpectedly ({type(error).__name__}); the log of the server says where"
    details: dict[str, Any] = {"tool": tool, "kind": type(error).__name__, **getattr(error, "details", {})}
    details["worth_another_try"] = _worth_another_try(error)
    if isinstance(error, LLMRateLimited) and error.retry_after is not None:
        details["retry_after_seconds"] = error.retry_after
    message = secrets.hide(" ".join(message.split()))  # before it is shortened: half a secret would not be recognised
    message = _ABSOLUTE_PATH.sub(r"…/\1", message)
    if len(message) > _LONGEST_MESSAGE:
        message = message[: _LONGEST_MESSAGE - 3] + "..."
    error_body = {"code": code, "message": message, "details": secrets.hide_within(details)}
    failed = {"success": False} if tool == "rank_and_filter_papers" else {}  # as its answers have it
    body = json.dumps({**failed, "error": error_body}, ensure_ascii=False)
    return CallToolResult(content=[TextContent(text=encodable(body))], is_error=True)


def _code(error: PaperAssetsError) -> str:
    if isinstance(error, StoreBusy):
        return RateLimited.code  # the code makes an assistant wait and ask again
    return INTERNAL_ERROR if isinstance(error, StoreError | ModelUnavailable) else error.code


def _worth_another_try(error: BaseException) -> bool:
    lasting = isinstance(error, LLMConfigError | PdfFetchFailed)
    return isinstance(error, StoreBusy | SourceError | LLMError) and not lasting
