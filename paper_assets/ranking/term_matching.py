"""Match the words of interests in papers, and compute TF-IDF cosines to liked papers (SPEC G17).

The terms of an interest are its words and its pairs of adjacent words.

- A word matches its singular and plural and its British and American spelling. A derived form (`optimizers` for
  `optimize`) counts half.
- A pair matches two adjacent words.
- An acronym counts as the phrase that it stands for (`SAE` as "sparse autoencoder").
- Words in the title count more than words in the abstract.

Liked papers are compared by stems and by pairs of adjacent stems. The weight of a word (its idf) is computed from the
candidates together with a background of many papers, so that it is similar in a ranking of twenty papers and in one of
a week. The scores of a paper do not depend on the order of the papers, to the last bit.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.ranking.keywords import BETWEEN_FIELDS, paper_texts
from paper_assets.text.acronyms import acronyms_of_phrases, spelled_out
from paper_assets.text.forward_index import IndexedTexts, indexed
from paper_assets.text.words import (
    FRAMING_WORDS,
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
_SHORTEST = 50  # words; shorter papers are treated as if they had this length
_MOST = 2.0  # highest score; papers that are almost certainly on topic reach 1
_LEAST = 4.0  # least length of the vector of an interest, so that a single common word still matches well
_FEW_WORDS, _ONE_OF_FEW = 3, 0.5  # weight of a single shared word, for an interest of two or three words
_DERIVED = 0.5  # weight of a derived form of a word; 0.75 does as well
_USUAL_WEIGHT = 0.027  # of a stem in a usual paper, for each point of idf; chosen so that the mean cosine is right
_PAIR_WEIGHT = 0.7  # of a pair of stems beside a stem, in a TF-IDF vector
_FEWEST_WITH_PAIR = 2  # of papers and liked papers; a rarer pair cannot match
_MOST_PAIRED = 200_000  # texts whose pairs are kept, as many as the index of words keeps; 1 kB each
_PAIR_SHARE = 0.25  # share of the papers with the rarer of two words in which the other is beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """In how many of a corpus's `papers` each stem (`holders`) and each singular word (`words`) occurs.

    An idf counts the background as `weight` candidates.
    """

    papers: int
    holders: Mapping[str, int]
    words: Mapping[str, int]
    weight: float

    def idf(self, stems: Sequence[str], held: Floats, count: int) -> Floats:
        """Return the idf (s,) of stems (s,) that occur in `held` (s,) of `count` candidates.

        idf = ln(1 + (n - df + 0.5) / (df + 0.5)), with n and df over candidates and weighted background.
        """
        known = np.array([self.holders.get(one, 0) for one in stems], dtype=np.float64)
        df = held + self.weight * known / self.papers
        return np.log1p((count + self.weight - df + 0.5) / (df + 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperWords:
    """The indexed words of n papers: of title and abstract as one text, and of the titles alone."""

    whole: IndexedTexts
    titles: IndexedTexts

    def __len__(self) -> int:
        return len(self.whole)


def paper_words(papers: pa.Table) -> PaperWords:
    """Index the titles and abstracts of a table of papers."""
    return PaperWords(whole=indexed(paper_texts(papers)), titles=indexed(papers.column("title")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One word of an interest, or two adjacent words if `second` is given. All words are in the singular.

    Attributes:
        acronyms: those of phrases of the interest that contain the whole term; in a paper they count as the term.
        as_first: those of phrases that end with the first word of a pair; they count as that word, so that
            "LLM inference" matches "model inference".
        as_second: those of phrases that begin with the second word of a pair; they count as that word.
    """

    first: str
    second: str | None = None
    acronyms: frozenset[str] = frozenset()
    as_first: frozenset[str] = frozenset()
    as_second: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """The words of the term, as text."""
        return self.first if self.second is None else f"{self.first} {self.second}"

    @property
    def sides(self) -> list[list[str]]:
        """What counts as the first word, and for a pair what counts as the second: the word itself, then acronyms."""
        first = [self.first, *sorted(self.as_first)]
        return [first] if self.second is None else [first, [self.second, *sorted(self.as_second)]]


def terms_of(text: str) -> list[Term]:
    """Return the terms of an interest, each once: its content words and its pairs of adjacent content words.

    The words of a pair have no punctuation or small word between them. An acronym is replaced by the words that it
    stands for.
    """
    framed = any(asks(word) and word not in FRAMING_WORDS for word in words_in(text))
    terms: dict[tuple[str, str | None], Term] = {}
    first_spelling: dict[str, str] = {}  # as the text spells a word first
    for part in _BETWEEN_PHRASES.split(normal_form(text)):
        words = spelled_out(words_of_normal(part))
        content_words: list[str | None] = []
        for word in words:
            first = singular(word) if asks(word) and not (framed and word in FRAMING_WORDS) else None
            if first:
                for spelling in spellings(first):
                    first_spelling.setdefault(spelling, first)
            content_words.append(first_spelling[first] if first else None)
        phrases = acronyms_of_phrases(words)
        for size in (1, 2):
            for at in range(len(content_words) - size + 1):
                first, second = content_words[at], content_words[at + 1] if size == 2 else None
                if first and (second or size == 1):
                    term = terms.get((first, second), Term(first=first, second=second))
                    containing = {acronym for start, end, acronym in phrases if start <= at and at + size <= end}
                    ending = {acronym for _, end, acronym in phrases if end == at + 1 and second}
                    beginning = {acronym for start, _, acronym in phrases if start == at + 1 and second}
                    terms[first, second] = replace(
                        term,
                        acronyms=term.acronyms | containing,
                        as_first=term.as_first | ending,
                        as_second=term.as_second | beginning,
                    )
    return list(terms.values())


def term_scores(words: PaperWords, texts: Sequence[str], *, background: Background) -> Floats:
    """Return the term scores (n, t) of t texts (interests) in n papers; a column of NaN for a text without words.

        score = sum over the text's terms of idf^2 (1 + ln times) / (sqrt(words of the paper) * length of the text)

    This is a cosine of TF-IDF vectors, with the root of the paper's number of words for the length of its vector.
    `times` counts an occurrence in the title as `_TITLE_TIMES`. A paper with only derived forms of a word gets
    `_DERIVED` of its points, computed with the idf of all forms. The length of the text is the root of the sum of
    idf^2; if it is below `_LEAST` (a text of common words), the score is raised by their ratio. Scores are at most
    `_MOST`.
    """
    count = len(words)
    scores = np.full((len(texts), count), np.nan)
    paper_length = np.sqrt(np.maximum(words.whole.lengths, _SHORTEST))
    terms_by_text = [terms_of(text) for text in texts]
    terms_of_all = list(dict.fromkeys(term for terms in terms_by_text for term in terms))
    times = _times_of(terms_of_all, words)
    idf = {term: _idf_of(term, int((times[term] > 0).sum()), count, background) for term in terms_of_all}
    points = {term: _points(times[term], idf[term]) for term in terms_of_all}
    for term, (derived, family_idf) in _derived_forms(times, words, background).items():
        points[term] += _DERIVED * _points(derived, min(family_idf, idf[term]))
    for row, terms in enumerate(terms_by_text):
        if not terms:
            continue
        total = np.zeros(count)
        for term in terms:
            total += points[term]
        single = [points[term] > 0 for term in terms if term.second is None]
        if 1 < len(single) <= _FEW_WORDS:
            total = np.where(np.sum(single, axis=0) == 1, _ONE_OF_FEW * total, total)
        text_length = float(np.sqrt(sum(idf[term] ** 2 for term in terms)))
        scores[row] = np.minimum(total / text_length * max(1.0, _LEAST / text_length) / paper_length, _MOST)
    return scores.T


def matched_terms(interest: str, title: str, abstract: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the terms of an interest in the title, and those only in the abstract, pairs before words.

    The words of a pair that was found are not returned again, and pairs in a row are one phrase. An acronym or a
    derived form that was found follows the term in brackets, as the paper writes it.
    """
    matched: list[Term] = []
    phrase, at = list[Sequence[str]](), 0  # the sides of the words found last, and the field that holds them
    where: tuple[list[str], list[str]] = ([], [])
    texts = normal_form(title), normal_form(abstract)
    words_by_field = words_in(title), words_in(abstract)
    for term in sorted(terms_of(interest), key=lambda term: term.second is None):
        if any(term.first in (pair.first, pair.second) for pair in matched if pair.second is not None):
            longer = [*phrase, term.sides[-1]]
            row = re.search(_in_a_row(longer), texts[at]) if matched[-1].second == term.first else None
            if term.second and row:
                matched.append(term)
                phrase = longer
                spelled = f"{where[at][-1].partition(' (')[0]} {term.second}"
                is_shorter = len(words_in(row[0])) < len(spelled.split())  # an acronym is among its words
                written = f" ({_written(row[0], (title, abstract)[at])})" if is_shorter else ""
                where[at][-1] = f"{spelled}{written}"
            continue
        words = _in_a_row(term.sides)
        short = _any_of(sorted(term.acronyms))
        pattern = re.compile(rf"(?<![^\W_])(?:{words}{f'|{short}' if short else ''})(?![^\W_])")
        match = next(((field, hit) for field, text in enumerate(texts) if (hit := pattern.search(text))), None)
        if match is not None:
            field, hit = match
            matched.append(term)
            phrase, at = [*term.sides], field
            by_acronym = (term.acronyms | term.as_first | term.as_second) & set(map(singular, words_in(hit[0])))
            written = f" ({_written(hit[0], (title, abstract)[field])})" if by_acronym else ""
            where[field].append(f"{term.words}{written}")
        elif term.second is None:
            family = _stems_of(term)
            derived = [
                (field, word)
                for field, field_words in enumerate(words_by_field)
                for word in field_words
                if stem(word) in family
            ]
            for field, word in derived[:1]:
                where[field].append(f"{term.words} ({word})")
    return tuple(where[0]), tuple(where[1])


def _written(found: str, text: str) -> str:
    """Return words that were found in the normal form of a text with its capitals."""
    match = re.search(r"[\W_]+".join(map(re.escape, found.split())), text, re.IGNORECASE)
    return " ".join(match[0].split()) if match else found


def _in_a_row(sides: Sequence[Sequence[str]]) -> str:
    """Return a regular expression that matches one word of each side, one after the other."""
    return r"(?![^\W_])[\W_]+".join(f"(?:{_any_of(side)})" for side in sides)


def _points(times: Floats, idf: float) -> Floats:
    """Return the points (n,) of a term that occurs `times` (n,): idf^2 (1 + ln times), 0 if it does not occur."""
    points = np.zeros(len(times))
    at = np.flatnonzero(times)
    points[at] = idf**2 * (1 + np.log(times[at]))
    return points


def _derived_forms(
    times: Mapping[Term, Floats], words: PaperWords, background: Background
) -> dict[Term, tuple[Floats, float]]:
    """Return the derived forms of the single words: (times they occur (n,), idf of all words of the stem) by term.

    Only papers without the word itself have counts. Words without derived forms in any paper are left out.
    """
    count, derived_by_term = len(words), {}
    stems = {term: _stems_of(term) for term in times if term.second is None}
    all_stems = sorted({one for own_stems in stems.values() for one in own_stems})
    forms = words.whole.spellings(all_stems)
    groups = [forms.get(one, []) for one in all_stems]
    times_of_stem = {
        one: _column(anywhere, count) + (_TITLE_TIMES - 1) * _column(in_title, count)
        for one, anywhere, in_title in zip(
            all_stems, words.whole.holders_of(groups), words.titles.holders_of(groups), strict=True
        )
    }
    for term, own_stems in stems.items():
        derived = np.where(times[term] > 0, 0.0, sum((times_of_stem[one] for one in own_stems), np.zeros(count)))
        if derived.any():
            holders = np.array([((derived > 0) | (times[term] > 0)).sum()], dtype=np.float64)
            derived_by_term[term] = derived, float(background.idf([stem(term.first)], holders, count)[0])
    return derived_by_term


def _stems_of(term: Term) -> list[str]:
    return sorted({stem(spelling) for spelling in spellings(term.first)})


def _times_of(terms: Sequence[Term], words: PaperWords) -> dict[Term, Floats]:
    """Return by term how often it occurs in each paper (n,); an occurrence in the title counts as `_TITLE_TIMES`."""
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
    """Return singular and plural of a singular word in British and American spelling.

    A form that could belong to another word is left out, so that it is counted once.
    """
    return [form for spelling in spellings(word) for form in word_forms(spelling) if singular(form) == spelling]


def _any_of(words: Sequence[str]) -> str:
    """Return a regular expression that matches any form of any of the words."""
    return "|".join(re.escape(form) for word in words for form in _forms(word))


def _column(held: tuple[NDArray[np.int32], NDArray[np.int32]], count: int) -> Floats:
    """Return (count,) values from pairs of rows and values; 0 elsewhere."""
    values = np.zeros(count)
    values[held[0]] = held[1]
    return values


def _idf_of(term: Term, held: int, count: int, background: Background) -> float:
    """Return the idf of a term that occurs in `held` of `count` candidates.

    How often a pair occurs in the background is estimated from its rarer word.
    """
    holders = [
        sum(background.words.get(spelling, 0) for spelling in spellings(word))
        for word in (term.first, term.second)
        if word
    ]
    acronym_holders = sum(background.words.get(acronym, 0) for acronym in term.acronyms)
    expected = acronym_holders + (holders[0] if term.second is None else _PAIR_SHARE * min(holders))
    df = held + background.weight * expected / background.papers
    return float(np.log1p((count + background.weight - df + 0.5) / (df + 0.5)))


def unit_tfidf(words: IndexedTexts, *, background: Background) -> tuple[Any, list[str]]:
    """Return TF-IDF vectors of n papers as a sparse array (n, stems) with rows of length 1, and the sorted stems.

    tf = 1 + ln(times). idf is that of the background alone, so that a row does not depend on other papers and learned
    weights are valid for any paper. A paper without words is a row of zeros.
    """
    tfidf, stems = words.times_by_stem()
    idf = background.idf(stems, np.zeros(len(stems)), 0)
    tfidf.data = (1 + np.log(tfidf.data)) * idf[tfidf.indices]
    count = len(words)
    rows = np.repeat(np.arange(count), np.diff(tfidf.indptr))
    lengths = np.sqrt(np.bincount(rows, weights=tfidf.data**2, minlength=count))
    tfidf.data /= lengths[rows]
    return tfidf, stems


def similarity_by_words(words: PaperWords, texts: Sequence[str], *, background: Background) -> tuple[Floats, Floats]:
    """Return `tfidf_cosines_and_usual` of papers and liked papers (title and abstract), with pairs of stems."""
    whole = words.whole
    return tfidf_cosines_and_usual(whole, texts, background=background, normal=whole.normal(np.arange(len(whole))))


def tfidf_cosines_and_usual(
    words: IndexedTexts, texts: Sequence[str], *, background: Background, normal: Sequence[str] | None = None
) -> tuple[Floats, Floats]:
    """Return (n, t) the cosines of the TF-IDF vectors of n papers and t texts over stems, 0 without words, and (n,) an
    estimate of each paper's mean cosine to the background.

    tf = 1 + ln(times). If `normal` gives the papers' texts in normal form, the vectors also hold pairs of adjacent
    stems that at least `_FEWEST_WITH_PAIR` of papers and texts have.
    """
    count = len(words)
    if not (count and texts):
        return np.zeros((count, len(texts))), np.zeros(count)
    tfidf, stems = words.times_by_stem()
    column_of = {one: at for at, one in enumerate(stems)}
    idf = background.idf(stems, np.bincount(tfidf.indices, minlength=len(stems)).astype(np.float64), count)
    tfidf.data = (1 + np.log(tfidf.data)) * idf[tfidf.indices]
    rows = np.repeat(np.arange(count), np.diff(tfidf.indptr))
    squares = np.bincount(rows, weights=tfidf.data**2, minlength=count)
    pairs, text_pairs = _pair_vectors(normal, texts, count=count, background=background)
    lengths = np.sqrt(squares + pairs.power(2).sum(axis=1))

    text_vectors, text_lengths = np.zeros((len(stems), len(texts))), np.ones(len(texts))
    for at, text in enumerate(texts):
        times = Counter(stems_in(text))
        text_stems = sorted(times)
        columns = np.array([column_of.get(one, -1) for one in text_stems], dtype=np.int64)
        absent = background.idf(text_stems, np.zeros(len(text_stems)), count)
        weights = (1 + np.log(np.array([times[one] for one in text_stems], dtype=np.float64))) * np.where(
            columns >= 0, idf[columns] if len(idf) else absent, absent
        )
        length = np.sqrt((weights**2).sum() + text_pairs[[at]].power(2).sum())
        text_vectors[columns[columns >= 0], at] = weights[columns >= 0] / length
        text_lengths[at] = length or 1.0
    products = tfidf @ np.column_stack([text_vectors, _usual_paper(stems, background)])
    products[:, :-1] += (pairs @ text_pairs.T).toarray() / text_lengths
    np.divide(products, lengths[:, None], out=products, where=lengths[:, None] > 0)
    products = np.clip(products, 0.0, 1.0)
    return products[:, :-1], products[:, -1]


def _pair_vectors(
    papers: Sequence[str] | None, texts: Sequence[str], *, count: int, background: Background
) -> tuple[Any, Any]:
    """Return TF-IDF weights of pairs of adjacent stems in `count` papers (normal forms) and in t texts (sparse arrays).

    Columns are sorted by the pairs' checksums, so that sums over them do not depend on the order of the papers. Without
    papers (None) the arrays have no column.
    """
    from scipy.sparse import csr_array

    if papers is None:
        return csr_array((count, 0)), csr_array((len(texts), 0))

    held = [_pairs_in(text) for text in papers] + [_pairs_in(normal_form(text)) for text in texts]
    starts = np.concatenate([[0], np.cumsum([len(found) for found, _ in held])])
    found, columns = np.unique(
        np.concatenate([each for each, _ in held] or [np.zeros(0, np.uint32)]), return_inverse=True
    )
    times = np.concatenate([each for _, each in held] or [np.zeros(0, np.uint16)]).astype(np.float64)
    in_papers = np.bincount(columns[: starts[count]], minlength=len(found))
    idf = _PAIR_WEIGHT * np.log1p((count + background.weight - in_papers + 0.5) / (in_papers + 0.5))
    matches = np.bincount(columns, minlength=len(found)) >= _FEWEST_WITH_PAIR
    weights = np.where(matches[columns], (1 + np.log(times)) * idf[columns], 0.0)
    vectors = csr_array((weights, columns, starts), shape=(len(held), len(found)))
    return vectors[:count], vectors[count:]


@lru_cache(maxsize=_MOST_PAIRED)
def _pairs_in(text: str) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    """Return the checksums of the pairs of adjacent stems of a text (normal form), ascending, and their counts."""
    stems = [stem(word) for word in words_of_normal(text) if asks(word)]
    checksums = np.array([crc32(f"{one} {two}".encode()) for one, two in pairwise(stems)], dtype=np.uint32)
    found, times = np.unique(checksums, return_counts=True)
    return found, times.astype(np.uint16)


def _usual_paper(stems: Sequence[str], background: Background) -> Floats:
    """Return (stems,) an estimate of the mean TF-IDF vector of the background, from the frequencies of stems."""
    share = np.array([background.holders.get(one, 0) for one in stems], dtype=np.float64) / background.papers
    return _USUAL_WEIGHT * share * background.idf(stems, np.zeros(len(stems)), 0)
