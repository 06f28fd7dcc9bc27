"""BM25 (Robertson & Zaragoza 2009): how well texts answer a query by its words.

The words of stored texts are in the tables of stores/word_index.py, those of any other texts in the arrays of
forward_index.py; both are counted here. A score depends only on its own query and the given texts: not on other
queries, not on texts that a filter removes (R5), and not on any order, to the bit.

Words are those of `words.py`; a plural is the same word as its singular, and function words are ignored.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.text.words import FUNCTION_WORDS, JOINED, SPLIT, spellings, word_forms, words_in, words_of_normal

Held = tuple[NDArray[np.int32], NDArray[np.int32]]  # rows, ascending, and how often each contains a word


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWord:
    """A query word: the forms in which a text may contain it, and its count in the query."""

    forms: tuple[str, ...]
    often: int


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
    words: Sequence[QueryWord],
    holders: Sequence[Held],
    lengths: NDArray[np.integer],
    *,
    k1: float,
    b: float,
    copies: NDArray[np.integer] | None = None,
) -> NDArray[np.float64]:
    """Score n texts as if there were no others, from 0 to below 1; 0 for a text that shares no word with the query.

    `holders`: for each word the rows that contain it, and how often; `lengths`: words in each text; `copies`: how many
    documents have each text (None: one each). The score is the sum over query words of count in the query, times
    idf = ln(1 + (n - df + 0.5) / (df + 0.5)), times tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length)), divided
    by its upper limit, so that it can be weighed against a cosine. A text of mean length that contains each word once
    has 1 / (k1 + 1). It is proportional to the scores of bm25s (method `lucene`).
    """
    copies = np.ones(len(lengths), dtype=np.int64) if copies is None else copies
    total = int(copies.sum())
    mean = (float((lengths * copies).sum() / total) if total else 0.0) or 1.0
    scores, whole = np.zeros(len(lengths)), 0.0
    for word, (rows, times) in zip(words, holders, strict=True):
        documents = int(copies[rows].sum())
        weight = word.often * np.log1p((total - documents + 0.5) / (documents + 0.5))
        whole += weight
        scores[rows] += weight * times * (k1 + 1) / (times + k1 * (1 - b + b * lengths[rows] / mean))
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
        own = [form for spelling in spellings(word) for form in word_forms(spelling)]
        same = [of_word[form] for form in own if form in of_word] + [of_form.get(word, len(forms))]
        of_word[word] = number = min(same)
        if number == len(forms):
            forms.append({})
            often.append(0)
        forms[number].update(dict.fromkeys(own))
        often[number] += 1
        of_form.update((form, min(number, of_form.get(form, number))) for form in own)
    return [QueryWord(forms=tuple(known), often=times) for known, times in zip(forms, often, strict=True)]


def numbered_words(
    texts: pa.Array, number: Callable[[str], int], *, normal: bool = False
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return, for each word that occurs in the texts, its row and its number; `number` numbers a spelling.

    `normal`: the texts are in normal form.
    """
    import pyarrow.compute as pc

    rows, numbers = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for places, part in spaced(texts, normal=normal):
        lists = pc.split_pattern(part, " ")
        owners, words = pc.list_parent_indices(lists), pc.list_flatten(lists)
        filled = pc.not_equal(words, "")
        coded = pc.dictionary_encode(words.filter(filled))
        rows.append(places[owners.filter(filled).to_numpy()].astype(np.int32))
        numbers.append(np.array([*map(number, coded.dictionary.to_pylist())], np.int32)[coded.indices.to_numpy()])
    return np.concatenate(rows), np.concatenate(numbers)


def spaced(texts: pa.Array, *, normal: bool = False) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """Yield the texts in two parts, rows and texts: the words in normal form with blanks between.

    ASCII is normalised by Arrow with a byte table, in a third of the time of a loop in Python over many abstracts.
    """
    import pyarrow.compute as pc

    ascii_only = pc.string_is_ascii(texts)
    split = words_of_normal if normal else words_in

    def others(texts: pa.Array) -> pa.Array:
        return pa.array([" ".join(split(text)) for text in texts.to_pylist()], texts.type)

    for part, make in ((ascii_only, _ascii_spaced), (pc.invert(ascii_only), others)):
        places = np.flatnonzero(part.to_numpy(zero_copy_only=False))
        if len(places):
            yield places, make(texts.filter(part))


def _ascii_spaced(texts: pa.Array) -> pa.Array:
    """Lower-case ASCII texts and replace all but letters and digits by blanks; the offset of `texts` is 0.

    Compounds are in one spelling, as by `in_one_spelling`.
    """
    import pyarrow.compute as pc

    letters = [ord(chr(at).lower()) if at < 128 and chr(at).isalnum() else ord(" ") for at in range(256)]
    _, offsets, written = texts.buffers()
    lowered = np.array(letters, np.uint8)[np.frombuffer(written or b"", dtype=np.uint8)]
    spaced = type(texts).from_buffers(len(texts), offsets, pa.py_buffer(lowered))
    for pattern, parts in ((JOINED, r"\1\2"), (SPLIT, r"\1 \2")):
        spaced = pc.replace_substring_regex(spaced, pattern, parts)
    return spaced
