"""Perform one HTTP exchange with each kind of language model, and classify the answer.

No retry, no sleep, no cache: those are in `llm.py`. The three protocols differ in the request and in the shape of a
successful answer; every other answer is classified in one place: which status is worth a retry, which is a fault of the
configuration. Every text of a server passes `tidy` before it reaches a message, since servers repeat keys.
"""

import json
import logging
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from paper_assets.errors import LLMConfigError, LLMError
from paper_assets.models.llm_config import LLMConfig, estimated_tokens
from paper_assets.retrying import limited, retry_after
from paper_assets.text.cleaning import one_line
from paper_assets.text.secrets import HIDDEN, hiding

if TYPE_CHECKING:
    import ssl

    import httpx2

_WORTH_ANOTHER_TRY = frozenset({408, 429, 500, 502, 503, 504, 529})
_ABOUT_THE_SCHEMA = re.compile(r"format|schema|structured|output_config", re.IGNORECASE)
_UNKNOWN_FORM = re.compile(r"\bresponse_format\b.*\bjson_object\b", re.DOTALL)  # llama-cpp-python, with status 500
_LIKE_A_KEY = re.compile(r"sk-[\w*.-]{6,}|bearer\s+\S+", re.IGNORECASE)


class TryFailed(Exception):
    """Report a failed exchange that may be retried. `wait`: seconds the server asks for, or None. `late`: no answer in
    time. `variable`: the environment variable that may be wrong.
    """

    def __init__(
        self,
        message: str,
        *,
        wait: float | None = None,
        slow_down: bool = False,
        late: bool = False,
        variable: str | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after = wait
        self.slow_down = slow_down
        self.late = late
        self.variable = variable


class SchemaRefused(Exception):
    """Report that the server refuses the schema; the same prompt without it may be accepted.

    `takes_objects`: the server names `json_object` as a form that it accepts.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.takes_objects = "json_object" in message


def answer_json(config: LLMConfig, response: "httpx2.Response", *, with_schema: bool) -> Mapping[str, Any]:
    """Return the JSON object of a successful answer. Raises the error that any other status and body mean."""
    status, prefix = response.status_code, config.provider.upper()
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        body = None
    key_variable = f"{prefix}_API_KEY" if config.api_key else f"{prefix}_BASE_URL"
    message, code = server_message(body, config), _error_code(body)
    if 200 <= status < 300:
        if isinstance(body, dict):
            return body
        kind = response.headers.get("content-type", "no content type").split(";")[0]
        raise LLMError(
            f"{config.named} answered {status} with something other than a JSON object ({tidy(kind, config)}); "
            f"check {prefix}_BASE_URL",
            variable=f"{prefix}_BASE_URL",
        )
    if code == "insufficient_quota" or status == 402:
        raise LLMError(f"{config.named}: the quota is used up ({status}); look at the account's plan and billing")
    if status == 401:  # the text of a 401 may repeat parts of the key
        raise LLMConfigError(f"{config.named} refused the key (401); check {key_variable}", variable=key_variable)
    if status == 403:
        line = f"{config.named} denied access (403); check {key_variable} and {prefix}_MODEL{message}"
        raise LLMConfigError(line, variable=key_variable)
    if status == 404:
        remedy = f"; try: ollama pull {config.model}" if config.provider == "ollama" else ""
        raise LLMConfigError(
            f"{config.named} knows no model {config.model!r}, or the address is wrong (404); "
            f"check {prefix}_MODEL and {prefix}_BASE_URL{remedy}{message}",
            variable=f"{prefix}_MODEL",
        )
    if 300 <= status < 400:
        line = f"{config.named} sends us elsewhere ({status}); check {prefix}_BASE_URL"
        raise LLMConfigError(line, variable=f"{prefix}_BASE_URL")
    if with_schema and status == 500 and _UNKNOWN_FORM.search(message):
        raise SchemaRefused(message)
    if status in _WORTH_ANOTHER_TRY:
        line = f"{status}{message or ' ' + _phrase(status)}"
        raise TryFailed(line, wait=retry_after(response.headers), slow_down=status == 429)
    if with_schema and status in (400, 422) and _ABOUT_THE_SCHEMA.search(message):
        raise SchemaRefused(message)
    raise LLMError(f"{config.named} refused the request ({status}){message}")


def _error_code(body: object) -> str | None:
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return None
    codes = [value for value in (error.get("code"), error.get("type")) if isinstance(value, str)]
    return "insufficient_quota" if "insufficient_quota" in codes else next(iter(codes), None)


def server_message(body: object, config: LLMConfig) -> str:
    """Return `: ` and the message of the server, made safe; empty if there is none."""
    error = body.get("error", body) if isinstance(body, dict) else None
    text = error.get("message") or error.get("detail") if isinstance(error, dict) else error
    return f": {tidy(text, config)}" if isinstance(text, str) and text.strip() else ""


def tidy(text: str, config: LLMConfig) -> str:
    """Make foreign text safe for a message: one line, at most 200 characters, with keys hidden."""
    text = _LIKE_A_KEY.sub(HIDDEN, hiding(config.api_key).hide(text))
    line = one_line(text)
    return line if len(line) <= 200 else line[:197] + "..."


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return "overloaded" if status == 529 else "server error"


_MOST_BYTES = 5_000_000  # bytes of one HTTP answer; the rest is not read
Ended = Literal["complete", "cut off", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Hold what is sent: instructions, turns (user, assistant, user ...), and the JSON schema of the answer.

    Without a schema the instructions alone must describe the answer. `as_object`: in the older form of some servers
    that follow OpenAI's protocol, a JSON object with a schema beside it.
    """

    system: str
    turns: tuple[str, ...]
    schema: Mapping[str, Any] | None
    as_object: bool = False
    most_output: int = 8_192  # tokens of the answer

    @property
    def tokens(self) -> int:
        """Return an upper estimate of its length, see `estimated_tokens`."""
        return estimated_tokens(self.system + "".join(self.turns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's text and why it ended; tokens as the server counted them, or estimated."""

    text: str
    ended: Ended
    input_tokens: int
    output_tokens: int


def load(config: LLMConfig) -> None:
    """Import the client of the provider's protocol: seconds at first, which must not count against a timeout."""
    resources = {"openai": "openai.resources.chat", "anthropic": "anthropic.resources.messages", "ollama": "httpx2"}
    import_module(resources[config.provider])
    for name in ("openai", "anthropic", "httpcore2"):  # at DEBUG they log headers, and a server may repeat the key
        logging.getLogger(name).setLevel(logging.INFO)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # at INFO it logs whole URLs, and one may contain a token


def exchange(config: LLMConfig, prompt: Prompt, *, timeout: float) -> Reply:
    """Send the prompt once; the whole answer must arrive within `timeout` seconds.

    Raises TryFailed, SchemaRefused, LLMConfigError (key, model, URL) or LLMError (anything final).
    """
    import httpx2

    load(config)
    address = f"{config.provider.upper()}_BASE_URL"
    try:
        answer = limited(timeout, partial(_answer, config, prompt, timeout=timeout))
    except (httpx2.TimeoutException, TimeoutError):
        raise TryFailed(f"no answer within {timeout:.3g} s", late=True) from None
    except httpx2.HTTPError as error:
        line = f"cannot be reached: {tidy(str(error), config) or type(error).__name__}"
        raise TryFailed(line, variable=address) from None
    except httpx2.InvalidURL:
        raise LLMConfigError(f"{address} is not a valid URL", variable=address) from None
    read = {"openai": _read_openai, "anthropic": _read_anthropic, "ollama": _read_ollama}[config.provider]
    try:
        text, ended, input_tokens, output_tokens = read(answer)
        text = hiding(config.api_key).without_keys(text)  # answers are stored and displayed, and a server may repeat it
        return Reply(
            text=text,
            ended=ended,
            input_tokens=_count(input_tokens, prompt.tokens),
            output_tokens=_count(output_tokens, estimated_tokens(text)),
        )
    except (KeyError, IndexError, TypeError, AttributeError):
        raise LLMError(
            f"{config.named} answered JSON that is not a chat answer{server_message(answer, config)}"
        ) from None


def _answer(config: LLMConfig, prompt: Prompt, *, timeout: float) -> Mapping[str, Any]:
    """Send the prompt and return the JSON object of the answer; see `answer_json` for what it raises."""
    import httpx2

    send = {"openai": _send_openai, "anthropic": _send_anthropic, "ollama": _send_ollama}[config.provider]
    ends = time.monotonic() + timeout

    def bound(response: "httpx2.Response") -> None:
        packed = response.headers.pop("content-encoding", "identity").strip().lower()
        response.stream = _bounded(response.stream, ends, packed)

    # Redirects are not followed: they could carry the key to another host.
    with httpx2.Client(
        verify=_tls(),
        timeout=timeout,
        event_hooks={"response": [bound]},
        follow_redirects=False,
        headers={"accept-encoding": "gzip"},  # what `_bounded` unpacks
    ) as http:
        response = send(config, prompt, http=http, timeout=timeout)
        if len(response.content) >= _MOST_BYTES:
            raise LLMError(
                f"{config.named} answered more than {_MOST_BYTES // 1_000_000} MB, which is not a chat answer"
            )
        return answer_json(config, response, with_schema=prompt.schema is not None)


@cache
def _tls() -> "ssl.SSLContext":
    """Cache the TLS context: reading the machine's certificates takes 20 to 90 ms."""
    import httpx2

    return httpx2.create_ssl_context()


def _bounded(stream: Any, ends: float, packed: str) -> "httpx2.SyncByteStream":
    """Read an answer's bytes, unpacked, up to a time and a size.

    The client's timeout restarts with every byte, and its unpacking turns one packed megabyte into a gigabyte.
    """
    import httpx2

    class Bounded(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            if packed not in ("identity", "", "gzip", "x-gzip", "deflate"):
                raise httpx2.DecodingError(f"the answer is packed as {packed[:40]!r}, which was not requested")
            unpacker = None if packed in ("identity", "") else zlib.decompressobj(wbits=47)  # gzip or zlib
            left = _MOST_BYTES
            for chunk in stream:
                if time.monotonic() > ends:
                    raise httpx2.ReadTimeout("the answer took too long")
                try:
                    part = unpacker.decompress(chunk, left) if unpacker else chunk[:left]
                except zlib.error as fault:
                    raise httpx2.DecodingError(f"the answer cannot be unpacked: {fault}") from None
                yield part
                left -= len(part)
                if left <= 0:
                    return

        def close(self) -> None:
            stream.close()

    return Bounded()


def _messages(prompt: Prompt) -> list[Any]:
    return [{"role": "assistant" if place % 2 else "user", "content": turn} for place, turn in enumerate(prompt.turns)]


def _send_openai(config: LLMConfig, prompt: Prompt, *, http: "httpx2.Client", timeout: float) -> "httpx2.Response":
    import openai

    extra: dict[str, Any] = {}
    if prompt.schema is not None and prompt.as_object:
        extra["response_format"] = {"type": "json_object", "schema": prompt.schema}
    elif prompt.schema is not None:
        json_schema = {"name": "answer", "schema": prompt.schema, "strict": True}
        extra["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    # OpenAI's newer models refuse `max_tokens`; many compatible servers know nothing else.
    extra["max_completion_tokens" if _is_openai(config) else "max_tokens"] = prompt.most_output
    client = openai.OpenAI(
        api_key=config.api_key, base_url=config.base_url, max_retries=0, timeout=timeout, http_client=http
    )
    try:
        return client.chat.completions.with_raw_response.create(
            model=config.model, messages=[{"role": "system", "content": prompt.system}, *_messages(prompt)], **extra
        ).http_response
    except openai.APIStatusError as error:
        return error.response
    except openai.APIConnectionError as error:
        raise _cause(error) from None


def _send_anthropic(config: LLMConfig, prompt: Prompt, *, http: "httpx2.Client", timeout: float) -> "httpx2.Response":
    import anthropic

    extra: dict[str, Any] = {}
    if prompt.schema is not None:
        extra["output_config"] = {"format": {"type": "json_schema", "schema": prompt.schema}}
    client = anthropic.Anthropic(
        api_key=config.api_key, base_url=config.base_url, max_retries=0, timeout=timeout, http_client=http
    )
    try:
        return client.messages.with_raw_response.create(
            model=config.model,
            system=prompt.system,
            messages=_messages(prompt),
            max_tokens=prompt.most_output,
            **extra,
        ).http_response
    except anthropic.APIStatusError as error:
        return error.response
    except anthropic.APIConnectionError as error:
        raise _cause(error) from None


def _send_ollama(config: LLMConfig, prompt: Prompt, *, http: "httpx2.Client", timeout: float) -> "httpx2.Response":
    body = {
        "model": config.model,
        "messages": [{"role": "system", "content": prompt.system}, *_messages(prompt)],
        "stream": False,
        "options": {"num_ctx": config.num_ctx, "num_predict": prompt.most_output},
    }
    if prompt.schema is not None:
        body["format"] = prompt.schema
    return http.post(f"{config.base_url}/api/chat", json=body)


def _is_openai(config: LLMConfig) -> bool:
    return (urlsplit(config.base_url).hostname or "").endswith("openai.com")


_SHORT_PROMPT = 3_000  # tokens that every context holds
_LOOKING = 3.0  # seconds for reading the size of a server's context


def prompt_room(config: LLMConfig, tokens: int) -> int:
    """Return the most tokens of a prompt: half of the context, where it is configured or the server states it."""
    context = config.num_ctx
    if context is None and tokens > _SHORT_PROMPT and config.provider == "openai" and not _is_openai(config):
        context = server_context(config.base_url, config.api_key or "", config.model)
    return min(config.most_prompt_tokens, context // 2 if context else config.most_prompt_tokens)


@cache
def server_context(base_url: str, api_key: str, model: str) -> int | None:
    """Return the size of the context that a compatible server states in its list of models; None if it does not."""
    import httpx2

    try:
        answer = httpx2.get(
            f"{base_url}/models", headers={"Authorization": f"Bearer {api_key}"}, timeout=_LOOKING, verify=_tls()
        )
        entries = answer.json()["data"] if len(answer.content) < _MOST_BYTES else []
        entry = next((each for each in entries if each.get("id") == model), entries[0] if len(entries) == 1 else {})
        sizes = [entry.get("max_model_len"), entry.get("context_length"), (entry.get("meta") or {}).get("n_ctx")]
    except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return next((size for size in sizes if isinstance(size, int) and size > 0), None)


def _cause(error: Exception) -> Exception:
    import httpx2

    cause = error.__cause__
    return cause if isinstance(cause, httpx2.HTTPError) else httpx2.NetworkError(str(cause or error))


def _read_openai(answer: Mapping[str, Any]) -> tuple[str, Ended, Any, Any]:
    choice, usage = answer["choices"][0], answer.get("usage") or {}
    message = choice["message"]
    reason = choice.get("finish_reason")
    refused = bool(message.get("refusal")) or reason == "content_filter"
    ended: Ended = "refused" if refused else "cut off" if reason == "length" else "complete"
    text = message.get("refusal") or message.get("content") or ""
    if not isinstance(text, str):  # some compatible servers send parts
        text = "".join(part.get("text") or "" for part in text)
    return text, ended, usage.get("prompt_tokens"), usage.get("completion_tokens")


def _read_anthropic(answer: Mapping[str, Any]) -> tuple[str, Ended, Any, Any]:
    usage, reason = answer.get("usage") or {}, answer.get("stop_reason")
    text = "".join(block["text"] for block in answer["content"] if block["type"] == "text")
    ended: Ended = "complete"
    if reason == "refusal":
        ended = "refused"
    elif reason in ("max_tokens", "model_context_window_exceeded"):
        ended = "cut off"
    sent = [usage.get(f"{kind}input_tokens") for kind in ("", "cache_creation_", "cache_read_")]
    return text, ended, sum(part or 0 for part in sent) or None, usage.get("output_tokens")


def _read_ollama(answer: Mapping[str, Any]) -> tuple[str, Ended, Any, Any]:
    cut = answer.get("done_reason") == "length" or answer.get("done") is False
    # Ollama omits prompt_eval_count when the prompt was still in its cache.
    return (
        answer["message"]["content"],
        "cut off" if cut else "complete",
        answer.get("prompt_eval_count"),
        answer.get("eval_count"),
    )


def _count(value: object, guess: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else guess
