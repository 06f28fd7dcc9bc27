"""The fence around other people's texts in a prompt: two lines that the text between them cannot hold.

A paper, a passage or an earlier answer may try to speak to the model. The marks are made from the text itself, so that
no text holds its own, and the instructions beside it say that what stands between them is data.
"""

from hashlib import sha256

_DIGITS = 24


def fenced(name: str, text: str) -> str:
    """The text as data between `<name mark>` and `</name mark>`."""
    mark = _mark(text)
    return f"<{name} {mark}>\n{text}\n</{name} {mark}>"


def introduced(what: str, name: str, text: str) -> str:
    """The same, with a line before it that says what it is and names the mark."""
    return f"{what} between the two lines that hold {_mark(text)}\n{fenced(name, text)}"


def _mark(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
