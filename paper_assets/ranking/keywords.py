"""Keywords: which words and phrases of a profile stand in which papers (SPEC G3).

The rules, for a keyword and a text in normal form (`normal_form`):
- whole words only, case and accents aside; a hyphen or any other dash is a space, white space of any kind is one space;
- the last word may differ by its plural (`language model` = `language models`, `case study` = `case studies`), and a
  word of five letters or more also stands in its adjective and field (`robot` in `robotic` and `robotics`);
- `GPT-4*` stands in every word or phrase that begins so (`GPT-4o`); with fewer than three letters or digits the star is
  a star (`A*`);
- `title:survey` is looked for in titles only;
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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paper_assets.text.words import normal_form, word_forms

BETWEEN_FIELDS = " \x01 "  # stands between title and abstract: no phrase reaches across
_FIELD_MARK = BETWEEN_FIELDS.strip(" ")
_BETWEEN_PAPERS = "\0"
_PAPERS_AT_ONCE = 1024  # about 1.3 MB of text, searched for every keyword while it is in the processor's cache

_NO_SPACES = (
    "\u0e00-\u0eff\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_LETTER = rf"[^\W{_NO_SPACES}]"  # a letter or digit of a script that has word borders
# With -ic(s) another word. Of the others of five letters whose adjective a year of abstracts holds (robotic, agentic,
# algorithmic, algebraic, electronic, artistic, oceanic ...) none is; of four letters many are (critic, tactic, static).
_OTHER_WITH_IC = frozenset({"class", "graph", "organ", "period", "rhetor", "system"})
_LEAST_BEFORE_IC = 5
_LEAST_BEFORE_STAR = 3
_TITLE_ONLY = re.compile(r"\s*title\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Search:
    """`probe` begins every match of `pattern`; both are for text in normal form."""

    probe: str
    pattern: re.Pattern[str]
    title_only: bool


@dataclass(frozen=True, slots=True)
class _Keyword:
    """What a keyword of a profile asks for; equal ones find the same."""

    phrase: str
    prefix: bool
    title_only: bool


def distinct(keywords: Sequence[str]) -> list[str]:
    """The keywords that can match, as written, each once by what it finds, in their order."""
    first: dict[_Keyword, str] = {}
    for keyword in keywords:
        read = _read(keyword)
        if read.phrase:
            first.setdefault(read, keyword)
    return list(first.values())


def paper_texts(table: pa.Table) -> pa.ChunkedArray:
    """Title and abstract of each paper as one text to search in."""
    return pc.binary_join_element_wise(
        table.column("title"), table.column("abstract"), BETWEEN_FIELDS, null_handling="replace"
    )


def keywords_in(texts: pa.ChunkedArray, keywords: Sequence[str]) -> NDArray[np.bool_]:
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
            if not search.title_only or joined.find(_FIELD_MARK, begins[text], at) < 0:
                yield text
            at = joined.find(search.probe, begins[text + 1])
        else:
            at = joined.find(search.probe, at + 1)


def _read(keyword: str) -> _Keyword:
    """A keyword as a profile writes it; its phrase is empty if it holds neither letter nor digit."""
    scope = _TITLE_ONLY.match(keyword)
    phrase = normal_form(keyword[scope.end() if scope else 0 :].replace(_BETWEEN_PAPERS, " ")).strip()
    letters = len(re.findall(r"[^\W_]", phrase))
    enough = letters >= _LEAST_BEFORE_STAR or re.search(f"[{_NO_SPACES}]", phrase) is not None
    prefix = phrase.endswith("*") and phrase[-2:-1].isalnum() and enough
    return _Keyword(
        phrase=(phrase[:-1] if prefix else phrase) if letters else "", prefix=prefix, title_only=scope is not None
    )


@lru_cache(maxsize=4096)  # the pattern takes 3 to 7 ms to compile, the search of a day's papers less
def _search(keyword: str) -> _Search | None:
    read = _read(keyword)
    phrase = read.phrase
    if not phrase:
        return None
    words = phrase.split(" ")
    forms = [phrase] if read.prefix else [" ".join([*words[:-1], form]) for form in _keyword_forms(words[-1])]
    before = rf"(?<!{_LETTER})" if not re.match(f"[{_NO_SPACES}]", phrase[0]) else ""
    # `C` stands neither in `C++` nor in `C#`; `C++` stands in `C++17`.
    after = rf"(?!{_LETTER}|\+\+|#)" if re.match(_LETTER, phrase[-1]) and not read.prefix else ""
    either = "|".join(re.escape(form) for form in forms)
    return _Search(_common_beginning(forms), re.compile(f"{before}(?:{either}){after}"), read.title_only)


def _keyword_forms(word: str) -> list[str]:
    """The word's number forms, and the adjective and field that are made of it by -ic and -ics."""
    forms = word_forms(word)
    bases = [form for form in forms if len(form) >= _LEAST_BEFORE_IC and re.search(r"[b-df-hj-np-tv-z]$", form)]
    if len(forms) > 1 and _OTHER_WITH_IC.isdisjoint(bases):
        forms += [base + ending for base in bases if not base.endswith("s") for ending in ("ic", "ics")]
    return forms


def _common_beginning(forms: Sequence[str]) -> str:
    first, last = min(forms), max(forms)
    return first[: next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
