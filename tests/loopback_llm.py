"""Run a language model on 127.0.0.1: a real HTTP server with scripted answers for all three protocols.

    with loopback_llm(says({"score": 0.5}), fault(503), hang()) as server:
        config = server.config("anthropic")
        ...
        assert len(server.requests) == 3

Each request takes the next step of the script; a script that is a single function answers every request
(`lambda request: says(...)`). What a client sent is kept in `server.requests`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from paper_assets.models.llm_config import LLMConfig, Provider, llm_config

KEY = "sk-loopback-0123456789abcdef"


@dataclass(frozen=True)
class Request:
    """A request of a client, with the parts that all protocols have."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def provider(self) -> Provider:
        if self.path.endswith("/messages"):
            return "anthropic"
        return "ollama" if self.path.endswith("/api/chat") else "openai"

    @property
    def turns(self) -> list[str]:
        """Return the conversation without the system text."""
        return [message["content"] for message in self.body["messages"] if message["role"] != "system"]

    @property
    def system(self) -> str:
        first = self.body["messages"][0]
        return self.body.get("system") or (first["content"] if first["role"] == "system" else "")

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """Return the schema given beside the text, wherever the protocol puts it."""
        if self.provider == "openai":
            form = self.body.get("response_format", {})
            return form.get("schema") or form.get("json_schema", {}).get("schema")
        if self.provider == "anthropic":
            return self.body.get("output_config", {}).get("format", {}).get("schema")
        return self.body.get("format")


@dataclass(frozen=True)
class Says:
    """A valid answer in the protocol of the request."""

    text: str
    ended: str = "complete"
    input_tokens: int | None = 100
    output_tokens: int | None = 10


@dataclass(frozen=True)
class Raw:
    """An HTTP answer byte for byte."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """Accept and stay silent; with `drip`, send spaces at that interval without end, `in_head` before the body."""

    drip: float | None = None
    in_head: bool = False


Step = Says | Raw | Hang
Answering = Callable[[Request], Step]


def says(answer: object, **more: Any) -> Says:
    """A text, or a value to be sent as JSON text; `ended`, `input_tokens`, `output_tokens` on request."""
    return Says(answer if isinstance(answer, str) else json.dumps(answer), **more)


def fault(status: int, message: str = "", *, code: str | None = None, **headers: str) -> Raw:
    """An error; `retry_after="120"` becomes the header Retry-After."""
    body = json.dumps({"error": {"message": message or f"error {status}", "type": code or "error", "code": code}})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Raw(status, body.encode(), {"content-type": "application/json", **named})


def html(status: int = 200) -> Raw:
    return Raw(status, b"<!doctype html><title>Sign in</title>", {"content-type": "text/html; charset=utf-8"})


def recorded(body: str, status: int = 200) -> Raw:
    """A recorded answer's body."""
    return Raw(status, body.encode(), {"content-type": "application/json"})


def hang(*, drip: float | None = None, in_head: bool = False) -> Hang:
    return Hang(drip, in_head)


class LoopbackLLM:
    """The running server: its address, and the requests it has seen."""

    def __init__(self, script: tuple[Step | Answering, ...]) -> None:
        self.requests: list[Request] = []
        self.models: dict[str, Any] = {}  # what the list of models answers
        self.closing = Event()
        self._script = list(script)
        self._lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def environ(self, provider: Provider) -> dict[str, str]:
        """Return the environment of a user of this server."""
        path = "/v1" if provider == "openai" else ""
        prefix = provider.upper()
        return {"LLM_PROVIDER": provider, f"{prefix}_API_KEY": KEY, f"{prefix}_BASE_URL": self.url + path}

    def config(self, provider: Provider, **environ: str) -> LLMConfig:
        return llm_config(self.environ(provider) | environ)

    def next_step(self, request: Request) -> Step:
        with self._lock:
            self.requests.append(request)
            if len(self._script) == 1 and callable(self._script[0]):
                step = self._script[0]
            else:
                step = self._script.pop(0) if self._script else fault(418, "the script of the test has ended")
        return step(request) if callable(step) else step

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Kept:
    """A cache in memory; opening a warehouse takes longer than a scripted answer."""

    answers: dict[str, str] = field(default_factory=dict)

    def get(self, key: str) -> str | None:
        return self.answers.get(key)

    def put(self, key: str, answer: str, *, model: str, input_tokens: int, output_tokens: int) -> None:
        self.answers[key] = answer


@contextmanager
def loopback_llm(*script: Step | Answering) -> Iterator[LoopbackLLM]:
    server = LoopbackLLM(script)
    try:
        yield server
    finally:
        server.close()


def _handler(server: LoopbackLLM) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(server.models).encode()
            self.send_response_only(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            path = self.path.split("?")[0]
            request = Request(path, {name.lower(): value for name, value in self.headers.items()}, body)
            step = server.next_step(request)
            if isinstance(step, Hang):
                self._hang(step)
                return
            answer = step if isinstance(step, Raw) else recorded(json.dumps(_worded(step, request)))
            self.send_response_only(answer.status)  # only what the test defines: no Date and no Server
            for name, value in {"content-length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def _hang(self, step: Hang) -> None:
            if step.drip is None:
                server.closing.wait()
                return
            self.send_response_only(200)
            self.send_header("content-type", "application/json")
            if step.in_head:
                self.flush_headers()
            else:
                self.end_headers()
            with suppress(OSError):  # the client has disconnected
                while not server.closing.wait(step.drip):
                    self.wfile.write(b" ")

        def log_message(self, format: str, *args: object) -> None:
            """Keep the tests' output clean."""

    return Handler


def _worded(step: Says, request: Request) -> dict[str, Any]:
    """Return the answer in the form of the protocol; omit a missing count."""
    refused = step.ended == "refused"
    if request.provider == "openai":
        reason = {"complete": "stop", "cut off": "length", "refused": "stop"}[step.ended]
        message = {"role": "assistant", "content": None if refused else step.text}
        message["refusal"] = step.text if refused else None
        usage = _counted(prompt_tokens=step.input_tokens, completion_tokens=step.output_tokens)
        choices = [{"index": 0, "finish_reason": reason, "message": message}]
        return {"object": "chat.completion", "model": request.body["model"], "choices": choices, "usage": usage}
    if request.provider == "anthropic":
        reason = {"complete": "end_turn", "cut off": "max_tokens", "refused": "refusal"}[step.ended]
        usage = _counted(input_tokens=step.input_tokens, output_tokens=step.output_tokens)
        content = [{"type": "text", "text": step.text}]
        return {"type": "message", "role": "assistant", "content": content, "stop_reason": reason, "usage": usage}
    reason = "length" if step.ended == "cut off" else "stop"
    usage = _counted(prompt_eval_count=step.input_tokens, eval_count=step.output_tokens)
    return {"message": {"role": "assistant", "content": step.text}, "done": True, "done_reason": reason, **usage}


def _counted(**counts: int | None) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count is not None}
