"""Find the traits of papers in title and abstract: problem, method, learning assumption and field (SPEC G12).

`taxonomy.toml` lists the phrases that show each trait. They match by the rules of `keywords.py`. `keywords_in` is not
used because it searches one keyword after the other, which takes seconds for some 1,900 phrases: here each run of words
of a text is looked up.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from paper_assets.text.words import normal_form, word_forms

Bools = NDArray[np.bool_]

TRAIT_DIMENSIONS = ("problem", "method", "assumption", "domain")

_PUNCTUATION = re.compile(r"[^\w ]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxonomy:
    """All traits, one dimension after the other, and the phrases that show them.

    Attributes:
        names: the t traits; the position of a trait is its column in `traits_of`.
        columns: the columns of each dimension.
        shows: the columns of the traits that a phrase shows, by phrase in the form in which texts are searched.
        one_word: phrases whose words are joined before a text is searched.
        longest: the words of the longest phrase.
    """

    names: tuple[str, ...]
    columns: Mapping[str, slice]
    shows: Mapping[str, tuple[int, ...]]
    one_word: tuple[str, ...]
    longest: int

    def named(self, traits: Bools, dimension: str | None = None) -> list[str]:
        """Return the names of the traits that are true in a row (t,); with `dimension` only those of one dimension."""
        part = self.columns[dimension] if dimension else slice(None)
        return [name for name, true in zip(self.names[part], traits[part], strict=True) if true]


def traits_of(texts: Iterable[str | None], taxonomy: Taxonomy) -> Bools:
    """Return (n, t) whether each text shows each trait; None is an empty text."""
    shown: list[set[int]] = []
    for text in texts:
        parts = _PUNCTUATION.split(normal_form(text or ""))  # no phrase reaches across a mark
        found: set[int] = set()
        for words in (_joined(f" {part} ", taxonomy.one_word).split() for part in parts):
            for start in range(len(words)):
                for end in range(start + 1, min(start + taxonomy.longest, len(words)) + 1):
                    found.update(taxonomy.shows.get(" ".join(words[start:end]), ()))
        shown.append(found)
    shows = np.zeros((len(shown), len(taxonomy.names)), dtype=bool)
    for row, found in enumerate(shown):
        shows[row, sorted(found)] = True
    return shows


@cache
def standard_taxonomy() -> Taxonomy:
    """Return the taxonomy that comes with the package."""
    return load_taxonomy((files("paper_assets.ranking") / "taxonomy.toml").read_text(encoding="utf-8"))


def load_taxonomy(toml: str) -> Taxonomy:
    """Read a taxonomy: `one_word`, and a table of traits with their phrases for each of TRAIT_DIMENSIONS."""
    record = tomllib.loads(toml)
    one_word = tuple(normal_form(phrase) for phrase in record.get("one_word", ()))
    names: list[str] = []
    columns: dict[str, slice] = {}
    shows: dict[str, tuple[int, ...]] = {}
    for dimension in TRAIT_DIMENSIONS:
        begin = len(names)
        for name, phrases in record[dimension].items():
            for form in {form for phrase in phrases for form in _spellings(normal_form(phrase), one_word)}:
                shows[form] = (*shows.get(form, ()), len(names))
            names.append(name)
        columns[dimension] = slice(begin, len(names))
    longest = max((phrase.count(" ") + 1 for phrase in shows), default=0)
    return Taxonomy(names=tuple(names), columns=columns, shows=shows, one_word=one_word, longest=longest)


def _spellings(phrase: str, one_word: Sequence[str]) -> list[str]:
    """Return singular and plural of a phrase, in the form in which texts are searched."""
    *before, last = phrase.split()
    return [_joined(" ".join([*before, form]), one_word) for form in word_forms(last)]


def _joined(text: str, one_word: Sequence[str]) -> str:
    """Return the text with the words of each phrase of `one_word` joined to one word."""
    for phrase in one_word:
        text = text.replace(phrase, phrase.replace(" ", ""))
    return text
