"""Whom a rewrite is for, how to write for them and what is measured of it: `personas.toml`, by level."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from paper_assets.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """A level's reader. `words`: least and most that are asked for; `lix`: the most that is readable, None for any.

    `shared_words`: least share of its words that stand in the original too.
    """

    reader: str
    role: str
    tone: str
    vocabulary: str
    structure: str
    words: tuple[int, int]
    shared_words: float
    lix: int | None = None
    critic: tuple[str, ...]

    @property
    def length(self) -> str:
        return f"{self.words[0]} to {self.words[1]} words"


@cache
def personas() -> dict[str, Persona]:
    """The personas that come with the package, by level."""
    return load_personas(Path(__file__).with_name("personas.toml"))


def load_personas(file: Path) -> dict[str, Persona]:
    """Read personas. Raises InvalidInput naming the file and the level."""
    try:
        record = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"{file} cannot be read: {fault}") from None
    try:
        return {level: _persona(entry) for level, entry in record.items()}
    except (TypeError, KeyError, ValueError) as fault:
        raise InvalidInput(f"{file}: a level needs {', '.join(Persona.__slots__)} and nothing else ({fault})") from None


def persona(level: str) -> Persona:
    """The persona of a level. Raises InvalidInput."""
    known = personas()
    if level not in known:
        raise InvalidInput(f"level {level!r} is unknown; use one of {', '.join(known)}")
    return known[level]


def _persona(entry: dict[str, Any]) -> Persona:
    least, most = entry["words"]
    return Persona(**{**entry, "words": (int(least), int(most)), "critic": tuple(entry["critic"])})
