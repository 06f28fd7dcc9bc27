"""Define what the modules that read a statement share: its vocabulary, and the parts into which it is read.

The vocabulary is in `statement_words.toml`.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Level = Literal["primary", "secondary", "exploratory"]
Kind = Literal["topic", "author", "category", "institution"]
BRACKET = re.compile(r"\s*\(([^()]*)\)")
_ONES, _THOSE = re.compile(r"(?<=\w )ones$"), re.compile(r"^(?:only )?those(?= (?:for|of|in|on|with|without|that)\b)")


@dataclass(frozen=True, slots=True)
class Mode:
    """What the words at hand are: wanted or not, at which level, of which kind."""

    wanted: bool = True
    mild: bool = False
    level: Level = "primary"
    kind: Kind = "topic"


@dataclass(slots=True)
class Found:
    """Collect topics (by their folded form), authors and categories while a statement in `language` is read."""

    categories: Mapping[str, str]
    language: str | None = None
    topics: dict[str, tuple[str, Mode, bool]] = field(default_factory=dict)
    authors: dict[str, None] = field(default_factory=dict)
    codes: dict[str, bool] = field(default_factory=dict)

    def add(self, topic: str, mode: Mode, *, context: bool = False) -> None:
        """Add a topic once; an exclusion replaces a wish in the same words. "Small ones" are of the topic before."""
        if self.topics:
            *_, (before, _, _) = self.topics.values()
            topic = _ONES.sub(lambda _: re.split(r"\s(?:for|of|in|on|with|to)\s", before)[-1], topic)
            topic = _THOSE.sub(lambda _: before, topic)
        key = topic.casefold()
        if key not in self.topics or (not mode.wanted and self.topics[key][1].wanted):
            self.topics[key] = topic, mode, context


def note_category(text: str, wanted: bool, found: Found) -> bool:
    code = found.categories.get(" ".join(text.split()).strip(" .()").casefold())
    if code is not None and (wanted or found.codes.get(code) is not True):
        found.codes[code] = wanted
    return code is not None


@cache
def vocabulary() -> dict[str, Any]:
    return tomllib.loads(files("paper_assets.text").joinpath("statement_words.toml").read_text(encoding="utf-8"))


_OF_NAMES = ("people", "people_after", "adjective")  # patterns in which capitals count


@cache
def expression(name: str) -> re.Pattern[str]:
    english = vocabulary()["english"]
    pattern = english[name].replace("{names}", english["names"]).replace("{name}", english["name"])
    return compiled(pattern, ignore_case=name not in _OF_NAMES)


@cache
def expressions(name: str) -> tuple[tuple[Any, re.Pattern[str]], ...]:
    """Return the patterns of a table in order; the first that matches decides."""
    return tuple((key, compiled(pattern)) for key, pattern in vocabulary()["english"][name].items())


@cache
def word_list(name: str) -> frozenset[str]:
    return frozenset(vocabulary()["words"][name].split())


def compiled(pattern: str, *, ignore_case: bool = True) -> re.Pattern[str]:
    return re.compile(pattern, re.VERBOSE | (re.IGNORECASE if ignore_case else re.NOFLAG))
