"""Provide invented exchanges in the shapes of the three providers, with fields that our loopback omits.

Each record has what a recorded one has: uri, request_body, status, response_body.
"""

import json
from typing import Any

from paper_assets.models.llm_config import Provider

_FROGS = json.dumps({"frogs": 12, "names": ["Ada", "Zoë"], "sure": None})
_ERROR_400 = "Invalid 'messages[0].content': an invented fault of the request."


def _openai(message: dict[str, Any], *, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-invented",
        "object": "chat.completion",
        "created": 1_772_600_000,
        "model": "invented-model-2026-03-04",
        "service_tier": "default",
        "system_fingerprint": None,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "logprobs": None,
                "message": {"role": "assistant", "content": None, "refusal": None, "annotations": []} | message,
            }
        ],
        "usage": {
            "prompt_tokens": 31,
            "completion_tokens": 17,
            "total_tokens": 48,
            "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": 8},
            "completion_tokens_details": {"audio_tokens": 0, "reasoning_tokens": 5},
        },
        **more,
    }


def _anthropic(*content: dict[str, Any], stop: str = "end_turn", **usage: Any) -> dict[str, Any]:
    return {
        "id": "msg_invented",
        "type": "message",
        "role": "assistant",
        "model": "invented-model",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 31, "output_tokens": 17, **usage},
    }


def _ollama(text: str, **more: Any) -> dict[str, Any]:
    return {
        "model": "invented:1b",
        "created_at": "2026-03-04T09:00:00.123456789Z",
        "message": {"role": "assistant", "content": text},
        "done": True,
        "done_reason": "stop",
        "total_duration": 700_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_duration": 2_000_000,
        "eval_count": 17,
        "eval_duration": 3_000_000,
        **more,
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


_CALL = {"id": "call_1", "type": "function", "function": {"name": "count", "arguments": '{"pond": 3}'}}
_CACHED = {
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 900,
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    "service_tier": "standard",
}
_ANSWERS: dict[Provider, list[tuple[int, dict[str, Any]]]] = {
    "openai": [
        (200, _openai({"content": "Twelve frogs."})),
        (200, _openai({"content": _FROGS}, system_fingerprint="fp_invented")),
        (200, _openai({"refusal": "I cannot count these frogs."})),
        (200, _openai({"tool_calls": [_CALL]}, finish="tool_calls")),
        (200, _openai({"content": "Mehr als zwölf Frösche."}, usage=None)),
        (200, _openai({"content": [{"type": "text", "text": "In parts."}]})),  # some compatible servers
        (404, {"error": {"message": "The model `nope` does not exist.", "type": "x", "code": "model_not_found"}}),
        (400, {"error": {"message": _ERROR_400, "type": "invalid_request_error", "param": None, "code": None}}),
    ],
    "anthropic": [
        (200, _anthropic(_text("Twelve frogs."))),
        (200, _anthropic(_text(_FROGS), **_CACHED)),
        (200, _anthropic(_text('{"frogs": '), _text("12}"), stop_details=None)),
        (200, _anthropic({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, _text("Twelve."))),
        (200, _anthropic({"type": "tool_use", "id": "t", "name": "count", "input": {}}, stop="tool_use")),
        (200, _anthropic(stop="end_turn")),
        (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: nope"}}),
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message": _ERROR_400}}),
    ],
    "ollama": [
        (200, _ollama("Twelve frogs.", prompt_eval_count=31)),
        (200, _ollama("Twelve frogs, as before.")),  # the prompt was still in its memory: not counted
        (200, _ollama("", prompt_eval_count=31, eval_count=1)),
    ],
}
_PATHS: dict[Provider, str] = {
    "openai": "https://api.openai.example/v1/chat/completions",
    "anthropic": "https://api.anthropic.example/v1/messages?beta=true",
    "ollama": "http://ollama.example/api/chat",
}


def invented_exchanges(provider: Provider) -> list[dict[str, Any]]:
    chats = [
        {"uri": _PATHS[provider], "request_body": "{}", "status": status, "response_body": json.dumps(answer)}
        for status, answer in _ANSWERS[provider]
    ]
    streamed = {**chats[0], "request_body": '{"stream": true}', "response_body": "data: [DONE]"}
    return [*chats, streamed]
