"""A rewrite beside another text: which of its words are new against it, and which the critic's code doubts. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

_TOKEN = re.compile(r"\s+|[^\W_]+(?:['’.,+#/%_-]+[^\W_]+)*%?|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text. `new`: it does not stand in the other text; `doubtful`: a number or name the original lacks."""

    text: str
    new: bool
    doubtful: bool


def marked(text: str, against: str, doubtful: Iterable[str]) -> tuple[Piece, ...]:
    """The text in pieces that join to it again. `doubtful` are words as they stand in it (`faithfulness.unsupported`).

    Words are compared without regard to case; longest common runs first (Ratcliff & Obershelp 1988, as difflib has it).
    """
    tokens = _TOKEN.findall(text)
    words = [at for at, token in enumerate(tokens) if not token.isspace()]
    mine = [tokens[at].casefold() for at in words]
    theirs = [token.casefold() for token in _TOKEN.findall(against) if not token.isspace()]
    kept = {
        words[at]
        for block in SequenceMatcher(None, theirs, mine, autojunk=False).get_matching_blocks()
        for at in range(block.b, block.b + block.size)
    }
    doubted = _places(text, tokens, doubtful)
    new = [at not in kept for at in range(len(tokens))]
    for at, token in enumerate(tokens):
        if token.isspace():  # a blank is new between two new words
            new[at] = 0 < at < len(tokens) - 1 and new[at - 1] and at + 1 not in kept
    runs = groupby(range(len(tokens)), key=lambda at: (new[at], at in doubted))
    return tuple(Piece("".join(tokens[at] for at in run), *kind) for kind, run in runs)


def _places(text: str, tokens: list[str], wanted: Iterable[str]) -> set[int]:
    """The tokens that any of the wanted words covers."""
    spans = [
        found.span()
        for word in wanted
        if word.strip()
        for found in re.finditer(rf"(?<!\w){re.escape(word.strip())}(?!\w)", text)
    ]
    places, start = set(), 0
    for at, token in enumerate(tokens):
        end = start + len(token)
        if any(start < last and end > first for first, last in spans):
            places.add(at)
        start = end
    return places
