"""The best practices that a prompt shows, each fenced as data and all of them bounded (B3).

Their texts were written by strangers. The marks of the fence are made from the texts, so that none can hold its own.
"""

from collections.abc import Sequence
from hashlib import sha256

from paper_assets.settings import Rewriting
from paper_assets.stores.best_practices import BestPractice

_BYTES_A_TOKEN = 3  # hardly a tokenizer makes more of a text than a token for every three bytes
_CUT = "…"


def example_block(examples: Sequence[BestPractice], *, numbers: Rewriting) -> str:
    """The block for the prompt, "" without examples (TC6), at most `numbers.example_tokens` with its fences.

    The first `numbers.examples` are shown, each cut at a word to `numbers.example_characters`, and shorter where not
    all of them would fit.
    """
    texts = [cut_at_word(" ".join(each.text.split()), numbers.example_characters) for each in examples]
    texts = [text for text in texts if text][: numbers.examples]
    room = numbers.example_tokens * _BYTES_A_TOKEN
    shown: list[str] = []
    for place, text in enumerate(texts):
        share = room // (len(texts) - place) - _size(_fenced("", place + 1)) - 1
        if fitting := _within(text, share):
            shown.append(_fenced(fitting, place + 1))
            room -= _size(shown[-1]) + 1
    return "\n".join(shown)


def cut_at_word(text: str, most: int) -> str:
    """The text if it has at most that many characters, else its beginning, ended at a word and by an ellipsis."""
    if len(text) <= most:
        return text
    head = text[: max(most - len(_CUT), 0)]
    if head and not text[len(head)].isspace():
        head = head.rpartition(" ")[0] or head  # one endless word is cut where it must be
    return f"{head.rstrip()}{_CUT}" if head.strip() else ""


def _within(text: str, most: int) -> str:
    """The same by bytes: a Korean letter has three."""
    if _size(text) <= most:
        return text
    letters = len(text.encode("utf-8", "replace")[: max(most - len(_CUT.encode()), 0)].decode("utf-8", "ignore"))
    return cut_at_word(text, letters + len(_CUT)) if letters else ""


def _fenced(text: str, number: int) -> str:
    mark = sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return f"<example-{number} {mark}>\n{text}\n</example-{number} {mark}>"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
