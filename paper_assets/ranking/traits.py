"""Find the traits of papers in title and abstract: problem, method, learning assumption and field (SPEC G12).

`taxonomy.toml` lists the phrases that show each trait. They match by the rules of `keywords.py`. `keywords_in` is not
used because it searches one keyword after the other, which takes seconds for some 1,900 phrases. Here the words of a
text are looked up, and give the few phrases that it may contain.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput
from paper_assets.text.words import normal_form, word_forms

Bools = NDArray[np.bool_]

TRAIT_DIMENSIONS = ("problem", "method", "assumption", "domain")

_PUNCTUATION = re.compile(r"[^\w ]+")
_MARKS = {code: "\n" for code in range(128) if _PUNCTUATION.match(chr(code))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxonomy:
    """All traits, one dimension after the other, and the phrases that show them.

    Attributes:
        names: the t traits; the position of a trait is its column in `traits_of`.
        columns: the columns of each dimension.
        shows: the columns of the traits that a phrase shows, by phrase in the form in which texts are searched.
        longer: the phrases of two or more words, by their first two words.
        one_word: phrases whose words are joined before a text is searched.
    """

    names: tuple[str, ...]
    columns: Mapping[str, slice]
    shows: Mapping[str, tuple[int, ...]]
    longer: Mapping[tuple[str, str], tuple[str, ...]]
    one_word: tuple[str, ...]

    def named(self, traits: Bools, dimension: str | None = None) -> list[str]:
        """Return the names of the traits that are true in a row (t,); with `dimension` only those of one dimension."""
        part = self.columns[dimension] if dimension else slice(None)
        return [name for name, true in zip(self.names[part], traits[part], strict=True) if true]


def traits_of(texts: Iterable[str | None], taxonomy: Taxonomy) -> Bools:
    """Return (n, t) whether each text shows each trait; None is an empty text."""
    rows: list[int] = []
    columns: list[int] = []
    count = 0
    for row, text in enumerate(texts):
        count = row + 1
        plain = normal_form(text or "")
        plain = plain.translate(_MARKS) if plain.isascii() else _PUNCTUATION.sub("\n", plain)
        plain = _joined(f" {plain} ".replace("\n", " \n "), taxonomy.one_word)  # no phrase reaches across a mark
        words = plain.split()
        phrases = [word for word in words if word in taxonomy.shows]
        for pair in taxonomy.longer.keys() & pairwise(words):
            phrases += [phrase for phrase in taxonomy.longer[pair] if f" {phrase} " in plain]
        for phrase in phrases:
            rows += [row] * len(taxonomy.shows[phrase])
            columns += taxonomy.shows[phrase]
    shows = np.zeros((count, len(taxonomy.names)), dtype=bool)
    shows[rows, columns] = True
    return shows


@cache
def standard_taxonomy() -> Taxonomy:
    """Return the taxonomy that comes with the package."""
    return load_taxonomy(Path(__file__).with_name("taxonomy.toml"))


def load_taxonomy(file: Path) -> Taxonomy:
    """Read a taxonomy. Raises InvalidInput naming the file and the entry."""
    try:
        record = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} is not valid TOML: {error}") from None
    one_word = tuple(_phrase(phrase, file) for phrase in _list(record.pop("one_word", []), "one_word", file))
    if set(record) != set(TRAIT_DIMENSIONS):
        raise InvalidInput(
            f"{file}: expected the tables {', '.join(TRAIT_DIMENSIONS)}, got {', '.join(record) or 'none'}"
        )
    names: list[str] = []
    columns: dict[str, slice] = {}
    shows: dict[str, tuple[int, ...]] = {}
    longer: dict[tuple[str, str], tuple[str, ...]] = {}
    for dimension in TRAIT_DIMENSIONS:
        begin = len(names)
        if not isinstance(record[dimension], dict):
            raise InvalidInput(f"{file}: {dimension} must be a table of traits")
        for name, phrases in record[dimension].items():
            for phrase in _list(phrases, f"{dimension}.{name}", file):
                for form in _spellings(_phrase(phrase, file), one_word):
                    if form not in shows and " " in form:
                        first, second, *_ = form.split()
                        longer[first, second] = (*longer.get((first, second), ()), form)
                    if len(names) not in shows.get(form, ()):
                        shows[form] = (*shows.get(form, ()), len(names))
            if name in names:
                raise InvalidInput(f"{file}: {dimension}.{name}: another trait has this name; call it otherwise")
            names.append(name)
        columns[dimension] = slice(begin, len(names))
    return Taxonomy(names=tuple(names), columns=columns, shows=shows, longer=longer, one_word=one_word)


def _list(value: object, key: str, file: Path) -> Sequence[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise InvalidInput(f"{file}: {key} must be a list of phrases")
    return value


def _phrase(phrase: str, file: Path) -> str:
    form = normal_form(phrase).strip()
    if not form or _PUNCTUATION.search(form):
        raise InvalidInput(f"{file}: {phrase!r} is not a phrase; use words of letters and digits")
    return form


def _spellings(phrase: str, one_word: Sequence[str]) -> list[str]:
    """Return singular and plural of a phrase, in the form in which texts are searched."""
    *before, last = phrase.split()
    return [_joined(" ".join([*before, form]), one_word) for form in word_forms(last)]


def _joined(text: str, one_word: Sequence[str]) -> str:
    """Return the text with the words of each phrase of `one_word` joined to one word."""
    for phrase in one_word:
        text = text.replace(phrase, phrase.replace(" ", ""))
    return text
