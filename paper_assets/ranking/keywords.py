"""Keywords: find the words and phrases of a profile in papers (SPEC G3).

The rules, for a keyword and a text in normal form (`normal_form`):
- whole words only, case and accents aside; a hyphen or any other dash is a space, white space of any kind is one space;
- the last word may differ by its plural (`language model` = `language models`, `case study` = `case studies`);
- `GPT-4*` is found in every word or phrase that begins with it (`GPT-4o`); with fewer than three letters or digits
  the star is a star (`A*`);
- `title:survey` is searched in titles only, `abstract:survey` in titles and abstracts; without a prefix the caller
  decides (`title_only`): "benchmark" is in a third of all abstracts, so soft keywords are searched in titles;
- a keyword may hold symbols (`C++`, `.NET`, `R&D`); one of nothing but symbols matches nothing;
- Chinese, Japanese, Korean and Thai characters know no word borders: there a keyword matches as a substring, and a
  Latin word may touch them (`LLM` is found in `LLM을`).

It is fast because keywords are looked up in an index of words: one pass over the index finds the few texts that
contain the words of a keyword, and only these are matched with the exact pattern. A keyword of one word needs no
pattern, except in texts with characters that change words (`_`, `#`, `++`) and in scripts without word borders.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.text.bm25 import Held
from paper_assets.text.forward_index import IndexedTexts, indexed
from paper_assets.text.words import HAS_NO_BORDERS, NO_BORDERS, normal_form, spellings, word_forms, words_of_normal

Bools = NDArray[np.bool_]

BETWEEN_FIELDS = " \x01 "  # between title and abstract: no phrase reaches across
_FIELD_MARK = BETWEEN_FIELDS.strip(" ")

_LETTER = rf"[^\W{NO_BORDERS}]"  # a letter or digit of a script that has word borders
_LEAST_BEFORE_STAR = 3
_SCOPE = re.compile(r"\s*(title|abstract)\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Search:
    """How a keyword is searched in text in normal form.

    Attributes:
        probe: the characters that every match of `pattern` begins with.
        pattern: the exact rule.
        title_only: whether only titles are searched.
        forms: the forms of the keyword, each as the words of the index that a text must contain; a word that ends
            with a star stands for all words that begin so.
        unbordered: whether it contains a character of a script without word borders.
        one_word: whether each form is one word of the index, so that the index decides without `pattern`.
    """

    probe: str
    pattern: re.Pattern[str]
    title_only: bool
    forms: tuple[tuple[str, ...], ...]
    unbordered: bool
    one_word: bool


@dataclass(frozen=True, slots=True)
class _Keyword:
    """A keyword as it is understood; equal ones match the same texts."""

    phrase: str
    prefix: bool
    title_only: bool


def distinct(keywords: Sequence[str], *, title_only: bool = False) -> list[str]:
    """Return the keywords that can match, as written and in their order; of those that match the same, the first."""
    first: dict[_Keyword, str] = {}
    for keyword in keywords:
        read = _read(keyword, title_only=title_only)
        if read.phrase:
            first.setdefault(read, keyword)
    return list(first.values())


def matching_nothing(keywords: Sequence[str]) -> list[str]:
    """Return the keywords without a letter or digit, which match no text, each once."""
    return [keyword for keyword in dict.fromkeys(keywords) if not _read(keyword, title_only=False).phrase]


def implied_by(keyword: str, others: Sequence[str], *, title: bool = False, title_only: bool = False) -> list[str]:
    """Return those of `others` that are in every paper with the keyword; with `title`, with it in the title.

    `title_only` is as in `keywords_in`, for the others. A longer keyword implies a shorter one, not the reverse.
    """
    read = _read(keyword, title_only=title)
    text = read.phrase + ("x" if read.prefix else "")  # any word that begins so
    shortest = f"{text}{BETWEEN_FIELDS}" if read.title_only else f"{BETWEEN_FIELDS}{text}"
    found = keywords_in(pa.chunked_array([[shortest]]), others, title_only=title_only) if text else None
    return [other for at, other in enumerate(others) if found is not None and found[0, at]]


def paper_texts(table: pa.Table) -> pa.ChunkedArray:
    """Return the title and abstract of each paper as one text to search in."""
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(
        table.column("title"), table.column("abstract"), BETWEEN_FIELDS, null_handling="replace"
    )


def keywords_in(texts: pa.ChunkedArray | IndexedTexts, keywords: Sequence[str], *, title_only: bool = False) -> Bools:
    """Return (n, k) whether each text contains each keyword.

    With `title_only` a keyword without `abstract:` or `title:` is searched in titles only.
    """
    contained = np.zeros((len(texts), len(keywords)), dtype=bool)
    searches = [_search(keyword, title_only=title_only) for keyword in keywords]
    if not (len(texts) and any(searches)):
        return contained
    index = texts if isinstance(texts, IndexedTexts) else indexed(texts)
    holders = _words_held([search for search in searches if search], index)
    unbordered, joining = index.without_borders, index.joining
    for column, search in enumerate(searches):
        if search is None:
            continue
        possible = unbordered if search.unbordered else unbordered | _with_words(search, holders, len(index))
        certain = possible & ~(unbordered | joining) if search.one_word else np.zeros_like(possible)
        uncertain = np.flatnonzero(possible & ~certain)
        contained[:, column] = certain
        contained[uncertain, column] = [_occurs_in(search, text) for text in index.normal(uncertain)]
    return contained


def _words_held(searches: Sequence[_Search], index: IndexedTexts) -> dict[str, Held]:
    """Return for each word of the searches the texts that contain it; a word with a star matches longer words too."""
    words = {word for search in searches for form in search.forms for word in form}
    whole = sorted(word for word in words if not word.endswith("*"))
    holders = dict(zip(whole, index.holders_of([[word] for word in whole]), strict=True))
    for word in words.difference(whole):
        (holders[word],) = index.holders_of([index.beginning(word[:-1])])
    return holders


def _with_words(search: _Search, holders: dict[str, Held], count: int) -> Bools:
    """Return (n,) which texts contain all words of at least one form."""
    possible = np.zeros(count, dtype=bool)
    for form in search.forms:
        rows = reduce(
            lambda some, others: np.intersect1d(some, others, assume_unique=True), (holders[word][0] for word in form)
        )
        possible[rows] = True
    return possible


def _occurs_in(search: _Search, text: str) -> bool:
    """Return whether a text in normal form matches the pattern, in its title if only titles are searched."""
    at = text.find(search.probe)
    while at >= 0:
        if search.pattern.match(text, at):
            return not search.title_only or text.find(_FIELD_MARK, 0, at) < 0
        at = text.find(search.probe, at + 1)
    return False


def _read(keyword: str, *, title_only: bool) -> _Keyword:
    """Parse a keyword of a profile; the phrase is empty if it has neither a letter nor a digit."""
    scope = _SCOPE.match(keyword)
    phrase = normal_form(keyword[scope.end() if scope else 0 :].replace("\0", " ")).strip()
    letters = len(re.findall(r"[^\W_]", phrase))
    enough = letters >= _LEAST_BEFORE_STAR or HAS_NO_BORDERS.search(phrase) is not None
    prefix = phrase.endswith("*") and phrase[-2:-1].isalnum() and enough
    return _Keyword(
        phrase=(phrase[:-1] if prefix else phrase) if letters else "",
        prefix=prefix,
        title_only=scope[1].lower() == "title" if scope else title_only,
    )


@lru_cache(maxsize=4096)  # the pattern takes 3 to 7 ms to compile, the search of a day's papers less
def _search(keyword: str, *, title_only: bool) -> _Search | None:
    read = _read(keyword, title_only=title_only)
    phrase = read.phrase
    if not phrase:
        return None
    words = phrase.split(" ")
    first = [" ".join(each) for each in product(*map(spellings, words[:-1]))]
    last = [form for spelling in spellings(words[-1]) for form in word_forms(spelling)]
    forms = [phrase] if read.prefix else [f"{before} {form}".strip() for before in first for form in last]
    before = rf"(?<!{_LETTER})" if not HAS_NO_BORDERS.match(phrase) else ""
    # `C` is not found in `C++` or `C#`; `C++` is found in `C++17`.
    after = rf"(?!{_LETTER}|\+\+|#)" if re.match(_LETTER, phrase[-1]) and not read.prefix else ""
    either = "|".join(re.escape(form) for form in forms)
    words_of = [words_of_normal(form) for form in forms]
    if read.prefix:
        words_of = [[*words[:-1], words[-1] + "*"] for words in words_of]
    return _Search(
        probe=_common_beginning(forms),
        pattern=re.compile(f"{before}(?:{either}){after}"),
        title_only=read.title_only,
        forms=tuple(map(tuple, words_of)),
        unbordered=HAS_NO_BORDERS.search(phrase) is not None,
        one_word=not read.title_only and all(words_of_normal(form) == [form] for form in forms),
    )


def _common_beginning(forms: Sequence[str]) -> str:
    first, last = min(forms), max(forms)
    return first[: next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
