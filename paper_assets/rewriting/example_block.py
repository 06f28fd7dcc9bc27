"""The best practices that a prompt shows, each fenced as data and all of them bounded (B3).

Their texts were written by strangers.
"""

import re
from collections.abc import Sequence

from paper_assets.settings import RewritingConfig
from paper_assets.stores.best_practices import BestPractice
from paper_assets.text.fence import fenced

_BYTES_A_TOKEN = 3  # hardly a tokenizer makes more of a text than a token for every three bytes
_CUT = "…"


def example_block(examples: Sequence[BestPractice], *, config: RewritingConfig) -> str:
    """The block for the prompt, "" without examples (TC6), at most `config.example_tokens` with its fences.

    The first `config.examples` are shown as pairs of original and rewrite with their level, each text cut at a word to
    `config.example_characters`, its paragraphs kept; shorter where not all of them would fit.
    """
    chosen = [each for each in examples if each.text.strip()][: config.examples]
    room = config.example_tokens * _BYTES_A_TOKEN
    shown: list[str] = []
    for place, example in enumerate(chosen):
        name = f"example-{place + 1}"
        share = room // (len(chosen) - place) - _size(fenced(name, _pair(example.target_level, "", ""))) - 1
        rewrite = _within(cut_at_word(_paragraphs(example.text), config.example_characters), share)
        original = cut_at_word(_paragraphs(example.original_text), config.example_characters)
        if _size(rewrite) + _size(original) > share:  # the rewrite is what is imitated: it has the larger part
            rewrite = _within(rewrite, max(share * 2 // 3, share - _size(original)))
            original = _within(original, share - _size(rewrite))
        if rewrite:
            shown.append(fenced(name, _pair(example.target_level, original, rewrite)))
            room -= _size(shown[-1]) + 1
    return "\n".join(shown)


def _pair(level: str, original: str, rewrite: str) -> str:
    return f"original:\n{original}\n\nrewrite for {level}:\n{rewrite}"


def _paragraphs(text: str) -> str:
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return "\n\n".join(part for part in parts if part)


def cut_at_word(text: str, most: int) -> str:
    """The text if it has at most that many characters, else its beginning, ended at a word and by an ellipsis."""
    if len(text) <= most:
        return text
    head = text[: max(most - len(_CUT), 0)]
    if head and not text[len(head)].isspace():
        head = re.sub(r"\s\S*$", "", head) or head  # one endless word is cut where it must be
    return f"{head.rstrip()}{_CUT}" if head.strip() else ""


def _within(text: str, most: int) -> str:
    """The same by bytes: a Korean letter has three."""
    if _size(text) <= most:
        return text
    letters = len(text.encode("utf-8", "replace")[: max(most - len(_CUT.encode()), 0)].decode("utf-8", "ignore"))
    return cut_at_word(text, letters + len(_CUT)) if letters else ""


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
