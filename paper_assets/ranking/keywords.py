"""Keywords: which words and phrases of a profile stand in which papers (SPEC G3).

The rules, for a keyword and a text in normal form (`normal_form`):
- whole words only, case and accents aside; a hyphen or any other dash is a space, white space of any kind is one space;
- the last word may differ by its plural (`language model` = `language models`, `case study` = `case studies`);
- a keyword may hold symbols (`C++`, `.NET`, `R&D`); one of nothing but symbols matches nothing;
- Chinese, Japanese, Korean and Thai characters know no word borders: there a keyword matches as a substring, and a
  Latin word may touch them (`LLM` stands in `LLM을`).

Fast because the common case is one `str.find` over many papers joined to one string, in C; only where that finds
something is the exact pattern asked.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

BETWEEN_FIELDS = " \x01 "  # stands between title and abstract: no phrase reaches across
_BETWEEN_PAPERS = "\0"
_PAPERS_AT_ONCE = 1024  # about 1.3 MB of text, searched for every keyword while it is in the processor's cache

_DASHES = (
    "-\u058a\u05be\u1400\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u2e5d"
    "\u301c\u3030\u30a0\ufe31\ufe32\ufe58\ufe63\uff0d\U00010ead"
)
_BREAKS = re.compile(rf"[\s{re.escape(_DASHES)}]+")
_ASCII_BREAKS = str.maketrans(dict.fromkeys("-\t\n\v\f\r\x1c\x1d\x1e\x1f", " "))
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]+")
_LIGATURES = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
_LIGATURE = re.compile(f"[{''.join(_LIGATURES)}]")
_ACCENTS = re.compile("[\u0300-\u036f]")  # not the Japanese voicing marks: those make another letter

_NO_SPACES = (
    "\u0e00-\u0eff\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_LETTER = rf"[^\W{_NO_SPACES}]"  # a letter or digit of a script that has word borders
_NOT_PLURALS = frozenset({"dynamics", "genetics", "logistics", "news"})  # without s another word


@dataclass(frozen=True, slots=True)
class _Search:
    """`probe` begins every match of `pattern`; both are for text in normal form."""

    probe: str
    pattern: re.Pattern[str]


def normal_form(text: str) -> str:
    """Text as it is compared: no case, no accents, compatibility forms resolved, dashes and white space one space."""
    if text.isascii():
        return _single_spaced(text.lower().translate(_ASCII_BREAKS))
    text = _ACCENTS.sub("", normalize("NFKD", text)).casefold()
    text = _LIGATURE.sub(lambda letter: _LIGATURES[letter[0]], normalize("NFKC", text))
    return _BREAKS.sub(" ", _INVISIBLE.sub("", text))


def distinct(keywords: Sequence[str]) -> list[str]:
    """The keywords that can match, as written, each once by its normal form, in their order."""
    first: dict[str, str] = {}
    for keyword in keywords:
        form = _phrase(keyword)
        if form:
            first.setdefault(form, keyword)
    return list(first.values())


def paper_texts(table: "pa.Table") -> "pa.ChunkedArray":
    """Title and abstract of each paper as one text to search in."""
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(
        table.column("title"), table.column("abstract"), BETWEEN_FIELDS, null_handling="replace"
    )


def keywords_in(texts: "pa.ChunkedArray", keywords: Sequence[str]) -> NDArray[np.bool_]:
    """(n, k): whether text i holds keyword j."""
    found = np.zeros((len(texts), len(keywords)), dtype=bool)
    searches = [_search(keyword) for keyword in keywords]
    if not any(searches):
        return found
    for start in range(0, len(texts), _PAPERS_AT_ONCE):
        part = [text.replace(_BETWEEN_PAPERS, " ") for text in texts.slice(start, _PAPERS_AT_ONCE).to_pylist()]
        # One character beyond ASCII makes Python store and search the whole string at two or four bytes a character.
        for ascii_only in (True, False):
            rows = [row for row, text in enumerate(part) if text.isascii() is ascii_only]
            if not rows:
                continue
            joined = normal_form(_BETWEEN_PAPERS.join(part[row] for row in rows))
            lengths = [len(text) + 1 for text in joined.split(_BETWEEN_PAPERS)]
            begins = [0, *np.cumsum(lengths).tolist()]
            for column, search in enumerate(searches):
                if search is not None:
                    hits = list(_texts_with(search, joined, begins))
                    found[[start + rows[hit] for hit in hits], column] = True
    return found


def _texts_with(search: _Search, joined: str, begins: Sequence[int]) -> Iterator[int]:
    at = joined.find(search.probe)
    while at >= 0:
        if search.pattern.match(joined, at):
            text = bisect_right(begins, at) - 1
            yield text
            at = joined.find(search.probe, begins[text + 1])
        else:
            at = joined.find(search.probe, at + 1)


def _phrase(keyword: str) -> str:
    """The keyword in normal form; empty if it holds neither letter nor digit."""
    phrase = normal_form(keyword.replace(_BETWEEN_PAPERS, " ")).strip()
    return phrase if re.search(r"[^\W_]", phrase) else ""


@lru_cache(maxsize=4096)  # the pattern takes 3 to 7 ms to compile, the search of a day's papers less
def _search(keyword: str) -> _Search | None:
    phrase = _phrase(keyword)
    if not phrase:
        return None
    words = phrase.split(" ")
    forms = [" ".join([*words[:-1], form]) for form in word_forms(words[-1])]
    before = rf"(?<!{_LETTER})" if not re.match(f"[{_NO_SPACES}]", phrase[0]) else ""
    # `C` stands neither in `C++` nor in `C#`; `C++` stands in `C++17`.
    after = rf"(?!{_LETTER}|\+\+|#)" if re.match(_LETTER, phrase[-1]) else ""
    either = "|".join(re.escape(form) for form in forms)
    return _Search(_common_beginning(forms), re.compile(f"{before}(?:{either}){after}"))


def word_forms(word: str) -> list[str]:
    """The word, its plural, and what it may be the plural of. A form that is no word does no harm."""
    if not re.search(r"[a-z]{2}$", word) or not _NOT_PLURALS.isdisjoint({word, word + "s"}):
        return [word]
    forms = [word]
    if re.search(r"[^aeiou]y$", word):
        forms.append(word[:-1] + "ies")
    else:
        forms.append(word + ("es" if re.search(r"(?:s|x|z|ch|sh)$", word) else "s"))
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        forms.append(word[:-1])
        if word.endswith("ies"):
            forms.append(word[:-3] + "y")
        elif re.search(r"(?:s|x|z|ch|sh)es$", word):
            forms.append(word[:-2])
    return forms


def _single_spaced(text: str) -> str:
    """Runs of spaces as one, in ASCII; on numpy, because str.replace and re take twice as long on whole papers."""
    letters = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    keep = np.ones(len(letters), dtype=bool)
    keep[1:] = (letters[1:] != ord(" ")) | (letters[:-1] != ord(" "))
    return letters[keep].tobytes().decode("ascii")


def _common_beginning(forms: Sequence[str]) -> str:
    first, last = min(forms), max(forms)
    return first[: next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
