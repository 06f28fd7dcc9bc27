"""Match the words of interests in papers, and compute TF-IDF cosines to liked papers (SPEC G17).

The terms of an interest are its words and its pairs of neighbouring words, without what introduces it ("papers on").
A word matches in singular and plural and in British and American spelling, and for half in a derived form (`optimizers`
in `optimize`); a pair matches adjacent words; an acronym counts as the phrase that it stands for (`SAE` as "sparse
autoencoder"); the title counts more. Liked papers are compared by stems. What a word is worth (its idf) comes from the
candidates together with a background of many papers, so that a ranking of twenty papers and one of a week value a word
alike. All sums of a paper run over its words in an order that no other paper decides: scores are the same to the bit in
any order of papers.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.ranking.keywords import BETWEEN_FIELDS, paper_texts
from paper_assets.text.acronyms import acronyms_of_phrases, spelled_out
from paper_assets.text.bm25 import CountedWords
from paper_assets.text.forward_index import IndexedTexts, indexed
from paper_assets.text.introductions import without_introduction
from paper_assets.text.words import (
    asks,
    normal_form,
    singular,
    spellings,
    stem,
    stems_in,
    word_forms,
    words_in,
    words_of_normal,
)

Floats = NDArray[np.float64]

_BETWEEN_PHRASES = re.compile(r"[^\w\s'+#-]+")
_TITLE_TIMES = 3  # times that a word in the title counts
_SHORTEST = 50  # words; a shorter paper gets no further advantage
_MOST = 2.0  # higher scores are cut here: papers that are almost certainly on topic reach 1
_LEAST = 4.0  # least length of a text's vector: a reader who names only a common word means it
_DERIVED = 0.5  # weight of a derived form of a word; 0.75 does as well
_USUAL_WEIGHT = 0.027  # of a stem in a usual paper, for each point of idf: the mean cosine comes out right
_PAIR_SHARE = 0.25  # share of the papers with the rarer of two words in which the other is beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """How many of a corpus's `papers` hold each stem, and each word without its plural. In an idf it counts as much as
    `weight` candidates.
    """

    papers: int
    holders: Mapping[str, int]
    words: Mapping[str, int]
    weight: float

    def idf(self, stems: Sequence[str], held: Floats, count: int) -> Floats:
        """Return ln(1 + (n - df + 0.5) / (df + 0.5)) of stems that `held` of `count` candidates hold."""
        known = np.array([self.holders.get(one, 0) for one in stems], dtype=np.float64)
        df = held + self.weight * known / self.papers
        return np.log1p((count + self.weight - df + 0.5) / (df + 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperWords:
    """The words of n papers: title and abstract as one text, and the titles again."""

    whole: IndexedTexts
    titles: IndexedTexts

    def __len__(self) -> int:
        return len(self.whole)


def paper_words(papers: pa.Table) -> PaperWords:
    """Return the words of a table's titles and abstracts."""
    return PaperWords(whole=indexed(paper_texts(papers)), titles=indexed(papers.column("title")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One word of an interest, or two adjacent ones if `second` is given.

    `acronyms`: those of the interest's phrases that hold all of it; one of them in a paper counts as the term.
    `as_first` and `as_second`: those of phrases that end with the first word of a pair, or begin with its second; they
    count as that word ("LLM inference" holds "model inference").
    """

    first: str
    second: str | None = None
    acronyms: frozenset[str] = frozenset()
    as_first: frozenset[str] = frozenset()
    as_second: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """The term as a reader writes it."""
        return self.first if self.second is None else f"{self.first} {self.second}"

    @property
    def sides(self) -> list[list[str]]:
        """The words and acronyms that count as the first word, and those that count as the second of a pair."""
        first = [self.first, *sorted(self.as_first)]
        return [first] if self.second is None else [first, [self.second, *sorted(self.as_second)]]


def terms_of(text: str) -> list[Term]:
    """Return the content words of an interest and its pairs of neighbours, each once; no pair reaches across a mark or
    a small word. An acronym is replaced by the words that it stands for.
    """
    found: dict[tuple[str, str | None], Term] = {}
    spelled: dict[str, str] = {}  # as the text spells a word first
    for part in _BETWEEN_PHRASES.split(normal_form(without_introduction(text))):
        words = spelled_out(words_of_normal(part))
        known: list[str | None] = []
        for word in words:
            one = singular(word) if asks(word) else None
            if one:
                for each in spellings(one):
                    spelled.setdefault(each, one)
            known.append(spelled[one] if one else None)
        phrases = acronyms_of_phrases(words)
        for size in (1, 2):
            for at in range(len(known) - size + 1):
                one, two = known[at], known[at + 1] if size == 2 else None
                if one and (two or size == 1):
                    other = found.get((one, two), Term(first=one, second=two))
                    own = {acronym for start, end, acronym in phrases if start <= at and at + size <= end}
                    first = {acronym for _, end, acronym in phrases if end == at + 1 and two}
                    second = {acronym for start, _, acronym in phrases if start == at + 1 and two}
                    found[one, two] = replace(
                        other,
                        acronyms=other.acronyms | own,
                        as_first=other.as_first | first,
                        as_second=other.as_second | second,
                    )
    return list(found.values())


def term_scores(words: PaperWords, texts: Sequence[str], *, background: Background) -> Floats:
    """Return (n, t): how strongly each paper holds the terms of each text.

    A cosine of TF-IDF vectors over words and pairs of words, in which a paper's length stands for that of its vector:
    terms weigh idf squared times 1 + ln(times), a time in the title counts as `_TITLE_TIMES`. A paper that holds a word
    only in derived forms gets `_DERIVED` of that, by the idf of all its forms. The scores of a text of common words
    alone are raised as if its vector had the length `_LEAST`. A column of NaN for a text without words.
    """
    count = len(words)
    scores = np.full((len(texts), count), np.nan)
    before = np.concatenate(([0], np.cumsum(words.whole.times)))
    length = (before[words.whole.starts[1:]] - before[words.whole.starts[:-1]])[words.whole.at]
    size = np.sqrt(np.maximum(length, _SHORTEST))
    asked = [terms_of(text) for text in texts]
    every = list(dict.fromkeys(term for terms in asked for term in terms))
    times = _times_of(every, words)
    idf = {term: _idf_of(term, int((times[term] > 0).sum()), count, background) for term in every}
    points = {term: _points(times[term], idf[term]) for term in every}
    for term, (derived, family_idf) in _derived_forms(times, words, background).items():
        points[term] += _DERIVED * _points(derived, min(family_idf, idf[term]))
    for row, terms in enumerate(asked):
        if not terms:
            continue
        total = np.zeros(count)
        for term in terms:
            total += points[term]
        worth = float(np.sqrt(sum(idf[term] ** 2 for term in terms)))
        scores[row] = np.minimum(total / worth * max(1.0, _LEAST / worth) / size, _MOST)
    return scores.T


def matched_terms(interest: str, title: str, abstract: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the terms of an interest that a title holds, and those that only the abstract holds, pairs before words.

    A word of a pair that is there is not named again. An acronym or a derived form follows its term in brackets.
    """
    named: list[Term] = []
    where: tuple[list[str], list[str]] = ([], [])
    texts = normal_form(title), normal_form(abstract)
    held = words_in(title), words_in(abstract)
    for term in sorted(terms_of(interest), key=lambda term: term.second is None):
        if any(term.first in (pair.first, pair.second) for pair in named if pair.second is not None):
            continue
        parts = [
            (term.first, *sorted(term.as_first)),
            *([(term.second, *sorted(term.as_second))] if term.second else []),
        ]
        words = (r"(?![^\W_])[\W_]+").join(
            f"(?:{'|'.join(re.escape(form) for word in part for form in _forms(word))})" for part in parts
        )
        short = "|".join(re.escape(form) for acronym in sorted(term.acronyms) for form in _forms(acronym))
        pattern = re.compile(rf"(?<![^\W_])(?:{words}{f'|({short})' if short else ''})(?![^\W_])")
        found = next(((field, hit) for field, text in enumerate(texts) if (hit := pattern.search(text))), None)
        if found is not None:
            field, hit = found
            named.append(term)
            where[field].append(f"{term.words} ({singular(hit[1]).upper()})" if short and hit[1] else term.words)
        elif term.second is None:
            family = _stems_of(term)
            derived = [(field, word) for field, own in enumerate(held) for word in own if stem(word) in family]
            for field, word in derived[:1]:
                where[field].append(f"{term.words} ({word})")
    return tuple(where[0]), tuple(where[1])


def _points(times: Floats, idf: float) -> Floats:
    """Return (n,) idf squared times 1 + ln(times), 0 where a paper does not hold the term."""
    points = np.zeros(len(times))
    at = np.flatnonzero(times)
    points[at] = idf**2 * (1 + np.log(times[at]))
    return points


def _derived_forms(
    times: Mapping[Term, Floats], words: PaperWords, background: Background
) -> dict[Term, tuple[Floats, float]]:
    """Return for each single word how often (n,) the papers that do not hold it hold other words of its stem, and the
    idf of all of them.
    """
    count, found = len(words), {}
    stems = {term: _stems_of(term) for term in times if term.second is None}
    every = sorted({one for known in stems.values() for one in known})
    forms = words.whole.spellings(every)
    groups = [forms.get(one, []) for one in every]
    held = {
        one: _column(anywhere, count) + (_TITLE_TIMES - 1) * _column(in_title, count)
        for one, anywhere, in_title in zip(
            every, words.whole.holders_of(groups), words.titles.holders_of(groups), strict=True
        )
    }
    for term, known in stems.items():
        derived = np.where(times[term] > 0, 0.0, sum((held[one] for one in known), np.zeros(count)))
        if derived.any():
            holders = np.array([((derived > 0) | (times[term] > 0)).sum()], dtype=np.float64)
            found[term] = derived, float(background.idf([stem(term.first)], holders, count)[0])
    return found


def _stems_of(term: Term) -> list[str]:
    return sorted({stem(spelled) for spelled in spellings(term.first)})


def _times_of(terms: Sequence[Term], words: PaperWords) -> dict[Term, Floats]:
    """Return how often each paper holds each term, with what the title adds."""
    count = len(words)
    asked_for = [each for term in terms for each in (*term.sides, term.acronyms)]
    key = {word: min(spellings(word)) for words_of_term in asked_for for word in words_of_term}
    single = list(dict.fromkeys(key.values()))
    groups = [_forms(word) for word in single]
    held = {
        word: (_column(found, count), _column(in_title, count))
        for word, found, in_title in zip(
            single, words.whole.holders_of(groups), words.titles.holders_of(groups), strict=True
        )
    }
    times = {}
    for term in terms:
        everywhere, in_title = held[key[term.first]]
        if term.second is not None:
            one, two = (np.any([held[key[word]][0] > 0 for word in side], axis=0) for side in term.sides)
            asked = np.flatnonzero(one & two)
            everywhere, in_title = np.zeros(count), np.zeros(count)
            first, second = map(_any_of, term.sides)
            pattern = re.compile(rf"(?<![^\W_])(?:{first})(?=[\W_]+(?:{second})(?![^\W_]))")
            for row, text in zip(asked.tolist(), words.whole.normal(asked), strict=True):
                title, _, abstract = text.partition(BETWEEN_FIELDS)
                in_title[row] = len(pattern.findall(title))
                everywhere[row] = in_title[row] + len(pattern.findall(abstract))
        for acronym in sorted(term.acronyms):
            everywhere, in_title = everywhere + held[key[acronym]][0], in_title + held[key[acronym]][1]
        times[term] = everywhere + (_TITLE_TIMES - 1) * in_title
    return times


def _forms(word: str) -> list[str]:
    """Return the singular and plural of a word in the singular, in both spellings; no form belongs to two that are
    counted.
    """
    return [form for spelled in spellings(word) for form in word_forms(spelled) if singular(form) == spelled]


def _any_of(words: Sequence[str]) -> str:
    """Return a pattern of all forms of the words."""
    return "|".join(re.escape(form) for word in words for form in _forms(word))


def _column(held: tuple[NDArray[np.int32], NDArray[np.int32]], count: int) -> Floats:
    found = np.zeros(count)
    found[held[0]] = held[1]
    return found


def _idf_of(term: Term, held: int, count: int, background: Background) -> float:
    known = [
        sum(background.words.get(each, 0) for each in spellings(word)) for word in (term.first, term.second) if word
    ]
    short = sum(background.words.get(acronym, 0) for acronym in term.acronyms)
    expected = short + (known[0] if term.second is None else _PAIR_SHARE * min(known))
    df = held + background.weight * expected / background.papers
    return float(np.log1p((count + background.weight - df + 0.5) / (df + 0.5)))


def unit_tfidf(words: CountedWords, *, background: Background) -> tuple[Any, list[str]]:
    """Return TF-IDF vectors of n papers as rows of unit length (n, stems) of a sparse array, and the stems, by name.

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
    """Return (n, t): cosine of the TF-IDF vectors of papers and texts over stems, tf = 1 + ln(times); 0 without a
    word.
    """
    return tfidf_cosines_and_usual(words, texts, background=background)[0]


def tfidf_cosines_and_usual(
    words: CountedWords, texts: Sequence[str], *, background: Background
) -> tuple[Floats, Floats]:
    """Return `tfidf_cosines` (n, t), and (n,) about the mean of each paper's to the papers of the background."""
    count = len(words)
    if not (count and texts):
        return np.zeros((count, len(texts))), np.zeros(count)
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
    products = held @ np.column_stack([asked, _usual_paper(stems, background)])
    np.divide(products, lengths[:, None], out=products, where=lengths[:, None] > 0)
    products = np.clip(products, 0.0, 1.0)
    return products[:, :-1], products[:, -1]


def _usual_paper(stems: Sequence[str], background: Background) -> Floats:
    """Return (stems,) about the mean of the background's TF-IDF vectors: how many papers hold a stem, by its idf."""
    share = np.array([background.holders.get(one, 0) for one in stems], dtype=np.float64) / background.papers
    return _USUAL_WEIGHT * share * background.idf(stems, np.zeros(len(stems)), 0)


def _times_held(words: CountedWords) -> tuple[Any, list[str]]:
    """Return how often each paper holds each stem (n, stems), sparse by row, and the stems, by name: sums over them
    must not follow the papers.
    """
    from scipy.sparse import csr_array

    held = words.times_by_stem()
    shape = (len(words), len(held.stems))
    return csr_array((held.times.astype(np.float64), held.columns, held.starts), shape=shape), held.stems
