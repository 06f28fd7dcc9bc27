"""Invent attempts at rewrites."""

from datetime import UTC, datetime
from typing import Any

from paper_assets.stores.rewrites import Attempt

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def invented_attempt(
    number: int = 1, score: int = 60, text: str = "Many frogs.\n\nTruly many.", **more: Any
) -> Attempt:
    """Return an attempt in which nothing is doubtful; `more` sets other fields."""
    fields: dict[str, Any] = {
        "keywords": (),
        "critique": "",
        "unsupported": (),
        "examples": (),
        "model": "m",
        "input_tokens": 1,
        "output_tokens": 1,
        "made_at": NOW,
    }
    return Attempt(attempt=number, score=score, text=text, **{**fields, **more})
