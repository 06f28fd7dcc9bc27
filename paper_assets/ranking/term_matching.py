"""How much of a text's words papers hold: shares of an interest's words, TF-IDF cosines to liked papers (SPEC G17).

Words are compared by their stems. What a stem is worth (its idf) is reckoned from the candidates together with a
background of many papers, so that a ranking of twenty papers and one of a week value a word alike. All sums of a paper
run over its stems in an order that no other paper decides: scores are the same to the bit in any order of papers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.text.bm25 import CountedWords
from paper_assets.text.stems import stems_in

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """How many of a corpus's `papers` hold each stem. In an idf it counts as much as `weight` candidates."""

    papers: int
    holders: Mapping[str, int]
    weight: float

    def idf(self, stems: Sequence[str], held: Floats, count: int) -> Floats:
        """ln(1 + (n - df + 0.5) / (df + 0.5)) of stems that `held` of `count` candidates hold."""
        known = np.array([self.holders.get(one, 0) for one in stems], dtype=np.float64)
        df = held + self.weight * known / self.papers
        return np.log1p((count + self.weight - df + 0.5) / (df + 0.5))


def word_shares(words: CountedWords, texts: Sequence[str], *, background: Background, k1: float) -> Floats:
    """(n, t): the share of each text's words that each paper holds, 0..1; a column of NaN for a text without words.

    BM25 without length normalisation and with squared idf, as a share of what a paper has that holds every asked stem
    once. A text's share depends on that text and on the papers, and on no other text.
    """
    count = len(words)
    asked = [Counter(stems_in(text)) for text in texts]
    spellings = words.spellings({one for each in asked for one in each})
    holders = dict(zip(spellings, words.holders_of(list(spellings.values())), strict=True))
    shares = np.full((len(texts), count), np.nan)
    for row, often in enumerate(asked):
        if not often:
            continue
        stems = list(often)
        held = np.array([len(holders[one][0]) for one in stems], dtype=np.float64)
        weights = np.array(list(often.values()), dtype=np.float64) * background.idf(stems, held, count) ** 2
        total = np.zeros(count)
        for one, weight in zip(stems, weights.tolist(), strict=True):
            rows, times = holders[one]
            total[rows] += weight * (times * (k1 + 1) / (times + k1))
        shares[row] = np.minimum(total / weights.sum(), 1.0)
    return shares.T


def unit_tfidf(words: CountedWords, *, background: Background) -> tuple[Any, list[str]]:
    """TF-IDF vectors of n papers as rows of unit length (n, stems) of a sparse array, and the stems, by name.

    idf is the background's alone: a paper's row depends on no other paper, so that weights learned from some papers
    hold for others. tf = 1 + ln(times); a paper without a word is a row of zeros.
    """
    held, stems = _times_held(words)
    idf = background.idf(stems, np.zeros(len(stems)), 0)
    held.data = (1 + np.log(held.data)) * idf[held.indices]
    count = len(words)
    rows = np.repeat(np.arange(count), np.diff(held.indptr))
    lengths = np.sqrt(np.bincount(rows, weights=held.data**2, minlength=count))
    held.data /= lengths[rows]
    return held, stems


def tfidf_cosines(words: CountedWords, texts: Sequence[str], *, background: Background) -> Floats:
    """(n, t): cosine of the TF-IDF vectors of papers and texts over stems, tf = 1 + ln(times); 0 without a word."""
    count = len(words)
    if not (count and texts):
        return np.zeros((count, len(texts)))
    held, stems = _times_held(words)
    number = {one: at for at, one in enumerate(stems)}
    idf = background.idf(stems, np.bincount(held.indices, minlength=len(stems)).astype(np.float64), count)
    held.data = (1 + np.log(held.data)) * idf[held.indices]
    rows = np.repeat(np.arange(count), np.diff(held.indptr))
    lengths = np.sqrt(np.bincount(rows, weights=held.data**2, minlength=count))

    asked = np.zeros((len(stems), len(texts)))
    for at, text in enumerate(texts):
        often = Counter(stems_in(text))
        own = sorted(often)
        known = np.array([number.get(one, -1) for one in own], dtype=np.int64)
        absent = background.idf(own, np.zeros(len(own)), count)
        weights = (1 + np.log(np.array([often[one] for one in own], dtype=np.float64))) * np.where(
            known >= 0, idf[known] if len(idf) else absent, absent
        )
        asked[known[known >= 0], at] = weights[known >= 0] / np.sqrt((weights**2).sum())
    products = held @ asked
    np.divide(products, lengths[:, None], out=products, where=lengths[:, None] > 0)
    return np.clip(products, 0.0, 1.0)


def _times_held(words: CountedWords) -> tuple[Any, list[str]]:
    """How often each paper holds each stem (n, stems), sparse by row, and the stems, by name: sums over them must not
    follow the papers.
    """
    from scipy.sparse import csr_array

    held = words.times_by_stem()
    shape = (len(words), len(held.stems))
    return csr_array((held.times.astype(np.float64), held.columns, held.starts), shape=shape), held.stems
