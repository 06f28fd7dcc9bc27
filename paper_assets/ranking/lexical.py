"""Lexical relevance: BM25 of papers against texts, on a scale from 0 to 1 (SPEC G4 hybrid).

BM25 without length normalisation (b = 0, Robertson & Zaragoza 2009, ch. 3): a paper never loses by saying more, and
on our labelled sets nothing is lost by it (docs/evaluation.md). The words that are asked for are looked up among
the papers' words, so that the cost hardly grows with their number.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking.keywords import normal_form, word_forms

if TYPE_CHECKING:
    import pyarrow as pa

SMALL_WORDS = frozenset([
    "a", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "has", "have", "how",
    "if", "in", "into", "is", "it", "its", "no", "not", "of", "on", "or", "our", "such", "than", "that", "the",
    "their", "then", "there", "these", "they", "this", "those", "to", "use", "used", "using", "via", "was", "we",
    "were", "what", "when", "where", "which", "who", "why", "will", "with",
])  # fmt: skip

_WORD = re.compile(r"[^\W_]+")
_ASCII_BLANKS = str.maketrans({letter: " " for letter in map(chr, range(128)) if not letter.isalnum()})


def words_in(text: str) -> list[str]:
    """The words of a text in their order: letters and digits only, without case and accents."""
    if text.isascii():
        return text.lower().translate(_ASCII_BLANKS).split()
    return _WORD.findall(normal_form(text))


def words_of_papers(texts: "pa.ChunkedArray") -> Iterable[list[str]]:
    """The words of each paper, one paper after the other."""
    return (words_in(text) for chunk in texts.chunks for text in chunk.to_pylist())


def lexical_relevance(papers: Iterable[Sequence[str]], asked: Sequence[str], *, k1: float) -> NDArray[np.float64]:
    """(n, t): BM25 of each paper (its words) against each asked text, 0..1; a column of NaN for a text without words.

    1 is the score of a paper that holds every asked word once, and of any better one. A word counts as often as it is
    asked and the more, the fewer of the papers hold it: idf = ln(1 + (n - df + 0.5) / (df + 0.5)), as in Lucene; so
    a score depends on the other papers, but not on their order. Plurals are the same word.
    """
    columns: dict[str, int] = {}
    wanted = [Counter(_column(word, columns) for word in words_in(text) if _says_something(word)) for text in asked]
    width = max(columns.values(), default=-1) + 1
    hits, count = array("q"), 0
    for words in papers:
        start = count * width
        hits.extend([start + columns[word] for word in words if word in columns])
        count += 1
    relevance = np.full((count, len(asked)), np.nan)
    if not width:
        return relevance
    found, times = np.unique(np.frombuffer(hits, dtype=np.int64), return_counts=True)
    rows, held = np.divmod(found, width)
    papers_with = np.bincount(held, minlength=width)
    idf = np.log1p((count - papers_with + 0.5) / (papers_with + 0.5))
    gain = times * (k1 + 1) / (times + k1)
    for text, often in enumerate(wanted):
        if often:
            weights = np.zeros(width)
            weights[list(often)] = list(often.values())
            weights *= idf
            # One paper after the other, each word in the order of the columns: the same bits in any order of papers.
            score = np.bincount(rows, weights=weights[held] * gain, minlength=count)
            relevance[:, text] = np.minimum(score / weights.sum(), 1.0)
    return relevance


def _says_something(word: str) -> bool:
    return len(word) > 1 and word not in SMALL_WORDS


def _column(word: str, columns: dict[str, int]) -> int:
    """The number of a word; all its forms have the same."""
    forms = word_forms(word)
    number = next((columns[form] for form in forms if form in columns), len(columns))
    for form in forms:
        columns.setdefault(form, number)
    return number
