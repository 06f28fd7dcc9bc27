"""What an HTTP answer means that is no chat answer: which status is worth another try, which is a fault of the set-up.

Every text of a server passes `tidy` before it reaches a message, since servers repeat keys.
"""

import json
import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from paper_assets.errors import LLMConfigError, LLMError
from paper_assets.models.llm_config import LLMConfig
from paper_assets.text.cleaning import one_line
from paper_assets.text.secrets import HIDDEN, hiding

if TYPE_CHECKING:
    import httpx2

_WORTH_ANOTHER_TRY = frozenset({408, 429, 500, 502, 503, 504, 529})
_ABOUT_THE_SCHEMA = re.compile(r"format|schema|structured|output_config", re.IGNORECASE)
_LIKE_A_KEY = re.compile(r"sk-[\w*.-]{6,}|bearer\s+\S+", re.IGNORECASE)


class TryFailed(Exception):
    """This exchange failed in a way that another may not. `wait`: seconds the server asks for, or None."""

    def __init__(self, message: str, *, wait: float | None = None, slow_down: bool = False) -> None:
        super().__init__(message)
        self.wait = wait
        self.slow_down = slow_down


class SchemaRefused(Exception):
    """The server does not take the schema; the same prompt without it may do."""


def judged(config: LLMConfig, response: "httpx2.Response", *, with_schema: bool) -> Mapping[str, Any]:
    """The JSON object of a good answer. Raises what the status and body of any other mean."""
    status, prefix = response.status_code, config.provider.upper()
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        body = None
    key_variable = f"{prefix}_API_KEY" if config.api_key else f"{prefix}_BASE_URL"
    message, code = said(body, config), _error_code(body)
    if 200 <= status < 300:
        if isinstance(body, dict):
            return body
        kind = response.headers.get("content-type", "no content type").split(";")[0]
        raise LLMError(
            f"{config.named} answered {status} with something that is no JSON object ({tidy(kind, config)}); "
            f"check {prefix}_BASE_URL"
        )
    if code == "insufficient_quota" or status == 402:
        raise LLMError(f"{config.named}: the quota is used up ({status}); look at the account's plan and billing")
    if status == 401:  # the text of a 401 may repeat parts of the key
        raise LLMConfigError(f"{config.named} refused the key (401); check {key_variable}")
    if status == 403:
        raise LLMConfigError(f"{config.named} denied access (403); check {key_variable} and {prefix}_MODEL{message}")
    if status == 404:
        mend = f"; try: ollama pull {config.model}" if config.provider == "ollama" else ""
        raise LLMConfigError(
            f"{config.named} knows no model {config.model!r}, or the address is wrong (404); "
            f"check {prefix}_MODEL and {prefix}_BASE_URL{mend}{message}"
        )
    if 300 <= status < 400:
        raise LLMConfigError(f"{config.named} sends us elsewhere ({status}); check {prefix}_BASE_URL")
    if status in _WORTH_ANOTHER_TRY:
        line = f"{status}{message or ' ' + _phrase(status)}"
        raise TryFailed(line, wait=_wait(response.headers), slow_down=status == 429)
    if with_schema and status in (400, 422) and _ABOUT_THE_SCHEMA.search(message):
        raise SchemaRefused(message)
    raise LLMError(f"{config.named} refused the request ({status}){message}")


def _error_code(body: object) -> str | None:
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return None
    codes = [value for value in (error.get("code"), error.get("type")) if isinstance(value, str)]
    return "insufficient_quota" if "insufficient_quota" in codes else next(iter(codes), None)


def said(body: object, config: LLMConfig) -> str:
    """`: what the server said`, tidied, or nothing."""
    error = body.get("error", body) if isinstance(body, dict) else None
    text = error.get("message") or error.get("detail") if isinstance(error, dict) else error
    return f": {tidy(text, config)}" if isinstance(text, str) and text.strip() else ""


def tidy(text: str, config: LLMConfig) -> str:
    """Foreign text fit for a message: one line, at most 200 characters, the key and what looks like one hidden."""
    text = _LIKE_A_KEY.sub(HIDDEN, hiding(config.api_key).hide(text))
    line = one_line(text)
    return line if len(line) <= 200 else line[:197] + "..."


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return "overloaded" if status == 529 else "server error"


def _wait(headers: Mapping[str, str]) -> float | None:
    """Seconds named by Retry-After (or retry-after-ms); a date there is taken against the answer's own Date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    try:
        apart = parsedate_to_datetime(headers["retry-after"]) - parsedate_to_datetime(headers["date"])
        return max(apart.total_seconds(), 0.0)
    except (KeyError, ValueError, TypeError):
        return None
