"""Fence texts from outside in a prompt between two lines that the text cannot contain.

A paper, a passage or an earlier answer may contain instructions to the model. The marks are derived from the text, so
that no text contains its own, and the instructions declare everything between them to be data.
"""

from hashlib import sha256

_DIGITS = 24


def fenced(name: str, text: str) -> str:
    """Enclose the text as data between `<name mark>` and `</name mark>`."""
    mark = _mark(text)
    return f"<{name} {mark}>\n{text}\n</{name} {mark}>"


def introduced(what: str, name: str, text: str) -> str:
    """Enclose the text, after a line that describes it and names the mark."""
    return f"{what} between the two lines that hold {_mark(text)}\n{fenced(name, text)}"


def _mark(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
