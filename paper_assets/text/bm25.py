"""BM25 (Robertson & Zaragoza 2009): how well texts answer a query by its words.

The words of all texts are counted once (`index_words`); any number of queries is then scored by look-up. A score
depends only on its own query and the given texts: not on other queries, not on texts that a filter removes (R5), and
not on any order, to the bit.

Words are those of `words.py`; a plural is the same word as its singular, and function words are ignored.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.text.words import FUNCTION_WORDS, asks, stem, word_forms, words_in, words_of_normal

_BATCH = 10_000  # texts cut into words at once

Held = tuple[NDArray[np.int32], NDArray[np.int32]]  # rows, ascending, and how often each holds a word


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesByStem:
    """How often each of n texts contains which stems, text by text, each text's stems sorted by name; `stems` sorted
    too.
    """

    starts: NDArray[np.int64]  # (n + 1,): where each text begins in the next two
    columns: NDArray[np.int32]  # numbers in `stems`
    times: NDArray[np.int32]
    stems: list[str]


class CountedWords(Protocol):
    """The counts of words in n texts."""

    def __len__(self) -> int: ...

    def spellings(self, stems: Collection[str]) -> dict[str, list[str]]:
        """Return the words of each stem; some may occur in none of the texts."""
        ...

    def holders_of(self, groups: Sequence[Sequence[str]]) -> list[Held]:
        """Return for each group of words the rows with any of them, and the total count. Groups share no word."""
        ...

    def times_by_stem(self) -> TimesByStem:
        """Count each stem in each text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WordIndex:
    """The counts of words in n texts, column by column, the rows of each column ascending."""

    columns: dict[str, int]  # a word as it is spelled in normal form -> its column
    starts: NDArray[np.int64]  # (columns + 1,): where each column begins in the next two
    rows: NDArray[np.integer]  # of as few bytes as n and the largest count need: nearly all of the memory
    times: NDArray[np.integer]
    lengths: NDArray[np.int64]  # (n,): words in each text

    @property
    def size(self) -> int:
        """Estimate the bytes in memory."""
        return self.rows.nbytes + self.times.nbytes + self.lengths.nbytes + 100 * len(self.columns)

    def __len__(self) -> int:
        return len(self.lengths)

    def times_by_stem(self) -> TimesByStem:
        """Count each stem in each text."""
        from scipy.sparse import coo_array

        stem_of = [stem(word) if asks(word) else None for word in self.columns]
        stems = sorted({one for one in stem_of if one is not None})
        number = {one: at for at, one in enumerate(stems)}
        column = np.array([-1 if one is None else number[one] for one in stem_of], dtype=np.int32)
        columns = np.repeat(column, np.diff(self.starts))
        kept = columns >= 0
        shape = (len(self), len(stems))
        held = coo_array((self.times[kept].astype(np.int32), (self.rows[kept], columns[kept])), shape=shape).tocsr()
        held.sort_indices()
        return TimesByStem(starts=held.indptr.astype(np.int64), columns=held.indices, times=held.data, stems=stems)

    def spellings(self, stems: Collection[str]) -> dict[str, list[str]]:
        """Return the words of each stem."""
        found: dict[str, list[str]] = {one: [] for one in stems}
        for word in self.columns:
            if asks(word) and (spelled := found.get(stem(word))) is not None:
                spelled.append(word)
        return found

    def holders_of(self, groups: Sequence[Sequence[str]]) -> list[Held]:
        """Call `holders` for each group."""
        return [self.holders(forms) for forms in groups]

    def holders(self, forms: Sequence[str]) -> Held:
        """Return the rows that contain a word in any of its forms, ascending, and how often."""
        found = [self.columns[form] for form in forms if form in self.columns]
        parts = [slice(*self.starts[column : column + 2]) for column in found]
        if len(parts) == 1:
            return self.rows[parts[0]].astype(np.int32), self.times[parts[0]].astype(np.int32)
        together = np.zeros(len(self.lengths), dtype=np.int32)
        for part in parts:
            together[self.rows[part]] += self.times[part]
        rows = np.flatnonzero(together)
        return rows.astype(np.int32), together[rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWord:
    """A query word: the forms in which a text may contain it, and its count in the query."""

    forms: tuple[str, ...]
    often: int


def index_words(texts: Sequence[str] | pa.ChunkedArray) -> WordIndex:
    """Count the words of the texts."""
    given = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array([pa.array(texts, pa.string())])
    columns: dict[str, int] = {}
    rows, words = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for start in range(0, len(given), _BATCH):
        batch = pa.concat_arrays(given.slice(start, _BATCH).chunks)
        for within, spelled, numbers in words_of(batch):
            known = np.array([columns.setdefault(word, len(columns)) for word in spelled], dtype=np.int32)
            rows.append((within + start).astype(np.int32))
            words.append(known[numbers])
    of_row, of_column = np.concatenate(rows), np.concatenate(words)
    starts, held, times = counted_pairs(of_column, of_row, len(columns))
    return WordIndex(
        columns=columns,
        starts=starts,
        rows=held.astype(np.min_scalar_type(max(len(given) - 1, 0))),
        times=times.astype(np.min_scalar_type(int(times.max(initial=0)))),
        lengths=np.bincount(of_row, minlength=len(given)),
    )


def counted_pairs(
    groups: NDArray[np.int32], members: NDArray[np.int32], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Count pairs (group, member): where each of the `count` groups begins, its members ascending, and their counts.

    Sorts whole numbers: twice as fast as SciPy's sparse arrays, and without their import of 0.15 s.
    """
    pairs = np.sort((groups.astype(np.int64) << 32) | members)
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    times = np.diff(first, append=len(pairs)).astype(np.int32)
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(pairs[first] >> 32, minlength=count), out=starts[1:])
    return starts, (pairs[first] & 0xFFFFFFFF).astype(np.int32), times


def bm25(
    index: WordIndex, question: str, *, k1: float, b: float, rows: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """Score each row (None: all) as if there were no others, from 0 to below 1; 0 if it shares no word with the query.

    The score is the sum over query words of count in the query, times idf = ln(1 + (n - df + 0.5) / (df + 0.5)), times
    tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length)), divided by its upper limit, so that it can be weighed
    against a cosine. A text of mean length that contains each word once has 1 / (k1 + 1). It is proportional to the
    scores of bm25s (method `lucene`) over these rows alone.
    """
    asked = np.arange(len(index.lengths)) if rows is None else rows
    words = query_words(question)
    return shares_of(words, times_of(index, words, asked), index.lengths[asked], k1=k1, b=b)


def times_of(index: WordIndex, words: Sequence[QueryWord], rows: NDArray[np.intp]) -> NDArray[np.int32]:
    """Count each of q words in each of m rows, as (q, m)."""
    times = np.zeros((len(words), len(rows)), dtype=np.int32)
    column = np.zeros(len(index.lengths), dtype=np.int32)
    for at, word in enumerate(words):
        holders, counts = index.holders(word.forms)
        column[holders] = counts
        times[at] = column[rows]
        column[holders] = 0
    return times


def shares_of(
    words: Sequence[QueryWord],
    times: NDArray[np.integer],
    lengths: NDArray[np.integer],
    *,
    k1: float,
    b: float,
) -> NDArray[np.float64]:
    """Compute the scores of `bm25` from counts (q, n) and the lengths of the texts."""
    total = len(lengths)
    mean = (float(lengths.mean()) if total else 0.0) or 1.0
    scores, whole = np.zeros(total), 0.0
    for word, column in zip(words, times, strict=True):
        held = np.flatnonzero(column)
        often = column[held]
        weight = word.often * np.log1p((total - len(held) + 0.5) / (len(held) + 0.5))
        whole += weight
        scores[held] += weight * often * (k1 + 1) / (often + k1 * (1 - b + b * lengths[held] / mean))
    return scores / (whole * (k1 + 1)) if whole else scores


def query_words(query: str) -> list[QueryWord]:
    """Return the words of a query, each once, in the order of their first occurrence.

    Two words are the same if one is a form of the other. A third word that both might be forms of does not make them
    the same (`PHA`, if its plural were `phas`, and `phases`).
    """
    of_form: dict[str, int] = {}  # form of a word -> number of the word
    of_word: dict[str, int] = {}  # a query word -> the same
    forms: list[dict[str, None]] = []
    often: list[int] = []
    for word in words_in(query):
        if word in FUNCTION_WORDS:
            continue
        own = word_forms(word)
        same = [of_word[form] for form in own if form in of_word] + [of_form.get(word, len(forms))]
        of_word[word] = number = min(same)
        if number == len(forms):
            forms.append({})
            often.append(0)
        forms[number].update(dict.fromkeys(own))
        often[number] += 1
        of_form.update((form, min(number, of_form.get(form, number))) for form in own)
    return [QueryWord(forms=tuple(known), often=times) for known, times in zip(forms, often, strict=True)]


def words_of(
    texts: pa.Array, *, normal: bool = False
) -> Iterator[tuple[NDArray[np.int64], list[str], NDArray[np.int32]]]:
    """Yield for each part of the texts row and word for each occurrence, words as indices into the spellings.

    `normal`: the texts are in normal form. ASCII is split by Arrow with a byte table, in a third of the time of a loop
    in Python over many abstracts.
    """
    import pyarrow.compute as pc

    ascii_only = pc.string_is_ascii(texts)
    others = _spaced_normal if normal else _spaced
    for part, spaced in ((ascii_only, _ascii_spaced), (pc.invert(ascii_only), others)):
        places = np.flatnonzero(part.to_numpy(zero_copy_only=False))
        if not len(places):
            continue
        lists = pc.split_pattern(spaced(texts.filter(part)), " ")
        owners, words = pc.list_parent_indices(lists), pc.list_flatten(lists)
        filled = pc.not_equal(words, "")
        coded = pc.dictionary_encode(words.filter(filled))
        yield (
            places[owners.filter(filled).to_numpy()],
            coded.dictionary.to_pylist(),
            coded.indices.to_numpy().astype(np.int32),
        )


def _ascii_spaced(texts: pa.Array) -> pa.Array:
    """Lower-case ASCII texts and replace all but letters and digits by blanks; the offset of `texts` is 0."""
    letters = [ord(chr(at).lower()) if at < 128 and chr(at).isalnum() else ord(" ") for at in range(256)]
    _, offsets, written = texts.buffers()
    lowered = np.array(letters, np.uint8)[np.frombuffer(written or b"", dtype=np.uint8)]
    return type(texts).from_buffers(len(texts), offsets, pa.py_buffer(lowered))


def _spaced(texts: pa.Array) -> pa.Array:
    """Normalise any texts and replace all but letters and digits by blanks."""
    return pa.array([" ".join(words_in(text)) for text in texts.to_pylist()], texts.type)


def _spaced_normal(texts: pa.Array) -> pa.Array:
    """Replace all but letters and digits by blanks in texts that are in normal form."""
    return pa.array([" ".join(words_of_normal(text)) for text in texts.to_pylist()], texts.type)
